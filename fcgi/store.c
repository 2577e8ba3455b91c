/*
 * store.c: one connection to the database with every statement prepared.
 *
 * HOW IT WORKS: where each parameter of a route's statement gets its value is
 * looked up once, when it is prepared: a field of the request, a header, or a
 * figure of the service. Running it is bind, step, copy.
 *
 * SPDX-License-Identifier: MIT
 */
#include "store.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "../ext/lease.h"
#include "clock.h"
#include "limits.h"
#include "log.h"
#include "sql.h"
#include "walfile.h"

enum { PARAMS_MAX = 32, COLUMNS_MAX = 7 };

/* Where a parameter comes from: below SOURCE_STAT a field of the route. */
enum {
    SOURCE_REQUEST_ID = ROUTE_FIELDS_MAX,
    SOURCE_ACTOR,
    SOURCE_AHEAD,   /* op->ahead */
    SOURCE_WAITERS, /* op->waiters */
    SOURCE_WAITED,  /* ms since an operation that waits was asked for */
    SOURCE_MAY,
    SOURCE_LOOK, /* op->look */
    SOURCE_STAT
};

struct route_statement {
    sqlite3_stmt *stmt;
    int params;
    int source[PARAMS_MAX];
};

struct store {
    sqlite3 *db;
    struct stats *stats;
    int looks; /* how often to look, every millisecond, at a foreign lock */
    struct route_statement route[ROUTES_N];
    sqlite3_stmt *query[QUERY_N];
    sqlite3_stmt *begin, *commit, *rollback;
    sqlite3_stmt *mark, *unmark, *rollback_to;
};

static const char *const STAT_NAMES[] = {
#define X(name) #name,
    STATS(X)
#undef X
};

/* --- opening -------------------------------------------------------------- */

void store_setup(void)
{
    sqlite3_config(SQLITE_CONFIG_MULTITHREAD);
    /* Its counters are a lock that all threads would share. */
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    /* Where that fails, store_open() does. */
    walfile_register(NULL);
}

struct stats *store_stats(struct store *store)
{
    return store->stats;
}

const char *store_why(struct store *store, int rc)
{
    bool last = (sqlite3_errcode(store->db) & 0xff) == (rc & 0xff);
    return last ? sqlite3_errmsg(store->db) : sqlite3_errstr(rc);
}

static int param_source(const struct route *route, const char *name)
{
    int field = route_field(route, name);
    if (field >= 0)
        return field;
    if (strcmp(name, "request_id") == 0)
        return SOURCE_REQUEST_ID;
    if (strcmp(name, "actor") == 0)
        return SOURCE_ACTOR;
    if (strcmp(name, "ahead") == 0)
        return SOURCE_AHEAD;
    if (strcmp(name, "waiters") == 0)
        return SOURCE_WAITERS;
    if (strcmp(name, "waited") == 0)
        return SOURCE_WAITED;
    if (strcmp(name, "may") == 0)
        return SOURCE_MAY;
    if (strcmp(name, "look") == 0)
        return SOURCE_LOOK;
    for (int i = 0; i < STATS_N; i++)
        if (strcmp(name, STAT_NAMES[i]) == 0)
            return SOURCE_STAT + i;
    return -1;
}

static int prepare(struct store *store, const char *sql, sqlite3_stmt **stmt)
{
    return sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT,
                              stmt, NULL);
}

static int route_prepare(struct store *store, const struct route *route)
{
    struct route_statement *s = &store->route[route - ROUTES];
    int rc = prepare(store, route->sql, &s->stmt);
    if (rc)
        return rc;
    s->params = sqlite3_bind_parameter_count(s->stmt);
    if (s->params > PARAMS_MAX)
        return SQLITE_RANGE;
    for (int i = 0; i < s->params; i++) {
        const char *name = sqlite3_bind_parameter_name(s->stmt, i + 1);
        s->source[i] = param_source(route, name + 1);
        if (s->source[i] < 0)
            return SQLITE_RANGE;
    }
    return SQLITE_OK;
}

/* What only reads may also be part of a batch, which the writer runs, and a
 * grant may be looked at by those who only read. */
static bool route_wanted(const struct route *route, bool writes)
{
    return route->sql && (route->writes == writes || (writes && route->post) ||
                          route == ROUTE_GRANT);
}

