/*
 * query.h: one statement, its parameters bound by name from the fields.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef QUERY_H
#define QUERY_H

#include <sqlite3.h>

#include "ask.h"

/* Gets each row. */
typedef void query_row(void *context, sqlite3_stmt *stmt);

/*
 * Run sql to its end; row may be NULL. A parameter that is no field, or a field
 * without a value, is NULL. Returns SQLITE_OK or SQLite's result code;
 * sqlite3_errmsg() has the text.
 */
int query_run(sqlite3 *db, const char *sql, const struct fields *fields,
              query_row *row, void *context);

#endif
