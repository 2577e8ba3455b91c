/*
 * signals.h: what `lease run` does with signals: while it waits for the lease
 * they end it, afterwards they go to the command.
 *
 * Signals that were ignored when the program started (nohup, a shell's "&")
 * stay ignored.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SIGNALS_H
#define SIGNALS_H

#include <signal.h>

/* Hold them back. *before gets the signal mask as it was. Returns a
 * descriptor that is readable when one came that ends a program, or -1. */
int signals_hold(sigset_t *before);

/* Which one was it? Takes it. */
int signals_take(int fd);

/* From now on they are for the guard on the socket fd, but still held back:
 * what is sent to it between these two calls comes before them. */
void signals_pass(int fd);

/* Hold them back no longer. */
void signals_let(const sigset_t *before);

#endif
