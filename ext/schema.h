/*
 * schema.h: is main a lease database, and how it becomes one.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEASE_SCHEMA_H
#define LEASE_SCHEMA_H

#include "engine.h"

/* The version of the tables that this program knows. */
enum { SCHEMA_VERSION = 1 };

enum schema_state {
    SCHEMA_ABSENT,
    SCHEMA_OLD, /* of an older version that can be brought up to date */
    SCHEMA_OURS
};

/*
 * Look at main. Returns SQLITE_OK with *state set, and remembers that the
 * schema is ours; SQLITE_MISUSE with *problem a text to be freed with
 * sqlite3_free() (NULL without memory) when main holds something else under
 * our names or a newer version; or an SQLite result code.
 */
int schema_look(struct engine *engine, enum schema_state *state,
                char **problem);

/*
 * Look, and where the schema is ours engine_read(). Tables that went with
 * a transaction that rolled back since the last look are SCHEMA_ABSENT. The
 * statement is given back with engine_give(), also after a failure.
 */
int schema_read(struct engine *engine, enum stmt id, enum schema_state *state,
                struct statement *lent, char **problem);

/*
 * Look, and create the schema where there is none or bring an older one up to
 * date: in the caller's transaction if there is one, else in one of its own.
 * Results as schema_look(), and SQLITE_MISUSE where that is impossible because
 * a statement is writing.
 */
int schema_ensure(struct engine *engine, char **problem);

/*
 * Run body in the caller's transaction if there is one, else in one of its own
 * that is rolled back when body fails. Results as schema_ensure().
 */
int schema_transact(struct engine *engine,
                    int (*body)(struct engine *engine, void *arg,
                                char **problem),
                    void *arg, char **problem);

#endif
