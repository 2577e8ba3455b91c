/*
 * count.c: a fixed sequence of calls, to have its instructions counted.
 *
 *     valgrind --tool=callgrind --callgrind-out-file=out \
 *       build/bench/count build/lease.so new.db
 *     callgrind_annotate --inclusive=yes --threshold=100 out | grep count_
 *
 * Each count_ function makes the same CALLS calls of one kind, count_pair of
 * what no lease can do without. tests/test_speed.py compares.
 *
 * SPDX-License-Identifier: MIT
 */
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FILL = 1000, CALLS = 300 };

#define COUNTED(name)                                                          \
    __attribute__((noinline)) void count_##name(sqlite3 *db, const char *sql); \
    void count_##name(sqlite3 *db, const char *sql)                            \
    {                                                                          \
        run(db, sql, FILL, FILL + CALLS);                                      \
    }

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql, const char **rest)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, rest) != SQLITE_OK) {
        fprintf(stderr, "count: %s: %s\n", sql, sqlite3_errmsg(db));
        exit(1);
    }
    return stmt;
}

static void step(sqlite3 *db, sqlite3_stmt *stmt, int i)
{
    char name[64];
    int n = snprintf(name, sizeof name, "shard/%08x/%d",
                     (unsigned)i * 2654435761u, i);
    sqlite3_bind_text(stmt, 1, name, n, SQLITE_STATIC);
    if (sqlite3_bind_parameter_count(stmt) > 1)
        sqlite3_bind_int64(stmt, 2, i + 1);
    int rc;
    while ((rc = sqlite3_step(stmt)) == SQLITE_ROW)
        ;
    if (rc != SQLITE_DONE) {
        fprintf(stderr, "count: %s\n", sqlite3_errmsg(db));
        exit(1);
    }
    sqlite3_reset(stmt);
}

/* One or two statements for the names from..to, in a transaction. */
__attribute__((noinline)) static void run(sqlite3 *db, const char *sql,
                                          int from, int to)
{
    const char *rest;
    sqlite3_stmt *first = prepare(db, sql, &rest);
    sqlite3_stmt *second = *rest ? prepare(db, rest, NULL) : NULL;
    sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    for (int i = from; i < to; i++) {
        step(db, first, i);
        if (second)
            step(db, second, i);
    }
    sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    sqlite3_finalize(first);
    sqlite3_finalize(second);
}

COUNTED(pair)
COUNTED(grant)
COUNTED(refuse)
COUNTED(renew)
COUNTED(check)
COUNTED(active)
COUNTED(release)
COUNTED(sweep)

static const char SCHEMA[] =
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;"
    "CREATE TABLE event(token INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER,"
    " event TEXT, resource TEXT, holder TEXT, ttl INTEGER, capacity INTEGER);"
    "CREATE TABLE held(resource TEXT PRIMARY KEY, holder TEXT, token INTEGER,"
    " expires_at INTEGER, capacity INTEGER, ttl INTEGER);"
    "CREATE INDEX held_expires_at ON held(expires_at);"
    "SELECT lease_init()";
static const char PAIR[] =
    "INSERT INTO event(at, event, resource, holder, ttl, capacity)"
    " VALUES(1, 'granted', ?1, 'worker-17', 3600000, 1);"
    "INSERT INTO held VALUES(?1, 'worker-17', last_insert_rowid(),"
    " ?2 + 3600000, 1, 3600000) ON CONFLICT(resource) DO UPDATE SET"
    " holder = excluded.holder, token = excluded.token,"
    " expires_at = excluded.expires_at";
static const char GRANT[] = "SELECT lease_grant(?1, 'worker-17', 3600)";

int main(int argc, char **argv)
{
    sqlite3 *db;
    if (argc != 3 || sqlite3_open(argv[2], &db) != SQLITE_OK ||
        sqlite3_enable_load_extension(db, 1) != SQLITE_OK ||
        sqlite3_load_extension(db, argv[1], NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(db, SCHEMA, NULL, NULL, NULL) != SQLITE_OK)
        return 1;
    run(db, PAIR, 0, FILL);
    count_pair(db, PAIR);
    run(db, GRANT, 0, FILL);
    count_grant(db, GRANT);
    count_refuse(db, "SELECT lease_grant(?1, 'worker-18', 3600)");
    count_check(db, "SELECT lease_check(?1, ?2)");
    count_active(db, "SELECT remaining FROM lease_active WHERE resource = ?1");
    count_renew(db, "SELECT lease_renew(?1, ?2)");
    run(db, "SELECT lease_grant(?1 || '/soon over', 'worker-17', 0.1)", 0,
        2 * CALLS);
    usleep(200000);
    count_sweep(db, "SELECT lease_sweep(2) WHERE ?1 IS NOT NULL");
    count_release(db, "SELECT lease_release(?1, ?2)");
    sqlite3_close(db);
    return 0;
}
