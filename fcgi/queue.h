/*
 * queue.h: a queue of operations between threads.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef QUEUE_H
#define QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "op.h"

/* A chain of operations by op->next. Zeroed, it is empty. */
struct chain {
    struct op *first, *last;
    size_t n;
    size_t more; /* op->more of all */
};

void chain_add(struct chain *chain, struct op *op);
struct op *chain_take(struct chain *chain); /* the first, or NULL */
/* Move all of from behind what is in chain. */
void chain_append(struct chain *chain, struct chain *from);

struct queue {
    pthread_mutex_t mutex;
    pthread_cond_t filled;
    struct chain waiting;
    bool asleep; /* a taker waits for filled */
    bool closed;
};

void queue_init(struct queue *queue);
void queue_destroy(struct queue *queue);

/* Put operations at the end and wake the taker if it sleeps. One that waits
 * is taken also from a closed queue. */
void queue_put(struct queue *queue, struct chain *chain);

/*
 * Take operations, up to max with their parts; the last may bring more of
 * them. Sleeps until there is one or the queue is closed, but no longer than
 * wait_ms; -1: without end.
 * Empty: the time is over, or closed and empty: queue_over().
 */
struct chain queue_take(struct queue *queue, size_t max, int64_t wait_ms);
bool queue_over(struct queue *queue);

/* Whoever sleeps in queue_take() finds out that nothing more will come. */
void queue_close(struct queue *queue);

#endif
