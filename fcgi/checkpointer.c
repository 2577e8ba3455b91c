/*
 * checkpointer.c: the thread that moves the write-ahead log into the database
 * file.
 *
 * HOW IT WORKS: a passive checkpoint waits for nobody and disturbs nobody,
 * but under constant writing it never finds the log at rest, which would
 * then grow for ever. So when the log is big, right after a passive one that
 * left little, it is started anew under the write lock, while the writer
 * rests: that takes only what was written since. The file keeps its size: to
 * write over it costs the disk half of what appending does. When somebody reads
 * an old state, neither can be done; /v1/status says so.
 *
 * SPDX-License-Identifier: MIT
 */
#include "checkpointer.h"

#include "clock.h"
#include "limits.h"
#include "log.h"

enum { AGAIN_MS = 1000, BLOCKED_MS = 5000 };

void checkpointer_init(struct checkpointer *checkpointer, struct store *store,
                       struct stats *stats)
{
    pthread_condattr_t attributes;
    *checkpointer = (struct checkpointer){.store = store, .stats = stats};
    pthread_mutex_init(&checkpointer->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&checkpointer->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_cond_init(&checkpointer->rested, NULL);
}

void checkpointer_destroy(struct checkpointer *checkpointer)
{
    pthread_cond_destroy(&checkpointer->rested);
    pthread_cond_destroy(&checkpointer->wake);
    pthread_mutex_destroy(&checkpointer->mutex);
}

void checkpointer_hint(struct checkpointer *checkpointer, int64_t pages)
{
    int64_t done = atomic_load(&checkpointer->done_pages);
    if (pages < done) /* the log began anew */
        atomic_store(&checkpointer->done_pages, done = 0);
    if (pages - done < WAL_PAGES)
        return;
    pthread_mutex_lock(&checkpointer->mutex);
    if (!checkpointer->hinted) {
        checkpointer->hinted = true;
        pthread_cond_signal(&checkpointer->wake);
    }
    pthread_mutex_unlock(&checkpointer->mutex);
}

void checkpointer_close(struct checkpointer *checkpointer)
{
    pthread_mutex_lock(&checkpointer->mutex);
    checkpointer->closed = true;
    pthread_cond_signal(&checkpointer->wake);
    pthread_mutex_unlock(&checkpointer->mutex);
}

void checkpointer_yield(struct checkpointer *checkpointer)
{
    if (!atomic_load(&checkpointer->anew))
        return;
    pthread_mutex_lock(&checkpointer->mutex);
    while (atomic_load(&checkpointer->anew))
        pthread_cond_wait(&checkpointer->rested, &checkpointer->mutex);
    pthread_mutex_unlock(&checkpointer->mutex);
}

static void log_begin_anew(struct checkpointer *checkpointer, int *left)
{
    atomic_store(&checkpointer->anew, true);
    store_checkpoint(checkpointer->store, LOG_ANEW, left);
    pthread_mutex_lock(&checkpointer->mutex);
    atomic_store(&checkpointer->anew, false);
    pthread_cond_signal(&checkpointer->rested);
    pthread_mutex_unlock(&checkpointer->mutex);
}

/* Note how it went: whole, or since when it has not been. */
static void result_note(struct checkpointer *checkpointer, int rc, int left)
{
    struct stats *stats = checkpointer->stats;
    int64_t now = clock_ms(), since = checkpointer->failing_since;
    bool cut = rc || left > WAL_PAGES;
    stat_add(stats, STAT_checkpoints, 1);
    stat_add(stats, STAT_checkpoints_cut, cut);
    if (!cut) {
        since = 0;
        stat_set(stats, STAT_checkpoint_ms,
                 now - stat_get(stats, STAT_started_ms));
    } else if (!since) {
        since = now;
    }
    bool blocked = since && now - since > BLOCKED_MS;
    checkpointer->failing_since = since;
    stat_set(stats, STAT_checkpoint_blocked, blocked);
    if (blocked && log_due(&stats->delay_logged_ms))
        log_line("warning",
                 "event=checkpoint_blocked pages=%d seconds=%lld rc=%d", left,
                 (long long)(now - since) / 1000, rc);
}

static void checkpoint(struct checkpointer *checkpointer)
{
    int left = 0;
    int64_t pages = stat_get(checkpointer->stats, STAT_wal_pages);
    atomic_store(&checkpointer->done_pages, pages);
    int rc = store_checkpoint(checkpointer->store, LOG_GOES_ON, &left);
    if (!rc && pages > WAL_PAGES_BIG && left <= WAL_PAGES)
        log_begin_anew(checkpointer, &left);
    result_note(checkpointer, rc, left);
}

/* Until there is work. False when it is time to end. */
static bool checkpointer_sleep(struct checkpointer *checkpointer)
{
    struct timespec again = clock_after(AGAIN_MS);
    int rc = 0;
    pthread_mutex_lock(&checkpointer->mutex);
    while (!rc && !checkpointer->hinted && !checkpointer->closed)
        rc = checkpointer->failing_since
                 ? pthread_cond_timedwait(&checkpointer->wake,
                                          &checkpointer->mutex, &again)
                 : pthread_cond_wait(&checkpointer->wake, &checkpointer->mutex);
    checkpointer->hinted = false;
    bool open = !checkpointer->closed;
    pthread_mutex_unlock(&checkpointer->mutex);
    return open;
}

void *checkpointer_main(void *context)
{
    struct checkpointer *checkpointer = context;
    int left = 0;
    while (checkpointer_sleep(checkpointer))
        checkpoint(checkpointer);
    store_checkpoint(checkpointer->store, LOG_EMPTY, &left);
    return NULL;
}
