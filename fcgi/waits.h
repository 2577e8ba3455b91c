/*
 * waits.h: grants that wait their turn: a line for each resource, first come,
 * first served. Belongs to the writer's thread.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WAITS_H
#define WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "limits.h"
#include "op.h"

/* All who wait for one resource. */
struct line {
    struct line *next;       /* in its bucket */
    struct line *next_ready; /* see waits_ready_take() */
    bool ready;
    size_t n;
    struct op *first, *last; /* by op->wait.after and before */
    size_t name_n;
    char name[];
};

struct waits {
    struct line *bucket[WAITERS_BUCKETS];
    struct line *ready_first, *ready_last;
    struct op *heap[WAITERS_MAX + 1]; /* the next deadline first */
    size_t n, next_look;
    uint64_t next_number;
    int epoll; /* tells whose connection has ended */
};

/* 0, or -1 with errno. End with waits_destroy(), also after a failure. */
int waits_init(struct waits *waits);
/* Also frees those who wait. */
void waits_destroy(struct waits *waits);

/* The line for a resource, or NULL: nobody waits for it. */
struct line *waits_line(struct waits *waits, const struct value *resource);

/*
 * Let an operation wait until op->wait.deadline_ms, at the end of its
 * resource's line; one that has waited before gets its old place again.
 * False: too many wait, or no memory.
 */
bool waits_join(struct waits *waits, struct op *op);

/* It waits no longer. False: it was the last of its line, which has gone. */
bool waits_leave(struct waits *waits, struct op *op);

/* One whose deadline has passed, or NULL. */
struct op *waits_due(struct waits *waits, int64_t now_ms);

/* Milliseconds until the next deadline, at most most_ms. */
int64_t waits_sleep_ms(const struct waits *waits, int64_t now_ms,
                       int64_t most_ms);

/* One whose connection has ended, or NULL. It has to leave. */
struct op *waits_gone(struct waits *waits);

/* Somebody who waits, in turn; NULL: nobody does. */
struct op *waits_next(struct waits *waits);

/* How many stand before it, or would, for the resource of a grant. */
int64_t waits_ahead(struct waits *waits, struct op *op);

/* The first most who wait for a resource, in turn, a line each: how many
 * milliseconds, a space, the holder. malloc()ed; NULL: nobody, or no memory. */
char *waits_tell(struct waits *waits, const struct value *resource, size_t most,
                 int64_t now_ms);

/* The one that waits with the same request_id for the same holder. */
struct op *waits_twin(struct waits *waits, const struct op *op);

/* Do two grants ask for the same, but for how long they wait? */
bool waits_same(const struct op *op, const struct op *other);

/* Put an operation in the place of one that leaves with it. False: no memory;
 * nothing has happened. */
bool waits_replace(struct waits *waits, struct op *old, struct op *op);

/* Lines whose first should be tried, each once until it is taken. */
void waits_ready(struct waits *waits, struct line *line);
void waits_ready_all(struct waits *waits);
struct line *waits_ready_take(struct waits *waits);

#endif
