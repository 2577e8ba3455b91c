/*
 * http.h: questions to the service, by libcurl.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef HTTP_H
#define HTTP_H

#include "ask.h"
#include "json.h"

struct http_options {
    const char *url;      /* http[s]://host[:port][/path] */
    const char *user;     /* or NULL */
    const char *password; /* or NULL */
    const char *cacert;   /* file of certificates to trust instead, or NULL */
};

/* Opens no connection yet. The options and json must outlive it. Returns NULL
 * without memory. */
struct transport *http_open(const struct http_options *options,
                            struct json *json);

#endif
