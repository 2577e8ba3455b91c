/*
 * readers.c: the connections that only read, shared by the workers.
 *
 * HOW IT WORKS: a stack, so that under little load always the same one, with
 * what it has in its cache, is used.
 *
 * SPDX-License-Identifier: MIT
 */
#include "readers.h"

int readers_open(struct readers *readers, const char *path, int n,
                 struct stats *stats, char *why, size_t why_size)
{
    int rc = 0;
    readers->n = 0;
    pthread_mutex_init(&readers->mutex, NULL);
    pthread_cond_init(&readers->back, NULL);
    while (!rc && readers->n < n) {
        rc = store_open(&readers->free[readers->n], path, STORE_READS, stats,
                        why, why_size);
        readers->n += !rc;
    }
    return rc;
}

void readers_close(struct readers *readers)
{
    while (readers->n > 0)
        store_close(readers->free[--readers->n]);
    pthread_cond_destroy(&readers->back);
    pthread_mutex_destroy(&readers->mutex);
}

struct store *readers_take(struct readers *readers)
{
    pthread_mutex_lock(&readers->mutex);
    while (readers->n == 0)
        pthread_cond_wait(&readers->back, &readers->mutex);
    struct store *store = readers->free[--readers->n];
    pthread_mutex_unlock(&readers->mutex);
    return store;
}

void readers_give(struct readers *readers, struct store *store)
{
    pthread_mutex_lock(&readers->mutex);
    readers->free[readers->n++] = store;
    pthread_mutex_unlock(&readers->mutex);
    pthread_cond_signal(&readers->back);
}
