/*
 * watch.c: the thread that tells what happened to those who wait for it.
 *
 * HOW IT WORKS: in rounds. A round reads what is new in the log into the tail,
 * once for all, and tells each watcher what it has not heard. Rounds follow
 * commits of the writer and, when the database's version says so, those of
 * others; after work comes a rest in proportion, so that many watchers slow
 * nobody else: what happens meanwhile is told together.
 *
 * A stream that begins further back, or takes its time, gets pages of its own,
 * a few at a time between rounds, until it reaches the tail. Every event has
 * its number, a watcher has one position, and what it hears are the numbers
 * behind it, from the page or from the tail: nothing is lost or told twice at
 * the seam.
 *
 * SPDX-License-Identifier: MIT
 */
#include "watch.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clock.h"
#include "limits.h"
#include "log.h"
#include "watcher.h"

enum {
    LOOK_MS = 15,     /* between two looks at the database's version */
    LOOKS = 20,       /* at clients, so often */
    BYTES_A_US = 500, /* what the web server can pass on in a microsecond */
    REST_FACTOR = 10, /* a rest is so many times as long as the work */
    FEED_ROWS = 200,  /* events read in one go, for all */
    FEED_GOES = 20,   /* in one round, unless they have many bytes */
    PAGES = 4, /* told to streams that are behind before the next round */
    EVENTS_MAX = 64
};

int watch_init(struct watch *watch)
{
    pthread_mutex_init(&watch->mutex, NULL);
    watch->epoll = epoll_create1(EPOLL_CLOEXEC);
    client_watch_open(&watch->clients);
    watch->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    watch->watchers = calloc(WATCHERS_MAX, sizeof *watch->watchers);
    watch->piece = malloc(STREAM_PIECE_MAX);
    struct epoll_event event = {.events = EPOLLIN};
    if (watch->epoll < 0 || watch->wake < 0 || !watch->watchers ||
        !watch->piece)
        return -1;
    return epoll_ctl(watch->epoll, EPOLL_CTL_ADD, watch->wake, &event);
}

void watch_destroy(struct watch *watch)
{
    tail_restart(&watch->tail, 0);
    free(watch->watchers);
    free(watch->piece);
    if (watch->epoll > 0)
        close(watch->epoll);
    if (watch->wake > 0)
        close(watch->wake);
    client_watch_close(&watch->clients);
    pthread_mutex_destroy(&watch->mutex);
}

/* --- from other threads --------------------------------------------------- */

static void watch_wake(struct watch *watch)
{
    static const uint64_t ONE = 1;
    ssize_t written = write(watch->wake, &ONE, sizeof ONE);
    (void)written;
}

bool watch_submit(struct watch *watch, struct op *op, const char **code)
{
    struct stats *stats = watch->stats;
    bool taken = false;
    op->queued_ms = clock_ms();
    pthread_mutex_lock(&watch->mutex);
    int64_t n = stat_get(stats, STAT_streams) + stat_get(stats, STAT_polls);
    bool full = n >= WATCHERS_MAX ||
                stats_parked(stats) >= stat_get(stats, STAT_parked_max);
    if (watch->closed) {
        *code = "stopping";
    } else if (full) {
        *code = "overloaded";
    } else {
        stat_add(stats, watcher_stat(op), 1);
        chain_add(&watch->arriving, op);
        atomic_store(&watch->watched, true);
        taken = true;
    }
    pthread_mutex_unlock(&watch->mutex);
    if (taken)
        watch_wake(watch);
    return taken;
}

void watch_hint(struct watch *watch)
{
    if (atomic_load(&watch->watched) && !atomic_exchange(&watch->hinted, true))
        watch_wake(watch);
}

void watch_close(struct watch *watch)
{
    pthread_mutex_lock(&watch->mutex);
    watch->closed = true;
    pthread_mutex_unlock(&watch->mutex);
    watch_wake(watch);
}

/* A few pages for streams in turn. True: there is more to do. */
static bool watch_catch_up(struct watch *watch)
{
    int pages = 0;
    for (size_t looked = 0; looked < watch->n && pages < PAGES; looked++) {
        if (watch->next_behind >= watch->n)
            watch->next_behind = 0;
        struct watcher *w = watch->watchers[watch->next_behind];
        if (!watcher_behind(watch, w)) {
            watch->next_behind++;
            continue;
        }
        pages++;
        if (watcher_page(watch, w) &&
            (watcher_behind(watch, w) || watcher_go(watch, w)))
            watch->next_behind++;
    }
    return pages == PAGES;
}

/* False when it is time to end. */
static bool watch_admit(struct watch *watch)
{
    struct op *op;
    pthread_mutex_lock(&watch->mutex);
    struct chain arriving = watch->arriving;
    watch->arriving = (struct chain){0};
    bool open = !watch->closed;
    if (!arriving.n && !watch->n)
        atomic_store(&watch->watched, false);
    pthread_mutex_unlock(&watch->mutex);
    if (!arriving.n)
        return open;
    struct log_ends ends = log_ends_read(watch);
    if (watch->n == 0)
        tail_restart(&watch->tail, ends.newest);
    while ((op = chain_take(&arriving)))
        watcher_new(watch, op, &ends);
    atomic_store(&watch->hinted, true);
    return open;
}

