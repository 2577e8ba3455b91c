/*
 * store.h: one connection to the database with every statement prepared. The
 * only place that calls SQLite, but for the VFS in walfile.c.
 *
 *     struct store *store;
 *     if (store_open(&store, path, STORE_READS, stats, why, sizeof why) == 0)
 *         rc = store_run(store, op);
 *     store_close(store);
 *
 * A store belongs to one thread at a time. Where not said otherwise, functions
 * return SQLITE_OK or SQLite's extended result code; store_why() has its text.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef STORE_H
#define STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "op.h"
#include "stats.h"

enum store_use {
    STORE_WRITES,     /* creates the file and the schema where missing */
    STORE_READS,      /* read-only */
    STORE_CHECKPOINTS /* no statements */
};

struct store;

/*
 * Open path. stats must outlive the store.
 * On failure the result code, *store NULL and one line in why, which names
 * the file and the reason.
 */
int store_open(struct store **store, const char *path, enum store_use use,
               struct stats *stats, char *why, size_t why_size);
void store_close(struct store *store);

/* Once, before any other call: SQLite for many threads, one a connection. */
void store_setup(void);

/* The service's figures, as given to store_open(). */
struct stats *store_stats(struct store *store);

/* What SQLite says to rc; more, when that was its own last failure. */
const char *store_why(struct store *store, int rc);

/* BEGIN IMMEDIATE, waiting up to LOCK_STEP_MS; SQLITE_BUSY when that was not
 * enough. COMMIT. ROLLBACK if there is a transaction. */
int store_begin(struct store *store);
int store_commit(struct store *store);
void store_rollback(struct store *store);
/* False also after a failure for which SQLite rolled back by itself. */
bool store_in_transaction(struct store *store);

/* Is the file still the one of its name? Else SQLITE_READONLY_DBMOVED: what is
 * in it is of no consequence any more. */
int store_in_place(struct store *store);

/* Begin a part of a transaction; end it, with what was done since or without.
 * No statement may be running. */
int store_mark(struct store *store);
int store_unmark(struct store *store, bool undo);

/* Run the operation's statement and set its outcome, on SQLITE_OK only. Of a
 * grant that is only looked at: 409, or 0 when the writer has to decide. */
int store_run(struct store *store, struct op *op);

/* What else is asked of the database: each a file of sql/. */
enum store_query {
    QUERY_FIELDS,      /* http_fields: key, value, wrong */
    QUERY_FIELDS_TEXT, /* http_fields_text: the same */
    QUERY_HEADERS,     /* http_headers: name, wrong */
    QUERY_TTL,         /* http_ttl: name, wrong */
    QUERY_COMPLAINT,   /* http_complaint: problem */
    QUERY_PARTS,       /* http_batch: place, op, at, problem */
    QUERY_PROBLEM,     /* http_problem: status, body, retry_after */
    QUERY_NOW,         /* http_now: now, next */
    QUERY_FEED,    /* http_feed: token, trimmed, resource, event, expires_at */
    QUERY_ENDED,   /* http_ended: token, resource, expires_at */
    QUERY_LOG,     /* http_log: trimmed, newest, oldest */
    QUERY_TALLY,   /* http_tally: newest, lead, granted … revoked */
    QUERY_VERSION, /* http_version: a number */
    QUERY_N
};

struct param {
    const char *name; /* ":limit" */
    struct value value;
};

/* Gets each row; texts in columns are gone when it returns. False: no more. */
typedef bool store_row(void *context, const struct value *columns);

/* Run a query with n parameters and hand each row to row. */
int store_query(struct store *store, enum store_query query,
                const struct param *params, int n, store_row *row,
                void *context);

/* What becomes of the log. The last two need it at rest: they hold the write
 * lock, and are not done while a reader is in the way. */
enum store_log {
    LOG_GOES_ON,
    LOG_ANEW, /* the next commit writes over it; the file stays as long */
    LOG_EMPTY
};

/* Checkpoint what can be. *left: pages of the log not checkpointed. */
int store_checkpoint(struct store *store, enum store_log log, int *left);

#endif
