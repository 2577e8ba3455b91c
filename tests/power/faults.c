/*
 * faults.c: lets every call fail that SQLite makes to the disk or for memory.
 *
 *     faults 1       each first, second, third … call of each kind, once and
 *                    lasting, in each action, with a log and with a journal
 *     faults 9       every ninth of them
 *
 * An action that says it was done was done, whole; one that fails says so with
 * SQLite's own code and has done nothing. Then, on the same connection and
 * with the disk in order, it succeeds. The file passes integrity_check.
 *
 * Prints figures. Exit 0: so it was; 1: not, and in which case first.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../ext/lease.h"
#include "../../fcgi/walfile.h"
#include "judge.h"

static const struct kind {
    const char *name;
    int rc[2]; /* it fails with, the second also if there is one */
} kinds[CALLS] = {
    [CALL_READ] = {"read", {SQLITE_IOERR_READ}},
    [CALL_WRITE] = {"write", {SQLITE_FULL, SQLITE_IOERR_WRITE}},
    [CALL_TRUNCATE] = {"truncate", {SQLITE_IOERR_TRUNCATE}},
    [CALL_SYNC] = {"sync", {SQLITE_IOERR_FSYNC}},
    [CALL_OPEN] = {"open", {SQLITE_CANTOPEN}},
    [CALL_DELETE] = {"delete", {SQLITE_IOERR_DELETE}},
    [CALL_SIZE] = {"size", {SQLITE_IOERR_FSTAT}},
    [CALL_LOCK] = {"lock", {SQLITE_IOERR_LOCK}},
    [CALL_SHM] = {"shm", {SQLITE_IOERR_SHMMAP}},
    [CALL_ALLOCATE] = {"allocate", {SQLITE_NOMEM}},
};

static const struct action {
    const char *sql; /* its first column tells of success */
    bool fresh;      /* on a new file */
} actions[] = {
    {"SELECT lease_init()", true},
    {"SELECT lease_grant('new', 'h', 5)", true},
    {"SELECT lease_fence('w', 7)", true},
    {"SELECT lease_grant('new', 'h', 5, 2, 'data', 'id')", false},
    {"SELECT lease_grant('over', 'h', 5)", false},
    {"SELECT lease_renew('held', 1)", false},
    {"SELECT lease_release('held', 1)", false},
    {"SELECT lease_revoke('held', NULL, 'why')", false},
    {"SELECT lease_sweep()", false},
    {"SELECT lease_restore(5)", false},
    {"SELECT lease_config('max_ttl', 100000)", false},
    {"SELECT lease_fence('w', 9)", false},
    {"SELECT lease_guard('work', 'r', 't')", false},
    {"BEGIN IMMEDIATE; SELECT lease_grant('new', 'h', 5); "
     "SELECT lease_renew('held', 1); COMMIT;",
     false},
    {"SELECT lease_check('held', 1)", false},
    {"SELECT lease_why('held', 1) = 'active'", false},
    {"SELECT count(*) FROM lease_active", false},
    {"SELECT lease_now() > 0", false},
};

#define WAL                                                                    \
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"                    \
    "PRAGMA wal_autocheckpoint = 1"

static const struct way {
    const char *vfs, *pragma;
} ways[] = {
    {"disk", "PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA"},
    {"disk", WAL},
    {WALFILE_VFS, WAL "; PRAGMA cache_spill = OFF"}, /* as the service */
};
enum { WAYS = sizeof ways / sizeof *ways };

struct trial {
    const struct action *action;
    const struct way *way;
    sqlite3 *db;
    int64_t number; /* that the action answers, and */
    uint64_t before, after;
    long countdown; /* of the fault */
    int rc;         /* that it told, and in words */
    char why[200];
};

static char folder[64], path[96], base[96];
static sqlite3_mem_methods memory;
static long trials, errors;

/* --- memory --------------------------------------------------------------- */

static void *fault_malloc(int size)
{
    return disk_fault_now(CALL_ALLOCATE) ? NULL : memory.xMalloc(size);
}

static void *fault_realloc(void *old, int size)
{
    return disk_fault_now(CALL_ALLOCATE) ? NULL : memory.xRealloc(old, size);
}

static void memory_replace(void)
{
    sqlite3_config(SQLITE_CONFIG_GETMALLOC, &memory);
    sqlite3_mem_methods mine = memory;
    mine.xMalloc = fault_malloc;
    mine.xRealloc = fault_realloc;
    sqlite3_config(SQLITE_CONFIG_MALLOC, &mine);
    sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0);
}

