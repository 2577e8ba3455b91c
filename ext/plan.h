/*
 * plan.h: how a query on lease_active is run.
 *
 * plan_best_index() is the table's xBestIndex: it picks one of the active_*.sql
 * statements and says which constraints it takes arguments from. The number
 * that it leaves in idxNum comes back with their values to plan_statement() and
 * plan_bind().
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEASE_PLAN_H
#define LEASE_PLAN_H

#include "engine.h"

/* The columns of lease_active, in their order. */
enum column {
    COLUMN_RESOURCE,
    COLUMN_HOLDER,
    COLUMN_TOKEN,
    COLUMN_EPOCH,
    COLUMN_CAPACITY,
    COLUMN_TTL,
    COLUMN_GRANTED_AT,
    COLUMN_RENEWED_AT,
    COLUMN_EXPIRES_AT,
    COLUMN_REMAINING,
    COLUMN_DATA,
};

/* xBestIndex. Nothing is omitted: SQLite checks every constraint again. */
int plan_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info);

/* The statement for plan; *plan becomes the one that is right for these
 * values. */
enum stmt plan_statement(int *plan, sqlite3_value **argv);

/*
 * Bind the values to the statement. What they bound may be wider than what was
 * asked for, never narrower. Returns SQLITE_OK or an SQLite result code.
 */
int plan_bind(const struct engine *engine, struct statement *s, int plan,
              sqlite3_value **argv);

#endif