/* --- rounds --------------------------------------------------------------- */

struct feed {
    struct watch *watch;
    size_t rows, bytes;
};

static bool feed_take(void *context, const struct value *columns)
{
    struct feed *feed = context;
    struct watch *watch = feed->watch;
    feed->rows++;
    feed->bytes += columns[3].length;
    if (columns[1].as.integer > watch->tail.to)
        tail_restart(&watch->tail, columns[1].as.integer);
    if (columns[0].as.integer > watch->tail.to)
        tail_add(&watch->tail, columns[0].as.integer, &columns[2], &columns[3]);
    if (columns[4].type == VALUE_INTEGER)
        sweeper_hint(watch->sweeper, columns[4].as.integer);
    return true;
}

/* Read what is new in the log. */
static void feed_read(struct watch *watch)
{
    struct value none = {0};
    struct feed feed = {.watch = watch, .rows = FEED_ROWS};
    for (int go = 0; go < FEED_GOES && feed.rows == FEED_ROWS &&
                     feed.bytes < TAIL_BYTES / 2;
         go++) {
        struct param params[] = {
            {":after", value_integer(watch->tail.to)},
            {":resource", none},
            {":limit", value_integer(FEED_ROWS)},
        };
        feed.rows = 0;
        int rc =
            store_query(watch->store, QUERY_FEED, params, 3, feed_take, &feed);
        if (rc && log_due(&watch->stats->failure_logged_ms))
            log_line("error", "event=watch_failed rc=%d why=\"%s\"", rc,
                     store_why(watch->store, rc));
        if (rc)
            return;
    }
    if (feed.rows == FEED_ROWS)
        atomic_store(&watch->hinted, true);
}

static bool version_take(void *context, const struct value *columns)
{
    *(int64_t *)context = columns[0].as.integer;
    return true;
}

/* Is there anything to read? */
static bool watch_news(struct watch *watch)
{
    int64_t before = watch->version;
    store_query(watch->store, QUERY_VERSION, NULL, 0, version_take,
                &watch->version);
    return atomic_exchange(&watch->hinted, false) || watch->version != before;
}

static void watch_round(struct watch *watch)
{
    if (!watch_news(watch))
        return;
    feed_read(watch);
    for (size_t i = 0; i < watch->n;)
        i += watcher_go(watch, watch->watchers[i]);
}

/* Unless it is time to rest, a round and some pages. */
static void watch_work(struct watch *watch)
{
    int64_t start = clock_us();
    if (start < watch->quiet_until_us)
        return;
    watch_round(watch);
    watch->behind = watch_catch_up(watch);
    int64_t end = clock_us();
    int64_t work_us = end - start + (int64_t)(watch->bytes / BYTES_A_US);
    watch->bytes = 0;
    watch->quiet_until_us = end + REST_FACTOR * work_us;
}

static void watch_clocks(struct watch *watch)
{
    int64_t now = clock_ms();
    if (now < watch->due_ms)
        return;
    watch->due_ms = INT64_MAX;
    for (size_t i = 0; i < watch->n;)
        i += watcher_clock(watch, watch->watchers[i], now);
}

/* The web server does not always tell when a client leaves. */
static void watch_look(struct watch *watch)
{
    int64_t now = clock_ms();
    if (now - watch->looked_ms < LOOK_MS)
        return;
    watch->looked_ms = now;
    for (int i = 0; i < LOOKS && watch->n > 0; i++) {
        if (watch->next_look >= watch->n)
            watch->next_look = 0;
        struct watcher *w = watch->watchers[watch->next_look++];
        if (client_gone(&watch->clients, &w->op->client))
            watcher_end(watch, w);
    }
}

/* --- the thread ----------------------------------------------------------- */

static void watch_sleep(struct watch *watch)
{
    struct epoll_event events[EVENTS_MAX];
    uint64_t count;
    int64_t ms = watch->n ? LOOK_MS : -1;
    if (ms > 0 && (watch->behind || atomic_load(&watch->hinted))) {
        int64_t rest_us = watch->quiet_until_us - clock_us();
        ms = rest_us > 0 ? rest_us / 1000 + 1 : 0;
    }
    int n = epoll_wait(watch->epoll, events, EVENTS_MAX, (int)ms);
    for (int i = 0; i < n; i++) {
        if (events[i].data.ptr)
            watcher_event(watch, events[i].data.ptr, events[i].events);
        else if (read(watch->wake, &count, sizeof count) < 0)
            continue;
    }
}

void *watch_main(void *context)
{
    struct watch *watch = context;
    watch->due_ms = INT64_MAX;
    while (watch_admit(watch)) {
        if (watch->n > 0) {
            watch_work(watch);
            watch_clocks(watch);
            watch_look(watch);
        } else if (watch->tail.n > 0) {
            tail_restart(&watch->tail, 0);
        }
        watch_sleep(watch);
    }
    while (watch->n > 0)
        watcher_stop(watch, watch->watchers[0]);
    return NULL;
}
