/*
 * command.h: the command under the lease: started, signalled, and the terminal
 * passed to it and taken back.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef COMMAND_H
#define COMMAND_H

#include "guard.h"

struct command {
    pid_t pid;     /* also the number of its process group; 0: none */
    bool running;  /* pid has not been waited for */
    int status;    /* when it has: as a shell tells it */
    int terminal;  /* the terminal of the session, or -1 */
    pid_t session; /* of `lease run` */
    pid_t parent;  /* `lease run` */
    pid_t job;     /* its process group */
};

/* Remember whose child this process is and which terminal it has. */
void command_prepare(struct command *command);

/* Fork and execute it, in a process group of its own, in the foreground if we
 * are. Before it is executed it sends REPORT_STARTED to fd, so that nothing
 * runs unheard of. It gets SIGTERM if this process dies. */
void command_start(struct command *command, const struct guard_task *task,
                   const struct order *order, int fd);

/* Signal the whole group. SIGCONT also passes the terminal on; SIGTERM and
 * SIGHUP also continue what is stopped. */
void command_signal(struct command *command, int number);

/* Take note of children that ended or stopped. When the terminal stopped the
 * command, `lease run` is stopped too, for the shell to see. */
void command_wait(struct command *command);

/* True when nobody of the group is left. */
bool command_gone(const struct command *command);

/* The terminal goes back to `lease run`. */
void command_return_terminal(struct command *command);

#endif
