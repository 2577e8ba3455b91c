/*
 * sweeper.h: the thread that has expiries recorded as they happen.
 *
 * Nothing depends on it for being right: every statement tests expiry itself.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SWEEPER_H
#define SWEEPER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "readers.h"

struct writer;

struct sweeper {
    struct readers *readers;
    struct writer *writer;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    bool hinted, closed;
    int64_t looked_ms;            /* clock_ms() of metrics_look() */
    _Atomic int64_t sleeps_until; /* lease time ms */
    atomic_bool idle;             /* no sweep is under way */
};

void sweeper_init(struct sweeper *sweeper, struct readers *readers,
                  struct writer *writer);
void sweeper_destroy(struct sweeper *sweeper);

/* A lease that expires at this lease time (ms) was granted. Any thread. */
void sweeper_hint(struct sweeper *sweeper, int64_t expires_at);

/* The work of its thread, given the sweeper, until sweeper_close(). */
void *sweeper_main(void *context);
void sweeper_close(struct sweeper *sweeper);

#endif
