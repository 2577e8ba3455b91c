/*
 * waits.c: grants that wait their turn.
 *
 * HOW IT WORKS: a hash table of lines by resource, a heap of all by deadline.
 * Everybody has a number by arrival: who is tried in a transaction that is
 * rolled back goes back to where he stood.
 *
 * SPDX-License-Identifier: MIT
 */
#include "waits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

int waits_init(struct waits *waits)
{
    waits->epoll = epoll_create1(EPOLL_CLOEXEC);
    return waits->epoll < 0 ? -1 : 0;
}

void waits_destroy(struct waits *waits)
{
    while (waits->n > 0) {
        struct op *op = waits->heap[0];
        waits_leave(waits, op);
        op_free(op);
    }
    waits_ready_take(waits);
    if (waits->epoll > 0)
        close(waits->epoll);
}

/* --- lines ---------------------------------------------------------------- */

static bool value_same(const struct value *a, const struct value *b)
{
    if (a->type != b->type)
        return false;
    switch (a->type) {
    case VALUE_TEXT:
        return a->length == b->length &&
               memcmp(a->as.text, b->as.text, a->length) == 0;
    case VALUE_INTEGER:
        return a->as.integer == b->as.integer;
    default:
        return a->type == VALUE_NULL || value_ms(a) == value_ms(b);
    }
}

/* Where the line of this name is, or would be: FNV-1a. */
static struct line **line_place(struct waits *waits, const char *name, size_t n)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    struct line **place = &waits->bucket[hash % WAITERS_BUCKETS];
    while (*place &&
           ((*place)->name_n != n || memcmp((*place)->name, name, n) != 0))
        place = &(*place)->next;
    return place;
}

struct line *waits_line(struct waits *waits, const struct value *resource)
{
    if (waits->n == 0)
        return NULL;
    return *line_place(waits, resource->as.text, resource->length);
}

static struct line *line_of(struct waits *waits, const struct value *resource)
{
    struct line **place =
        line_place(waits, resource->as.text, resource->length);
    if (!*place && (*place = calloc(1, sizeof **place + resource->length))) {
        (*place)->name_n = resource->length;
        memcpy((*place)->name, resource->as.text, resource->length);
    }
    return *place;
}

static void line_free(struct waits *waits, struct line *line)
{
    struct line **place = line_place(waits, line->name, line->name_n);
    *place = line->next;
    /* One that is ready is freed when it is taken. */
    if (!line->ready)
        free(line);
}

/* By number, from the end: it is nearly always the last. */
static void line_add(struct line *line, struct op *op)
{
    struct op *before = line->last;
    while (before && before->wait.number > op->wait.number)
        before = before->wait.before;
    struct op *after = before ? before->wait.after : line->first;
    op->wait.line = line;
    op->wait.before = before;
    op->wait.after = after;
    *(before ? &before->wait.after : &line->first) = op;
    *(after ? &after->wait.before : &line->last) = op;
    line->n++;
}

static void line_remove(struct line *line, struct op *op)
{
    struct op *before = op->wait.before, *after = op->wait.after;
    *(before ? &before->wait.after : &line->first) = after;
    *(after ? &after->wait.before : &line->last) = before;
    op->wait.line = NULL;
    line->n--;
}

int64_t waits_ahead(struct waits *waits, struct op *op)
{
    struct line *line = waits_line(waits, op_field(op, "resource"));
    struct op *other = line ? line->first : NULL;
    int64_t n = 0;
    if (line && !op->wait.number)
        return (int64_t)line->n;
    for (; other && other->wait.number < op->wait.number; n++)
        other = other->wait.after;
    return n;
}