static int statements_prepare(struct store *store, bool writes)
{
    static const char *const QUERIES[QUERY_N] = {
        [QUERY_FIELDS] = SQL_HTTP_FIELDS,
        [QUERY_FIELDS_TEXT] = SQL_HTTP_FIELDS_TEXT,
        [QUERY_HEADERS] = SQL_HTTP_HEADERS,
        [QUERY_TTL] = SQL_HTTP_TTL,
        [QUERY_COMPLAINT] = SQL_HTTP_COMPLAINT,
        [QUERY_PROBLEM] = SQL_HTTP_PROBLEM,
        [QUERY_NOW] = SQL_HTTP_NOW,
        [QUERY_FEED] = SQL_HTTP_FEED,
        [QUERY_ENDED] = SQL_HTTP_ENDED,
        [QUERY_LOG] = SQL_HTTP_LOG,
        [QUERY_VERSION] = SQL_HTTP_VERSION,
        [QUERY_PARTS] = SQL_HTTP_BATCH,
        [QUERY_TALLY] = SQL_HTTP_TALLY,
    };
    int rc = SQLITE_OK;
    for (int i = 0; !rc && i < QUERY_N; i++)
        rc = prepare(store, QUERIES[i], &store->query[i]);
    for (int i = 0; !rc && i < ROUTES_N; i++)
        if (route_wanted(&ROUTES[i], writes))
            rc = route_prepare(store, &ROUTES[i]);
    if (!writes)
        return rc;
    if (!rc)
        rc = prepare(store, "BEGIN IMMEDIATE", &store->begin);
    if (!rc)
        rc = prepare(store, "COMMIT", &store->commit);
    if (!rc)
        rc = prepare(store, "ROLLBACK", &store->rollback);
    if (!rc)
        rc = prepare(store, "SAVEPOINT mark", &store->mark);
    if (!rc)
        rc = prepare(store, "RELEASE mark", &store->unmark);
    if (!rc)
        rc = prepare(store, "ROLLBACK TO mark", &store->rollback_to);
    return rc;
}

static int on_commit(void *context, sqlite3 *db, const char *name, int pages)
{
    (void)db;
    (void)name;
    struct store *store = context;
    stat_set(store->stats, STAT_wal_pages, pages);
    return SQLITE_OK;
}

/* Does a log lie beside the file, as after an end without warning? It may also
 * be that of another file, in whose place a backup was put. */
static bool log_left(struct store *store)
{
    const char *path = sqlite3_db_filename(store->db, "main");
    struct stat stat_of;
    return path && *path && stat(sqlite3_filename_wal(path), &stat_of) == 0 &&
           stat_of.st_size > 0;
}

/* Is what SQL_HTTP_OPEN_WRITER asked for so, and where in doubt, the file
 * whole? Else *why has the reason. */
static int durable_check(struct store *store, bool doubt, const char **why)
{
    sqlite3_stmt *stmt = NULL;
    int rc = prepare(store, SQL_HTTP_DURABLE, &stmt);
    if (!rc)
        rc = sqlite3_bind_int(stmt, 1, doubt);
    if (!rc && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        const char *mode = (const char *)sqlite3_column_text(stmt, 0);
        const char *whole = (const char *)sqlite3_column_text(stmt, 2);
        rc = whole && strcmp(whole, "ok") == 0 ? SQLITE_OK : SQLITE_CORRUPT;
        if (!mode || strcmp(mode, "wal") != 0 ||
            sqlite3_column_int(stmt, 1) != 2 ||
            sqlite3_column_int(stmt, 3) != 0) {
            *why = "cannot have a write-ahead log there";
            rc = SQLITE_CANTOPEN;
        }
    }
    sqlite3_finalize(stmt);
    return rc;
}

/* Looks every millisecond: SQLite's own handler sleeps up to 50 at a time, and
 * where others take the lock in turns one that sleeps long comes last. */
static int on_busy(void *context, int looks)
{
    const struct store *store = context;
    return looks < store->looks &&
           nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL) == 0;
}

static int store_start(struct store *store, enum store_use use,
                       const char **why)
{
    const char *script =
        use == STORE_READS ? SQL_HTTP_OPEN_READER : SQL_HTTP_OPEN_WRITER;
    char *text = NULL;
    bool doubt = use == STORE_WRITES && log_left(store);
    /* A file that is refused stays as it is, its log beside it. */
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    int rc = sqlite3_lease_init(store->db, &text, NULL);
    sqlite3_free(text);
    sqlite3_busy_handler(store->db, on_busy, store);
    if (!rc)
        rc = sqlite3_exec(store->db, script, NULL, NULL, NULL);
    if (!rc && use == STORE_WRITES)
        rc = durable_check(store, doubt, why);
    if (!rc && use == STORE_WRITES)
        rc = sqlite3_exec(store->db, SQL_HTTP_INIT, NULL, NULL, NULL);
    if (!rc && use != STORE_CHECKPOINTS)
        rc = statements_prepare(store, use == STORE_WRITES);
    store->looks = LOCK_STEP_MS;
    if ((rc & 0xff) == SQLITE_CORRUPT)
        *why = "is damaged; was a backup put in its place while the -wal and "
               "-shm of before stayed? Remove them, and put it there again";
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, rc != 0,
                      NULL);
    if (use == STORE_WRITES)
        sqlite3_wal_hook(store->db, on_commit, store);
    return rc;
}

