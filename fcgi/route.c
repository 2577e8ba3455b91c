/*
 * route.c: what the service can be asked: one line a route.
 *
 * SPDX-License-Identifier: MIT
 */
#include "route.h"

#include <stdio.h>
#include <string.h>

#include "limits.h"
#include "sql.h"

#define GET false, false, GROUP_VIEWERS
#define GET_FROM_WRITER false, true, GROUP_VIEWERS
#define GET_BY_ALL false, false, GROUP_NONE
#define POST_READS true, false, GROUP_WORKERS
#define POST_WRITES true, true, GROUP_WORKERS
#define POST_BY_ADMINS true, true, GROUP_ADMINS

const struct route ROUTES[ROUTES_N] = {
    {"/v1/grant", POST_WRITES, SQL_HTTP_GRANT,
     " resource holder ttl capacity data wait ", 2},
    {"/v1/renew", POST_WRITES, SQL_HTTP_RENEW, " resource token ttl ", 2},
    {"/v1/release", POST_WRITES, SQL_HTTP_RELEASE, " resource token ", 2},
    {"/v1/check", POST_READS, SQL_HTTP_CHECK, " resource token min_remaining ",
     2},
    {"/v1/fence", POST_WRITES, SQL_HTTP_FENCE, " resource token ", 2},
    {"/v1/revoke", POST_BY_ADMINS, SQL_HTTP_REVOKE, " resource holder reason ",
     1},
    {"/v1/batch", POST_WRITES, NULL, " ops atomic ", 1},
    {"/v1/leases", GET, SQL_HTTP_LEASES, " resource prefix holder limit after ",
     0},
    {"/v1/events", GET, SQL_HTTP_EVENTS, " after resource limit wait ", 0},
    {"/v1/status", GET, SQL_HTTP_STATUS, " ", 0},
    {"/healthz", GET_BY_ALL, SQL_HTTP_HEALTHZ, " ", 0},
    {"/metrics", GET, SQL_HTTP_METRICS, " ", 0},
    {"/v1/waiters", GET_FROM_WRITER, SQL_HTTP_WAITERS, " resource ", 1},
    {"", POST_WRITES, SQL_HTTP_SWEEP, " limit ", 1},
};

const struct route *route_find(const char *path, size_t n)
{
    for (size_t i = 0; i < ROUTES_N - 1; i++)
        if (strncmp(ROUTES[i].path, path, n) == 0 && !ROUTES[i].path[n])
            return &ROUTES[i];
    return NULL;
}

char *route_may(enum group group, char *text, size_t size)
{
    static const char V1[] = "/v1/";
    size_t n = (size_t)snprintf(text, size, "[");
    for (size_t i = 0; i < ROUTES_N - 1; i++)
        if (ROUTES[i].post && ROUTES[i].group <= group && n < size)
            n += (size_t)snprintf(text + n, size - n, "%s\"%s\"",
                                  n > 1 ? "," : "",
                                  ROUTES[i].path + sizeof V1 - 1);
    if (n < size)
        snprintf(text + n, size - n, "]");
    return text;
}

const char *route_allow(const struct route *route)
{
    return route->post ? "OPTIONS, POST" : "GET, HEAD, OPTIONS";
}

size_t route_body_max(const char *uri)
{
    return route_find(uri, strcspn(uri, "?")) == ROUTE_BATCH ? BODY_MAX_LONG
                                                             : BODY_MAX;
}

int route_field_at(const char *fields, size_t place)
{
    int field = -1;
    for (size_t i = 0; i < place; i++)
        field += fields[i] == ' ';
    return field;
}

int route_field_of(const char *fields, const char *name, size_t n)
{
    const char *end;
    int field = 0;
    for (const char *at = fields + 1; *at; at = end + 1, field++) {
        end = strchr(at, ' ');
        if ((size_t)(end - at) == n && memcmp(at, name, n) == 0)
            return field;
    }
    return -1;
}

int route_field(const struct route *route, const char *name)
{
    return route_field_of(route->fields, name, strlen(name));
}
