/*
 * judge.c: looks at a recovered database.
 *
 * SPDX-License-Identifier: MIT
 */
#include "judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ext/lease.h"

const char *const judge_text[JUDGE_RCS] = {
    "fine", "damaged", "without what was acknowledged", "half done",
    "issuing a token again"};

void book_add(struct book *book, uint64_t digest, int position, int64_t told)
{
    if (book->n == book->room) {
        book->room = book->room ? book->room * 2 : 256;
        book->states =
            disk_alloc(book->states, (size_t)book->room * sizeof *book->states);
    }
    book->states[book->n++] = (struct state){digest, position, told};
}

static void digest_row(uint64_t *digest, sqlite3_stmt *stmt)
{
    uint64_t h = *digest;
    for (int i = 0; i < sqlite3_column_count(stmt); i++) {
        const unsigned char *text = sqlite3_column_text(stmt, i);
        h = (h ^ (uint64_t)sqlite3_column_type(stmt, i)) * 0x100000001b3u;
        for (int n = sqlite3_column_bytes(stmt, i); n > 0; n--)
            h = (h ^ *text++) * 0x100000001b3u;
    }
    *digest = h ^ (h >> 32);
}

static int digest_rows(sqlite3 *db, const char *sql, uint64_t *digest)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    while (rc == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW)
        digest_row(digest, stmt);
    int end = sqlite3_finalize(stmt);
    return rc ? rc : end;
}

static int digest_take(sqlite3 *db, uint64_t *digest)
{
    static const char schema[] =
        "SELECT type, name, sql FROM sqlite_schema ORDER BY name";
    static const char tables[] =
        "SELECT printf('SELECT * FROM \"%w\" ORDER BY 1', name) "
        "FROM sqlite_schema WHERE type = 'table' ORDER BY name";
    sqlite3_stmt *stmt = NULL;
    *digest = 1;
    int rc = digest_rows(db, schema, digest);
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(db, tables, -1, &stmt, NULL);
    while (rc == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW)
        rc =
            digest_rows(db, (const char *)sqlite3_column_text(stmt, 0), digest);
    int end = sqlite3_finalize(stmt);
    return rc ? rc : end;
}

uint64_t judge_digest(sqlite3 *db)
{
    uint64_t digest;
    if (digest_take(db, &digest) != SQLITE_OK) {
        fprintf(stderr, "cannot read: %s\n", sqlite3_errmsg(db));
        exit(2);
    }
    return digest;
}

int64_t judge_number(sqlite3 *db, const char *sql, int *rc)
{
    sqlite3_stmt *stmt = NULL;
    int64_t number = 0;
    *rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    if (*rc == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW)
        number = sqlite3_column_int64(stmt, 0);
    int end = sqlite3_finalize(stmt);
    *rc = *rc ? *rc : end;
    return number;
}

static enum judge_rc digest_judge(const struct book *book, int position,
                                  uint64_t digest, int64_t *told)
{
    int last = 0;
    while (last + 1 < book->n && book->states[last + 1].position <= position)
        last++;
    *told = book->states[last].told;
    if (digest == book->states[last].digest ||
        (last + 1 < book->n && digest == book->states[last + 1].digest))
        return JUDGE_FINE;
    for (int i = 0; i < last; i++)
        if (digest == book->states[i].digest)
            return JUDGE_LOST;
    return JUDGE_HALF;
}

/* The token that comes next: from the counter, or really granted. */
static int64_t judge_next(sqlite3 *db, bool grants, int *rc)
{
    static const char counter[] =
        "SELECT seq + 1 FROM sqlite_sequence WHERE name = 'lease_event'";
    static const char grant[] =
        "SELECT lease_grant('after ' || hex(randomblob(8)), 'all', 1)";
    char *none = NULL;
    if (!grants) {
        int64_t next = judge_number(db, counter, rc);
        *rc = *rc == SQLITE_ERROR ? SQLITE_OK : *rc; /* no such table yet */
        return next ? next : 1;
    }
    *rc = sqlite3_lease_init(db, &none, NULL);
    /* With less, a second failure may take back what is told here. */
    sqlite3_exec(db, "PRAGMA synchronous = EXTRA; BEGIN IMMEDIATE", NULL, NULL,
                 NULL);
    int64_t token = judge_number(db, grant, rc);
    if (*rc == SQLITE_OK)
        *rc = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    return token;
}

static enum judge_rc judge_open(sqlite3 *db, const struct book *book,
                                int position, bool grants, uint64_t after[2])
{
    int rc;
    int64_t told = 0;
    int64_t whole = judge_number(
        db, "SELECT integrity_check = 'ok' FROM pragma_integrity_check", &rc);
    if (rc != SQLITE_OK || whole != 1 || digest_take(db, &after[0]))
        return JUDGE_DAMAGED;
    enum judge_rc verdict = digest_judge(book, position, after[0], &told);
    int64_t token = judge_next(db, grants, &rc);
    after[1] = after[0];
    if (rc != SQLITE_OK || (grants && digest_take(db, &after[1])))
        return JUDGE_DAMAGED;
    bool known = verdict == JUDGE_FINE || verdict == JUDGE_LOST;
    return known && token <= told ? JUDGE_REUSED : verdict;
}

enum judge_rc judge_look(const char *path, const char *vfs,
                         const struct book *book, int position, bool grants,
                         uint64_t after[2])
{
    sqlite3 *db = NULL;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    enum judge_rc verdict = JUDGE_DAMAGED;
    if (sqlite3_open_v2(path, &db, flags, vfs) == SQLITE_OK)
        verdict = judge_open(db, book, position, grants, after);
    if (sqlite3_close(db) != SQLITE_OK)
        abort();
    return verdict;
}