/* --- one trial ------------------------------------------------------------ */

static void trial_die(const struct trial *t, const char *what)
{
    disk_fault.countdown = 0;
    printf("%s; now: %s\nin %s (%s), %s %ld%s with code %d, told %d %s; %s\n",
           what, t->db ? sqlite3_errmsg(t->db) : "-", t->action->sql,
           t->way->pragma, kinds[disk_fault.call].name, t->countdown,
           disk_fault.lasting ? " lasting" : "", disk_fault.rc, t->rc, t->why,
           folder);
    exit(1);
}

static void file_copy(const char *from, const char *to)
{
    struct content content;
    char side[128];
    static const char *const sides[] = {"-wal", "-shm", "-journal"};
    for (int i = 0; i < 3; i++) {
        snprintf(side, sizeof side, "%s%s", to, sides[i]);
        unlink(side);
    }
    unlink(to);
    if (!from || !content_load(&content, from))
        return;
    FILE *file = fopen(to, "wb");
    if (!file ||
        fwrite(content.data, 1, (size_t)content.size, file) !=
            (size_t)content.size ||
        fclose(file))
        abort();
    free(content.data);
}

static sqlite3 *trial_connect(const struct trial *t, const char *to)
{
    sqlite3 *db = NULL;
    char *none = NULL;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    if (sqlite3_open_v2(to, &db, flags, t->way->vfs) != SQLITE_OK ||
        sqlite3_lease_init(db, &none, NULL) != SQLITE_OK ||
        sqlite3_exec(db, t->way->pragma, NULL, NULL, NULL) != SQLITE_OK)
        trial_die(t, "cannot open");
    return db;
}

/* Statement by statement; the number of the last. Not sqlite3_exec(), which
 * may fail at making a text of it, when all is done. */
static int action_run(const struct trial *t, int64_t *number)
{
    const char *sql = t->action->sql;
    int rc = SQLITE_OK;
    *number = 0;
    while (rc == SQLITE_OK && *sql) {
        sqlite3_stmt *stmt = NULL;
        rc = sqlite3_prepare_v2(t->db, sql, -1, &stmt, &sql);
        while (rc == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW)
            *number = sqlite3_column_int64(stmt, 0);
        int end = sqlite3_finalize(stmt);
        rc = rc ? rc : end;
    }
    return rc == SQLITE_OK ? rc : sqlite3_extended_errcode(t->db);
}

/* Which codes may be told of a fault of that code. */
static bool code_fits(int told, int rc)
{
    int kind = told & 0xff;
    return kind == (rc & 0xff) || kind == SQLITE_IOERR ||
           kind == SQLITE_CANTOPEN || kind == SQLITE_NOMEM ||
           (kind == SQLITE_PROTOCOL && rc == SQLITE_IOERR_SHMMAP);
}

/* A first call makes the tables and sets the clock in commits before its own:
 * is there no more than that? */
static bool trial_empty(const struct trial *t)
{
    int rc;
    return t->action->fresh &&
           judge_number(t->db,
                        "SELECT (SELECT count(*) FROM lease_event) + "
                        "(SELECT count(*) FROM lease_fence)",
                        &rc) == 0 &&
           rc == SQLITE_OK;
}

/* With the disk in order again, what was not done can be. */
static void trial_heal(struct trial *t, int rc, int64_t number)
{
    if (!sqlite3_get_autocommit(t->db))
        sqlite3_exec(t->db, "ROLLBACK", NULL, NULL, NULL);
    uint64_t found = judge_digest(t->db);
    if (rc == SQLITE_OK && (found != t->after || number != t->number))
        trial_die(t, "said it was done, and was not");
    if (rc != SQLITE_OK && !code_fits(rc, disk_fault.rc))
        trial_die(t, "told another error");
    bool done = found == t->after;
    if (rc != SQLITE_OK && found != t->before && !trial_empty(t))
        trial_die(t, done ? "failed, and was done" : "half done");
    errors += rc != SQLITE_OK;
    if (!done && (action_run(t, &number) != SQLITE_OK || number != t->number ||
                  judge_digest(t->db) != t->after))
        trial_die(t, "does not work afterwards");
}

static void trial_reopen(struct trial *t)
{
    int rc;
    if (sqlite3_close(t->db) != SQLITE_OK)
        trial_die(t, "cannot close");
    t->db = trial_connect(t, path);
    if (judge_number(t->db,
                     "SELECT integrity_check = 'ok' "
                     "FROM pragma_integrity_check",
                     &rc) != 1 ||
        judge_digest(t->db) != t->after)
        trial_die(t, "another file after opening it again");
    sqlite3_close(t->db);
}

