/*
 * json.h: JSON made and taken apart by SQLite, in a database in memory.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "ask.h"

struct json;

/* What a holder needs to know of its lease. */
struct lease {
    int64_t token;
    int64_t epoch;
    int64_t remaining_ms;
    char expires_at[40];
};

/* What an answer that is no success says. */
struct problem {
    char code[32];        /* "" when it is none of Leasehold's */
    int64_t remaining_ms; /* until the first holder's lease ends, or -1 */
    bool no_wait;         /* only the field "wait" was wrong */
    char text[512];
};

/* Returns NULL without memory. */
struct json *json_open(void);
void json_close(struct json *json);

/* A request's body from its fields. Returns malloc()ed text or NULL. */
char *json_body(struct json *json, const struct fields *fields);

/* Read the lease in a body. False when it holds none. */
bool json_lease(struct json *json, const char *body, struct lease *lease);

/* What an answer says that is no success, also one that is no JSON or none
 * at all. */
void json_problem(struct json *json, const struct answer *answer,
                  struct problem *problem);

/* The first column of sql's first row as a value; a text is malloc()ed. */
struct value json_value(struct json *json, const char *sql, const char *body);

/*
 * Print a line for each row of view (a file sql/cli_view_*.sql): its column
 * "line", or "json". Returns how many, or -1 when the body cannot be read;
 * *over is set when a third column says so.
 */
int json_print(struct json *json, const char *view, const char *body,
               bool as_json, bool *over);

#endif
