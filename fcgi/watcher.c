/*
 * watcher.c: one who watches: an event stream or a long poll.
 *
 * SPDX-License-Identifier: MIT
 */
#include "watcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "clock.h"
#include "limits.h"
#include "problem.h"
#include "watch.h"

enum {
    COMMENT_MS = 15000,   /* a stream says at least a comment so often */
    STUCK_MS = 10000,     /* a stream ends that has not taken a piece by then */
    RETRY_MS = 1000,      /* a client that lost its stream waits so long, or up
                           * to twice as long */
    PIECE_ENOUGH = 16384, /* bytes; one event may be longer */
    PAGE_ROWS = 128,      /* events looked at for one stream in one go */
    PAGE_ROWS_FILTERED = 2000
};

enum stat_name watcher_stat(const struct op *op)
{
    return op->stream ? STAT_streams : STAT_polls;
}

/* --- pieces --------------------------------------------------------------- */

static bool piece_put(struct watch *watch, const char *text, size_t n)
{
    /* The end of a page always finds room. */
    if (watch->piece_n + n > STREAM_PIECE_MAX - 64)
        return false;
    memcpy(watch->piece + watch->piece_n, text, n);
    watch->piece_n += n;
    return true;
}

/* Add an event as a stream or a page tells it. False: no room, nothing added.
 */
static bool piece_event(struct watch *watch, const struct watcher *w,
                        int64_t token, const char *json, size_t n)
{
    char head[64];
    size_t before = watch->piece_n;
    if (before >= PIECE_ENOUGH)
        return false;
    if (w->op->stream)
        snprintf(head, sizeof head, "id: %lld\ndata: ", (long long)token);
    else
        snprintf(head, sizeof head, before ? "," : "{\"events\":[");
    if (piece_put(watch, head, strlen(head)) && piece_put(watch, json, n) &&
        (!w->op->stream || piece_put(watch, "\n\n", 2)))
        return true;
    watch->piece_n = before;
    return false;
}

/* What the tail has for the watcher, as much as fits. Returns the number up to
 * which all is told then. */
static int64_t piece_of_tail(struct watch *watch, const struct watcher *w)
{
    const struct tail *tail = &watch->tail;
    int64_t to = w->position;
    size_t told = 0;
    watch->piece_n = 0;
    for (size_t i = tail_find(tail, to); i < tail->n; i++) {
        const struct tail_event *event = tail_at(tail, i);
        if (tail_event_is(event, w->hash, w->resource)) {
            if (told++ == w->most || !piece_event(watch, w, event->token,
                                                  event->text, event->json_n))
                return to;
        }
        to = event->token;
    }
    return tail->to;
}

/* --- watchers ------------------------------------------------------------- */

static void watcher_due(struct watch *watch, struct watcher *w, int64_t ms)
{
    w->due_ms = ms;
    if (ms < watch->due_ms)
        watch->due_ms = ms;
}

/* Take it off the list; its operation and connection are the caller's. */
static struct op *watcher_remove(struct watch *watch, struct watcher *w)
{
    struct op *op = w->op;
    struct watcher *last = watch->watchers[--watch->n];
    watch->watchers[w->index] = last;
    last->index = w->index;
    stat_add(watch->stats, watcher_stat(op), -1);
    free(w);
    return op;
}

void watcher_end(struct watch *watch, struct watcher *w)
{
    reply_end(&w->out);
    struct op *op = watcher_remove(watch, w);
    if (!op->stream) {
        problem_answer(watch->store, op, "left");
        return;
    }
    op->fd = -1;
    op_free(op);
}

/* Answer a poll with the piece, which tells events up to its position. */
static void poll_answer(struct watch *watch, struct watcher *w)
{
    char end[64];
    snprintf(end, sizeof end, "%s],\"next\":%lld}",
             watch->piece_n ? "" : "{\"events\":[", (long long)w->position);
    size_t n = watch->piece_n, end_n = strlen(end);
    struct outcome outcome = {.status = 200, .body = malloc(n + end_n)};
    if (outcome.body) {
        memcpy(outcome.body, watch->piece, n);
        memcpy(outcome.body + n, end, end_n);
        outcome.length = n + end_n;
    }
    epoll_ctl(watch->epoll, EPOLL_CTL_DEL, w->op->fd, NULL);
    struct op *op = watcher_remove(watch, w);
    outcome_clear(&op->outcome);
    op->outcome = outcome;
    op_answer(op, 0);
}