int store_open(struct store **store, const char *path, enum store_use use,
               struct stats *stats, char *why, size_t why_size)
{
    int flags = use == STORE_WRITES ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                : use == STORE_READS ? SQLITE_OPEN_READONLY
                                     : SQLITE_OPEN_READWRITE;
    const char *vfs = use == STORE_WRITES ? WALFILE_VFS : NULL;
    const char *reason = NULL;
    struct store *new = calloc(1, sizeof *new);
    int rc = SQLITE_NOMEM;
    *store = NULL;
    if (new) {
        new->stats = stats;
        new->looks = LOCK_START_MS;
        rc =
            sqlite3_open_v2(path, &new->db, flags | SQLITE_OPEN_EXRESCODE, vfs);
        if (!rc)
            rc = store_start(new, use, &reason);
    }
    if (rc) {
        if (!reason)
            reason = new &&new->db ? store_why(new, rc) : sqlite3_errstr(rc);
        snprintf(why, why_size, "%s: %s", path, reason);
        store_close(new);
        return rc;
    }
    *store = new;
    return SQLITE_OK;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    for (int i = 0; i < ROUTES_N; i++)
        sqlite3_finalize(store->route[i].stmt);
    for (int i = 0; i < QUERY_N; i++)
        sqlite3_finalize(store->query[i]);
    sqlite3_finalize(store->begin);
    sqlite3_finalize(store->commit);
    sqlite3_finalize(store->rollback);
    sqlite3_finalize(store->mark);
    sqlite3_finalize(store->unmark);
    sqlite3_finalize(store->rollback_to);
    sqlite3_close(store->db);
    free(store);
}

/* --- transactions --------------------------------------------------------- */

static int run_plain(sqlite3_stmt *stmt)
{
    sqlite3_step(stmt);
    return sqlite3_reset(stmt);
}

int store_begin(struct store *store)
{
    return run_plain(store->begin);
}

int store_commit(struct store *store)
{
    return run_plain(store->commit);
}

void store_rollback(struct store *store)
{
    if (store_in_transaction(store))
        run_plain(store->rollback);
}

bool store_in_transaction(struct store *store)
{
    return !sqlite3_get_autocommit(store->db);
}

int store_mark(struct store *store)
{
    return run_plain(store->mark);
}

int store_unmark(struct store *store, bool undo)
{
    int rc = undo ? run_plain(store->rollback_to) : SQLITE_OK;
    return rc ? rc : run_plain(store->unmark);
}

