/*
 * db.c: questions to the engine in this process, on a database file.
 *
 * HOW IT WORKS: the statements are the service's own, and as there a change is
 * committed before anybody hears of it. The file is opened with the first
 * question: a process that forks must not have it open before.
 *
 * SPDX-License-Identifier: MIT
 */
#include "db.h"

#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../ext/lease.h"
#include "clock.h"
#include "query.h"
#include "sql.h"

enum { BUSY_STEP_MS = 10 };

struct db {
    struct transport transport; /* first: callers see only this */
    const char *path;
    sqlite3 *db;
    bool has_tables;
    int64_t until_ms; /* of the question under way */
    int wake_fd;
    char actor[64];
};

/* Another process has the file: wait, but no longer than there is time. */
static int on_busy(void *context, int times)
{
    struct db *db = context;
    (void)times;
    if (clock_ms() + BUSY_STEP_MS > db->until_ms)
        return 0;
    return !clock_sleep(chance_between(1, BUSY_STEP_MS), db->wake_fd);
}

static void flag_take(void *context, sqlite3_stmt *stmt)
{
    *(bool *)context = sqlite3_column_int(stmt, 0);
}

/* A file without leases gets them only from who would write the first one. */
static int tables_need(struct db *db, bool create)
{
    static const struct fields NONE;
    if (db->has_tables)
        return SQLITE_OK;
    int rc =
        query_run(db->db, SQL_CLI_TABLES, &NONE, flag_take, &db->has_tables);
    if (rc != SQLITE_OK || db->has_tables)
        return rc;
    if (!create)
        return SQLITE_EMPTY;
    rc = query_run(db->db, SQL_HTTP_INIT, &NONE, NULL, NULL);
    db->has_tables = rc == SQLITE_OK;
    return rc;
}

static int file_open(struct db *db, bool create)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE;
    char *text = NULL;
    int rc = SQLITE_OK;
    if (!db->db) {
        if (create)
            flags |= SQLITE_OPEN_CREATE;
        rc = sqlite3_open_v2(db->path, &db->db, flags, NULL);
        if (rc == SQLITE_OK)
            rc = sqlite3_lease_init(db->db, &text, NULL);
        sqlite3_free(text);
        if (rc == SQLITE_OK)
            rc = sqlite3_busy_handler(db->db, on_busy, db);
    }
    return rc == SQLITE_OK ? tables_need(db, create) : rc;
}

static void answer_take(void *context, sqlite3_stmt *stmt)
{
    struct answer *answer = context;
    const char *body = (const char *)sqlite3_column_text(stmt, 1);
    free(answer->body);
    answer->status = sqlite3_column_int(stmt, 0);
    answer->body = strdup(body ? body : "");
    answer->retry_after = sqlite3_column_int(stmt, 2);
}

static int run(struct db *db, const struct route *route,
               const struct fields *fields, struct answer *answer)
{
    if (!route->writes)
        return query_run(db->db, route->sql, fields, answer_take, answer);
    int rc = sqlite3_exec(db->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = query_run(db->db, route->sql, fields, answer_take, answer);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db->db, "COMMIT", NULL, NULL, NULL);
    return rc;
}

/* The code by which the service would call this failure. */
static const char *failure_code(int rc, const char *text)
{
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return "busy";
    case SQLITE_FULL:
        return "storage_full";
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
        return "read_only";
    case SQLITE_CONSTRAINT:
        return rc == SQLITE_CONSTRAINT ? "idempotency_mismatch" : "internal";
    case SQLITE_ERROR: /* the engine's own words about an argument */
        return strncmp(text, "lease_", 6) == 0 ? "invalid" : "internal";
    default:
        return "internal";
    }
}

/* What went wrong, as the service would answer it. */
static void failure_answer(struct db *db, int rc, struct answer *answer)
{
    struct fields fields = {0};
    char *text = NULL;
    free(answer->body);
    answer->body = NULL;
    answer->status = 0;
    if (rc == SQLITE_EMPTY)
        text =
            sqlite3_mprintf("%s: there are no leases in this file", db->path);
    else
        text = sqlite3_mprintf("%s%s%s", rc == SQLITE_ERROR ? "" : db->path,
                               rc == SQLITE_ERROR ? "" : ": ",
                               db->db ? sqlite3_errmsg(db->db)
                                      : sqlite3_errstr(rc));
    if (db->db && !sqlite3_get_autocommit(db->db))
        sqlite3_exec(db->db, "ROLLBACK", NULL, NULL, NULL);
    snprintf(answer->why, sizeof answer->why, "%s", text ? text : "no memory");
    answer->woken = clock_sleep(0, db->wake_fd);
    value_set_text(&fields.v[FIELD_CODE], failure_code(rc, answer->why));
    value_set_text(&fields.v[FIELD_DETAIL], answer->why);
    if (db->has_tables && !answer->woken)
        query_run(db->db, SQL_HTTP_PROBLEM, &fields, answer_take, answer);
    sqlite3_free(text);
}

static void db_ask(struct transport *transport, const struct ask *ask,
                   struct answer *answer)
{
    struct db *db = (struct db *)transport;
    const struct route *route = &ROUTES[ask->route];
    struct fields fields = ask->fields;
    value_set_text(&fields.v[FIELD_ACTOR], db->actor[0] ? db->actor : NULL);
    *answer = (struct answer){.sent_ms = clock_ms()};
    db->until_ms = answer->sent_ms + ask->timeout_ms;
    db->wake_fd = ask->wake_fd;
    int rc = file_open(db, route->creates);
    if (rc == SQLITE_OK)
        rc = run(db, route, &fields, answer);
    if (rc != SQLITE_OK)
        failure_answer(db, rc, answer);
    if (rc != SQLITE_OK && !db->has_tables) {
        sqlite3_close(db->db); /* the next question looks anew */
        db->db = NULL;
    }
}

static void db_close(struct transport *transport)
{
    struct db *db = (struct db *)transport;
    if (!db)
        return;
    sqlite3_close(db->db);
    free(db);
}

struct transport *db_open(const char *path)
{
    struct db *db = calloc(1, sizeof *db);
    if (!db)
        return NULL;
    const struct passwd *user = getpwuid(geteuid());
    db->transport = (struct transport){db_ask, db_close};
    db->path = path;
    db->wake_fd = -1;
    if (user)
        snprintf(db->actor, sizeof db->actor, "%s", user->pw_name);
    return &db->transport;
}
