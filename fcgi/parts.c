/*
 * parts.c: the operations of one POST /v1/batch.
 *
 * HOW IT WORKS: a part is a struct op like any other and runs through the
 * statement of its own route; all parts are one piece of memory, and their
 * texts lie in the batch. Answers are put together when the commit is over,
 * for a lease may have run out until then.
 *
 * SPDX-License-Identifier: MIT
 */
#include "parts.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fields.h"
#include "problem.h"

enum { NAMES_MAX = 128, PATH_HEAD = sizeof "/v1/" - 1, PART_HEAD_MAX = 48 };

/* The names of the operations that there are, " grant renew ", into text. */
static void names_write(char *text)
{
    size_t n = (size_t)snprintf(text, NAMES_MAX, " ");
    for (const struct route *r = ROUTES; r < ROUTE_BATCH; r++)
        n += (size_t)snprintf(text + n, NAMES_MAX - n, "%s ",
                              r->path + PATH_HEAD);
}

/* May who asks for the batch do this? */
static bool part_allowed(const struct op *op, const struct op *part)
{
    return op->group >= part->route->group;
}

/* --- reading -------------------------------------------------------------- */

struct reading {
    struct store *store;
    struct op *op, *part; /* the next to be read */
    struct complaints *complaints;
    const char *names;
    bool forbidden;
    int rc;
};

/* The fields of a part, and its request_id. */
static int part_fill(struct reading *r, struct op *part,
                     const struct value *json, const struct value *at)
{
    char names[NAMES_MAX];
    const char *known = part->route->fields;
    /* wait is the last one, so the others keep their places. */
    const char *wait = strstr(known, " wait ");
    int n = wait ? (int)(wait + 1 - known) : (int)strlen(known);
    snprintf(names, sizeof names, "%.*sop request_id ", n, known);
    struct fields fields = {
        .at = *at,
        .json = *json,
        .names = names,
        .required = part->route->required,
        .value = part->value,
        .home = r->op,
    };
    int rc = fields_take(r->store, &fields, r->complaints);
    int op = route_field_at(names, strlen(names) - strlen("op request_id "));
    part->request_id = part->value[op + 1];
    part->value[op] = part->value[op + 1] = (struct value){0};
    return rc;
}

static bool part_take(void *context, const struct value *columns)
{
    struct reading *r = context;
    struct op *part = r->part;
    if (r->rc)
        return false;
    r->part = part->next;
    if (columns[3].type == VALUE_TEXT) {
        complaint_add(r->complaints, &columns[3]);
        return true;
    }
    part->route =
        &ROUTES[route_field_at(r->names, (size_t)columns[0].as.integer)];
    r->forbidden |= !part_allowed(r->op, part);
    part->actor = r->op->actor;
    memcpy(part->name, r->op->name, sizeof part->name);
    r->rc = part_fill(r, part, &columns[1], &columns[2]);
    return true;
}

static int parts_take(struct reading *r, const struct value *json)
{
    char names[NAMES_MAX];
    struct op *op = r->op;
    names_write(names);
    struct param params[] = {{":json", *json}, {":names", value_text(names)}};
    if (!op_split(op, (size_t)op->value[0].as.integer))
        return SQLITE_NOMEM;
    r->names = names;
    r->part = op->parts;
    int rc = store_query(r->store, QUERY_PARTS, params, 2, part_take, r);
    r->names = NULL;
    return rc ? rc : r->rc;
}

bool parts_read(struct store *store, struct op *op, const char *json,
                size_t length)
{
    struct complaints complaints = {0};
    struct reading r = {.store = store, .op = op, .complaints = &complaints};
    struct fields fields = fields_of(op, json, length, false);
    int rc = fields_take(store, &fields, &complaints);
    /* What could not be read as a list of the right length has no value. */
    if (!rc && op->value[0].type == VALUE_INTEGER)
        rc = parts_take(&r, &fields.json);
    op->atomic =
        op->value[1].type == VALUE_INTEGER && op->value[1].as.integer != 0;
    bool fine = fields_judge(store, op, rc, &complaints);
    if (!rc && r.forbidden)
        problem_set(store, op, "forbidden", NULL, NULL);
    return fine && !r.forbidden;
}

