/*
 * engine.c: kept statements, the write step, and its instant.
 *
 * HOW IT WORKS. A writing statement calls lease_tick(anchor) in its own
 * expressions, which run after SQLite has taken the write lock. The first use
 * reads the clock, later uses repeat it, so a statement has one instant, and
 * never one from before the lock. What ends with SQLITE_BUSY, as it can at
 * COMMIT too, has given the lock back: the next try reads the clock anew.
 * lease_tick() rounds it down, and expiry is judged by that; lease_tock()
 * rounds it up, and a lease counts from that: so no lease is a part of a
 * millisecond shorter than its ttl.
 *
 * They are aggregates, and what writes calls no plain function, here or in a
 * trigger, and says OR ROLLBACK: SQLite then knows that nothing can fail
 * halfway and be taken back alone, and keeps no journal of the statement, which
 * inside a transaction is half of a grant's cost. What fails nevertheless once
 * something was written (no memory, no disk, a damaged file) takes the whole
 * transaction back, by SQLite or here.
 *
 * SPDX-License-Identifier: MIT
 */
#include "engine.h"

#include <string.h>
#include <time.h>

#include "arg.h"
#include "instant.h"
#include "sql.h"

SQLITE_EXTENSION_INIT3

enum { WAIT_MS = 2000, WAIT_STEP_MS = 20 };

static const char *const statement_sql[STMT_COUNT] = {
#define X(name) SQL_##name,
    ENGINE_STATEMENTS(X)
#undef X
};

static const char *const parameter_name[PARAM_COUNT] = {
#define X(name, text) ":" text,
    ENGINE_PARAMETERS(X)
#undef X
};

struct engine *engine_new(sqlite3 *db)
{
    struct engine *engine = sqlite3_malloc(sizeof *engine);
    if (engine == NULL)
        return NULL;
    memset(engine, 0, sizeof *engine);
    engine->db = db;
    return engine;
}

void engine_unref(void *pointer)
{
    struct engine *engine = pointer;
    if (--engine->refs == 0)
        sqlite3_free(engine);
}

void engine_own(struct engine *engine)
{
    engine->owned = true;
}

void engine_disown(struct engine *engine)
{
    engine_forget(engine);
    engine->owned = false;
}

void engine_forget(struct engine *engine)
{
    for (int i = 0; i < STMT_COUNT; i++) {
        if (!engine->kept[i].lent)
            sqlite3_finalize(engine->kept[i].stmt);
        memset(&engine->kept[i], 0, sizeof engine->kept[i]);
    }
    engine->schema_ok = false;
}

/* Have lease_active connected, so that statements may be kept. */
static void engine_connect_owner(struct engine *engine)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(engine->db, SQL_ENGINE_OWNER, -1, &stmt, NULL) !=
        SQLITE_OK)
        return; /* something else has that name: prepare for each call */
    sqlite3_finalize(stmt);
}

static int statement_prepare(struct engine *engine, struct statement *s)
{
    int rc = sqlite3_prepare_v3(engine->db, statement_sql[s->id], -1,
                                engine->owned ? SQLITE_PREPARE_PERSISTENT : 0,
                                &s->stmt, NULL);
    if (rc != SQLITE_OK)
        return rc;
    for (int i = 0; i < PARAM_COUNT; i++)
        s->index[i] = (unsigned char)sqlite3_bind_parameter_index(
            s->stmt, parameter_name[i]);
    return SQLITE_OK;
}

/* The clock's parameters, for the statements that have them. */
static int statement_bind_clock(struct engine *engine, struct statement *s)
{
    if (s->index[PARAM_BOOT_ID] == 0)
        return SQLITE_OK;
    bool whole = s->index[PARAM_LEAD] != 0 || engine->boot.boot_id[0] == '\0';
#ifdef LEASE_TEST_CLOCK
    whole = true; /* a test may reboot under a living process */
#endif
    if (whole && !clock_read(&engine->boot)) {
        engine->boot.boot_id[0] = '\0';
        return ENGINE_NO_CLOCK;
    }
    engine_bind_int(s, PARAM_LEAD,
                    engine->boot.wall_ms - engine->boot.boottime_ms);
    engine_bind_int(s, PARAM_BOOTTIME, engine->boot.boottime_ms);
    return sqlite3_bind_text(s->stmt, s->index[PARAM_BOOT_ID],
                             engine->boot.boot_id, -1, SQLITE_STATIC);
}

