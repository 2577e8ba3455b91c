/*
 * story.c: the life of a database.
 *
 * SPDX-License-Identifier: MIT
 */
#include "story.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../ext/lease.h"
#include "../../fcgi/walfile.h"

#define WAL "PRAGMA journal_mode = WAL;"
#define FULL "PRAGMA synchronous = FULL;"

const struct way ways[] = {
    {"service",
     "as the service: WAL, FULL, the log in one piece, a checkpointer",
     WAL FULL "PRAGMA cache_spill = OFF; PRAGMA wal_autocheckpoint = 0;"
              "PRAGMA journal_size_limit = 65536",
     .service = true, .sound = true},
    {"wal", "WAL, FULL, SQLite's own checkpoints",
     WAL FULL "PRAGMA wal_autocheckpoint = 24", .sound = true},
    {"delete", "a rollback journal that is deleted, EXTRA",
     "PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA", .sound = true},
    {"truncate", "a rollback journal that is truncated, FULL",
     "PRAGMA journal_mode = TRUNCATE;" FULL, .sound = true},
    {"persist", "a rollback journal that is kept, FULL",
     "PRAGMA journal_mode = PERSIST;" FULL, .sound = true},
    {"fence", "the database that is written to: register and guard, WAL, FULL",
     WAL FULL "PRAGMA wal_autocheckpoint = 24", .fence = true, .sound = true},
    {"fence-delete", "the same with a rollback journal, EXTRA",
     "PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA", .fence = true,
     .sound = true},
    /* What must be found out. */
    {"normal", "WAL, NORMAL: the newest may be lost",
     WAL "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 24",
     .sound = false},
    {"off", "WAL, OFF", WAL "PRAGMA synchronous = OFF", .sound = false},
    {"delete-full", "a deleted rollback journal may come back without EXTRA",
     "PRAGMA journal_mode = DELETE;" FULL, .sound = false},
    {"delete-off", "a rollback journal that nobody syncs",
     "PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF", .sound = false},
    {"lies", "as the service, on a disk that says it synced and did not",
     WAL FULL "PRAGMA wal_autocheckpoint = 24", .lies = true, .sound = false},
    {NULL}};

const struct way *way_find(const char *name)
{
    const struct way *way = ways;
    while (way->name && strcmp(way->name, name) != 0)
        way++;
    return way->name ? way : NULL;
}

enum { TOKENS = 32, RESOURCES = 6, HOLDERS = 4 };

struct story {
    const struct way *way;
    const char *path;
    sqlite3 *db, *checkpointer;
    uint64_t seed;
    int64_t boottime_ms;
    int boots;
    int64_t told;           /* the highest token answered */
    int64_t pending;        /* the same inside a transaction */
    int64_t tokens[TOKENS]; /* some, with their resources */
    int resources[TOKENS];
};

static unsigned pick(struct story *s, unsigned n)
{
    return (unsigned)(dice_roll(&s->seed) % n);
}

static void story_fail(struct story *s, const char *what)
{
    fprintf(stderr, "the story broke: %s: %s\n", what, sqlite3_errmsg(s->db));
    exit(2);
}

static void run(struct story *s, sqlite3 *db, const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        story_fail(s, sql);
}

/* A call that a rule may refuse, by NULL or as a contradiction. */
static int64_t ask(struct story *s, const char *format, ...)
{
    va_list args;
    int rc;
    va_start(args, format);
    char *sql = sqlite3_vmprintf(format, args);
    va_end(args);
    int64_t number = judge_number(s->db, sql, &rc);
    if (rc != SQLITE_OK && (rc & 0xff) != SQLITE_CONSTRAINT)
        story_fail(s, sql);
    sqlite3_free(sql);
    return rc == SQLITE_OK ? number : 0;
}

/* --- time ----------------------------------------------------------------- */

static void clock_write(struct story *s)
{
    FILE *file = fopen(getenv("LEASE_TEST_CLOCK"), "w");
    if (file == NULL)
        story_fail(s, "the clock");
    fprintf(file, "%lld %lld boot-%d\n", (long long)s->boottime_ms,
            1700000000000ll + s->boottime_ms, s->boots);
    fclose(file);
}

static void clock_pass(struct story *s)
{
    s->boottime_ms += pick(s, 3) ? pick(s, 200) : pick(s, 4000);
    clock_write(s);
}

/* The machine starts anew. The first call stores the clock and does no more:
 * one commit. */
static void clock_boot(struct story *s)
{
    s->boots++;
    clock_write(s);
    if (!s->way->fence)
        ask(s, "SELECT lease_renew('boot', 1)");
}

/* --- connections ---------------------------------------------------------- */

static sqlite3 *story_connect(struct story *s, const char *vfs)
{
    sqlite3 *db = NULL;
    char *none = NULL;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    if (sqlite3_open_v2(s->path, &db, flags, vfs) != SQLITE_OK ||
        sqlite3_lease_init(db, &none, NULL) != SQLITE_OK)
        story_fail(s, "open");
    run(s, db, s->way->pragmas);
    return db;
}

static void story_open(struct story *s)
{
    s->db = story_connect(s, s->way->service ? WALFILE_VFS : "disk");
    s->checkpointer = s->way->service ? story_connect(s, "disk") : NULL;
}

static void story_close(struct story *s)
{
    if (sqlite3_close(s->checkpointer) || sqlite3_close(s->db))
        story_fail(s, "close");
}

/* --- steps ---------------------------------------------------------------- */

static void told(struct story *s, int resource, int64_t token)
{
    if (token == 0)
        return;
    unsigned at = pick(s, TOKENS);
    s->tokens[at] = token;
    s->resources[at] = resource;
    if (token > s->pending)
        s->pending = token;
}