/* --- running -------------------------------------------------------------- */

static bool refused(const struct op *part)
{
    return part->outcome.status >= 400;
}

/* Each after the other. *failed: the first that broke down, else the first
 * that was refused, or NULL. */
static int parts_run_all(struct op *op, parts_each *run, void *context,
                         struct op **failed)
{
    int rc = 0;
    *failed = NULL;
    for (struct op *part = op->parts; part && !rc; part = part->next) {
        rc = run(context, part);
        if (refused(part) && (!*failed || (part->outcome.status >= 500 &&
                                           (*failed)->outcome.status < 500)))
            *failed = part;
    }
    return rc;
}

/* {"op":17, and the rest of the part's problem: all of them. */
static size_t failures_write(const struct op *op, char *text)
{
    size_t n = 0;
    int i = 0;
    for (const struct op *part = op->parts; part; part = part->next, i++) {
        const struct outcome *outcome = &part->outcome;
        if (!refused(part) || outcome->length < 2)
            continue;
        n += (size_t)sprintf(text + n, "%s{\"op\":%d,", n ? "," : "", i);
        memcpy(text + n, outcome->body + 1, outcome->length - 1);
        n += outcome->length - 1;
    }
    return n;
}

static size_t room_for(const struct op *op)
{
    size_t room = PART_HEAD_MAX;
    for (const struct op *part = op->parts; part; part = part->next)
        room += part->outcome.length + PART_HEAD_MAX;
    return room;
}

/* The problem atomic_failed with one member more. */
static void failures_tell(struct store *store, struct op *op)
{
    static const char MEMBER[] = ",\"failed\":[";
    struct outcome *outcome = &op->outcome;
    problem_set(store, op, "atomic_failed", NULL, NULL);
    char *text = outcome->body
                     ? realloc(outcome->body, outcome->length + room_for(op))
                     : NULL;
    if (!text)
        return;
    size_t n = outcome->length - 1; /* without its brace */
    memcpy(text + n, MEMBER, sizeof MEMBER - 1);
    n += sizeof MEMBER - 1;
    n += failures_write(op, text + n);
    memcpy(text + n, "]}", 2);
    outcome->body = text;
    outcome->length = n + 2;
}

/* Undo all, for at least one failed. Who broke down speaks for all of them. */
static int parts_undo(struct store *store, struct op *op, struct op *failed)
{
    if (failed->outcome.status < 500) {
        failures_tell(store, op);
    } else {
        op->outcome = failed->outcome;
        failed->outcome = (struct outcome){0};
    }
    return store_unmark(store, true);
}

int parts_run(struct store *store, struct op *op, parts_each *run,
              void *context)
{
    struct op *failed;
    outcome_clear(&op->outcome);
    int rc = op->atomic ? store_mark(store) : 0;
    if (!rc)
        rc = parts_run_all(op, run, context, &failed);
    if (rc || !op->atomic)
        return rc;
    return failed ? parts_undo(store, op, failed) : store_unmark(store, false);
}

/* --- answering ------------------------------------------------------------ */

/* A problem has its status; a success gets it as its first member. */
static size_t part_write(const struct outcome *outcome, char *text)
{
    size_t n = 0;
    if (outcome->length < 2)
        return (size_t)sprintf(text, "{\"status\":500,\"code\":\"internal\"}");
    if (outcome->status < 400)
        n = (size_t)sprintf(text, "{\"status\":%d,", outcome->status);
    else
        text[n++] = '{';
    memcpy(text + n, outcome->body + 1, outcome->length - 1);
    return n + outcome->length - 1;
}

void parts_tell(struct op *op)
{
    struct outcome *outcome = &op->outcome;
    bool ran = op->parts->outcome.status != 0;
    char *text = ran ? malloc(room_for(op)) : NULL;
    if (!text)
        return;
    size_t n = (size_t)sprintf(text, "{\"results\":[");
    for (const struct op *part = op->parts; part; part = part->next) {
        if (part != op->parts)
            text[n++] = ',';
        n += part_write(&part->outcome, text + n);
    }
    memcpy(text + n, "]}", 2);
    *outcome = (struct outcome){.status = 200, .body = text, .length = n + 2};
}
