/*
 * fields.c: a request's fields, out of its JSON and all checked at once.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fields.h"

#include <stdlib.h>
#include <string.h>

#include "problem.h"

enum { COMPLAINTS_MAX = 100 };

struct reading {
    struct store *store;
    const struct fields *fields;
    struct complaints *complaints;
    unsigned seen, faulty; /* a bit a field */
    int rc;
};

/* Without memory, or beyond COMPLAINTS_MAX, it is left out: that there are
 * complaints is known by count. */
void complaint_add(struct complaints *c, const struct value *object)
{
    if (c->count++ >= COMPLAINTS_MAX)
        return;
    char *grown = realloc(c->json, c->length + object->length + 3);
    if (!grown)
        return;
    grown[c->length] = c->length ? ',' : '[';
    memcpy(grown + c->length + 1, object->as.text, object->length);
    c->json = grown;
    c->length += object->length + 1;
    memcpy(grown + c->length, "]", 2);
}

static bool complaint_take(void *context, const struct value *columns)
{
    complaint_add(context, &columns[0]);
    return true;
}

/* wrong: as sql/http_complaint.sql takes it. */
static void complain(struct reading *r, struct value at, struct value name,
                     struct value wrong)
{
    struct param params[] = {{":at", at}, {":name", name}, {":wrong", wrong}};
    if (r->complaints->count >= COMPLAINTS_MAX)
        r->complaints->count++;
    else if (!r->rc)
        r->rc = store_query(r->store, QUERY_COMPLAINT, params, 3,
                            complaint_take, r->complaints);
}

static bool field_take(void *context, const struct value *columns)
{
    struct reading *r = context;
    const struct fields *fields = r->fields;
    const struct value *key = &columns[0], *value = &columns[1];
    int field = route_field_of(fields->names, key->as.text, key->length);
    if (field < 0) {
        complain(r, fields->at, *key,
                 value_text("unknown is not a field of this call"));
        return true;
    }
    unsigned bit = 1u << field;
    r->complaints->twice |= (r->seen & bit) != 0;
    r->seen |= bit;
    if (columns[2].type == VALUE_TEXT) {
        r->faulty |= bit;
        complain(r, fields->at, *key, columns[2]);
    } else if (value->type == VALUE_TEXT) {
        op_set_text(fields->home, &fields->value[field], value->as.text,
                    value->length);
    } else {
        fields->value[field] = *value;
    }
    return true;
}

static bool header_take(void *context, const struct value *columns)
{
    if (columns[1].type == VALUE_TEXT)
        complain(context, value_text("[\"header\"]"), columns[0], columns[1]);
    return true;
}

static int headers_check(struct reading *r)
{
    const struct fields *fields = r->fields;
    struct param params[] = {
        {":request_id", fields->request_id},
        {":actor", fields->actor},
    };
    if (!fields->request_id.type && !fields->actor.type)
        return 0;
    return store_query(r->store, QUERY_HEADERS, params, 2, header_take, r);
}

static void missing_find(struct reading *r)
{
    const char *name = r->fields->names + 1;
    for (size_t i = 0; i < r->fields->required; i++) {
        struct value missing = {VALUE_TEXT, {.text = name}, strcspn(name, " ")};
        if (r->fields->value[i].type == VALUE_NULL && !(r->faulty >> i & 1))
            complain(r, r->fields->at, missing,
                     value_text("missing is required"));
        name += missing.length + 1;
    }
}

int fields_take(struct store *store, const struct fields *fields,
                struct complaints *complaints)
{
    struct reading r = {store, fields, complaints, 0, 0, 0};
    struct param params[] = {
        {":json", fields->json},
        {":fields", value_text(fields->names)},
    };
    int rc =
        fields->in_query
            ? store_query(store, QUERY_FIELDS_TEXT, params, 2, field_take, &r)
            : store_query(store, QUERY_FIELDS, params, 1, field_take, &r);
    if (!rc)
        rc = headers_check(&r);
    missing_find(&r);
    return rc ? rc : r.rc;
}

struct fields fields_of(struct op *op, const char *json, size_t length,
                        bool in_query)
{
    bool none = in_query && op->route->post;
    return (struct fields){
        .at = value_text(in_query ? "[\"query\"]" : "[\"body\"]"),
        .json = {VALUE_TEXT, {.text = json}, length},
        .in_query = in_query,
        .names = none ? " " : op->route->fields,
        .required = none ? 0 : op->route->required,
        .value = op->value,
        .home = op,
        .request_id = op->request_id,
        .actor = op->actor,
    };
}

bool fields_judge(struct store *store, struct op *op, int rc,
                  struct complaints *complaints)
{
    bool fine = !rc && !complaints->twice && !complaints->count;
    if (rc)
        problem_set_rc(store, op, rc);
    else if (complaints->twice)
        problem_set(store, op, "duplicate_key", NULL, NULL);
    else if (!fine)
        problem_set(store, op, "invalid", NULL, complaints->json);
    free(complaints->json);
    return fine;
}

bool fields_read(struct store *store, struct op *op, const char *json,
                 size_t length, bool in_query)
{
    struct complaints complaints = {0};
    struct fields fields = fields_of(op, json, length, in_query);
    int rc = fields_take(store, &fields, &complaints);
    return fields_judge(store, op, rc, &complaints);
}

static bool ttl_take(void *context, const struct value *columns)
{
    if (columns[1].type == VALUE_TEXT)
        complain(context, value_text("[\"body\"]"), columns[0], columns[1]);
    return true;
}

bool fields_outdated(struct store *store, struct op *op)
{
    struct complaints complaints = {0};
    struct reading r = {.store = store, .complaints = &complaints};
    if (route_field(op->route, "ttl") < 0)
        return false;
    struct param params[] = {{":ttl", *op_field(op, "ttl")}};
    int rc = store_query(store, QUERY_TTL, params, 1, ttl_take, &r);
    return !fields_judge(store, op, rc ? rc : r.rc, &complaints);
}
