/*
 * problem.c: the outcome of an operation that is not done.
 *
 * SPDX-License-Identifier: MIT
 */
#include "problem.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

static bool row_take(void *context, const struct value *columns)
{
    struct outcome *outcome = context;
    size_t length = columns[1].length;
    outcome_clear(outcome);
    outcome->status = (int)columns[0].as.integer;
    if (columns[2].type == VALUE_INTEGER)
        outcome->retry_after = (int)columns[2].as.integer;
    outcome->body = malloc(length + 1);
    if (outcome->body) {
        memcpy(outcome->body, columns[1].as.text, length);
        outcome->length = length;
    }
    return true;
}

void problem_set(struct store *store, struct op *op, const char *code,
                 const char *detail, const char *errors)
{
    struct param params[] = {
        {":code", value_text(code)},
        {":detail", value_text(detail)},
        {":errors", value_text(errors)},
    };
    outcome_clear(&op->outcome);
    int rc =
        store_query(store, QUERY_PROBLEM, params, 3, row_take, &op->outcome);
    if (rc) {
        outcome_clear(&op->outcome);
        log_line("error", "event=problem_failed code=%s rc=%d", code, rc);
    }
}

void problem_set_rc(struct store *store, struct op *op, int rc)
{
    const char *code = "internal";
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        code = "busy";
        break;
    case SQLITE_FULL:
        code = "storage_full";
        break;
    case SQLITE_READONLY:
        code = rc == SQLITE_READONLY_DBMOVED ? "database_moved" : "read_only";
        break;
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
        code = "read_only";
        break;
    case SQLITE_CONSTRAINT:
        /* Without an extended code it comes from the engine, not from a
         * table: lease_grant() and its request_id. */
        if (rc == SQLITE_CONSTRAINT)
            code = "idempotency_mismatch";
        break;
    default:
        break;
    }
    if (strcmp(code, "idempotency_mismatch") != 0 &&
        log_due(&store_stats(store)->failure_logged_ms))
        log_line("error",
                 "event=failed request=%s path=%s code=%s rc=%d why=\"%s\"",
                 op->name, op->route->path, code, rc,
                 rc == SQLITE_READONLY_DBMOVED ? "the file is not in its place"
                                               : store_why(store, rc));
    problem_set(store, op, code, NULL, NULL);
    op->outcome.rc = rc;
}

void problem_answer(struct store *store, struct op *op, const char *code)
{
    problem_set(store, op, code, NULL, NULL);
    op_answer(op, 0);
}

/* What a problem calls itself. Client text can only stand behind it. */
static size_t code_find(const struct reply *reply, const char **code)
{
    static const char MEMBER[] = "\"code\":\"";
    const char *end = reply->body + reply->length;
    const char *at = reply->body ? memmem(reply->body, reply->length, MEMBER,
                                          sizeof MEMBER - 1)
                                 : NULL;
    if (!at)
        return 0;
    *code = at + sizeof MEMBER - 1;
    const char *quote = memchr(*code, '"', (size_t)(end - *code));
    return quote ? (size_t)(quote - *code) : 0;
}

void problem_log(struct stats *stats, const struct route *route, int rc,
                 const struct reply *reply)
{
    const char *code = "";
    int n = (int)code_find(reply, &code);
    if (log_room(&stats->answers_logged))
        log_line("error",
                 "event=answered request=%s path=%s status=%d code=%.*s rc=%d",
                 reply->request_id, route ? route->path : "-", reply->status, n,
                 code, rc);
}
