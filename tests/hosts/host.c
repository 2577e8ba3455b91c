/*
 * host.c: a program in C that uses the extension, and looks for what only C
 * can see: plain sqlite3_close(), memory, an old SQLite, no memory at all.
 *
 *     host load EXTENSION FILE     grant, refuse, renew, check, read, close
 *     host close EXTENSION         every function, then close, in many states
 *     host old EXTENSION           enter with the API of SQLite 3.36
 *     host oom "" STEP             fail every STEP-th allocation in turn
 *
 * Built with -DHOST_LINKED the engine is part of the program, and EXTENSION is
 * loaded into it all the same. Prints what happened; exit 0 when all is well.
 *
 * SPDX-License-Identifier: MIT
 */
#define SQLITE_CORE 1 /* the API table's type without its macros */
#include <sqlite3ext.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HOST_LINKED
int sqlite3_lease_init(sqlite3 *db, char **errmsg,
                       const sqlite3_api_routines *api);
#endif

static const char *extension;

static void die(sqlite3 *db, const char *what)
{
    printf("%s: %s\n", what, db ? sqlite3_errmsg(db) : "");
    exit(1);
}

static int host_load(sqlite3 *db)
{
#ifdef HOST_LINKED
    if (sqlite3_lease_init(db, NULL, NULL) != SQLITE_OK)
        return 0;
#endif
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, NULL);
    return extension == NULL ||
           sqlite3_load_extension(db, extension, NULL, NULL) == SQLITE_OK;
}

static sqlite3 *host_open(const char *path)
{
    sqlite3 *db = NULL;
    if (sqlite3_open(path, &db) != SQLITE_OK)
        die(db, "open");
    if (!host_load(db))
        die(db, "load");
    return db;
}

/* The first value of the first row, "NULL", or "error: …". To be freed. */
static char *host_ask(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    char *answer = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    if (rc == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(stmt, 0);
        answer = sqlite3_mprintf("%s", text ? text : "NULL");
    }
    if (sqlite3_finalize(stmt) != SQLITE_OK || rc != SQLITE_OK) {
        sqlite3_free(answer);
        answer = sqlite3_mprintf("error: %s", sqlite3_errmsg(db));
    }
    return answer;
}

static void host_say(sqlite3 *db, const char *what, const char *sql)
{
    char *answer = host_ask(db, sql);
    printf("%s %s\n", what, answer);
    sqlite3_free(answer);
}

static void host_close(sqlite3 *db)
{
    if (sqlite3_close(db) != SQLITE_OK)
        die(db, "close");
}

static void run_load(const char *path)
{
    sqlite3 *db = host_open(path);
    sqlite3_exec(db, "CREATE TABLE work(token INTEGER)", NULL, NULL, NULL);
    host_say(db, "granted", "SELECT lease_grant('r', 'w1', 30)");
    host_say(db, "refused", "SELECT lease_grant('r', 'w2', 30)");
    host_say(db, "renewed", "SELECT lease_renew('r', 1)");
    sqlite3_exec(db,
                 "BEGIN IMMEDIATE; INSERT INTO work SELECT 2 WHERE "
                 "lease_check('r', 2); COMMIT",
                 NULL, NULL, NULL);
    host_say(db, "checked", "SELECT changes()");
    host_say(db, "active",
             "SELECT resource || ' ' || holder || ' ' || token "
             "FROM lease_active");
    host_close(db);
    puts("closed");
}

static const char *const calls[] = {
    "SELECT lease_version()",
    "SELECT lease_now() > 0",
    "SELECT count(*) FROM lease_active",
    "SELECT lease_init()",
    "SELECT lease_grant('r', 'a', 30, 2, 'data', 'q', 'me')",
    "SELECT lease_grant('r', 'a', 30, 2, 'data', 'q', 'me')",
    "SELECT lease_grant('r', 'a', 30, 2, 'other', 'q', 'me')",
    "SELECT lease_grant('r', 'b', 30)",
    "SELECT lease_grant('r', 'b', 1e9)",
    "SELECT lease_grant(x'ff', 'b', 30)",
    "SELECT lease_renew('r', 1, 40)",
    "SELECT lease_check('r', 1, 1)",
    "SELECT lease_why('r', 1)",
    "SELECT lease_fence('r', 5)",
    "SELECT lease_fence('r', 4)",
    "SELECT lease_guard('t', 'r', 'k')",
    "SELECT lease_guard('none', 'r', 'k')",
    "SELECT lease_config('min_ttl', 0.2)",
    "SELECT lease_config('event_rows')",
    "SELECT lease_config('nonsense')",
    "SELECT lease_problem('ttl', 0)",
    "SELECT count(*) FROM lease_active WHERE resource = 'r'",
    "SELECT count(*) FROM lease_active WHERE resource GLOB 'r*'",
    "SELECT count(*) FROM lease_active WHERE holder = 'a'",
    "SELECT resource FROM lease_active ORDER BY expires_at",
    "SELECT count(*) FROM lease_active a JOIN lease_active b",
    "SELECT lease_revoke('r', 'b', 'why')",
    "SELECT lease_release('r', 1)",
    "SELECT lease_sweep()",
    "SELECT lease_restore(5)",
    "INSERT INTO t SELECT 'r', lease_grant('i', 'a', 30)",
};

enum { CALLS = sizeof calls / sizeof *calls };

static void host_all(sqlite3 *db)
{
    for (int i = 0; i < CALLS; i++)
        sqlite3_free(host_ask(db, calls[i]));
}

