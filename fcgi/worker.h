/*
 * worker.h: the threads that accept requests and read them. What only reads
 * they answer themselves, what writes they hand to the writer.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WORKER_H
#define WORKER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "groups.h"
#include "readers.h"
#include "watch.h"
#include "writer.h"

/* What all workers share. */
struct workers {
    int listen_fd;
    const char *hosts; /* see http_judge() */
    struct groups groups;
    struct readers *readers;
    struct writer *writer;
    struct watch *watch;
    _Atomic int64_t stop_by_ms; /* clock_ms(); not 0: leave when nothing waits
                                 * to be accepted, at that time in any case */
    atomic_ullong next_number;  /* of a request */
    _Atomic int64_t accept_logged_ms;
};

/* The work of one thread, given the workers. It ends after stop_by_ms was set
 * and listen_fd shut down. */
void *worker_main(void *context);

/* The work of the answering thread, given a queue: answers its operations
 * until it is closed and empty. */
void *answer_main(void *context);

#endif
