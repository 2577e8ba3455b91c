/*
 * embedded.c: what a lease costs inside a program, measured against the least
 * that any audited lease table needs: one event INSERT and one lease UPSERT,
 * prepared, with one index.
 *
 *     build/bench/embedded build/lease.so [rounds [database [growth]]]
 *
 * With "growth" also what a grant costs as the leases become many. Everything
 * of a round runs in turn on new files, so that a noisy machine disturbs all of
 * it alike; what counts is the ratio, and the median of the rounds. Prints one
 * line a measurement: name, microseconds, and its ratio to the floor, where
 * there is one.
 *
 * SPDX-License-Identifier: MIT
 */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS_MAX = 99, BATCH = 50000, DURABLE = 1000, MANY = 100000 };

/* The measurements of a round, in microseconds a call. */
enum figure {
    FLOOR_TX,
    GRANT_TX,
    RENEW_TX,
    REFUSE_TX,
    FLOOR_FSYNC,
    FLOOR_DURABLE,
    FLOOR_PROCESSOR,
    GRANT_DURABLE,
    REFUSE_DURABLE,
    CHECK,
    ACTIVE,
    FIGURES
};

static const struct {
    const char *name;
    int floor; /* the figure it is held against, or -1 */
} figures[FIGURES] = {
    [FLOOR_TX] = {"floor: the bare pair, in a transaction", -1},
    [GRANT_TX] = {"lease_grant, in a transaction", FLOOR_TX},
    [RENEW_TX] = {"lease_renew, in a transaction", FLOOR_TX},
    [REFUSE_TX] = {"lease_grant refused, in a transaction", FLOOR_TX},
    [FLOOR_FSYNC] = {"floor: fdatasync of one page appended", -1},
    [FLOOR_DURABLE] = {"floor: the bare pair, durable each", -1},
    [FLOOR_PROCESSOR] = {"floor: the bare pair, processor", -1},
    [GRANT_DURABLE] = {"lease_grant, durable each", FLOOR_DURABLE},
    [REFUSE_DURABLE] = {"lease_grant refused, on its own", FLOOR_DURABLE},
    [CHECK] = {"lease_check, on its own", -1},
    [ACTIVE] = {"lease_active by resource, on its own", -1},
};

static const char FLOOR_SCHEMA[] =
    "CREATE TABLE event(token INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER,"
    " event TEXT, resource TEXT, holder TEXT, ttl INTEGER, capacity INTEGER);"
    "CREATE TABLE lease(resource TEXT PRIMARY KEY, holder TEXT, token INTEGER,"
    " expires_at INTEGER, capacity INTEGER, ttl INTEGER);"
    "CREATE INDEX lease_expires_at ON lease(expires_at);";
static const char FLOOR_EVENT[] =
    "INSERT INTO event(at, event, resource, holder, ttl, capacity)"
    " VALUES(:at, 'granted', ?1, 'worker-17', 3600000, 1)";
static const char FLOOR_LEASE[] =
    "INSERT INTO lease VALUES(?1, 'worker-17', last_insert_rowid(),"
    " :at + 3600000, 1, 3600000) ON CONFLICT(resource) DO UPDATE SET"
    " holder = excluded.holder, token = excluded.token,"
    " expires_at = excluded.expires_at";

static void die(const char *what, const char *why)
{
    fprintf(stderr, "embedded: %s: %s\n", what, why);
    exit(1);
}

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void run(sqlite3 *db, const char *sql)
{
    char *why = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
        die(sql, why);
}

static void remove_file(const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    char name[600];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s%s", path, ends[i]);
        unlink(name);
    }
}

/* A new file with the extension loaded, durable, with a cache of 64 MiB. */
static sqlite3 *open_new(const char *path, const char *extension)
{
    sqlite3 *db;
    char *why = NULL;
    remove_file(path);
    if (sqlite3_open(path, &db) != SQLITE_OK)
        die(path, sqlite3_errmsg(db));
    sqlite3_enable_load_extension(db, 1);
    if (sqlite3_load_extension(db, extension, NULL, &why) != SQLITE_OK)
        die(extension, why);
    run(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
            "PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 0");
    return db;
}

