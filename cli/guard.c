/*
 * guard.c: the process between `lease run` and its command.
 *
 * HOW IT WORKS: after whatever woke it, it looks at the clock first and kills
 * what is to be killed, and only then at children and orders. So one that was
 * stopped and continued, or slept with the machine, kills before anything
 * else. It is in a process group of its own and blocks all signals: what is
 * meant for `lease run`, also by the group, does not hit it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "guard.h"

#include <errno.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "command.h"

enum {
    STRAGGLER_MS = 50 /* the command has ended, others of its group have not;
                         not all of them are our children */
};

struct guard {
    const struct guard_task *task;
    struct command command;
    struct order start;
    int fd; /* to `lease run`; -1: it is gone */
    int timer_fd;
    int child_fd;
    int64_t term_ms; /* boot clock: when SIGTERM is due */
    int64_t kill_ms; /* boot clock: when SIGKILL is due */
    bool terminated; /* SIGTERM was sent, or the command came too late to be
                        started: the lease counts as lost */
};

static void deadline_set(struct guard *guard, int64_t deadline_ms)
{
    guard->kill_ms = deadline_ms - guard->task->margin_ms;
    guard->term_ms = deadline_ms - guard->task->grace_ms;
}

/* The lease is over or nobody renews it: SIGTERM now, SIGKILL soon. */
static void give_up(struct guard *guard)
{
    int64_t now = clock_ms();
    int64_t soon = now + guard->task->grace_ms;
    if (guard->term_ms > now)
        guard->term_ms = now;
    if (guard->kill_ms > soon)
        guard->kill_ms = soon;
}

/* Kill what is to be killed by now. */
static void strike(struct guard *guard)
{
    int64_t now = clock_ms();
    if (!guard->command.pid)
        return;
    if (now >= guard->kill_ms) {
        guard->terminated = true;
        command_signal(&guard->command, SIGKILL);
    } else if (now >= guard->term_ms && !guard->terminated) {
        guard->terminated = true;
        command_signal(&guard->command, SIGTERM);
    }
}

static void report_end(struct guard *guard)
{
    struct report message = {
        .kind = REPORT_ENDED,
        .status = guard->command.status,
        .lost = guard->terminated,
    };
    if (guard->fd >= 0)
        send(guard->fd, &message, sizeof message, MSG_NOSIGNAL);
}

static void order_follow(struct guard *guard, const struct order *order)
{
    switch (order->kind) {
    case ORDER_START:
        guard->start = *order;
        deadline_set(guard, order->deadline_ms);
        if (clock_ms() < guard->term_ms)
            command_start(&guard->command, guard->task, order, guard->fd);
        else
            guard->terminated = true; /* read too late */
        break;
    case ORDER_DEADLINE:
        if (!guard->terminated)
            deadline_set(guard, order->deadline_ms);
        break;
    case ORDER_LOST:
        give_up(guard);
        break;
    case ORDER_SIGNAL:
        command_signal(&guard->command, order->signal);
        break;
    }
}

/* Take one order, if there is one. */
static void order_take(struct guard *guard)
{
    struct order order;
    ssize_t n = recv(guard->fd, &order, sizeof order, MSG_DONTWAIT);
    if (n == (ssize_t)sizeof order) {
        order_follow(guard, &order);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        close(guard->fd);
        guard->fd = -1;
        give_up(guard);
    }
}

static void timer_wind(struct guard *guard)
{
    int64_t at = guard->terminated ? guard->kill_ms : guard->term_ms;
    int64_t now = clock_ms();
    if (!guard->command.running || at <= now)
        at = now + STRAGGLER_MS; /* also: killed, and still there */
    clock_timer_set(guard->timer_fd, at);
}

static void signals_drain(int fd)
{
    struct signalfd_siginfo info;
    while (read(fd, &info, sizeof info) > 0)
        ;
}

static void guard_watch(struct guard *guard)
{
    for (;;) {
        struct pollfd fds[] = {{.fd = guard->fd, .events = POLLIN},
                               {.fd = guard->child_fd, .events = POLLIN},
                               {.fd = guard->timer_fd, .events = POLLIN}};
        poll(fds, sizeof fds / sizeof *fds, -1);
        strike(guard);
        signals_drain(guard->child_fd);
        command_wait(&guard->command);
        if (guard->fd >= 0 && fds[0].revents)
            order_take(guard);
        bool started = guard->start.deadline_ms != 0;
        if (started ? command_gone(&guard->command) : guard->fd < 0)
            return;
        if (started) {
            strike(guard);
            timer_wind(guard);
        }
    }
}

_Noreturn static void guard_run(const struct guard_task *task, int fd)
{
    struct guard guard = {.task = task, .fd = fd};
    sigset_t all;
    sigset_t child;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    signal(SIGCHLD, SIG_DFL);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    prctl(PR_SET_NAME, "lease-guard");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    command_prepare(&guard.command);
    setpgid(0, 0);
    guard.child_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    guard.timer_fd = clock_timer_open();
    if (guard.child_fd < 0 || guard.timer_fd < 0)
        _exit(126);
    guard_watch(&guard);
    command_return_terminal(&guard.command);
    report_end(&guard);
    if (guard.fd < 0 && guard.start.file[0])
        unlink(guard.start.file);
    _exit(0);
}

pid_t guard_start(const struct guard_task *task, int *fd)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        close(pair[0]);
        guard_run(task, pair[1]);
    }
    close(pair[1]);
    *fd = pair[0];
    if (pid < 0)
        close(pair[0]);
    return pid;
}