int engine_take(struct engine *engine, enum stmt id, struct statement *lent)
{
    memset(lent, 0, sizeof *lent);
    lent->id = id;
    if (!engine->owned)
        engine_connect_owner(engine);
    struct statement *kept = &engine->kept[id];
    int rc = SQLITE_OK;
    if (kept->stmt != NULL && !kept->lent) {
        *lent = *kept;
        kept->lent = true;
    } else {
        rc = statement_prepare(engine, lent);
        if (rc == SQLITE_OK && engine->owned && kept->stmt == NULL) {
            *kept = *lent;
            kept->lent = true;
        }
    }
    return rc == SQLITE_OK ? statement_bind_clock(engine, lent) : rc;
}

void engine_give(struct engine *engine, struct statement *lent)
{
    if (lent->stmt == NULL)
        return;
    struct statement *kept = &engine->kept[lent->id];
    if (lent->stmt == kept->stmt) {
        sqlite3_reset(lent->stmt);
        sqlite3_clear_bindings(lent->stmt);
        kept->lent = false;
    } else {
        sqlite3_finalize(lent->stmt);
    }
    lent->stmt = NULL;
}

int engine_bind_int(struct statement *s, enum param param, int64_t number)
{
    if (s->index[param] == 0)
        return SQLITE_OK;
    return sqlite3_bind_int64(s->stmt, s->index[param], number);
}

int engine_bind_value(struct statement *s, enum param param,
                      sqlite3_value *value)
{
    if (s->index[param] == 0)
        return SQLITE_OK;
    return sqlite3_bind_value(s->stmt, s->index[param], value);
}

/* The host's busy timeout in ms; 1 when it cannot be told. */
static int engine_host_timeout(struct engine *engine)
{
    sqlite3_stmt *stmt = NULL;
    int timeout = 1;
    if (sqlite3_prepare_v2(engine->db, SQL_ENGINE_TIMEOUT, -1, &stmt, NULL) ==
            SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW)
        timeout = sqlite3_column_int(stmt, 0);
    sqlite3_finalize(stmt);
    return timeout;
}

