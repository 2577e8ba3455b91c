/*
 * route.h: what the service can be asked: one line a route.
 *
 * A new route is a line in route.c and a file in sql/. Its statement binds
 * the route's fields by name, also :request_id (the Idempotency-Key), :actor
 * (REMOTE_USER), :may (route_may()) and the service's figures by their names
 * (stats.h), and yields one row: status, body, retry_after, expires_at.
 * retry_after is in seconds or NULL, expires_at is that of a lease in the body
 * (lease time in ms) or NULL.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ROUTE_H
#define ROUTE_H

#include <stdbool.h>
#include <stddef.h>

#include "groups.h"

enum { ROUTES_N = 14, ROUTE_FIELDS_MAX = 8 };

struct route {
    const char *path;
    bool post;        /* POST with a JSON body, else GET with a query */
    bool writes;      /* runs on the writer's connection, else a reader's */
    enum group group; /* who may, at least */
    const char *sql;  /* NULL: only of /v1/batch, which runs those of others */
    const char *fields; /* " a b c ", the required ones first */
    size_t required;    /* how many those are */
};

/* The first is a grant; the seventh runs those before it; the last is no route
 * but the operation of the sweeper, before it are the one that asks who waits
 * and /metrics. */
extern const struct route ROUTES[ROUTES_N];
#define ROUTE_GRANT (&ROUTES[0])
#define ROUTE_BATCH (&ROUTES[6])
#define ROUTE_METRICS (&ROUTES[ROUTES_N - 3])
#define ROUTE_WAITERS (&ROUTES[ROUTES_N - 2])
#define ROUTE_SWEEP (&ROUTES[ROUTES_N - 1])

/* The route of a path of n bytes, exactly as spelled, or NULL. */
const struct route *route_find(const char *path, size_t n);

/*
 * What a group may do besides looking, as a JSON array of the names of its
 * routes, "[\"grant\",\"renew\"]", into text. Returns text.
 */
char *route_may(enum group group, char *text, size_t size);

/* The methods that the route answers, as an Allow header has them. */
const char *route_allow(const struct route *route);

/* How long a body the route of a URI (with a query) takes. */
size_t route_body_max(const char *uri);

/*
 * Which of the fields " a b c " has this name of n bytes, from 0; -1: none
 * has. The same of a route's; and where place is that where its name begins.
 */
int route_field_of(const char *fields, const char *name, size_t n);
int route_field(const struct route *route, const char *name);
int route_field_at(const char *fields, size_t place);

#endif