/* Returns false when the action has fewer calls of the kind. */
static bool trial_run(struct trial *t, const struct disk_fault *fault)
{
    int64_t number;
    file_copy(t->action->fresh ? NULL : base, path);
    t->db = trial_connect(t, path);
    disk_fault = *fault;
    t->countdown = fault->countdown;
    int rc = t->rc = action_run(t, &number);
    snprintf(t->why, sizeof t->why, "%s", sqlite3_errmsg(t->db));
    if (rc != SQLITE_OK && fault->lasting)
        action_run(t, &number); /* it fails again, and harms nothing */
    disk_fault.countdown = 0;
    bool hit = disk_fault.hits > 0;
    trials += hit;
    trial_heal(t, rc, number);
    trial_reopen(t);
    return hit;
}

/* --- all of them ---------------------------------------------------------- */

/* What the action comes to when nothing fails. */
static void trial_learn(struct trial *t)
{
    file_copy(t->action->fresh ? NULL : base, path);
    t->db = trial_connect(t, path);
    t->before = judge_digest(t->db);
    if (action_run(t, &t->number) != SQLITE_OK || t->number == 0)
        trial_die(t, "does not work at all");
    t->after = judge_digest(t->db);
    sqlite3_close(t->db);
}

static void kind_run(struct trial *t, int kind, int rc, int step)
{
    /* Of the many allocations fewer. */
    int stride = kind == CALL_ALLOCATE ? step * 23 : step;
    struct disk_fault fault = {.call = (enum disk_call)kind, .rc = rc};
    for (int lasting = 0; lasting < 2; lasting++) {
        fault.lasting = lasting;
        fault.countdown = 1 + rand() % stride;
        if (stride == 1)
            fault.countdown = 1;
        while (trial_run(t, &fault))
            fault.countdown += stride;
    }
}

static void base_make(void)
{
    struct trial t = {.action = &actions[0], .way = &ways[0]};
    t.db = trial_connect(&t, base);
    if (sqlite3_exec(t.db,
                     "CREATE TABLE work(r TEXT, t INTEGER);"
                     "SELECT lease_grant('held', 'h', 500);"
                     "SELECT lease_grant('over', 'o', 1);"
                     "SELECT lease_grant('shared', 'a', 500, 2);"
                     "SELECT lease_grant('shared', 'b', 500, 2);"
                     "SELECT lease_fence('w', 3)",
                     NULL, NULL, NULL) != SQLITE_OK)
        trial_die(&t, "cannot make a file");
    sqlite3_close(t.db);
}

static void clock_set(long boottime_ms)
{
    char name[96];
    snprintf(name, sizeof name, "%s/clock", folder);
    FILE *file = fopen(name, "w");
    if (!file)
        abort();
    fprintf(file, "%ld 1700000000000 boot\n", boottime_ms);
    fclose(file);
    setenv("LEASE_TEST_CLOCK", name, 1);
}

static void folder_make(void)
{
    const char *under = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/faults.XXXXXX",
             under && strlen(under) < 40 ? under : "/dev/shm");
    if (!mkdtemp(folder))
        abort();
    snprintf(path, sizeof path, "%s/lease.db", folder);
    snprintf(base, sizeof base, "%s/base.db", folder);
}

static void folder_remove(void)
{
    file_copy(NULL, path);
    file_copy(NULL, base);
    unlink(getenv("LEASE_TEST_CLOCK"));
    rmdir(folder);
}

int main(int argc, char **argv)
{
    int step = argc > 1 ? atoi(argv[1]) : 1;
    memory_replace();
    disk_register();
    folder_make();
    clock_set(1000);
    base_make();
    clock_set(3000);
    for (size_t a = 0; a < sizeof actions / sizeof *actions; a++) {
        for (int i = 0; i < WAYS; i++) {
            struct trial t = {.action = &actions[a], .way = &ways[i]};
            trial_learn(&t);
            for (int kind = 0; kind < CALLS; kind++)
                for (int c = 0; c < 2 && kinds[kind].rc[c]; c++)
                    kind_run(&t, kind, kinds[kind].rc[c], step);
        }
    }
    printf("%ld faults, %ld of them told as errors, the others did no harm\n",
           trials, errors);
    folder_remove();
    return 0;
}
