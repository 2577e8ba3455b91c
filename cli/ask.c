/*
 * ask.c: the routes in both languages, values and answers.
 *
 * HOW IT WORKS: with --db the program runs the very statements that the
 * service runs (sql/http_*.sql), so both answer the same JSON.
 *
 * SPDX-License-Identifier: MIT
 */
#include "ask.h"

#include <stdlib.h>

#include "sql.h"

const char *const FIELD_NAMES[FIELD_N] = {
    [FIELD_RESOURCE] = "resource",
    [FIELD_HOLDER] = "holder",
    [FIELD_TTL] = "ttl",
    [FIELD_CAPACITY] = "capacity",
    [FIELD_DATA] = "data",
    [FIELD_WAIT] = "wait",
    [FIELD_TOKEN] = "token",
    [FIELD_MIN_REMAINING] = "min_remaining",
    [FIELD_REASON] = "reason",
    [FIELD_PREFIX] = "prefix",
    [FIELD_LIMIT] = "limit",
    [FIELD_AFTER] = "after",
    [FIELD_REQUEST_ID] = "request_id",
    [FIELD_ACTOR] = "actor",
    [FIELD_BODY] = "body",
    [FIELD_CODE] = "code",
    [FIELD_DETAIL] = "detail",
};

const struct route ROUTES[ROUTE_N] = {
    [ROUTE_GRANT] = {"/v1/grant", true, SQL_HTTP_GRANT, true, true},
    [ROUTE_RENEW] = {"/v1/renew", true, SQL_HTTP_RENEW, true, false},
    [ROUTE_RELEASE] = {"/v1/release", true, SQL_HTTP_RELEASE, true, false},
    [ROUTE_CHECK] = {"/v1/check", true, SQL_HTTP_CHECK, false, false},
    [ROUTE_REVOKE] = {"/v1/revoke", true, SQL_HTTP_REVOKE, true, false},
    [ROUTE_LEASES] = {"/v1/leases", false, SQL_HTTP_LEASES, false, false},
    [ROUTE_EVENTS] = {"/v1/events", false, SQL_HTTP_EVENTS, false, false},
    [ROUTE_STATUS] = {"/v1/status", false, SQL_CLI_STATUS, false, false},
};

void value_set_text(struct value *value, const char *text)
{
    value->type = text ? VALUE_TEXT : VALUE_NONE;
    value->text = text;
}

void value_set_integer(struct value *value, int64_t integer)
{
    value->type = VALUE_INTEGER;
    value->integer = integer;
}

void value_set_real(struct value *value, double real)
{
    value->type = VALUE_REAL;
    value->real = real;
}

void answer_clear(struct answer *answer)
{
    free(answer->body);
    *answer = (struct answer){0};
}