/* Have the end of a stream's socket watched for what matters now. */
static void stream_arm(struct watch *watch, struct watcher *w, bool rest)
{
    struct epoll_event event = {
        .events = EPOLLIN | EPOLLRDHUP | (rest ? EPOLLOUT : 0), .data.ptr = w};
    epoll_ctl(watch->epoll, EPOLL_CTL_MOD, w->out.fd, &event);
    watcher_due(watch, w, clock_ms() + (rest ? STUCK_MS : COMMENT_MS));
}

/* Send a stream something. False: it is over. */
static bool stream_say(struct watch *watch, struct watcher *w, const char *text,
                       size_t n)
{
    watch->bytes += n;
    if (reply_piece(&w->out, text, n) != 0) {
        watcher_end(watch, w);
        return false;
    }
    if (w->out.rest)
        stream_arm(watch, w, true);
    else
        watcher_due(watch, w, clock_ms() + COMMENT_MS);
    return true;
}

/* Tell the piece, which has all up to number to. False: it is over. */
static bool watcher_tell(struct watch *watch, struct watcher *w, int64_t to)
{
    w->position = to;
    if (watch->piece_n == 0)
        return true;
    if (w->op->stream)
        return stream_say(watch, w, watch->piece, watch->piece_n);
    poll_answer(watch, w);
    return false;
}

bool watcher_go(struct watch *watch, struct watcher *w)
{
    const struct tail *tail = &watch->tail;
    if (w->position < tail->from) {
        if (w->op->stream)
            return true; /* It comes by pages. */
        watch->piece_n = 0;
        poll_answer(watch, w);
        return false;
    }
    while (!w->out.rest && w->position < tail->to)
        if (!watcher_tell(watch, w, piece_of_tail(watch, w)))
            return false;
    return true;
}

/* --- streams that come from further back ---------------------------------- */

static bool log_take(void *context, const struct value *columns)
{
    struct log_ends *ends = context;
    ends->trimmed = columns[0].as.integer;
    ends->newest = columns[1].as.integer;
    ends->oldest = columns[2].as.integer;
    return true;
}

struct log_ends log_ends_read(struct watch *watch)
{
    struct log_ends ends = {0};
    store_query(watch->store, QUERY_LOG, NULL, 0, log_take, &ends);
    return ends;
}

struct page {
    struct watch *watch;
    struct watcher *w;
    int64_t to, trimmed;
    size_t rows;
    bool full;
};

static bool page_take(void *context, const struct value *columns)
{
    struct page *page = context;
    page->rows++;
    page->trimmed = columns[1].as.integer;
    page->full = columns[3].type == VALUE_TEXT &&
                 !piece_event(page->watch, page->w, columns[0].as.integer,
                              columns[3].as.text, columns[3].length);
    if (!page->full)
        page->to = columns[0].as.integer;
    return !page->full;
}

/* Say that the log does not go back so far; it goes on where it is whole. */
static bool stream_reset(struct watch *watch, struct watcher *w)
{
    char text[128];
    struct log_ends ends = log_ends_read(watch);
    snprintf(text, sizeof text,
             "event: reset\nid: %lld\ndata: {\"oldest\":%lld}\n\n",
             (long long)ends.trimmed, (long long)ends.oldest);
    w->position = ends.trimmed;
    return stream_say(watch, w, text, strlen(text));
}

bool watcher_page(struct watch *watch, struct watcher *w)
{
    bool filtered = w->resource->type != VALUE_NULL;
    int64_t rows = filtered ? PAGE_ROWS_FILTERED : PAGE_ROWS;
    struct page page = {.watch = watch, .w = w, .to = w->position};
    struct param params[] = {
        {":after", value_integer(w->position)},
        {":resource", *w->resource},
        {":limit", value_integer(rows)},
    };
    watch->piece_n = 0;
    int rc = store_query(watch->store, QUERY_FEED, params, 3, page_take, &page);
    if (rc) {
        watcher_end(watch, w);
        return false;
    }
    if (page.trimmed > w->position)
        return stream_reset(watch, w);
    /* The page that reached the end was read after the tail was. */
    if (page.rows < (size_t)rows && !page.full && page.to < watch->tail.to)
        page.to = watch->tail.to;
    return watcher_tell(watch, w, page.to);
}

bool watcher_behind(const struct watch *watch, const struct watcher *w)
{
    return w->op->stream && !w->out.rest && w->position < watch->tail.from;
}

/* --- arrivals ------------------------------------------------------------- */

