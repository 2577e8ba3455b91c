/*
 * fields.h: a request's fields, out of its JSON and all checked at once.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FIELDS_H
#define FIELDS_H

#include <stdbool.h>
#include <stddef.h>

#include "store.h"

/*
 * Read op->route's fields from a JSON object that json_check() accepted into
 * op->value[]; in_query: it came from query_to_json(), numbers are text, and a
 * POST has none there.
 * op->request_id and op->actor are checked with them. op has room for length
 * bytes.
 * Returns true, or false with the outcome set: 422 with every violation, 400
 * for a field given twice, or a breakage.
 */
bool fields_read(struct store *store, struct op *op, const char *json,
                 size_t length, bool in_query);

/*
 * After the engine refused a grant or a renewal as an error: is its ttl out of
 * the bounds that hold now? Then true, and the outcome is set.
 */
bool fields_outdated(struct store *store, struct op *op);

/* fields_read() in steps, for a request of several objects: what is wrong with
 * them, taken together. Zeroed at the beginning. */
struct complaints {
    char *json; /* an array, malloc()ed, or NULL */
    size_t length;
    int count;
    bool twice; /* a field is */
};

/* One object. */
struct fields {
    struct value at;   /* where it is, as a JSON array: ["body"] */
    struct value json; /* itself */
    bool in_query;
    const char *names;              /* " a b c ", the required ones first */
    size_t required;                /* how many those are */
    struct value *value;            /* to be set, in the order of names */
    struct op *home;                /* keeps their texts */
    struct value request_id, actor; /* headers to be checked with it */
};

/* What fields_read() reads. */
struct fields fields_of(struct op *op, const char *json, size_t length,
                        bool in_query);

/* Read one object; what is wrong is added to the complaints. */
int fields_take(struct store *store, const struct fields *fields,
                struct complaints *complaints);

/* Add one, a JSON object {loc, msg, type}. */
void complaint_add(struct complaints *complaints, const struct value *object);

/* Free the complaints and answer as fields_read() does. rc: how reading went.
 */
bool fields_judge(struct store *store, struct op *op, int rc,
                  struct complaints *complaints);

#endif
