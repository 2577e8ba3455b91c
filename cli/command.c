/*
 * command.c: the command under the lease.
 *
 * HOW IT WORKS: the command has a process group of its own, so that all of it
 * can be killed. A shell does the same with a job, so the terminal is treated
 * as a shell treats it: the command gets it when `lease run` has it and
 * stdin is the terminal, or as soon as the command stops for want of it; when
 * the command is stopped by ^Z, `lease run` stops as well and its own shell
 * takes over; SIGCONT comes back the same way.
 *
 * SPDX-License-Identifier: MIT
 */
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

void command_prepare(struct command *command)
{
    *command = (struct command){
        .terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY),
        .session = getsid(0),
        .parent = getppid(),
    };
    command->job = getpgid(command->parent);
}

/* Pass the terminal on if `lease run` is in the foreground. */
static bool give_terminal(const struct command *command, pid_t group)
{
    return command->terminal >= 0 &&
           tcgetpgrp(command->terminal) == command->job &&
           tcsetpgrp(command->terminal, group) == 0;
}

void command_return_terminal(struct command *command)
{
    if (command->terminal >= 0 && tcgetpgrp(command->terminal) == command->pid)
        tcsetpgrp(command->terminal, command->job);
}

static void environment_set(const struct guard_task *task,
                            const struct order *order)
{
    char number[24];
    setenv("LEASE_RESOURCE", task->resource, 1);
    setenv("LEASE_HOLDER", task->holder, 1);
    snprintf(number, sizeof number, "%lld", (long long)order->token);
    setenv("LEASE_TOKEN", number, 1);
    snprintf(number, sizeof number, "%lld", (long long)order->epoch);
    setenv("LEASE_EPOCH", number, 1);
    setenv("LEASE_EXPIRES_AT", order->expires_at, 1);
    setenv("LEASE_FILE", order->file, 1);
}

_Noreturn static void command_execute(const struct command *command,
                                      const struct guard_task *task,
                                      const struct order *order, pid_t guard,
                                      int fd)
{
    struct report started = {.kind = REPORT_STARTED, .pid = getpid()};
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != guard) /* it died before that call */
        _exit(128 + SIGTERM);
    send(fd, &started, sizeof started, MSG_NOSIGNAL);
    if (isatty(STDIN_FILENO))
        give_terminal(command, getpid());
    environment_set(task, order);
    sigprocmask(SIG_SETMASK, &task->mask, NULL);
    execvp(task->command[0], task->command);
    int rc = errno == ENOENT ? 127 : 126;
    dprintf(STDERR_FILENO, "lease: %s: %s\n", task->command[0],
            strerror(errno));
    _exit(rc);
}

void command_start(struct command *command, const struct guard_task *task,
                   const struct order *order, int fd)
{
    pid_t guard = getpid();
    pid_t pid = fork();
    if (pid == 0)
        command_execute(command, task, order, guard, fd);
    if (pid < 0) {
        command->status = 126;
        return;
    }
    setpgid(pid, pid); /* whoever comes first */
    command->pid = pid;
    command->running = true;
}

void command_signal(struct command *command, int number)
{
    if (!command->pid)
        return;
    if (number == SIGCONT && isatty(STDIN_FILENO))
        give_terminal(command, command->pid);
    kill(-command->pid, number);
    if (number == SIGTERM || number == SIGHUP)
        kill(-command->pid, SIGCONT); /* or a stopped one would never end */
}

static void command_stopped(struct command *command, int number)
{
    bool wants = number == SIGTTIN || number == SIGTTOU;
    if (!wants && number != SIGTSTP)
        return; /* somebody's SIGSTOP, nothing of the terminal's */
    if ((wants && give_terminal(command, command->pid)) ||
        command->session == command->parent) {
        kill(-command->pid, SIGCONT); /* or nobody could ever continue us */
        return;
    }
    command_return_terminal(command);
    if (getppid() == command->parent)
        kill(command->parent, SIGSTOP);
}

void command_wait(struct command *command)
{
    int status;
    pid_t pid;
    /* Orphans of the command come to us, too. */
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        if (pid != command->pid)
            continue;
        if (WIFSTOPPED(status)) {
            command_stopped(command, WSTOPSIG(status));
            continue;
        }
        command->running = false;
        command->status =
            WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
}

bool command_gone(const struct command *command)
{
    if (command->running)
        return false;
    /* EPERM: what is left has become another user. */
    return !command->pid || (kill(-command->pid, 0) != 0 && errno == ESRCH);
}
