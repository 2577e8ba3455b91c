/*
 * service.c: all parts of the service, opened, started, stopped and closed in
 * the right order.
 *
 * SPDX-License-Identifier: MIT
 */
#include "service.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"

/* Where in service->thread[] each thread is: in the order of their end. */
enum { SWEEPER = WORKERS, WRITER, ANSWERER, CHECKPOINTER, WATCH };

static void service_link(struct service *s, int listen_fd, const char *hosts)
{
    s->writer.store = s->writer_store;
    client_watch_open(&s->writer.clients);
    s->writer.stats = &s->stats;
    s->writer.answers = &s->answers;
    s->writer.sweeper = &s->sweeper;
    s->writer.checkpointer = &s->checkpointer;
    s->writer.watchers = &s->watch;
    s->watch.stats = &s->stats;
    s->watch.sweeper = &s->sweeper;
    s->workers.watch = &s->watch;
    s->workers.listen_fd = listen_fd;
    s->workers.hosts = hosts;
    s->workers.readers = &s->readers;
    s->workers.writer = &s->writer;
    unsigned long long number = 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        number = (unsigned long long)clock_us();
    atomic_init(&s->workers.next_number, number);
}

static int64_t wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The web server needs two for each, and some for those that do not wait; here
 * a quarter stays for these. */
static int64_t parked_max(void)
{
    struct rlimit limit = {0};
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur >= DESCRIPTORS)
        return WAITERS_MAX + WATCHERS_MAX;
    int64_t all = (int64_t)limit.rlim_cur;
    int64_t most = all * 2 / 5, free = (all - DESCRIPTORS_OWN) * 3 / 4;
    return most < free ? most : free > 0 ? free : 0;
}

int service_open(struct service *s, const char *path, int wait_ms,
                 int listen_fd, const char *hosts, const char *groups,
                 char *why, size_t why_size)
{
    memset(s, 0, sizeof *s);
    stat_set(&s->stats, STAT_started_ms, clock_ms());
    stat_set(&s->stats, STAT_started_at_ms, wall_ms());
    stat_set(&s->stats, STAT_queue_max, QUEUE_MAX);
    metrics_init(&s->stats.metrics);
    stat_set(&s->stats, STAT_parked_max, parked_max());
    queue_init(&s->writer.queue);
    queue_init(&s->answers);
    sweeper_init(&s->sweeper, &s->readers, &s->writer);
    int rc = groups_open(&s->workers.groups, groups, why, why_size);
    if (!rc)
        rc = dbfile_open(&s->file, path, wait_ms, why, why_size);
    if (!rc)
        rc = store_open(&s->writer_store, s->file.path, STORE_WRITES, &s->stats,
                        why, why_size);
    if (!rc)
        rc = store_open(&s->checkpoint_store, s->file.path, STORE_CHECKPOINTS,
                        &s->stats, why, why_size);
    /* The readers last: they need what the writer creates. */
    if (!rc &&
        (watch_init(&s->watch) != 0 || waits_init(&s->writer.waits) != 0)) {
        snprintf(why, why_size, "cannot watch: %s", strerror(errno));
        rc = -1;
    }
    if (!rc)
        rc = store_open(&s->watch.store, s->file.path, STORE_READS, &s->stats,
                        why, why_size);
    int readers = readers_open(&s->readers, s->file.path, rc ? 0 : READERS,
                               &s->stats, why, why_size);
    checkpointer_init(&s->checkpointer, s->checkpoint_store, &s->stats);
    service_link(s, listen_fd, hosts);
    if (rc || readers)
        return -1;
    metrics_look(s->watch.store); /* from here on events are counted */
    return 0;
}

void service_close(struct service *s)
{
    /* Those that only read first: the last that closes takes the log along. */
    readers_close(&s->readers);
    store_close(s->watch.store);
    checkpointer_destroy(&s->checkpointer);
    store_close(s->checkpoint_store);
    client_watch_close(&s->writer.clients);
    store_close(s->writer_store);
    watch_destroy(&s->watch);
    waits_destroy(&s->writer.waits);
    sweeper_destroy(&s->sweeper);
    queue_destroy(&s->answers);
    queue_destroy(&s->writer.queue);
    dbfile_close(&s->file);
    groups_close(&s->workers.groups);
    metrics_destroy(&s->stats.metrics);
}

/* name: what top and gdb show, at most 15 bytes. */
static int thread_start(struct service *s, const char *name,
                        void *(*work)(void *), void *context)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, THREAD_STACK);
    int error =
        pthread_create(&s->thread[s->threads], &attributes, work, context);
    pthread_attr_destroy(&attributes);
    if (!error)
        pthread_setname_np(s->thread[s->threads++], name);
    return error;
}

int service_start(struct service *s)
{
    int error = 0;
    request_turns(WORKERS_BUSY);
    for (int i = 0; !error && i < WORKERS; i++)
        error = thread_start(s, "lease worker", worker_main, &s->workers);
    if (!error)
        error = thread_start(s, "lease sweeper", sweeper_main, &s->sweeper);
    if (!error)
        error = thread_start(s, "lease writer", writer_main, &s->writer);
    if (!error)
        error = thread_start(s, "lease answers", answer_main, &s->answers);
    if (!error)
        error = thread_start(s, "lease checkpts", checkpointer_main,
                             &s->checkpointer);
    if (!error)
        error = thread_start(s, "lease watch", watch_main, &s->watch);
    return error;
}

void service_stop(struct service *s)
{
    int fd = s->workers.listen_fd;
    atomic_store(&s->writer.stopping, true);
    atomic_store(&s->workers.stop_by_ms, clock_ms() + DRAIN_MS);
    /* No new connection from here on; those that wait are still accepted,
     * then accept() fails, also one that is waiting. */
    shutdown(fd, SHUT_RD);
    watch_close(&s->watch);
    if (s->threads > WATCH)
        pthread_join(s->thread[WATCH], NULL);
    for (int i = 0; i < WORKERS && i < s->threads; i++)
        pthread_join(s->thread[i], NULL);
    close(fd);
    sweeper_close(&s->sweeper);
    if (s->threads > SWEEPER)
        pthread_join(s->thread[SWEEPER], NULL);
    queue_close(&s->writer.queue);
    if (s->threads > WRITER)
        pthread_join(s->thread[WRITER], NULL);
    queue_close(&s->answers);
    if (s->threads > ANSWERER)
        pthread_join(s->thread[ANSWERER], NULL);
    checkpointer_close(&s->checkpointer);
    if (s->threads > CHECKPOINTER)
        pthread_join(s->thread[CHECKPOINTER], NULL);
    log_left_out(&s->stats.answers_logged);
    s->threads = 0;
}