/* The number that a client asks to go on behind; otherwise if it does not. */
static int64_t op_after(struct op *op, int64_t otherwise)
{
    const struct value *after = op_field(op, "after");
    char text[24];
    if (after->type != VALUE_TEXT)
        return otherwise;
    /* A Last-Event-ID that is no number of ours is beyond all of them. */
    if (after->length == 0 || after->length > 16)
        return INT64_MAX;
    memcpy(text, after->as.text, after->length);
    text[after->length] = 0;
    return text[strspn(text, "0123456789")] ? INT64_MAX
                                            : strtoll(text, NULL, 10);
}

static bool stream_begin(struct watch *watch, struct watcher *w,
                         const struct log_ends *ends)
{
    char hello[64];
    int64_t after = op_after(w->op, ends->newest);
    bool lost = after < ends->trimmed || after > ends->newest;
    w->position = lost ? ends->trimmed : after;
    if (reply_begin(&w->out, w->op->name) != 0 || w->out.rest) {
        watcher_end(watch, w);
        return false;
    }
    /* So that a client that loses the stream before the first event goes on
     * from here, and that not all of them come back at once. */
    snprintf(hello, sizeof hello, "retry: %d\nid: %lld\n\n",
             RETRY_MS + (int)(clock_us() % RETRY_MS), (long long)w->position);
    if (!stream_say(watch, w, hello, strlen(hello)))
        return false;
    return !lost || w->out.rest || stream_reset(watch, w);
}

/* Look once more, now that nothing can be missed behind the tail. */
static void poll_begin(struct watch *watch, struct watcher *w)
{
    struct op *op = w->op;
    w->position = op_after(op, 0);
    if (w->position < watch->tail.to)
        w->position = watch->tail.to;
    int rc = store_run(watch->store, op);
    if (rc)
        problem_set_rc(watch->store, op, rc);
    if (op->outcome.status == 204) {
        outcome_clear(&op->outcome);
        watcher_due(watch, w, op->queued_ms + value_ms(op_field(op, "wait")));
        return;
    }
    epoll_ctl(watch->epoll, EPOLL_CTL_DEL, op->fd, NULL);
    op_answer(watcher_remove(watch, w), 0);
}

void watcher_new(struct watch *watch, struct op *op,
                 const struct log_ends *ends)
{
    struct watcher *w = calloc(1, sizeof *w);
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = w};
    bool left = client_gone(&watch->clients, &op->client);
    if (!w || left ||
        epoll_ctl(watch->epoll, EPOLL_CTL_ADD, op->fd, &event) != 0) {
        free(w);
        stat_add(watch->stats, watcher_stat(op), -1);
        problem_answer(watch->store, op, left ? "left" : "overloaded");
        return;
    }
    const struct value *limit = op_field(op, "limit");
    w->op = op;
    w->resource = op_field(op, "resource");
    w->hash = tail_hash(w->resource);
    w->most = op->stream                  ? SIZE_MAX
              : limit->type == VALUE_TEXT ? (size_t)value_ms(limit) / 1000
                                          : EVENTS_DEFAULT;
    w->out =
        (struct reply_stream){.fd = op->stream ? op->fd : -1, .id = op->id};
    w->index = watch->n;
    watch->watchers[watch->n++] = w;
    if (op->stream)
        stream_begin(watch, w, ends);
    else
        poll_begin(watch, w);
}

/* --- what happens to it ----------------------------------------------------
 */

void watcher_event(struct watch *watch, struct watcher *w, uint32_t events)
{
    if (events & ~(uint32_t)EPOLLOUT ||
        (w->out.rest && reply_flush(&w->out) != 0)) {
        watcher_end(watch, w);
    } else if (!w->out.rest) {
        stream_arm(watch, w, false);
        watcher_go(watch, w);
    }
}

bool watcher_clock(struct watch *watch, struct watcher *w, int64_t now_ms)
{
    if (now_ms < w->due_ms) {
        watcher_due(watch, w, w->due_ms);
        return true;
    }
    if (w->op->stream && !w->out.rest)
        return stream_say(watch, w, ":\n\n", 3);
    watch->piece_n = 0;
    if (w->op->stream)
        watcher_end(watch, w);
    else
        poll_answer(watch, w);
    return false;
}

void watcher_stop(struct watch *watch, struct watcher *w)
{
    if (w->op->stream) {
        watcher_end(watch, w);
        return;
    }
    struct op *op = watcher_remove(watch, w);
    problem_answer(watch->store, op, "stopping");
}
