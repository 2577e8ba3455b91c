/*
 * json.c: JSON made and taken apart by SQLite, in a database in memory.
 *
 * SPDX-License-Identifier: MIT
 */
#include "json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "query.h"
#include "sql.h"

struct json {
    sqlite3 *db;
};

struct json *json_open(void)
{
    struct json *json = calloc(1, sizeof *json);
    if (json && sqlite3_open(":memory:", &json->db) == SQLITE_OK)
        return json;
    json_close(json);
    return NULL;
}

void json_close(struct json *json)
{
    if (json)
        sqlite3_close(json->db);
    free(json);
}

static int body_query(struct json *json, const char *sql, const char *body,
                      query_row *row, void *context)
{
    struct fields fields = {0};
    value_set_text(&fields.v[FIELD_BODY], body);
    return query_run(json->db, sql, &fields, row, context);
}

static const char *column_text(sqlite3_stmt *stmt, int column)
{
    const char *text = (const char *)sqlite3_column_text(stmt, column);
    return text ? text : "";
}

static void value_take(void *context, sqlite3_stmt *stmt)
{
    struct value *value = context;
    if (value->type != VALUE_NONE)
        return;
    switch (sqlite3_column_type(stmt, 0)) {
    case SQLITE_NULL:
        break;
    case SQLITE_INTEGER:
        value_set_integer(value, sqlite3_column_int64(stmt, 0));
        break;
    default:
        value->text = strdup(column_text(stmt, 0));
        value->type = value->text ? VALUE_TEXT : VALUE_NONE;
    }
}

static void text_take(void *context, sqlite3_stmt *stmt)
{
    char **text = context;
    free(*text);
    *text = strdup(column_text(stmt, 0));
}

char *json_body(struct json *json, const struct fields *fields)
{
    char *body = NULL;
    query_run(json->db, SQL_CLI_BODY, fields, text_take, &body);
    return body;
}

struct value json_value(struct json *json, const char *sql, const char *body)
{
    struct value value = {0};
    body_query(json, sql, body, value_take, &value);
    return value;
}

/* Down: nobody may believe to have longer than it has. */
static int64_t column_ms(sqlite3_stmt *stmt, int column)
{
    double seconds = sqlite3_column_double(stmt, column);
    if (!(seconds > -1e9))
        seconds = -1e9;
    return (int64_t)floor(fmin(seconds, 1e9) * 1000 + 1e-4);
}

static void lease_take(void *context, sqlite3_stmt *stmt)
{
    struct lease *lease = context;
    lease->token = sqlite3_column_int64(stmt, 0);
    lease->epoch = sqlite3_column_int64(stmt, 1);
    lease->remaining_ms = column_ms(stmt, 2);
    snprintf(lease->expires_at, sizeof lease->expires_at, "%s",
             column_text(stmt, 3));
}

bool json_lease(struct json *json, const char *body, struct lease *lease)
{
    struct lease found = {0};
    body_query(json, SQL_CLI_LEASE, body, lease_take, &found);
    if (found.token < 1)
        return false;
    *lease = found;
    return true;
}

static void problem_take(void *context, sqlite3_stmt *stmt)
{
    struct problem *problem = context;
    snprintf(problem->code, sizeof problem->code, "%s", column_text(stmt, 0));
    if (sqlite3_column_type(stmt, 1) != SQLITE_NULL)
        problem->remaining_ms = column_ms(stmt, 1);
    problem->no_wait = sqlite3_column_int(stmt, 2);
    snprintf(problem->text, sizeof problem->text, "%s", column_text(stmt, 3));
}

void json_problem(struct json *json, const struct answer *answer,
                  struct problem *problem)
{
    *problem = (struct problem){.remaining_ms = -1};
    if (!answer->status)
        snprintf(problem->text, sizeof problem->text, "%s", answer->why);
    else if (body_query(json, SQL_CLI_PROBLEM, answer->body, problem_take,
                        problem) != SQLITE_OK ||
             !problem->text[0])
        snprintf(problem->text, sizeof problem->text, "it answered HTTP %d",
                 answer->status);
}

struct printing {
    bool as_json;
    bool over;
    int rows;
};

static void line_print(void *context, sqlite3_stmt *stmt)
{
    struct printing *printing = context;
    printf("%s\n", column_text(stmt, printing->as_json ? 1 : 0));
    if (sqlite3_column_count(stmt) > 2 && sqlite3_column_int(stmt, 2))
        printing->over = true;
    printing->rows++;
}

int json_print(struct json *json, const char *view, const char *body,
               bool as_json, bool *over)
{
    struct printing printing = {.as_json = as_json};
    int rc = body_query(json, view, body, line_print, &printing);
    *over = printing.over;
    return rc == SQLITE_OK ? printing.rows : -1;
}