/* Not lease time, which stands still in a test. */
static int64_t engine_monotonic_ms(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

bool engine_wait(struct engine *engine, int rc, int64_t *since_ms)
{
    if ((rc & 0xff) != SQLITE_BUSY || rc == SQLITE_BUSY_SNAPSHOT)
        return false;
    /* The tries count, too: a busy handler, which no pragma tells of, may wait
     * in each of them. */
    int64_t now_ms = engine_monotonic_ms();
    if (*since_ms == 0) {
        if (!sqlite3_get_autocommit(engine->db) ||
            sqlite3_txn_state(engine->db, NULL) != SQLITE_TXN_NONE ||
            engine_host_timeout(engine) != 0)
            return false;
        *since_ms = now_ms;
    }
    if (now_ms - *since_ms >= WAIT_MS)
        return false;
    sqlite3_sleep(now_ms - *since_ms < WAIT_STEP_MS ? 2 : WAIT_STEP_MS);
    return true;
}

int engine_extended(const struct engine *engine, int rc)
{
    int extended = sqlite3_extended_errcode(engine->db);
    if (rc == ENGINE_NO_CLOCK)
        return SQLITE_ERROR;
    return (extended & 0xff) == rc ? extended : rc;
}

const char *engine_errmsg(const struct engine *engine, int rc)
{
    if (rc == ENGINE_NO_CLOCK)
        return "the kernel's boot id or clock cannot be read, and without "
               "them there is no lease time";
    if ((sqlite3_errcode(engine->db) & 0xff) == (rc & 0xff))
        return sqlite3_errmsg(engine->db);
    return sqlite3_errstr(rc);
}

int engine_write(struct engine *engine, struct statement *s, int *changes,
                 int64_t *token)
{
    sqlite3 *db = engine->db;
    int64_t host_rowid = sqlite3_last_insert_rowid(db);
    int rc;
    engine->instant = 0;
    do /* a row: only of how many changed, which an old pragma asks for */
        rc = sqlite3_step(s->stmt);
    while (rc == SQLITE_ROW);
    if (rc == SQLITE_DONE) {
        *changes = sqlite3_changes(db);
        *token = sqlite3_last_insert_rowid(db);
        sqlite3_set_last_insert_rowid(db, host_rowid);
        return SQLITE_OK;
    }
    rc = engine_extended(engine, sqlite3_reset(s->stmt));
    if ((rc & 0xff) == SQLITE_CORRUPT && !sqlite3_get_autocommit(db))
        sqlite3_exec(db, SQL_ENGINE_ROLLBACK, NULL, NULL, NULL);
    sqlite3_set_last_insert_rowid(db, host_rowid);
    return rc;
}

int engine_read(struct engine *engine, enum stmt id, struct statement *lent)
{
    engine->instant = 0;
    int rc = engine_take(engine, id, lent);
    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite3_step(lent->stmt);
    return rc == SQLITE_ROW ? SQLITE_OK : sqlite3_reset(lent->stmt);
}

/* Have the call's instant. False: the anchor is nonsense, the error is set. */
static bool engine_look(sqlite3_context *ctx, int64_t anchor)
{
    struct engine *engine = sqlite3_user_data(ctx);
    int64_t later;
    if (engine->instant != 0)
        return true;
    int64_t boottime = clock_boottime_ms(&later);
    if (!__builtin_add_overflow(anchor, boottime, &engine->instant) &&
        !__builtin_add_overflow(anchor, later, &engine->later))
        return true;
    engine->instant = 0;
    sqlite3_result_error(ctx, "lease_clock.anchor is out of range", -1);
    return false;
}

/* An aggregate's number; 0, told as NULL: of no row, or none there. */
static void number_keep(sqlite3_context *ctx, int64_t number)
{
    int64_t *kept = sqlite3_aggregate_context(ctx, sizeof *kept);
    if (kept != NULL)
        *kept = number;
    else
        sqlite3_result_error_nomem(ctx);
}

static void number_tell(sqlite3_context *ctx)
{
    int64_t *kept = sqlite3_aggregate_context(ctx, 0);
    if (kept != NULL && *kept != 0)
        sqlite3_result_int64(ctx, *kept);
}

static void engine_tick(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct engine *engine = sqlite3_user_data(ctx);
    (void)argc;
    if (engine_look(ctx, sqlite3_value_int64(argv[0])))
        number_keep(ctx, engine->instant);
}

static void engine_tock(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct engine *engine = sqlite3_user_data(ctx);
    (void)argc;
    if (engine_look(ctx, sqlite3_value_int64(argv[0])))
        number_keep(ctx, engine->later);
}

static void engine_ttl(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    if (sqlite3_value_type(argv[0]) == SQLITE_NULL)
        return;
    int64_t ttl = sqlite3_value_int64(argv[0]);
    char *problem = NULL;
    if (arg_ttl_fits(ttl, sqlite3_value_int64(argv[1]),
                     sqlite3_value_int64(argv[2]), &problem)) {
        number_keep(ctx, ttl);
        return;
    }
    char *text = problem ? sqlite3_mprintf("ttl %s", problem) : NULL;
    if (text != NULL) {
        sqlite3_result_error(ctx, text, -1);
        sqlite3_result_error_code(ctx, SQLITE_RANGE);
    } else {
        sqlite3_result_error_nomem(ctx);
    }
    sqlite3_free(text);
    sqlite3_free(problem);
}

int engine_register(struct engine *engine)
{
    const int flags = SQLITE_UTF8 | SQLITE_DIRECTONLY;
    engine->refs++;
    int rc = sqlite3_create_function_v2(engine->db, "lease_tick", 1, flags,
                                        engine, NULL, engine_tick, number_tell,
                                        engine_unref);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function_v2(engine->db, "lease_tock", 1, flags,
                                        engine, NULL, engine_tock, number_tell,
                                        NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function_v2(engine->db, "lease_ttl", 3, flags,
                                        engine, NULL, engine_ttl, number_tell,
                                        NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function_v2(engine->db, "lease_instant", 1,
                                        flags | SQLITE_DETERMINISTIC, NULL,
                                        instant_text, NULL, NULL, NULL);
    return rc;
}
