/*
 * call.c: one call of an SQL function, from arguments to result.
 *
 * SPDX-License-Identifier: MIT
 */
#include "call.h"

#include "schema.h"

SQLITE_EXTENSION_INIT3

bool call_has(const struct call *call, int i)
{
    return i < call->argc && sqlite3_value_type(call->argv[i]) != SQLITE_NULL;
}

void call_fail(struct call *call, int rc, const char *text)
{
    call->rc = rc;
    sqlite3_free(call->text);
    call->text =
        text ? sqlite3_mprintf("%s: %s", call->function->name, text) : NULL;
}

void call_fail_rc(struct call *call, int rc)
{
    if (rc == SQLITE_NOMEM)
        call_fail(call, rc, NULL);
    else if (rc == SQLITE_RANGE) /* from lease_ttl(): the caller's error */
        call_fail(call, SQLITE_ERROR, sqlite3_errmsg(call->engine->db));
    else
        call_fail(call, engine_extended(call->engine, rc),
                  engine_errmsg(call->engine, rc));
}

void call_fail_schema(struct call *call, int rc, char *problem)
{
    if (rc == SQLITE_MISUSE || problem != NULL)
        call_fail(call, rc == SQLITE_MISUSE ? SQLITE_ERROR : rc, problem);
    else
        call_fail_rc(call, rc);
    sqlite3_free(problem);
}

bool call_ensure_schema(struct call *call)
{
    char *problem = NULL;
    int rc = schema_ensure(call->engine, &problem);
    if (rc != SQLITE_OK)
        call_fail_schema(call, rc, problem);
    return rc == SQLITE_OK;
}

int call_read_row(struct call *call, enum stmt id, struct statement *lent)
{
    enum schema_state state;
    char *problem = NULL;
    int rc = schema_read(call->engine, id, &state, lent, &problem);
    if (rc == SQLITE_OK)
        return state == SCHEMA_OURS;
    call_fail_schema(call, rc, problem);
    return -1;
}

int call_bind(struct call *call, struct statement *s)
{
    const struct function *f = call->function;
    int rc = SQLITE_OK;
    for (int i = 0; i < f->count && rc == SQLITE_OK; i++) {
        const struct call_arg *to = &f->args[i];
        if (call_has(call, i) && arg_is_text(to->arg))
            rc = engine_bind_value(s, to->param, call->argv[i]);
        else if (call_has(call, i) || to->fallback != 0)
            rc = engine_bind_int(s, to->param, call->number[i]);
    }
    return rc;
}

/* Take, bind, write, give back; the whole error is told by sqlite3_errmsg(). */
static int call_write_once(struct call *call, enum stmt id, int *changes,
                           int64_t *token)
{
    struct statement s;
    *changes = 0;
    int rc = engine_take(call->engine, id, &s);
    if (rc == SQLITE_OK)
        rc = call_bind(call, &s);
    if (rc == SQLITE_OK)
        rc = engine_write(call->engine, &s, changes, token);
    bool clockless = rc == SQLITE_OK && *changes == 0 &&
                     s.index[PARAM_BOOT_ID] != 0 && call->engine->instant == 0;
    engine_give(call->engine, &s);
    return clockless ? SQLITE_EMPTY : rc;
}

/* Store this boot's anchor, unless it was there already. */
static int call_boot(struct call *call)
{
    struct statement s;
    int changes = 0;
    int64_t token;
    int rc = engine_take(call->engine, STMT_LEASE_BOOT, &s);
    if (rc == SQLITE_OK)
        rc = engine_write(call->engine, &s, &changes, &token);
    engine_give(call->engine, &s);
    return rc;
}

/* Did the tables go away (the transaction that made them rolled back)? */
static bool call_schema_gone(struct call *call)
{
    enum schema_state state;
    char *problem = NULL;
    engine_forget(call->engine);
    int rc = schema_look(call->engine, &state, &problem);
    sqlite3_free(problem);
    return rc == SQLITE_OK && state == SCHEMA_ABSENT;
}

bool call_write(struct call *call, enum stmt id, int *changes, int64_t *token)
{
    if (!call_ensure_schema(call))
        return false;
    int rc = call_write_once(call, id, changes, token);
    if (rc == SQLITE_ERROR) {
        char *text = sqlite3_mprintf("%s", sqlite3_errmsg(call->engine->db));
        if (!call_schema_gone(call)) {
            call_fail(call, rc, text);
            sqlite3_free(text);
            return false;
        }
        sqlite3_free(text);
        if (!call_ensure_schema(call))
            return false;
        rc = call_write_once(call, id, changes, token);
    }
    if (rc == SQLITE_EMPTY) {
        rc = call_boot(call);
        if (rc == SQLITE_OK)
            rc = call_write_once(call, id, changes, token);
        if (rc == SQLITE_EMPTY)
            rc = SQLITE_OK; /* a refusal that needed no clock */
    }
    if (rc != SQLITE_OK)
        call_fail_rc(call, rc);
    return rc == SQLITE_OK;
}

static bool call_count_fits(struct call *call)
{
    const struct function *f = call->function;
    if (call->argc >= f->required && call->argc <= f->count)
        return true;
    char *text = sqlite3_mprintf("takes %d to %d arguments, not %d",
                                 f->required, f->count, call->argc);
    call_fail(call, SQLITE_ERROR, text);
    sqlite3_free(text);
    return false;
}

/* Check every argument, and read the numbers. */
static bool call_args_fit(struct call *call)
{
    const struct function *f = call->function;
    for (int i = 0; i < f->count; i++) {
        const struct call_arg *to = &f->args[i];
        call->number[i] = to->fallback;
        if (to->arg == ARG_VALUE || (i >= f->required && !call_has(call, i)))
            continue;
        char *problem = NULL;
        if (arg_fits(to->arg, call->argv[i], &call->number[i], &problem))
            continue;
        char *text = problem
                         ? sqlite3_mprintf("%s %s", arg_name(to->arg), problem)
                         : NULL;
        call_fail(call, SQLITE_ERROR, text);
        sqlite3_free(text);
        sqlite3_free(problem);
        return false;
    }
    return true;
}

static void call_tell_failure(struct call *call)
{
    if (call->text == NULL) {
        sqlite3_result_error_nomem(call->ctx);
        return;
    }
    sqlite3_result_error(call->ctx, call->text, -1);
    sqlite3_result_error_code(call->ctx, call->rc);
    sqlite3_free(call->text);
}

static void call_run(struct call *call)
{
    int64_t since_ms = 0;
    do {
        sqlite3_free(call->text);
        call->text = NULL;
        call->rc = SQLITE_OK;
        call->function->run(call);
    } while (call->rc != SQLITE_OK && call->function->writes &&
             engine_wait(call->engine, call->rc, &since_ms));
}

void call_function(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    const struct call_target *target = sqlite3_user_data(ctx);
    struct call call = {
        .engine = target->engine,
        .function = target->function,
        .ctx = ctx,
        .argc = argc,
        .argv = argv,
    };
    if (call_count_fits(&call) && call_args_fit(&call))
        call_run(&call);
    if (call.rc != SQLITE_OK)
        call_tell_failure(&call);
}
