/*
 * guard.h: the process between `lease run` and its command. It starts the
 * command, watches the deadline, and kills in time.
 *
 *     lease run ──orders──► guard ──fork──► the command, a process group
 *         ▲                   │
 *         └─────reports───────┘
 *
 * It asks nobody anything and writes nowhere, so nothing can hold it up: not
 * the network, not a full pipe, not a stopped `lease run`. When `lease run` is
 * gone it ends the command.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef GUARD_H
#define GUARD_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum order_kind {
    ORDER_START,    /* with everything below but signal */
    ORDER_DEADLINE, /* a later deadline_ms */
    ORDER_LOST,     /* the lease is over already: stop the command */
    ORDER_SIGNAL    /* pass a signal on */
};

/* `lease run` to guard. Times are of the boot clock. */
struct order {
    enum order_kind kind;
    int signal;
    int64_t deadline_ms;
    int64_t token;
    int64_t epoch;
    char expires_at[40];
    char file[PATH_MAX]; /* LEASE_FILE, removed if `lease run` is gone */
};

enum report_kind {
    REPORT_STARTED, /* from the command itself: process group pid begins */
    REPORT_ENDED    /* the whole group is gone */
};

/* Guard to `lease run`. */
struct report {
    enum report_kind kind;
    pid_t pid;
    int status; /* as a shell tells it: 0 to 255, 128 + signal */
    bool lost;  /* it was stopped because of the deadline or ORDER_LOST */
};

/* What is known before there is a lease. */
struct guard_task {
    char **command;
    const char *resource;
    const char *holder;
    int64_t grace_ms;  /* SIGTERM so long before the end */
    int64_t margin_ms; /* SIGKILL so long before the deadline */
    sigset_t mask;     /* the signal mask that the command gets */
};

/*
 * Fork the guard. The caller must have one thread and no database open.
 * Returns its process number and *fd, a socket for messages of a struct order
 * each, from which come struct reports; or -1.
 */
pid_t guard_start(const struct guard_task *task, int *fd);

#endif