static const char *const before[] = {
    "CREATE TABLE t(r TEXT, k INTEGER)",
    "CREATE TABLE t(r TEXT, k INTEGER); CREATE TABLE lease_active(x)",
    "CREATE TABLE t(r TEXT, k INTEGER); CREATE VIEW lease(x) AS SELECT 1",
    "CREATE TABLE t(r TEXT, k INTEGER); BEGIN",
    "PRAGMA encoding = 'UTF-16'; CREATE TABLE t(r TEXT, k INTEGER)",
    "PRAGMA query_only = ON",
    "",
};

/* Close after every function, in each of several states of a database. */
static void run_close(void)
{
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        sqlite3 *db = host_open(":memory:");
        sqlite3_exec(db, before[i], NULL, NULL, NULL);
        host_all(db);
        host_all(db);
        if (!sqlite3_get_autocommit(db)) {
            sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
            host_all(db);
            sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
            host_all(db);
        }
        host_close(db);
    }
    sqlite3 *db = host_open(":memory:");
    host_close(db);
    /* A table in the way of lease_active that comes and goes. */
    db = host_open(":memory:");
    host_all(db);
    sqlite3_exec(db, "CREATE TABLE lease_active(x)", NULL, NULL, NULL);
    host_all(db);
    sqlite3_exec(db, "DROP TABLE lease_active", NULL, NULL, NULL);
    host_all(db);
    host_close(db);
    /* Modules dropped under a living connection. */
    db = host_open(":memory:");
    host_all(db);
    sqlite3_drop_modules(db, NULL);
    host_all(db);
    host_close(db);
    /* Loaded again, and unloaded functions. */
    db = host_open(":memory:");
    if (!host_load(db))
        die(db, "load again");
    host_all(db);
    sqlite3_create_function(db, "lease_grant", -1, SQLITE_UTF8, NULL, NULL,
                            NULL, NULL);
    host_all(db);
    host_close(db);
    printf("closed, %lld bytes in use\n", sqlite3_memory_used());
}

/* The API of an SQLite that is too old: nothing newer may be touched. */
static int old_number(void)
{
    return 3036000;
}

static const char *old_name(void)
{
    return "3.36.0";
}

static void run_old(void)
{
    static const sqlite3_api_routines api = {
        .libversion_number = old_number,
        .libversion = old_name,
        .mprintf = sqlite3_mprintf,
    };
    char *error = NULL;
    void *library = dlopen(extension, RTLD_NOW);
    if (library == NULL)
        die(NULL, dlerror());
    int (*entry)(sqlite3 *, char **, const sqlite3_api_routines *);
    *(void **)&entry = dlsym(library, "sqlite3_lease_init");
    int rc = entry(NULL, &error, &api);
    printf("%d %s\n", rc, error ? error : "");
    sqlite3_free(error);
    dlclose(library);
}

/* Allocation: fails at the n-th, and from then on if asked to. */
static sqlite3_mem_methods real;
static long countdown;
static int persistent;

static int oom_now(void)
{
    if (countdown == 0)
        return 0;
    if (countdown > 1) {
        countdown--;
        return 0;
    }
    if (!persistent)
        countdown = 0;
    return 1;
}

static void *oom_malloc(int size)
{
    return oom_now() ? NULL : real.xMalloc(size);
}

static void *oom_realloc(void *pointer, int size)
{
    return oom_now() ? NULL : real.xRealloc(pointer, size);
}

/* Leave the database as it should be: nothing half done. */
static void oom_look(sqlite3 *db, long n)
{
    static const char consistent[] =
        "SELECT count(*) FROM lease AS l WHERE NOT EXISTS (SELECT 1 FROM "
        "lease_event WHERE token = l.token AND holder = l.holder)";
    char *answer = host_ask(db, "PRAGMA integrity_check");
    if (answer == NULL || strcmp(answer, "ok") != 0)
        die(db, answer);
    sqlite3_free(answer);
    answer = host_ask(db, consistent);
    if (strcmp(answer, "0") != 0 && strstr(answer, "no such table") == NULL) {
        printf("allocation %ld: %s\n", n, answer);
        exit(1);
    }
    sqlite3_free(answer);
}

static void run_oom(long step)
{
    sqlite3_int64 least = -1;
    long n = 1;
    for (persistent = 0; persistent < 2; persistent++) {
        for (int failed = 1; failed; n += step) {
            sqlite3 *db = NULL;
            if (sqlite3_open(":memory:", &db) != SQLITE_OK)
                die(db, "open");
            sqlite3_exec(db, "CREATE TABLE t(r TEXT, k INTEGER)", NULL, NULL,
                         NULL);
            countdown = n;
            if (host_load(db))
                host_all(db);
            failed = countdown == 0 || (persistent && countdown == 1);
            countdown = 0;
            oom_look(db, n);
            host_close(db);
            if (least < 0)
                least = sqlite3_memory_used();
            if (sqlite3_memory_used() > least) {
                printf("allocation %ld leaks\n", n);
                exit(1);
            }
        }
        printf("failed up to allocation %ld\n", n);
        n = 1;
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    extension = argc > 2 && *argv[2] ? argv[2] : NULL;
    if (strcmp(what, "oom") == 0) {
        sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real);
        sqlite3_mem_methods mine = real;
        mine.xMalloc = oom_malloc;
        mine.xRealloc = oom_realloc;
        sqlite3_config(SQLITE_CONFIG_MALLOC, &mine);
        sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0);
    }
    if (strcmp(what, "load") == 0)
        run_load(argv[3]);
    else if (strcmp(what, "close") == 0)
        run_close();
    else if (strcmp(what, "old") == 0)
        run_old();
    else if (strcmp(what, "oom") == 0)
        run_oom(argc > 3 ? atol(argv[3]) : 1);
    else
        return 2;
    sqlite3_shutdown();
    return 0;
}
