/*
 * stats.h: the service's figures. A route's statement gets each by its name,
 * ':queued' for instance.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef STATS_H
#define STATS_H

#include <stdatomic.h>
#include <stdint.h>

#include "log.h"
#include "metrics.h"

/* X(name): all of them. */
#define STATS(X)                                                               \
    X(started_ms)      /* clock_ms() when the service began */                 \
    X(started_at_ms)   /* the same by the wall clock */                        \
    X(uptime_ms)       /* since then: set when a statement asks */             \
    X(queued)          /* requests for the writer, not yet answered */         \
    X(queued_more)     /* operations in them behind the first of each */       \
    X(queue_max)       /* how many it may become */                            \
    X(batches)         /* transactions committed by the writer */              \
    X(operations)      /* operations in them */                                \
    X(commit_us)       /* how long the last commit took */                     \
    X(locked_ms)       /* how long the writer has waited for a foreign lock */ \
    X(busy_ms)         /* how long it has done so altogether */                \
    X(write_error)     /* SQLite's code if the last write failed, else 0 */    \
    X(wal_pages)       /* in the log after the last commit */                  \
    X(waits)           /* grants that wait */                                  \
    X(parked_max)      /* how many of these three there may be */              \
    X(streams)         /* event streams open */                                \
    X(polls)           /* long polls parked */                                 \
    X(checkpoint_ms)   /* when the log was last checkpointed whole, uptime */  \
    X(checkpoints)     /* how many were tried */                               \
    X(checkpoints_cut) /* how many of them left much behind */                 \
    X(checkpoint_blocked) /* 1: none gets to its end, the log grows */

enum stat_name {
#define X(name) STAT_##name,
    STATS(X)
#undef X
        STATS_N
};

struct stats {
    _Atomic int64_t of[STATS_N];
    _Atomic int64_t failure_logged_ms; /* for log_due() */
    _Atomic int64_t delay_logged_ms;
    _Atomic int64_t batch_logged_ms;
    struct log_bound answers_logged;
    struct metrics metrics;
};

static inline int64_t stat_get(const struct stats *stats, enum stat_name stat)
{
    return atomic_load_explicit(&stats->of[stat], memory_order_relaxed);
}

static inline void stat_set(struct stats *stats, enum stat_name stat,
                            int64_t to)
{
    atomic_store_explicit(&stats->of[stat], to, memory_order_relaxed);
}

/* Requests that wait for something to happen. */
static inline int64_t stats_parked(const struct stats *stats)
{
    return stat_get(stats, STAT_waits) + stat_get(stats, STAT_streams) +
           stat_get(stats, STAT_polls);
}

/* Returns what it was before. */
static inline int64_t stat_add(struct stats *stats, enum stat_name stat,
                               int64_t n)
{
    return atomic_fetch_add_explicit(&stats->of[stat], n, memory_order_relaxed);
}

#endif
