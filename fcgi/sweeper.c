/*
 * sweeper.c: the thread that has expiries recorded as they happen.
 *
 * HOW IT WORKS: it asks a reader how far the next expiry is and sleeps so
 * long, but looks again after SWEEP_LOOK_MS, for other processes grant
 * leases too. What is to be recorded goes to the writer as an operation like
 * any other.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sweeper.h"

#include "clock.h"
#include "limits.h"
#include "log.h"
#include "metrics.h"
#include "writer.h"

void sweeper_init(struct sweeper *sweeper, struct readers *readers,
                  struct writer *writer)
{
    pthread_condattr_t attributes;
    *sweeper = (struct sweeper){.readers = readers, .writer = writer};
    pthread_mutex_init(&sweeper->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&sweeper->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    atomic_init(&sweeper->idle, true);
}

void sweeper_destroy(struct sweeper *sweeper)
{
    pthread_cond_destroy(&sweeper->wake);
    pthread_mutex_destroy(&sweeper->mutex);
}

void sweeper_hint(struct sweeper *sweeper, int64_t expires_at)
{
    if (expires_at >= atomic_load(&sweeper->sleeps_until))
        return;
    pthread_mutex_lock(&sweeper->mutex);
    sweeper->hinted = true;
    pthread_cond_signal(&sweeper->wake);
    pthread_mutex_unlock(&sweeper->mutex);
}

void sweeper_close(struct sweeper *sweeper)
{
    pthread_mutex_lock(&sweeper->mutex);
    sweeper->closed = true;
    pthread_cond_signal(&sweeper->wake);
    pthread_mutex_unlock(&sweeper->mutex);
}

struct times {
    int64_t now, next; /* lease time ms; ms until the next expiry */
};

static bool times_take(void *context, const struct value *columns)
{
    struct times *times = context;
    times->now = columns[0].as.integer;
    times->next =
        columns[1].type == VALUE_INTEGER ? columns[1].as.integer : INT64_MAX;
    return true;
}

static struct times times_read(struct sweeper *sweeper)
{
    struct times times = {.next = INT64_MAX};
    struct store *store = readers_take(sweeper->readers);
    store_query(store, QUERY_NOW, NULL, 0, times_take, &times);
    if (clock_ms() - sweeper->looked_ms >= SWEEP_LOOK_MS) {
        sweeper->looked_ms = clock_ms();
        metrics_look(store);
        log_left_out(&store_stats(store)->answers_logged);
    }
    readers_give(sweeper->readers, store);
    return times;
}

static void sweep_submit(struct sweeper *sweeper)
{
    struct op *op = op_new(ROUTE_SWEEP, 0);
    if (!op)
        return;
    op->value[0] = value_integer(SWEEP_MAX);
    op->finished = &sweeper->idle;
    atomic_store(&sweeper->idle, false);
    if (!writer_submit(sweeper->writer, op))
        op_free(op);
}

/* False when it is time to end. */
static bool sweeper_sleep(struct sweeper *sweeper, int64_t ms)
{
    struct timespec until = clock_after(ms);
    pthread_mutex_lock(&sweeper->mutex);
    while (!sweeper->hinted && !sweeper->closed)
        if (pthread_cond_timedwait(&sweeper->wake, &sweeper->mutex, &until))
            break;
    sweeper->hinted = false;
    bool open = !sweeper->closed;
    pthread_mutex_unlock(&sweeper->mutex);
    return open;
}

void *sweeper_main(void *context)
{
    struct sweeper *sweeper = context;
    int64_t sleep_ms;
    do {
        /* What comes while it looks is a reason to look again. */
        atomic_store(&sweeper->sleeps_until, INT64_MAX);
        struct times times = times_read(sweeper);
        sleep_ms = SWEEP_LOOK_MS;
        if (times.next == 0) {
            sleep_ms = stat_get(sweeper->writer->stats, STAT_write_error)
                           ? SWEEP_FAILED_MS
                           : SWEEP_PAUSE_MS;
            if (atomic_load(&sweeper->idle))
                sweep_submit(sweeper);
        } else if (times.next < sleep_ms) {
            sleep_ms = times.next;
        }
        atomic_store(&sweeper->sleeps_until, times.now + sleep_ms);
    } while (sweeper_sleep(sweeper, sleep_ms));
    return NULL;
}
