/*
 * signals.c: what `lease run` does with signals.
 *
 * SPDX-License-Identifier: MIT
 */
#include "signals.h"

#include <errno.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guard.h"

static const int ENDING[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
static const int OTHER[] = {SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT};

enum {
    ENDING_N = sizeof ENDING / sizeof *ENDING,
    OTHER_N = sizeof OTHER / sizeof *OTHER
};

/* A signal handler has no other way to know. */
static volatile sig_atomic_t guard_fd = -1;

static void handler(int number)
{
    int error = errno;
    struct order order = {.kind = ORDER_SIGNAL, .signal = number};
    send(guard_fd, &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT);
    errno = error;
}

static int ignored(int number)
{
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 &&
           action.sa_handler == SIG_IGN;
}

int signals_hold(sigset_t *before)
{
    sigset_t ending;
    sigemptyset(&ending);
    for (int i = 0; i < ENDING_N; i++)
        if (!ignored(ENDING[i]))
            sigaddset(&ending, ENDING[i]);
    sigprocmask(SIG_BLOCK, &ending, before);
    return signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK);
}

int signals_take(int fd)
{
    struct signalfd_siginfo info;
    return read(fd, &info, sizeof info) > 0 ? (int)info.ssi_signo : SIGTERM;
}

static void pass(int number)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    if (!ignored(number))
        sigaction(number, &action, NULL);
}

void signals_pass(int fd)
{
    sigset_t other;
    sigemptyset(&other);
    for (int i = 0; i < OTHER_N; i++)
        sigaddset(&other, OTHER[i]);
    sigprocmask(SIG_BLOCK, &other, NULL);
    guard_fd = fd;
    for (int i = 0; i < ENDING_N; i++)
        pass(ENDING[i]);
    for (int i = 0; i < OTHER_N; i++)
        pass(OTHER[i]);
    /* Messages from the background must not stop us. */
    signal(SIGTTOU, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
}

void signals_let(const sigset_t *before)
{
    sigprocmask(SIG_SETMASK, before, NULL);
}