char *waits_tell(struct waits *waits, const struct value *resource, size_t most,
                 int64_t now_ms)
{
    struct line *line = waits_line(waits, resource);
    char *text = NULL;
    size_t size;
    FILE *out = line ? open_memstream(&text, &size) : NULL;
    if (!out)
        return NULL;
    const char *between = "";
    for (struct op *op = line->first; op && most > 0; op = op->wait.after) {
        const struct value *holder = op_field(op, "holder");
        fprintf(out, "%s%lld %.*s", between,
                (long long)(now_ms - op->wait.since_ms), (int)holder->length,
                holder->as.text);
        between = "\n";
        most--;
    }
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* --- ready lines ---------------------------------------------------------- */

void waits_ready(struct waits *waits, struct line *line)
{
    if (line->ready)
        return;
    line->ready = true;
    line->next_ready = NULL;
    if (waits->ready_last)
        waits->ready_last->next_ready = line;
    else
        waits->ready_first = line;
    waits->ready_last = line;
}

void waits_ready_all(struct waits *waits)
{
    for (size_t i = 0; i < WAITERS_BUCKETS; i++)
        for (struct line *line = waits->bucket[i]; line; line = line->next)
            waits_ready(waits, line);
}

struct line *waits_ready_take(struct waits *waits)
{
    struct line *line;
    while ((line = waits->ready_first)) {
        waits->ready_first = line->next_ready;
        if (!waits->ready_first)
            waits->ready_last = NULL;
        line->ready = false;
        if (line->n > 0)
            return line;
        free(line);
    }
    return NULL;
}

/* --- the heap ------------------------------------------------------------- */

static void heap_put(struct waits *waits, size_t place, struct op *op)
{
    waits->heap[place] = op;
    op->wait.place = place;
}

/* Let op, for which there is room at place, find its place. */
static void heap_sift(struct waits *waits, size_t place, struct op *op)
{
    struct op **heap = waits->heap;
    int64_t deadline = op->wait.deadline_ms;
    while (place > 0 && heap[(place - 1) / 2]->wait.deadline_ms > deadline) {
        heap_put(waits, place, heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    for (;;) {
        size_t child = 2 * place + 1;
        if (child + 1 < waits->n &&
            heap[child + 1]->wait.deadline_ms < heap[child]->wait.deadline_ms)
            child++;
        if (child >= waits->n || heap[child]->wait.deadline_ms >= deadline)
            break;
        heap_put(waits, place, heap[child]);
        place = child;
    }
    heap_put(waits, place, op);
}

static void heap_remove(struct waits *waits, size_t place)
{
    struct op *last = waits->heap[--waits->n];
    if (place < waits->n)
        heap_sift(waits, place, last);
}

struct op *waits_due(struct waits *waits, int64_t now_ms)
{
    if (waits->n == 0 || waits->heap[0]->wait.deadline_ms > now_ms)
        return NULL;
    return waits->heap[0];
}

int64_t waits_sleep_ms(const struct waits *waits, int64_t now_ms,
                       int64_t most_ms)
{
    int64_t ms = waits->heap[0]->wait.deadline_ms - now_ms;
    return ms < 0 ? 0 : ms < most_ms ? ms : most_ms;
}

/* --- joining and leaving -------------------------------------------------- */

static bool fd_watch(struct waits *waits, struct op *op)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = op};
    return epoll_ctl(waits->epoll, EPOLL_CTL_ADD, op->fd, &event) == 0;
}

bool waits_join(struct waits *waits, struct op *op)
{
    struct line *line = line_of(waits, op_field(op, "resource"));
    if (!line)
        return false;
    if (waits->n == WAITERS_MAX || line->n >= WAITERS_LINE_MAX ||
        !fd_watch(waits, op)) {
        if (line->n == 0)
            line_free(waits, line);
        return false;
    }
    if (!op->wait.number)
        op->wait.number = ++waits->next_number;
    line_add(line, op);
    heap_sift(waits, waits->n++, op);
    return true;
}

bool waits_leave(struct waits *waits, struct op *op)
{
    struct line *line = op->wait.line;
    epoll_ctl(waits->epoll, EPOLL_CTL_DEL, op->fd, NULL);
    heap_remove(waits, op->wait.place);
    line_remove(line, op);
    if (line->n > 0)
        return true;
    line_free(waits, line);
    return false;
}

bool waits_replace(struct waits *waits, struct op *old, struct op *op)
{
    op->wait.number = old->wait.number;
    if (!fd_watch(waits, op))
        return false;
    line_add(old->wait.line, op);
    heap_sift(waits, waits->n++, op);
    waits_leave(waits, old);
    return true;
}

struct op *waits_gone(struct waits *waits)
{
    struct epoll_event event;
    if (waits->n == 0 || epoll_wait(waits->epoll, &event, 1, 0) != 1)
        return NULL;
    return event.data.ptr;
}

struct op *waits_next(struct waits *waits)
{
    if (waits->n == 0)
        return NULL;
    if (waits->next_look >= waits->n)
        waits->next_look = 0;
    return waits->heap[waits->next_look++];
}

bool waits_same(const struct op *op, const struct op *other)
{
    for (int i = 0; i < ROUTE_FIELDS_MAX; i++)
        if (i != route_field(op->route, "wait") &&
            !value_same(&op->value[i], &other->value[i]))
            return false;
    return true;
}

struct op *waits_twin(struct waits *waits, const struct op *op)
{
    if (op->request_id.type == VALUE_NULL)
        return NULL;
    int resource = route_field(op->route, "resource");
    int holder = route_field(op->route, "holder");
    struct line *line = waits_line(waits, &op->value[resource]);
    struct op *other = line ? line->first : NULL;
    while (other && !(value_same(&other->request_id, &op->request_id) &&
                      value_same(&other->value[holder], &op->value[holder])))
        other = other->wait.after;
    return other;
}
