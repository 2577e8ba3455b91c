/*
 * op.h: one operation: what a request asks, on its way to the database, and
 * what came of it, on its way back.
 *
 * The worker that read the request makes it, the queue and the writer pass it
 * on, the answering thread (answer.h) frees it. It belongs to one of them at
 * a time.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef OP_H
#define OP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client.h"
#include "reply.h"
#include "route.h"

enum value_type { VALUE_NULL, VALUE_INTEGER, VALUE_REAL, VALUE_TEXT };

/* A value for a field. A text lies in the operation that it belongs to. */
struct value {
    enum value_type type;
    union {
        int64_t integer;
        double real;
        const char *text;
    } as;
    size_t length;
};

/* A text that somebody else owns, or VALUE_NULL for NULL. */
struct value value_text(const char *text);
struct value value_integer(int64_t integer);

/* A field in seconds as milliseconds; 0 for NULL. */
int64_t value_ms(const struct value *value);

/* What came of it: an HTTP status and a body. */
struct outcome {
    int status; /* 0: nothing yet */
    char *body; /* malloc()ed, length bytes, or NULL */
    size_t length;
    const char *type;   /* of the body; NULL: JSON */
    int retry_after;    /* seconds, or 0 */
    int rc;             /* SQLite's code, when it came of that, or 0 */
    int64_t expires_at; /* of the lease answered, lease time ms, or 0 */
};

/* A grant that waits, or did. */
struct wait {
    struct line *line; /* it stands in, or NULL */
    struct op *before, *after;
    int64_t deadline_ms; /* clock_ms(); 0: it does not want to wait */
    int64_t since_ms;    /* when it was asked for */
    uint64_t number;     /* by arrival; 0: it never waited */
    size_t place;        /* see waits.c */
};

struct stats;

struct op {
    struct op *next;
    struct stats *stats; /* where it is counted, or NULL */
    int64_t began_us;    /* clock_us() */
    const struct route *route;
    int fd;               /* to answer on; -1: nobody waits */
    int id;               /* FastCGI request number on fd */
    int64_t queued_ms;    /* clock_ms() */
    bool stream;          /* wants Server-Sent Events */
    bool atomic;          /* of a batch: all of its parts or none */
    bool look;            /* only look whether a grant would be refused */
    struct op *parts;     /* of a batch, by next, see parts.h; else NULL */
    size_t more;          /* how many there are behind the first */
    struct client client; /* who asks */
    struct wait wait;
    int64_t ahead;         /* how many wait before it for the same */
    char *waiters;         /* who they are, see waits_tell(); or NULL */
    atomic_bool *finished; /* set when it is over, or NULL */
    struct outcome outcome;
    struct value value[ROUTE_FIELDS_MAX]; /* in the order of route->fields */
    struct value request_id;              /* the Idempotency-Key */
    struct value actor;                   /* who asks, as the server says */
    enum group group;                     /* what the actor may do */
    char name[REQUEST_ID_MAX + 1];        /* the X-Request-Id */
    size_t room, used;                    /* of text[] */
    char text[];
};

/* An operation for route with room for so many bytes of text, or NULL without
 * memory. op_free() closes the connection if it is still open. */
struct op *op_new(const struct route *route, size_t room);
void op_free(struct op *op);

/* Give a batch room for n parts, all of them empty. False without memory.
 * They go with it. */
bool op_split(struct op *op, size_t n);

/* The field of the operation that has this name. It must have it. */
struct value *op_field(struct op *op, const char *name);

/* Keep a copy of a text (that fits) in the operation and set *value to it. */
void op_set_text(struct op *op, struct value *value, const char *text,
                 size_t length);

/* Forget an outcome, before another. */
void outcome_clear(struct outcome *outcome);

/* Write the outcome on the operation's connection and free the operation.
 * wait_ms as in reply_send(). */
void op_answer(struct op *op, int wait_ms);

#endif
