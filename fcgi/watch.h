/*
 * watch.h: the thread that tells what happened to those who wait for it:
 * event streams and long polls of GET /v1/events.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WATCH_H
#define WATCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "queue.h"
#include "store.h"
#include "sweeper.h"
#include "tail.h"

struct watch {
    struct store *store; /* its own, a reader */
    struct stats *stats;
    struct sweeper *sweeper;
    int epoll, wake; /* wake: an eventfd */
    struct client_watch clients;
    pthread_mutex_t mutex;
    struct chain arriving; /* under mutex */
    bool closed;           /* under mutex */
    atomic_bool hinted;    /* something was committed */
    atomic_bool watched;   /* somebody wants to know */

    /* The thread's own: */
    struct tail tail;
    struct watcher **watchers;
    size_t n, next_behind, next_look;
    bool behind;            /* some read pages of their own */
    int64_t quiet_until_us; /* it rests after work */
    size_t bytes;           /* told since the last rest */
    int64_t looked_ms;      /* at clients */
    int64_t due_ms;         /* when to look at the clocks of watchers */
    int64_t version;        /* of the database, when it was last read */
    char *piece;            /* what is being told */
    size_t piece_n;
};

/* 0, or -1 with errno. End with watch_destroy(), also after a failure. */
int watch_init(struct watch *watch);
void watch_destroy(struct watch *watch);

/*
 * Hand over an operation on the events' route that wants a stream or found
 * nothing and would wait. Returns true, or false with the reason for a
 * problem in *code: it is still the caller's then. Any thread.
 */
bool watch_submit(struct watch *watch, struct op *op, const char **code);

/* Something was committed. The writer. */
void watch_hint(struct watch *watch);

/* The work of its thread, given the watch, until watch_close(): then polls
 * are answered and streams end. */
void *watch_main(void *context);
void watch_close(struct watch *watch);

#endif
