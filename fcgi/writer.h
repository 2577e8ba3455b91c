/*
 * writer.h: the one thread that changes the database.
 *
 * It takes every operation that waits, runs all in one transaction and hands
 * them to the answering thread after COMMIT: one fsync for many. From batch to
 * outcomes, so that another engine can take its place.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WRITER_H
#define WRITER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "held.h"
#include "queue.h"
#include "store.h"
#include "sweeper.h"
#include "waits.h"

struct writer {
    struct store *store; /* its own */
    struct stats *stats;
    struct queue queue; /* operations to run */
    struct waits waits; /* grants that wait */
    int64_t seen;       /* events up to this one are known; -1: none */
    int64_t version;    /* see turns.c */
    int64_t looked_ms;
    size_t served; /* in this transaction */
    struct client_watch clients;
    struct held held;      /* what was refused lately */
    struct queue *answers; /* operations with an outcome */
    struct sweeper *sweeper;
    struct checkpointer *checkpointer;
    struct watch *watchers;
    atomic_bool stopping; /* nobody waits any more, nor long for a lock */
};

/*
 * Hand over an operation. Returns true, or false when too many wait: it is
 * still the caller's then. Any thread.
 */
bool writer_submit(struct writer *writer, struct op *op);

/* The work of its thread, given the writer, until its queue is closed and
 * empty. */
void *writer_main(void *context);

#endif
