/*
 * problem.h: the outcome of an operation that is not done.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PROBLEM_H
#define PROBLEM_H

#include "store.h"

/*
 * Set the outcome to a problem by its code; sql/http_problem.sql has them all.
 * detail: a sentence, or NULL for the usual one. errors: a JSON array, or
 * NULL. Does not fail: without a body op_answer() has one.
 */
void problem_set(struct store *store, struct op *op, const char *code,
                 const char *detail, const char *errors);

/* The same for SQLite's result code, with a line in the log of what SQLite says
 * to it. Asks store_why(), so nothing else may have run in between. */
void problem_set_rc(struct store *store, struct op *op, int rc);

/* Set it to the usual problem and answer, which frees the operation. Also one
 * whose client has left is answered: the web server takes a connection that
 * only closes for a service that died. */
void problem_answer(struct store *store, struct op *op, const char *code);

/* Write into the log what is answered with a status of 500 and above, so that
 * it is found by its X-Request-Id. route, or NULL; rc: SQLite's code, or 0. */
void problem_log(struct stats *stats, const struct route *route, int rc,
                 const struct reply *reply);

#endif
