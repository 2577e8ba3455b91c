/*
 * service.h: all parts of the service, opened, started, stopped and closed in
 * the right order.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SERVICE_H
#define SERVICE_H

#include <pthread.h>

#include "checkpointer.h"
#include "dbfile.h"
#include "limits.h"
#include "readers.h"
#include "request.h"
#include "stats.h"
#include "sweeper.h"
#include "watch.h"
#include "worker.h"
#include "writer.h"

struct service {
    struct dbfile file;
    struct stats stats;
    struct readers readers;
    struct store *writer_store, *checkpoint_store;
    struct queue answers;
    struct writer writer;
    struct sweeper sweeper;
    struct checkpointer checkpointer;
    struct watch watch;
    struct workers workers;
    int threads; /* of thread[], that run */
    pthread_t thread[WORKERS + 5];
};

/*
 * Open the database at path and everything that needs it. A service that is
 * ending is waited for, up to wait_ms. listen_fd: where requests come from;
 * hosts: see http_judge(); groups: a path, see groups_open().
 * Returns 0, or -1 with one line in why. End with service_close(), also after
 * a failure.
 */
int service_open(struct service *service, const char *path, int wait_ms,
                 int listen_fd, const char *hosts, const char *groups,
                 char *why, size_t why_size);
void service_close(struct service *service);

/* Start the threads. 0, or an error number with those that run to be stopped
 * by service_stop(). */
int service_start(struct service *service);

/* Take no more requests, answer those that are here, then end every thread.
 * listen_fd is closed. */
void service_stop(struct service *service);

#endif
