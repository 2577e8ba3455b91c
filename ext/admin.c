/*
 * admin.c: the functions around a lease: lease_problem(), lease_config(),
 * lease_guard().
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "call.h"
#include "schema.h"

SQLITE_EXTENSION_INIT3

/* The settings of schema.sql, where there is no schema yet. */
static const int64_t DEFAULT_MIN_TTL_MS = 100;
static const int64_t DEFAULT_MAX_TTL_MS = 86400000;
static const int64_t DEFAULT_EVENT_ROWS = 100000;

/* Is the ttl inside the database's bounds? Fails the call on breakage. */
static bool admin_ttl_fits(struct call *call, int64_t ttl_ms, char **problem)
{
    struct statement s;
    bool fits = true;
    int there = call_read_row(call, STMT_LEASE_BOUNDS, &s);
    if (there == 1 && sqlite3_data_count(s.stmt) == 0)
        call_fail_rc(call, SQLITE_CORRUPT);
    else if (there == 1)
        fits = arg_ttl_fits(ttl_ms, sqlite3_column_int64(s.stmt, 0),
                            sqlite3_column_int64(s.stmt, 1), problem);
    else if (there == 0)
        fits = arg_ttl_fits(ttl_ms, DEFAULT_MIN_TTL_MS, DEFAULT_MAX_TTL_MS,
                            problem);
    engine_give(call->engine, &s);
    return fits;
}

void call_problem(struct call *call)
{
    const char *name = (const char *)sqlite3_value_text(call->argv[0]);
    enum arg arg = name ? arg_find(name) : ARG_COUNT;
    char *problem = NULL;
    int64_t number = 0;
    if (arg == ARG_COUNT) {
        call_fail(call, SQLITE_ERROR, "name must be that of an argument");
        return;
    }
    bool fits = arg_fits(arg, call->argv[1], &number, &problem);
    if (fits && arg == ARG_TTL)
        fits = admin_ttl_fits(call, number, &problem);
    if (!fits && problem == NULL)
        sqlite3_result_error_nomem(call->ctx);
    else if (!fits)
        sqlite3_result_text(call->ctx, problem, -1, SQLITE_TRANSIENT);
    sqlite3_free(problem);
}

/* The rule for the value of a setting, or ARG_COUNT for an unknown one. */
static enum arg admin_setting(sqlite3_value *name)
{
    const char *text = (const char *)sqlite3_value_text(name);
    if (sqlite3_value_type(name) != SQLITE_TEXT || text == NULL)
        return ARG_COUNT;
    if (strcmp(text, "min_ttl") == 0 || strcmp(text, "max_ttl") == 0)
        return ARG_SETTING;
    return strcmp(text, "event_rows") == 0 ? ARG_EVENT_ROWS : ARG_COUNT;
}

/* Answer a setting; times are kept in ms and told in seconds. */
static void admin_answer(struct call *call, enum arg rule, int64_t value)
{
    if (rule == ARG_EVENT_ROWS)
        sqlite3_result_int64(call->ctx, value);
    else
        sqlite3_result_double(call->ctx, (double)value / 1000);
}

static void admin_default(struct call *call, enum arg rule)
{
    const char *name = (const char *)sqlite3_value_text(call->argv[0]);
    int64_t value = rule == ARG_EVENT_ROWS ? DEFAULT_EVENT_ROWS
                    : name[1] == 'i'       ? DEFAULT_MIN_TTL_MS
                                           : DEFAULT_MAX_TTL_MS;
    admin_answer(call, rule, value);
}

/* Answers without reading it again: that could fail, and it is done. */
static void admin_config_set(struct call *call, enum arg rule)
{
    char *problem = NULL;
    int64_t token;
    int changes = 0;
    if (!arg_fits(rule, call->argv[1], &call->number[1], &problem)) {
        char *text = problem ? sqlite3_mprintf("value %s", problem) : NULL;
        call_fail(call, SQLITE_ERROR, text);
        sqlite3_free(text);
        sqlite3_free(problem);
        return;
    }
    if (!call_write(call, STMT_LEASE_CONFIG_SET, &changes, &token))
        return;
    if (changes == 0)
        call_fail(call, SQLITE_ERROR,
                  "value must keep min_ttl at or below max_ttl");
    else
        admin_answer(call, rule, call->number[1]);
}

void call_config(struct call *call)
{
    enum arg rule = admin_setting(call->argv[0]);
    if (rule == ARG_COUNT) {
        call_fail(call, SQLITE_ERROR,
                  "name must be 'min_ttl', 'max_ttl' or 'event_rows'");
        return;
    }
    if (call_has(call, 1)) {
        admin_config_set(call, rule);
        return;
    }
    struct statement now;
    struct statement s = {0};
    int there = call_read_row(call, STMT_LEASE_NOW, &now);
    int rc = there;
    if (there == 1)
        rc = engine_take(call->engine, STMT_LEASE_CONFIG_GET, &s);
    if (there == 1 && rc == SQLITE_OK)
        rc = engine_bind_value(&s, PARAM_NAME, call->argv[0]);
    if (there == 1 && rc == SQLITE_OK)
        rc = sqlite3_step(s.stmt);
    if (rc == SQLITE_ROW)
        sqlite3_result_value(call->ctx, sqlite3_column_value(s.stmt, 0));
    else if (there == 0)
        admin_default(call, rule);
    else if (there == 1)
        call_fail_rc(call, rc);
    engine_give(call->engine, &s);
    engine_give(call->engine, &now);
}

/* Run the statements that make the guard; arg is their text. */
static int admin_guard_body(struct engine *engine, void *arg, char **problem)
{
    (void)problem;
    int rc = sqlite3_exec(engine->db, arg, NULL, NULL, NULL);
    return rc == SQLITE_OK ? rc : sqlite3_extended_errcode(engine->db);
}

void call_guard(struct call *call)
{
    struct statement s;
    char *text = NULL;
    char *problem = NULL;
    call->engine->schema_ok = false; /* look, don't remember */
    if (!call_ensure_schema(call))
        return;
    int rc = engine_take(call->engine, STMT_LEASE_GUARD, &s);
    if (rc == SQLITE_OK)
        rc = call_bind(call, &s);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(s.stmt);
    if (rc == SQLITE_ROW)
        text = sqlite3_mprintf("%s", sqlite3_column_text(s.stmt, 0));
    else if (rc == SQLITE_DONE)
        call_fail(call, SQLITE_ERROR,
                  "table must be a table of main with both columns");
    else
        call_fail_rc(call, rc);
    engine_give(call->engine, &s);
    if (rc == SQLITE_ROW) {
        rc = schema_transact(call->engine, admin_guard_body, text, &problem);
        if (rc == SQLITE_OK)
            sqlite3_result_int(call->ctx, 1);
        else
            call_fail_schema(call, rc, problem);
    }
    sqlite3_free(text);
}
