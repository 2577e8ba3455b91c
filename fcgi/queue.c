/*
 * queue.c: a queue of operations between threads.
 *
 * SPDX-License-Identifier: MIT
 */
#include "queue.h"

#include "clock.h"

void chain_add(struct chain *chain, struct op *op)
{
    op->next = NULL;
    if (chain->last)
        chain->last->next = op;
    else
        chain->first = op;
    chain->last = op;
    chain->n++;
    chain->more += op->more;
}

struct op *chain_take(struct chain *chain)
{
    struct op *op = chain->first;
    if (!op)
        return NULL;
    chain->first = op->next;
    if (!chain->first)
        chain->last = NULL;
    chain->n--;
    chain->more -= op->more;
    op->next = NULL;
    return op;
}

void chain_append(struct chain *chain, struct chain *from)
{
    if (!from->first)
        return;
    if (chain->last)
        chain->last->next = from->first;
    else
        chain->first = from->first;
    chain->last = from->last;
    chain->n += from->n;
    chain->more += from->more;
    *from = (struct chain){0};
}

void queue_init(struct queue *queue)
{
    pthread_condattr_t attributes;
    *queue = (struct queue){0};
    pthread_mutex_init(&queue->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&queue->filled, &attributes);
    pthread_condattr_destroy(&attributes);
}

void queue_destroy(struct queue *queue)
{
    pthread_cond_destroy(&queue->filled);
    pthread_mutex_destroy(&queue->mutex);
}

void queue_put(struct queue *queue, struct chain *chain)
{
    pthread_mutex_lock(&queue->mutex);
    chain_append(&queue->waiting, chain);
    bool wake = queue->asleep;
    queue->asleep = false;
    pthread_mutex_unlock(&queue->mutex);
    if (wake)
        pthread_cond_signal(&queue->filled);
}

/* Until there is something, or it is closed. */
static void queue_sleep(struct queue *queue, int64_t wait_ms)
{
    struct timespec until = clock_after(wait_ms < 0 ? 0 : wait_ms);
    int rc = wait_ms == 0;
    while (!rc && !queue->waiting.first && !queue->closed) {
        queue->asleep = true;
        rc = wait_ms < 0 ? pthread_cond_wait(&queue->filled, &queue->mutex)
                         : pthread_cond_timedwait(&queue->filled, &queue->mutex,
                                                  &until);
    }
}

bool queue_over(struct queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    bool over = queue->closed && !queue->waiting.first;
    pthread_mutex_unlock(&queue->mutex);
    return over;
}

struct chain queue_take(struct queue *queue, size_t max, int64_t wait_ms)
{
    struct chain taken = {0};
    pthread_mutex_lock(&queue->mutex);
    queue_sleep(queue, wait_ms);
    queue->asleep = false;
    if (queue->waiting.n + queue->waiting.more <= max)
        chain_append(&taken, &queue->waiting);
    else
        while (taken.n + taken.more < max)
            chain_add(&taken, chain_take(&queue->waiting));
    pthread_mutex_unlock(&queue->mutex);
    return taken;
}

void queue_close(struct queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    queue->closed = true;
    pthread_cond_broadcast(&queue->filled);
    pthread_mutex_unlock(&queue->mutex);
}
