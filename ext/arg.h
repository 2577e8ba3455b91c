/*
 * arg.h: what each argument may be. The one place of these rules, for SQL and,
 * through lease_problem(), for whoever asks before calling.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEASE_ARG_H
#define LEASE_ARG_H

#include <stdbool.h>
#include <stdint.h>

#include "lease.h"

enum arg {
    ARG_RESOURCE,      /* 1 to 512 bytes of text */
    ARG_HOLDER,        /* 1 to 256 bytes of text */
    ARG_DATA,          /* up to 4,096 bytes of text, control characters too */
    ARG_REQUEST_ID,    /* 1 to 128 bytes of text */
    ARG_ACTOR,         /* 1 to 256 bytes of text */
    ARG_REASON,        /* up to 512 bytes of text */
    ARG_TTL,           /* seconds, lease_config's bounds -> ms */
    ARG_MIN_REMAINING, /* seconds, 0 to 10 years -> ms */
    ARG_SETTING,       /* seconds, 0.001 to 10 years -> ms */
    ARG_TOKEN,         /* 1 to 2^53 - 1 */
    ARG_CAPACITY,      /* 1 to 10,000 */
    ARG_LIMIT,         /* 1 to 1,000,000 */
    ARG_EVENT_ROWS,    /* 1,000 to 10^12 */
    ARG_MARGIN,        /* 1 to 2^52 */
    ARG_NAME,          /* 1 to 64 bytes of text */
    ARG_TABLE,         /* names in the host's schema, 1 to 1,000 bytes */
    ARG_RESOURCE_COLUMN,
    ARG_TOKEN_COLUMN,
    ARG_VALUE, /* any: the function looks at it itself */
    ARG_COUNT
};

/* The name that callers know it by: "resource", "ttl", … */
const char *arg_name(enum arg arg);

/* The argument of that name, or ARG_COUNT. */
enum arg arg_find(const char *name);

/* Is it text (else a number, kept as an integer: ms for seconds)? */
bool arg_is_text(enum arg arg);

/*
 * Is value fit for arg? true when it is, with *number set for a number. Else
 * false, with *problem a sentence that follows the name ("must be …"), to be
 * freed with sqlite3_free(), or NULL when memory ran out. NULL is never fit.
 * The bounds of ttl are not looked at here: they are in the database.
 */
bool arg_fits(enum arg arg, sqlite3_value *value, int64_t *number,
              char **problem);

/* The same for a ttl and its bounds. */
bool arg_ttl_fits(int64_t ttl_ms, int64_t min_ms, int64_t max_ms,
                  char **problem);

#endif
