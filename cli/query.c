/*
 * query.c: one statement, its parameters bound by name from the fields.
 *
 * SPDX-License-Identifier: MIT
 */
#include "query.h"

#include <string.h>

static int value_bind(sqlite3_stmt *stmt, int place, const struct value *value)
{
    switch (value->type) {
    case VALUE_INTEGER:
        return sqlite3_bind_int64(stmt, place, value->integer);
    case VALUE_REAL:
        return sqlite3_bind_double(stmt, place, value->real);
    case VALUE_TEXT:
        return sqlite3_bind_text(stmt, place, value->text, -1, SQLITE_STATIC);
    case VALUE_NONE:
        break;
    }
    return SQLITE_OK;
}

static int fields_bind(sqlite3_stmt *stmt, const struct fields *fields)
{
    int rc = SQLITE_OK;
    int n = sqlite3_bind_parameter_count(stmt);
    for (int place = 1; rc == SQLITE_OK && place <= n; place++) {
        const char *name = sqlite3_bind_parameter_name(stmt, place);
        for (int i = 0; i < FIELD_N; i++)
            if (name && strcmp(name + 1, FIELD_NAMES[i]) == 0)
                rc = value_bind(stmt, place, &fields->v[i]);
    }
    return rc;
}

int query_run(sqlite3 *db, const char *sql, const struct fields *fields,
              query_row *row, void *context)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    if (rc == SQLITE_OK)
        rc = fields_bind(stmt, fields);
    if (rc == SQLITE_OK) {
        while ((rc = sqlite3_step(stmt)) == SQLITE_ROW)
            if (row)
                row(context, stmt);
        if (rc == SQLITE_DONE)
            rc = SQLITE_OK;
    }
    sqlite3_finalize(stmt);
    return rc;
}
