/*
 * metrics.h: what GET /metrics counts besides the figures of stats.h, and how
 * it is told, in Prometheus' text format 0.0.4.
 *
 * Counting is a few atomic additions, from any thread. Nothing of a request
 * becomes a name or a label: there are as many lines after a year as at the
 * beginning.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef METRICS_H
#define METRICS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "route.h"

/* Counts by size, the last one of what is above all bounds. */
enum { HISTOGRAM_BOUNDS = 16 };
struct histogram {
    _Atomic int64_t n[HISTOGRAM_BOUNDS + 1];
    _Atomic int64_t sum;
};

/* What came of an operation. */
enum result {
    RESULT_OK,
    RESULT_HELD,
    RESULT_OVER,
    RESULT_UNKNOWN,
    RESULT_STALE,
    RESULT_REJECTED, /* not as it should be, or not allowed */
    RESULT_BUSY,     /* 503: later, perhaps */
    RESULT_FULL,
    RESULT_FAILED,
    RESULTS_N
};

/* Kinds of events, as sql/http_tally.sql has them. */
enum { EVENTS_N = 5, METRIC_OPS_N = 6 };

struct metrics {
    struct histogram request[ROUTES_N]; /* µs; the last: of no route */
    struct histogram commit;            /* µs */
    struct histogram batch;             /* operations */
    _Atomic int64_t result[METRIC_OPS_N][RESULTS_N]; /* of ROUTES[] */
    pthread_mutex_t mutex;                           /* for what follows */
    bool looked;                                     /* seen and lead_ms are */
    int64_t seen;    /* events up to here are counted */
    int64_t lead_ms; /* of the lease clock */
    int64_t event[EVENTS_N], clock_steps;
};

struct op;
struct store;

void metrics_init(struct metrics *metrics);
void metrics_destroy(struct metrics *metrics);

/* A commit has taken so long; a transaction had so many operations. */
void metrics_commit(struct metrics *metrics, int64_t us);
void metrics_batch(struct metrics *metrics, int64_t operations);

/* The operation is about to be answered. */
void metrics_answered(const struct op *op);

/* Look at the log of events and at the clock. Often enough that no event is
 * trimmed in between: each second. */
void metrics_look(struct store *store);

/* Run an operation of ROUTE_METRICS. Returns SQLite's result code. */
int metrics_tell(struct store *store, struct op *op);

#endif
