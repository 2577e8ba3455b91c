/*
 * run.c: what the lease functions do with their statements, and their results.
 *
 * NULL or 0 is a refusal, an SQL error is misuse or breakage. An answer about a
 * refusal never looks like a token.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "call.h"
#include "schema.h"

SQLITE_EXTENSION_INIT3

void call_token(struct call *call)
{
    int changes;
    int64_t token;
    if (call_write(call, call->function->stmt, &changes, &token) && changes > 0)
        sqlite3_result_int64(call->ctx, token);
}

void call_changes(struct call *call)
{
    int changes;
    int64_t token;
    if (call_write(call, call->function->stmt, &changes, &token))
        sqlite3_result_int(call->ctx, changes);
}

/* Step a statement that reads, with the arguments and :now bound. */
static int call_step(struct call *call, enum stmt id, struct statement *s)
{
    int rc = engine_take(call->engine, id, s);
    if (rc == SQLITE_OK)
        rc = call_bind(call, s);
    if (rc == SQLITE_OK)
        rc = engine_bind_int(s, PARAM_NOW, call->engine->instant);
    return rc == SQLITE_OK ? sqlite3_step(s->stmt) : rc;
}

/* A grant was refused: was it made before, under the same request_id? */
static void call_replay(struct call *call)
{
    struct statement now;
    struct statement s = {0};
    int rc = engine_read(call->engine, STMT_LEASE_NOW, &now);
    if (rc == SQLITE_OK)
        rc = call_step(call, STMT_LEASE_REPLAY, &s);
    if (rc == SQLITE_ROW && !sqlite3_column_int(s.stmt, 0))
        call_fail(call, SQLITE_CONSTRAINT,
                  "request_id was used before with another ttl, capacity or "
                  "data");
    else if (rc == SQLITE_ROW)
        sqlite3_result_value(call->ctx, sqlite3_column_value(s.stmt, 1));
    else if (rc != SQLITE_DONE)
        call_fail_rc(call, rc);
    engine_give(call->engine, &s);
    engine_give(call->engine, &now);
}

void call_grant(struct call *call)
{
    enum { REQUEST_ID = 5 };
    int changes;
    int64_t token;
    if (!call_write(call, call->function->stmt, &changes, &token))
        return;
    if (changes > 0)
        sqlite3_result_int64(call->ctx, token);
    else if (call_has(call, REQUEST_ID))
        call_replay(call);
}

/*
 * The first column of a reading statement's row, or what stands for none,
 * which is also the answer where there is no schema.
 */
static void call_read(struct call *call, void (*none)(sqlite3_context *))
{
    struct statement now;
    struct statement s = {0};
    int there = call_read_row(call, STMT_LEASE_NOW, &now);
    int rc = there == 1 ? call_step(call, call->function->stmt, &s) : there;
    if (rc == SQLITE_ROW)
        sqlite3_result_value(call->ctx, sqlite3_column_value(s.stmt, 0));
    else if (rc == SQLITE_DONE || there == 0)
        none(call->ctx);
    else if (there == 1)
        call_fail_rc(call, rc);
    engine_give(call->engine, &s);
    engine_give(call->engine, &now);
}

static void result_zero(sqlite3_context *ctx)
{
    sqlite3_result_int(ctx, 0);
}

static void result_unknown(sqlite3_context *ctx)
{
    sqlite3_result_text(ctx, "unknown", -1, SQLITE_STATIC);
}

void call_check(struct call *call)
{
    call_read(call, result_zero);
}

void call_why(struct call *call)
{
    call_read(call, result_unknown);
}

void call_now(struct call *call)
{
    struct statement now;
    struct clock_reading reading = {0};
    int there = call_read_row(call, STMT_LEASE_NOW, &now);
    if (there == 1)
        sqlite3_result_double(call->ctx, (double)call->engine->instant / 1000);
    else if (there == 0 && clock_read(&reading)) /* the first write's time */
        sqlite3_result_double(call->ctx, (double)reading.wall_ms / 1000);
    else if (there == 0)
        call_fail_rc(call, ENGINE_NO_CLOCK);
    engine_give(call->engine, &now);
}

/* A token below the register: say which one was seen. */
static void call_fence_stale(struct call *call, int64_t token)
{
    struct statement s;
    int rc = engine_take(call->engine, STMT_LEASE_FENCE_HIGHEST, &s);
    if (rc == SQLITE_OK)
        rc = call_bind(call, &s);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(s.stmt);
    int64_t highest = rc == SQLITE_ROW ? sqlite3_column_int64(s.stmt, 0) : 0;
    if (rc != SQLITE_ROW) {
        call_fail_rc(call, rc);
    } else if (highest <= token) {
        sqlite3_result_int64(call->ctx, token);
    } else {
        char *text = sqlite3_mprintf(
            "token %lld is stale: %lld was seen for this resource", token,
            highest);
        call_fail(call, SQLITE_CONSTRAINT, text);
        sqlite3_free(text);
    }
    engine_give(call->engine, &s);
}

void call_fence(struct call *call)
{
    enum { TOKEN = 1 };
    int changes;
    int64_t rowid;
    if (!call_write(call, call->function->stmt, &changes, &rowid))
        return;
    if (changes > 0)
        sqlite3_result_int64(call->ctx, call->number[TOKEN]);
    else
        call_fence_stale(call, call->number[TOKEN]);
}

void call_init(struct call *call)
{
    call->engine->schema_ok = false; /* look, don't remember */
    if (call_ensure_schema(call))
        sqlite3_result_int(call->ctx, SCHEMA_VERSION);
}

void call_version(struct call *call)
{
    sqlite3_result_text(call->ctx, LEASE_VERSION, -1, SQLITE_STATIC);
}
