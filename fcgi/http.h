/*
 * http.h: the rules of HTTP that hold before anything is looked up: host,
 * path, method, origin, type and size of the body.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef HTTP_H
#define HTTP_H

#include <stdbool.h>

#include "op.h"
#include "request.h"

struct http {
    const struct route *route; /* NULL: there is none */
    const char *query;         /* behind the '?', or "" */
    bool options;              /* only asks which methods there are */
};

/*
 * Judge the request. hosts: names that the service answers to besides
 * localhost and its own address, with commas or blanks between, or NULL.
 * group: of who asks.
 * Returns NULL when it may go on, with *http set; else the code of a problem
 * (sql/http_problem.sql), with http->route set if that much is known.
 */
const char *http_judge(const struct request *request, const char *hosts,
                       enum group group, struct http *http);

/* The request's X-Request-Id if it is plain, else a new one, into name, which
 * has room for REQUEST_ID_MAX + 1 bytes. number is never used twice. */
void http_request_id(const struct request *request, unsigned long long number,
                     char *name);

#endif
