/*
 * parts.h: the operations of one POST /v1/batch.
 *
 *     {"ops": [{"op": "renew", "resource": "r", "token": 7},
 *              {"op": "grant", "resource": "s", "holder": "a",
 *               "request_id": "k-1"}],
 *      "atomic": false}
 *
 * Each is one of the routes before ROUTE_BATCH, with the fields of that route
 * (but wait) and under its rules; request_id is its Idempotency-Key. They are
 * op->parts, and run one after the other in one transaction.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef PARTS_H
#define PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "store.h"

/* As fields_read(), for ROUTE_BATCH: makes op->parts. */
bool parts_read(struct store *store, struct op *op, const char *json,
                size_t length);

/*
 * Run the parts in the open transaction, each by run(); it then has its
 * outcome, and the operation has none. When it is atomic and a part was
 * refused, nothing is left of them and the operation has the outcome. Returns
 * SQLITE_OK, or SQLite's code when all of it came to nothing.
 */
typedef int parts_each(void *context, struct op *part);
int parts_run(struct store *store, struct op *op, parts_each *run,
              void *context);

/* Make the operation's outcome of those of its parts, if they have any. */
void parts_tell(struct op *op);

#endif