static sqlite3_stmt *prepare(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *stmt;
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
        die(sql, sqlite3_errmsg(db));
    return stmt;
}

/* Names in no order, as names come. */
static int name_of(int i, char *name, size_t size)
{
    return snprintf(name, size, "shard/%08x/%d", (unsigned)i * 2654435761u, i);
}

/* Step one or two statements for the names from..from+n. Microseconds each, of
 * that clock. */
static double measure_by(clockid_t clock, sqlite3 *db, const char *first,
                         const char *second, int from, int n,
                         bool one_transaction)
{
    sqlite3_stmt *stmt[2] = {prepare(db, first),
                             second ? prepare(db, second) : NULL};
    char name[64];
    double start = seconds(clock);
    if (one_transaction)
        run(db, "BEGIN IMMEDIATE");
    for (int i = from; i < from + n; i++) {
        int bytes = name_of(i, name, sizeof name);
        if (second && !one_transaction)
            run(db, "BEGIN IMMEDIATE");
        for (int k = 0; k < 2 && stmt[k]; k++) {
            sqlite3_bind_text(stmt[k], 1, name, bytes, SQLITE_STATIC);
            if (sqlite3_bind_parameter_count(stmt[k]) > 1)
                sqlite3_bind_int64(stmt[k], 2, i + 1);
            int rc = sqlite3_step(stmt[k]);
            if (rc != SQLITE_ROW && rc != SQLITE_DONE)
                die(sqlite3_sql(stmt[k]), sqlite3_errmsg(db));
            sqlite3_reset(stmt[k]);
        }
        if (second && !one_transaction)
            run(db, "COMMIT");
    }
    if (one_transaction)
        run(db, "COMMIT");
    double each = (seconds(clock) - start) / n * 1e6;
    for (int k = 0; k < 2; k++)
        sqlite3_finalize(stmt[k]);
    run(db, "PRAGMA wal_checkpoint(TRUNCATE)");
    return each;
}

static double measure(sqlite3 *db, const char *first, const char *second,
                      int from, int n, bool one_transaction)
{
    return measure_by(CLOCK_MONOTONIC, db, first, second, from, n,
                      one_transaction);
}

static double measure_fsync(const char *path)
{
    static const char page[4096];
    remove_file(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    double start = seconds(CLOCK_MONOTONIC);
    for (int i = 0; i < DURABLE; i++)
        if (write(fd, page, sizeof page) != sizeof page || fdatasync(fd) != 0)
            die(path, "cannot be written");
    close(fd);
    return (seconds(CLOCK_MONOTONIC) - start) / DURABLE * 1e6;
}

static void measure_floor(const char *path, const char *so, double *figure)
{
    sqlite3 *db = open_new(path, so);
    run(db, FLOOR_SCHEMA);
    measure(db, FLOOR_EVENT, FLOOR_LEASE, 0, MANY, true);
    figure[FLOOR_TX] = measure(db, FLOOR_EVENT, FLOOR_LEASE, MANY, BATCH, true);
    figure[FLOOR_DURABLE] =
        measure(db, FLOOR_EVENT, FLOOR_LEASE, MANY + BATCH, DURABLE, false);
    figure[FLOOR_PROCESSOR] =
        measure_by(CLOCK_PROCESS_CPUTIME_ID, db, FLOOR_EVENT, FLOOR_LEASE,
                   MANY + BATCH + DURABLE, DURABLE, false);
    sqlite3_close(db);
    figure[FLOOR_FSYNC] = measure_fsync(path);
}

static void measure_lease(const char *path, const char *so, double *figure)
{
    static const char grant[] = "SELECT lease_grant(?1, 'worker-17', 3600)";
    static const char refuse[] = "SELECT lease_grant(?1, 'worker-18', 3600)";
    sqlite3 *db = open_new(path, so);
    run(db, "SELECT lease_init(), lease_config('event_rows', 100000000)");
    measure(db, grant, NULL, 0, MANY, true);
    figure[GRANT_TX] = measure(db, grant, NULL, MANY, BATCH, true);
    figure[GRANT_DURABLE] =
        measure(db, grant, NULL, MANY + BATCH, DURABLE, false);
    figure[RENEW_TX] =
        measure(db, "SELECT lease_renew(?1, ?2)", NULL, 0, BATCH, true);
    figure[REFUSE_TX] = measure(db, refuse, NULL, 0, BATCH, true);
    figure[REFUSE_DURABLE] = measure(db, refuse, NULL, 0, BATCH, false);
    figure[CHECK] =
        measure(db, "SELECT lease_check(?1, ?2)", NULL, 0, BATCH, false);
    figure[ACTIVE] =
        measure(db, "SELECT remaining FROM lease_active WHERE resource = ?1",
                NULL, 0, BATCH, false);
    sqlite3_close(db);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_size);
    return values[n / 2];
}

