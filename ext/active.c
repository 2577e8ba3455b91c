/*
 * active.c: lease_active, the leases that are in force now.
 *
 *     SELECT * FROM lease_active WHERE resource GLOB 'shard*';
 *
 * HOW IT WORKS. Each scan has one instant, read in the snapshot that it scans,
 * and tests every row against it. plan.c picks one of the active_*.sql
 * statements; SQLite checks every constraint again, so a statement may yield
 * more than was asked, never less.
 *
 * SPDX-License-Identifier: MIT
 */
#include "active.h"

#include <string.h>

#include "plan.h"
#include "schema.h"
#include "sql.h"

SQLITE_EXTENSION_INIT3

/* The columns of every active_*.sql, in their order. */
enum { ROW_TOKEN = 2, ROW_EXPIRES_AT = 8, ROW_DATA = 9 };

struct active_table {
    sqlite3_vtab base;
    struct engine *engine;
};

struct active_cursor {
    sqlite3_vtab_cursor base;
    struct engine *engine;
    struct statement s;
    int64_t now;   /* the instant of the scan, rounded down */
    int64_t later; /* and rounded up: what remains counts from there */
    bool eof;
};

static int active_connect(sqlite3 *db, void *aux, int argc,
                          const char *const *argv, sqlite3_vtab **vtab,
                          char **errmsg)
{
    (void)argc, (void)argv, (void)errmsg;
    int rc = sqlite3_declare_vtab(db, SQL_SCHEMA_ACTIVE);
    if (rc != SQLITE_OK)
        return rc;
    struct active_table *table = sqlite3_malloc(sizeof *table);
    if (table == NULL)
        return SQLITE_NOMEM;
    memset(table, 0, sizeof *table);
    table->engine = aux;
    sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
    engine_own(table->engine);
    *vtab = &table->base;
    return SQLITE_OK;
}

static int active_disconnect(sqlite3_vtab *vtab)
{
    struct active_table *table = (struct active_table *)vtab;
    engine_disown(table->engine);
    sqlite3_free(table);
    return SQLITE_OK;
}

static int active_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **cursor)
{
    struct active_cursor *c = sqlite3_malloc(sizeof *c);
    if (c == NULL)
        return SQLITE_NOMEM;
    memset(c, 0, sizeof *c);
    c->engine = ((struct active_table *)vtab)->engine;
    *cursor = &c->base;
    return SQLITE_OK;
}

static int active_close(sqlite3_vtab_cursor *cursor)
{
    struct active_cursor *c = (struct active_cursor *)cursor;
    engine_give(c->engine, &c->s);
    sqlite3_free(c);
    return SQLITE_OK;
}

static int active_next(sqlite3_vtab_cursor *cursor)
{
    struct active_cursor *c = (struct active_cursor *)cursor;
    int rc = sqlite3_step(c->s.stmt);
    if (rc == SQLITE_ROW)
        return SQLITE_OK;
    c->eof = true;
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Tell SQLite what went wrong; problem (NULL: what it said itself) is freed. */
static int active_fail(sqlite3_vtab_cursor *cursor, int rc, char *problem)
{
    struct active_cursor *c = (struct active_cursor *)cursor;
    const char *text = problem != NULL ? problem : engine_errmsg(c->engine, rc);
    sqlite3_free(cursor->pVtab->zErrMsg);
    cursor->pVtab->zErrMsg = sqlite3_mprintf("lease_active: %s", text);
    sqlite3_free(problem);
    return rc == SQLITE_MISUSE ? SQLITE_ERROR : engine_extended(c->engine, rc);
}

static int active_filter(sqlite3_vtab_cursor *cursor, int plan,
                         const char *text, int argc, sqlite3_value **argv)
{
    struct active_cursor *c = (struct active_cursor *)cursor;
    struct statement now;
    enum schema_state state;
    char *problem = NULL;
    (void)text, (void)argc;
    engine_give(c->engine, &c->s);
    c->eof = true;
    int rc = schema_read(c->engine, STMT_LEASE_NOW, &state, &now, &problem);
    if (rc == SQLITE_OK && state == SCHEMA_ABSENT)
        return SQLITE_OK;
    c->now = c->engine->instant;
    c->later = c->engine->later;
    if (rc == SQLITE_OK)
        rc = engine_take(c->engine, plan_statement(&plan, argv), &c->s);
    if (rc == SQLITE_OK)
        rc = engine_bind_int(&c->s, PARAM_NOW, c->now);
    if (rc == SQLITE_OK)
        rc = plan_bind(c->engine, &c->s, plan, argv);
    c->eof = false;
    if (rc == SQLITE_OK)
        rc = active_next(cursor);
    if (rc != SQLITE_OK)
        rc = active_fail(cursor, rc, problem);
    engine_give(c->engine, &now);
    return rc;
}

static int active_eof(sqlite3_vtab_cursor *cursor)
{
    return ((struct active_cursor *)cursor)->eof;
}

/* In double, where nothing overflows whatever the file holds. */
static void result_seconds(sqlite3_context *ctx, int64_t ms, int64_t since_ms)
{
    sqlite3_result_double(ctx, ((double)ms - (double)since_ms) / 1000);
}

static int active_column(sqlite3_vtab_cursor *cursor, sqlite3_context *ctx,
                         int column)
{
    struct active_cursor *c = (struct active_cursor *)cursor;
    sqlite3_stmt *stmt = c->s.stmt;
    if (column == COLUMN_REMAINING)
        result_seconds(ctx, sqlite3_column_int64(stmt, ROW_EXPIRES_AT),
                       c->later);
    else if (column == COLUMN_DATA)
        sqlite3_result_value(ctx, sqlite3_column_value(stmt, ROW_DATA));
    else if (column >= COLUMN_TTL)
        result_seconds(ctx, sqlite3_column_int64(stmt, column), 0);
    else
        sqlite3_result_value(ctx, sqlite3_column_value(stmt, column));
    return SQLITE_OK;
}

static int active_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *rowid)
{
    struct active_cursor *c = (struct active_cursor *)cursor;
    *rowid = sqlite3_column_int64(c->s.stmt, ROW_TOKEN);
    return SQLITE_OK;
}

int active_register(struct engine *engine)
{
    static const sqlite3_module module = {
        .iVersion = 1,
        .xConnect = active_connect, /* no xCreate: eponymous only */
        .xBestIndex = plan_best_index,
        .xDisconnect = active_disconnect,
        .xOpen = active_open,
        .xClose = active_close,
        .xFilter = active_filter,
        .xNext = active_next,
        .xEof = active_eof,
        .xColumn = active_column,
        .xRowid = active_rowid,
    };
    engine->refs++;
    return sqlite3_create_module_v2(engine->db, "lease_active", &module, engine,
                                    engine_unref);
}
