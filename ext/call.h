/*
 * call.h: one call of an SQL function, from arguments to result.
 *
 * A function is a line of the table in lease.c: its name, its arguments, its
 * statement, and which of the functions below runs it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEASE_CALL_H
#define LEASE_CALL_H

#include "arg.h"
#include "engine.h"

enum { CALL_MAX_ARGS = 7 };

/* Where an argument goes. After the required ones NULL means fallback. */
struct call_arg {
    enum arg arg;
    enum param param;
    int64_t fallback; /* of a number that is not given; 0 stands for NULL */
};

struct call;

struct function {
    const char *name;
    int required; /* arguments that must be given */
    int count;    /* arguments that may be given */
    struct call_arg args[CALL_MAX_ARGS];
    enum stmt stmt;
    bool writes;
    void (*run)(struct call *call);
};

struct call {
    struct engine *engine;
    const struct function *function;
    sqlite3_context *ctx;
    int argc;
    sqlite3_value **argv;
    int64_t number[CALL_MAX_ARGS]; /* the numbers among argv */
    int rc;                        /* how it failed, or SQLITE_OK */
    char *text;                    /* the same for people; NULL: no memory */
};

/*
 * The extension's side of an SQL function: check, then function->run. One that
 * writes is run again for up to 2 s while another process has a lock, where the
 * host has no busy timeout and no transaction is open.
 */
void call_function(sqlite3_context *ctx, int argc, sqlite3_value **argv);

/* What sqlite3_user_data() of such a function is. */
struct call_target {
    struct engine *engine;
    const struct function *function;
};

/* The runs. Each sets the result or fails the call; one that failed because of
 * a lock may be run again. */
void call_grant(struct call *call);   /* token or NULL */
void call_token(struct call *call);   /* token or NULL */
void call_changes(struct call *call); /* number of events written */
void call_fence(struct call *call);   /* token, or an error when stale */
void call_check(struct call *call);   /* 1 or 0 */
void call_why(struct call *call);     /* what became of the token */
void call_now(struct call *call);     /* lease time in seconds */
void call_init(struct call *call);    /* version of the schema */
void call_version(struct call *call); /* version of Leasehold */
void call_problem(struct call *call); /* a sentence or NULL */
void call_config(struct call *call);  /* value of a setting */
void call_guard(struct call *call);   /* 1, triggers installed */

/* --- for the runs ------------------------------------------------------- */

/* Does the call have this argument, and is it not NULL? */
bool call_has(const struct call *call, int i);

/* Fail with "name: text" and an SQLite result code; text NULL: no memory. */
void call_fail(struct call *call, int rc, const char *text);

/* Fail with what SQLite says of rc. */
void call_fail_rc(struct call *call, int rc);

/* Fail with a problem that schema.h gave (and free it), or else with rc. */
void call_fail_schema(struct call *call, int rc, char *problem);

/* Make sure of the schema for writing; false when it failed (and said so). */
bool call_ensure_schema(struct call *call);

/*
 * Read a row, see engine_read(). 1, 0 where there is no schema, or -1
 * when it failed (and said so). The statement is given back in all cases.
 */
int call_read_row(struct call *call, enum stmt id, struct statement *lent);

/* Bind the call's arguments. Returns an SQLite result code. */
int call_bind(struct call *call, struct statement *s);

/* Run a writing statement with the call's arguments. False: failed, said so. */
bool call_write(struct call *call, enum stmt id, int *changes, int64_t *token);

#endif
