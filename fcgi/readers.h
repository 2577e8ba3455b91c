/*
 * readers.h: the connections that only read, shared by the workers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef READERS_H
#define READERS_H

#include <pthread.h>

#include "limits.h"
#include "store.h"

struct readers {
    pthread_mutex_t mutex;
    pthread_cond_t back;
    struct store *free[READERS];
    int n; /* how many are free */
};

/* Open n connections, at most READERS. Returns an SQLite result code, with why
 * as store_open() has it. End with readers_close(), also after a failure. */
int readers_open(struct readers *readers, const char *path, int n,
                 struct stats *stats, char *why, size_t why_size);
void readers_close(struct readers *readers);

/* Borrow one, waiting until one is free; give it back soon. */
struct store *readers_take(struct readers *readers);
void readers_give(struct readers *readers, struct store *store);

#endif
