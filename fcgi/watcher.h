/*
 * watcher.h: one who watches: an event stream or a long poll. All of it runs
 * on the thread of watch.h.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WATCHER_H
#define WATCHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "op.h"
#include "reply.h"
#include "stats.h"

struct watch;

struct watcher {
    struct op *op;
    struct reply_stream out; /* of a stream; fd -1: it is a poll */
    const struct value *resource;
    uint32_t hash;    /* of the resource */
    int64_t position; /* what came up to here is told, or not wanted */
    int64_t due_ms;   /* a poll is answered, a stream says something, one that
                       * takes nothing ends */
    size_t index;     /* in watch->watchers */
    size_t most;      /* events in one piece */
};

/* Where the log is whole, and its last number. */
struct log_ends {
    int64_t trimmed, newest, oldest;
};
struct log_ends log_ends_read(struct watch *watch);

/* Where it is counted. */
enum stat_name watcher_stat(const struct op *op);

/* Begin with an operation, which is the watcher's from now on. */
void watcher_new(struct watch *watch, struct op *op,
                 const struct log_ends *ends);

/* End it: a stream in good order, a poll without an answer. */
void watcher_end(struct watch *watch, struct watcher *w);

/* The service ends: the same, but a poll is told so. */
void watcher_stop(struct watch *watch, struct watcher *w);

/* Each of these false: it is over and gone. */

/* Tell it what the tail has new. */
bool watcher_go(struct watch *watch, struct watcher *w);
/* Tell a stream that is behind the tail one page of the log. */
bool watcher_page(struct watch *watch, struct watcher *w);
/* Do what is due. */
bool watcher_clock(struct watch *watch, struct watcher *w, int64_t now_ms);

/* Does it want a page now? */
bool watcher_behind(const struct watch *watch, const struct watcher *w);

/* Epoll says these events of its connection. */
void watcher_event(struct watch *watch, struct watcher *w, uint32_t events);

#endif