int store_in_place(struct store *store)
{
    int moved = 0;
    sqlite3_file_control(store->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    return moved ? SQLITE_READONLY_DBMOVED : SQLITE_OK;
}

int store_checkpoint(struct store *store, enum store_log log, int *left)
{
    static const int MODES[] = {
        [LOG_GOES_ON] = SQLITE_CHECKPOINT_PASSIVE,
        [LOG_ANEW] = SQLITE_CHECKPOINT_RESTART,
        [LOG_EMPTY] = SQLITE_CHECKPOINT_TRUNCATE,
    };
    int pages = 0, done = 0;
    int rc =
        sqlite3_wal_checkpoint_v2(store->db, "main", MODES[log], &pages, &done);
    *left =
        pages < 0 ? (int)stat_get(store->stats, STAT_wal_pages) : pages - done;
    return rc;
}

/* --- operations ----------------------------------------------------------- */

static int value_bind(sqlite3_stmt *stmt, int index, const struct value *value)
{
    switch (value->type) {
    case VALUE_INTEGER:
        return sqlite3_bind_int64(stmt, index, value->as.integer);
    case VALUE_REAL:
        return sqlite3_bind_double(stmt, index, value->as.real);
    case VALUE_TEXT:
        return sqlite3_bind_text(stmt, index, value->as.text,
                                 (int)value->length, SQLITE_STATIC);
    default:
        return sqlite3_bind_null(stmt, index);
    }
}

static int param_bind(struct store *store, struct route_statement *s, int param,
                      const struct op *op)
{
    int source = s->source[param];
    if (source < SOURCE_REQUEST_ID)
        return value_bind(s->stmt, param + 1, &op->value[source]);
    if (source == SOURCE_REQUEST_ID)
        return value_bind(s->stmt, param + 1, &op->request_id);
    if (source == SOURCE_ACTOR)
        return value_bind(s->stmt, param + 1, &op->actor);
    if (source == SOURCE_AHEAD)
        return sqlite3_bind_int64(s->stmt, param + 1, op->ahead);
    if (source == SOURCE_LOOK)
        return sqlite3_bind_int(s->stmt, param + 1, op->look);
    if (source == SOURCE_WAITERS)
        return sqlite3_bind_text(s->stmt, param + 1, op->waiters, -1,
                                 SQLITE_STATIC);
    if (source == SOURCE_WAITED)
        return op->wait.number
                   ? sqlite3_bind_int64(s->stmt, param + 1,
                                        clock_ms() - op->wait.since_ms)
                   : sqlite3_bind_null(s->stmt, param + 1);
    if (source == SOURCE_MAY) {
        char text[256];
        return sqlite3_bind_text(s->stmt, param + 1,
                                 route_may(op->group, text, sizeof text), -1,
                                 SQLITE_TRANSIENT);
    }
    if (source == SOURCE_STAT + STAT_uptime_ms)
        stat_set(store->stats, STAT_uptime_ms,
                 clock_ms() - stat_get(store->stats, STAT_started_ms));
    return sqlite3_bind_int64(
        s->stmt, param + 1,
        stat_get(store->stats, (enum stat_name)(source - SOURCE_STAT)));
}

/* Take over the row that the statement stands on: status, body, … */
static int outcome_read(sqlite3_stmt *stmt, struct outcome *outcome)
{
    const void *body = sqlite3_column_blob(stmt, 1);
    size_t length = (size_t)sqlite3_column_bytes(stmt, 1);
    outcome_clear(outcome);
    outcome->status = sqlite3_column_int(stmt, 0);
    outcome->retry_after = sqlite3_column_int(stmt, 2);
    outcome->expires_at = sqlite3_column_int64(stmt, 3);
    if (!body || !(outcome->body = malloc(length + 1)))
        return SQLITE_NOMEM;
    memcpy(outcome->body, body, length);
    outcome->length = length;
    return SQLITE_OK;
}

int store_run(struct store *store, struct op *op)
{
    struct route_statement *s = &store->route[op->route - ROUTES];
    int rc = SQLITE_OK;
    for (int i = 0; !rc && i < s->params; i++)
        rc = param_bind(store, s, i, op);
    if (!rc && (rc = sqlite3_step(s->stmt)) == SQLITE_ROW) {
        struct outcome outcome = {0};
        rc = outcome_read(s->stmt, &outcome);
        /* To its end: only then has everything happened. */
        int end = rc ? rc : sqlite3_step(s->stmt);
        if (end != SQLITE_DONE) {
            rc = end;
            outcome_clear(&outcome);
        } else {
            outcome_clear(&op->outcome);
            op->outcome = outcome;
        }
    }
    int reset = sqlite3_reset(s->stmt);
    return rc ? rc : reset;
}

/* --- queries -------------------------------------------------------------- */

static struct value column_read(sqlite3_stmt *stmt, int column)
{
    struct value value = {0};
    switch (sqlite3_column_type(stmt, column)) {
    case SQLITE_INTEGER:
        value.type = VALUE_INTEGER;
        value.as.integer = sqlite3_column_int64(stmt, column);
        break;
    case SQLITE_FLOAT:
        value.type = VALUE_REAL;
        value.as.real = sqlite3_column_double(stmt, column);
        break;
    case SQLITE_TEXT:
        /* Not sqlite3_column_text(), which copies it to end it with a NUL. */
        value.as.text = sqlite3_column_blob(stmt, column);
        value.length = (size_t)sqlite3_column_bytes(stmt, column);
        value.type = VALUE_TEXT;
        if (!value.as.text)
            value.as.text = "";
        break;
    default:
        break;
    }
    return value;
}

int store_query(struct store *store, enum store_query query,
                const struct param *params, int n, store_row *row,
                void *context)
{
    sqlite3_stmt *stmt = store->query[query];
    struct value columns[COLUMNS_MAX];
    int rc = SQLITE_OK;
    for (int i = 0; !rc && i < n; i++)
        rc =
            value_bind(stmt, sqlite3_bind_parameter_index(stmt, params[i].name),
                       &params[i].value);
    bool more = true;
    while (!rc && more && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(stmt); i++)
            columns[i] = column_read(stmt, i);
        more = row(context, columns);
        rc = SQLITE_OK;
    }
    if (rc == SQLITE_DONE)
        rc = SQLITE_OK;
    int reset = sqlite3_reset(stmt);
    return rc ? rc : reset;
}