static void step_grant(struct story *s)
{
    int resource = (int)pick(s, RESOURCES);
    int64_t token;
    if (pick(s, 4) == 0)
        token = ask(s, "SELECT lease_grant('r%d', 'h%u', %d, 1, NULL, 'q%d')",
                    resource, pick(s, HOLDERS), 1 + resource, resource);
    else
        token = ask(s,
                    "SELECT lease_grant('r%d', 'h%u', %u, %u, "
                    "substr(hex(zeroblob(1000)), 1, %u))",
                    resource, pick(s, HOLDERS), 1 + pick(s, 5), 1 + pick(s, 3),
                    pick(s, 4) ? 1 : pick(s, 2000));
    told(s, resource, token);
}

static void step_renew(struct story *s)
{
    unsigned at = pick(s, TOKENS);
    told(s, s->resources[at],
         ask(s, "SELECT lease_renew('r%d', %lld)", s->resources[at],
             (long long)(s->tokens[at] + (s->tokens[at] == 0))));
}

static void step_release(struct story *s)
{
    unsigned at = pick(s, TOKENS);
    ask(s, "SELECT lease_release('r%d', %lld)", s->resources[at],
        (long long)(s->tokens[at] + (s->tokens[at] == 0)));
}

static void step_lease(struct story *s)
{
    switch (pick(s, 9)) {
    case 0:
        ask(s, "SELECT lease_revoke('r%u')", pick(s, RESOURCES));
        break;
    case 1:
        ask(s, "SELECT lease_sweep(%u)", 1 + pick(s, 4));
        break;
    case 2:
        ask(s, "SELECT lease_fence('r%u', %u)", pick(s, RESOURCES),
            1 + pick(s, 500));
        break;
    case 3:
        step_release(s);
        break;
    case 4:
    case 5:
    case 6:
        step_renew(s);
        break;
    default:
        step_grant(s);
    }
}

static void step_write(struct story *s)
{
    unsigned resource = pick(s, RESOURCES), token = 1 + pick(s, 1000);
    if (pick(s, 2))
        ask(s, "SELECT lease_fence('r%u', %u)", resource, token);
    else
        ask(s,
            "INSERT INTO work VALUES ('r%u', %u, hex(randomblob(%u))) "
            "ON CONFLICT DO UPDATE SET token = excluded.token, "
            "body = excluded.body",
            resource, token, 1 + pick(s, 3000));
}

static void step_one(struct story *s)
{
    if (s->way->fence)
        step_write(s);
    else
        step_lease(s);
}

/* Many calls in one transaction, as the service does it. A token that was told
 * inside one that rolls back was never issued. */
static void step_batch(struct story *s)
{
    bool commit = pick(s, 6) != 0;
    int64_t before = s->pending;
    run(s, s->db, "BEGIN IMMEDIATE");
    for (unsigned n = 1 + pick(s, 8); n > 0; n--)
        step_one(s);
    run(s, s->db, commit ? "COMMIT" : "ROLLBACK");
    if (!commit)
        s->pending = before;
}

static void step_checkpoint(struct story *s)
{
    sqlite3 *db = s->checkpointer ? s->checkpointer : s->db;
    run(s, db,
        pick(s, 2) ? "PRAGMA wal_checkpoint(PASSIVE)"
                   : "PRAGMA wal_checkpoint(TRUNCATE)");
}

static void step_rare(struct story *s)
{
    switch (pick(s, 8)) {
    case 0:
        story_close(s);
        story_open(s);
        break;
    case 1:
        clock_boot(s);
        break;
    case 2:
        run(s, s->db, "VACUUM");
        break;
    case 3:
        if (!s->way->fence)
            ask(s, "SELECT lease_config('max_ttl', %u)", 86400 + pick(s, 1000));
        break;
    case 4:
        if (!s->way->fence)
            told(s, 0, ask(s, "SELECT lease_restore(%u)", 1 + pick(s, 100)));
        break;
    default:
        step_checkpoint(s);
    }
}

static void story_begin(struct story *s)
{
    if (s->way->fence) {
        run(s, s->db,
            "BEGIN; CREATE TABLE work(resource TEXT PRIMARY KEY, token "
            "INTEGER, body TEXT); "
            "SELECT lease_guard('work', 'resource', 'token'); COMMIT");
        return;
    }
    /* The tables, the clock and the first lease at once. */
    run(s, s->db, "BEGIN IMMEDIATE");
    told(s, 0, ask(s, "SELECT lease_grant('r0', 'h0', 2)"));
    run(s, s->db, "COMMIT");
}

/* Steps of the way, each one commit at most. */
static void story_step(struct story *s, int number)
{
    if (number == 0)
        story_begin(s);
    else if (number == 1)
        clock_boot(s);
    else if (number == 2 && !s->way->fence)
        /* So that the log is trimmed soon. */
        run(s, s->db, "UPDATE lease_config SET event_rows = 40");
    else if (pick(s, 8) == 0)
        step_rare(s);
    else if (pick(s, 3) == 0)
        step_batch(s);
    else
        step_one(s);
}

void story_live(const struct way *way, uint64_t seed, int steps,
                const char *path, struct disk *disk, struct book *book)
{
    struct story s = {
        .way = way, .path = path, .seed = seed, .boottime_ms = 1000};
    disk_start(disk, path);
    disk->lies = way->lies;
    clock_write(&s);
    story_open(&s);
    book_add(book, judge_digest(s.db), 0, 0);
    for (int number = 0; number < steps; number++) {
        story_step(&s, number);
        s.told = s.pending;
        book_add(book, judge_digest(s.db), disk->n, s.told);
        clock_pass(&s);
    }
    story_close(&s);
}
