/*
 * checkpointer.h: the thread that moves the write-ahead log into the database
 * file, so that the writer never does.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CHECKPOINTER_H
#define CHECKPOINTER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "store.h"

struct checkpointer {
    struct store *store; /* its own */
    struct stats *stats;
    pthread_mutex_t mutex;
    pthread_cond_t wake, rested;
    bool hinted, closed;
    atomic_bool anew;           /* the log begins anew: nobody is to write */
    int64_t failing_since;      /* clock_ms(), 0: the last one was whole */
    _Atomic int64_t done_pages; /* of the log when the last one began */
};

void checkpointer_init(struct checkpointer *checkpointer, struct store *store,
                       struct stats *stats);
void checkpointer_destroy(struct checkpointer *checkpointer);

/* The log has so many pages now. The writer, after each commit. */
void checkpointer_hint(struct checkpointer *checkpointer, int64_t pages);

/* Wait while the log begins anew. The writer, between transactions: otherwise
 * it would leave nobody else the lock. */
void checkpointer_yield(struct checkpointer *checkpointer);

/* The work of its thread, given the checkpointer, until checkpointer_close():
 * then everything into the
 * file, once more, and the log is left empty. */
void *checkpointer_main(void *context);
void checkpointer_close(struct checkpointer *checkpointer);

#endif