/* The cost of a grant as the number of active leases grows: the processor's
 * time, for what a commit of so many pages costs is the disk's affair. */
static void measure_growth(const char *path, const char *so)
{
    static const int sizes[] = {1000, 10000, 100000, 1000000};
    static const char grant[] = "SELECT lease_grant(?1, 'w' || ?2, 3600)";
    static const char active[] =
        "SELECT remaining FROM lease_active WHERE resource = ?1";
    enum { WARM = 5000, ROUND = 10000 };
    double first = 0;
    for (int i = 0; i < 4; i++) {
        sqlite3 *db = open_new(path, so);
        run(db, "SELECT lease_init(), lease_config('event_rows', 100000000)");
        measure(db, grant, NULL, 0, sizes[i], true);
        measure(db, grant, NULL, sizes[i], WARM, true);
        double each[3];
        for (int k = 0; k < 3; k++)
            each[k] = measure_by(CLOCK_PROCESS_CPUTIME_ID, db, grant, NULL,
                                 sizes[i] + WARM + k * ROUND, ROUND, true);
        double now = median(each, 3);
        if (i == 0)
            first = now;
        printf("%8d active leases: grant %6.2f us of processor (x %.2f), "
               "lease_active by resource %6.2f us\n",
               sizes[i], now, now / first,
               measure(db, active, NULL, 0, 1000, false));
        sqlite3_close(db);
    }
}

int main(int argc, char **argv)
{
    static double figure[FIGURES][ROUNDS_MAX], ratio[FIGURES][ROUNDS_MAX];
    char path[500];
    int rounds = argc > 2 ? atoi(argv[2]) : 5;
    if (argc < 2 || rounds < 1 || rounds > ROUNDS_MAX)
        die("usage", "embedded lease.so [rounds [database [growth]]]");
    snprintf(path, sizeof path, argc > 3 ? "%s" : "%s.db",
             argv[argc > 3 ? 3 : 0]);
    for (int r = 0; r < rounds; r++) {
        double now[FIGURES];
        measure_floor(path, argv[1], now);
        measure_lease(path, argv[1], now);
        for (int i = 0; i < FIGURES; i++) {
            int floor = figures[i].floor;
            figure[i][r] = now[i];
            ratio[i][r] = floor < 0 ? 0 : now[floor] / now[i];
        }
    }
    for (int i = 0; i < FIGURES; i++) {
        printf("%-42s %9.2f us", figures[i].name, median(figure[i], rounds));
        if (figures[i].floor >= 0)
            printf("  %5.2f of the floor's rate", median(ratio[i], rounds));
        printf("\n");
    }
    if (argc > 4)
        measure_growth(path, argv[1]);
    remove_file(path);
    return 0;
}
