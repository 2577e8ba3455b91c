/*
 * turns.h: whose turn it is: the writer's part that knows who waits. All of
 * it runs on the writer's thread.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TURNS_H
#define TURNS_H

#include <stdbool.h>
#include <stdint.h>

#include "queue.h"

struct writer;

/*
 * Run an operation in the open transaction. It is in done then, with its
 * outcome, or it waits; with serve those who wait before it may be served, and
 * are in done as well. Returns SQLITE_OK, or SQLite's code when that undid the
 * transaction.
 */
int turns_run(struct writer *writer, struct op *op, bool serve,
              struct chain *done);

/*
 * Give what has ended since the last time, whoever ended it, to those who
 * wait; into done with them. In the open transaction; returns as turns_run().
 */
int turns_serve(struct writer *writer, struct chain *done);

/* What turns_serve() saw and did came to nothing. */
void turns_undone(struct writer *writer);

/* Those whose time is over, to the front of the batch to be told, for who asked
 * again stands behind; those who have left are forgotten; when the service ends
 * all are answered. */
void turns_tick(struct writer *writer, struct chain *batch);

/* How long the writer may sleep, as queue_take() wants it. */
int64_t turns_sleep_ms(struct writer *writer);

/* Is there a reason to call turns_serve() though nobody asks for anything? */
bool turns_news(struct writer *writer);

#endif
