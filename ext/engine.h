/*
 * engine.h: what the extension keeps for one database connection.
 *
 * Preparing a statement is most of the cost of a call, so statements are kept
 * between calls. A kept statement would make sqlite3_close() fail; therefore
 * they belong to the one object that SQLite takes down first, the connection
 * of the eponymous table lease_active (active.c calls engine_own() and
 * engine_disown()). While something else is in the way of that table, each
 * call prepares its own.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEASE_ENGINE_H
#define LEASE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "lease.h"

/* The statements that are kept, each a file of sql/. */
#define ENGINE_STATEMENTS(X)                                                   \
    X(LEASE_GRANT)                                                             \
    X(LEASE_REPLAY)                                                            \
    X(LEASE_RENEW)                                                             \
    X(LEASE_RELEASE)                                                           \
    X(LEASE_REVOKE)                                                            \
    X(LEASE_SWEEP)                                                             \
    X(LEASE_BOOT)                                                              \
    X(LEASE_NOW)                                                               \
    X(LEASE_CHECK)                                                             \
    X(LEASE_WHY)                                                               \
    X(LEASE_FENCE)                                                             \
    X(LEASE_FENCE_HIGHEST)                                                     \
    X(LEASE_GUARD)                                                             \
    X(LEASE_BOUNDS)                                                            \
    X(LEASE_CONFIG_GET)                                                        \
    X(LEASE_CONFIG_SET)                                                        \
    X(LEASE_RESTORE)                                                           \
    X(ACTIVE_ALL)                                                              \
    X(ACTIVE_RANGE)                                                            \
    X(ACTIVE_RESOURCE)                                                         \
    X(ACTIVE_HOLDER)                                                           \
    X(ACTIVE_EXPIRY)

enum stmt {
#define X(name) STMT_##name,
    ENGINE_STATEMENTS(X)
#undef X
        STMT_COUNT
};

/* Every :parameter of those statements. */
#define ENGINE_PARAMETERS(X)                                                   \
    X(RESOURCE, "resource")                                                    \
    X(HOLDER, "holder")                                                        \
    X(TTL, "ttl")                                                              \
    X(CAPACITY, "capacity")                                                    \
    X(DATA, "data")                                                            \
    X(REQUEST_ID, "request_id")                                                \
    X(ACTOR, "actor")                                                          \
    X(REASON, "reason")                                                        \
    X(TOKEN, "token")                                                          \
    X(MIN_REMAINING, "min_remaining")                                          \
    X(LIMIT, "limit")                                                          \
    X(NAME, "name")                                                            \
    X(VALUE, "value")                                                          \
    X(MARGIN, "margin")                                                        \
    X(LOW, "low")                                                              \
    X(HIGH, "high")                                                            \
    X(TABLE, "table")                                                          \
    X(RESOURCE_COLUMN, "resource_column")                                      \
    X(TOKEN_COLUMN, "token_column")                                            \
    X(NOW, "now")                                                              \
    X(BOOT_ID, "boot_id")                                                      \
    X(LEAD, "lead")                                                            \
    X(BOOTTIME, "boottime")

enum param {
#define X(name, text) PARAM_##name,
    ENGINE_PARAMETERS(X)
#undef X
        PARAM_COUNT
};

/* A prepared statement and where its parameters are (0: it has none such). */
struct statement {
    sqlite3_stmt *stmt;
    enum stmt id;
    bool lent; /* of a kept one: somebody has it */
    unsigned char index[PARAM_COUNT];
};

struct engine {
    sqlite3 *db;
    int refs;        /* functions and the module that point here */
    bool owned;      /* lease_active is connected: statements are kept */
    bool schema_ok;  /* main holds our schema, compared in full */
    bool utf8;       /* main is in UTF-8; known when schema_ok */
    int64_t instant; /* lease time of the statement, 0 = not read yet */
    int64_t later;   /* the same, rounded up to a millisecond */
    struct clock_reading boot; /* boot_id of this boot, once read */
    struct statement kept[STMT_COUNT];
};

/* The kernel's boot id or clock cannot be read. Not a code that SQLite gives.
 */
enum { ENGINE_NO_CLOCK = SQLITE_NOTFOUND };

/* A new engine for db with no reference, or NULL without memory. */
struct engine *engine_new(sqlite3 *db);

/* Drop one reference; the last one frees it. Fits sqlite3's xDestroy. */
void engine_unref(void *pointer);

/* lease_active has been connected; it is going. */
void engine_own(struct engine *engine);
void engine_disown(struct engine *engine);

/*
 * Lend the statement, ready to be bound: the kept one, or, while that is lent
 * or cannot be kept, one of its own. The clock's parameters are bound already.
 * Returns SQLITE_OK, an SQLite result code or ENGINE_NO_CLOCK; engine_errmsg()
 * has the text. Every statement that was lent is given back with engine_give(),
 * also after a failure.
 */
int engine_take(struct engine *engine, enum stmt id, struct statement *lent);
void engine_give(struct engine *engine, struct statement *lent);

/* Bind a parameter if the statement has it. */
int engine_bind_int(struct statement *s, enum param param, int64_t number);
int engine_bind_value(struct statement *s, enum param param,
                      sqlite3_value *value);

/* The extended form of rc, SQLite's last; hosts see only the primary one unless
 * they ask for more. SQLITE_ERROR for ENGINE_NO_CLOCK. */
int engine_extended(const struct engine *engine, int rc);

/* What SQLite says of rc, also when it has run something else since. */
const char *engine_errmsg(const struct engine *engine, int rc);

/*
 * Step a statement that writes until it is done. *changes gets the rows that
 * it wrote itself, *token the last rowid; the connection's own
 * last_insert_rowid() is put back. engine->instant is the lease time that the
 * statement used, 0 when it asked for none.
 */
int engine_write(struct engine *engine, struct statement *s, int *changes,
                 int64_t *token);

/*
 * Read the one row of a statement without parameters, in a snapshot that lasts
 * until the lent statement is given back. STMT_LEASE_NOW reads lease time into
 * engine->instant.
 */
int engine_read(struct engine *engine, enum stmt id, struct statement *lent);

/*
 * Forget what is known of the schema, and every kept statement; those that are
 * lent live until they are given back.
 */
void engine_forget(struct engine *engine);

/*
 * After a call that ended with rc: is it worth another try? Then wait a little.
 * So where rc is SQLITE_BUSY, the host has no busy timeout, no transaction is
 * open, and 2 s since the first time are not over. *since_ms starts at 0.
 */
bool engine_wait(struct engine *engine, int rc, int64_t *since_ms);

/* Register lease_tick(), lease_tock() and lease_ttl(), which the statements
 * use. */
int engine_register(struct engine *engine);

#endif
