/*
 * plan.c: how a query on lease_active is run; see plan.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "plan.h"

#include <string.h>

SQLITE_EXTENSION_INIT3

/* idxNum: the plan, and which constraints its arguments come from. */
enum {
    PLAN_ALL,
    PLAN_RESOURCE,
    PLAN_HOLDER,
    PLAN_EXPIRY,
    PLAN_RANGE,
    PLAN_MASK = 7,
    RANGE_LOW = 8,   /* resource > or >= */
    RANGE_HIGH = 16, /* resource < or <= */
    RANGE_GLOB = 32, /* resource GLOB */
    RANGE_LIKE = 64, /* resource LIKE */
};

static const enum stmt plan_stmt[] = {
    [PLAN_ALL] = STMT_ACTIVE_ALL,       [PLAN_RESOURCE] = STMT_ACTIVE_RESOURCE,
    [PLAN_HOLDER] = STMT_ACTIVE_HOLDER, [PLAN_EXPIRY] = STMT_ACTIVE_EXPIRY,
    [PLAN_RANGE] = STMT_ACTIVE_RANGE,
};

/* What constraint i of info is good for: a plan or a RANGE_ bit, 0 nothing. */
static int constraint_use(sqlite3_index_info *info, int i)
{
    int column = info->aConstraint[i].iColumn;
    int op = info->aConstraint[i].op;
    if (!info->aConstraint[i].usable ||
        (column != COLUMN_RESOURCE && column != COLUMN_HOLDER))
        return 0;
    if (op == SQLITE_INDEX_CONSTRAINT_LIKE)
        return column == COLUMN_RESOURCE ? RANGE_LIKE : 0;
    if (op == SQLITE_INDEX_CONSTRAINT_GLOB)
        return column == COLUMN_RESOURCE ? RANGE_GLOB : 0;
    if (sqlite3_stricmp(sqlite3_vtab_collation(info, i), "BINARY") != 0)
        return 0;
    if (op == SQLITE_INDEX_CONSTRAINT_EQ)
        return column == COLUMN_RESOURCE ? PLAN_RESOURCE : PLAN_HOLDER;
    if (column != COLUMN_RESOURCE)
        return 0;
    if (op == SQLITE_INDEX_CONSTRAINT_GT || op == SQLITE_INDEX_CONSTRAINT_GE)
        return RANGE_LOW;
    if (op == SQLITE_INDEX_CONSTRAINT_LT || op == SQLITE_INDEX_CONSTRAINT_LE)
        return RANGE_HIGH;
    return 0;
}

/* The first constraint with that use, or -1. */
static int constraint_find(sqlite3_index_info *info, int use)
{
    for (int i = 0; i < info->nConstraint; i++)
        if (constraint_use(info, i) == use)
            return i;
    return -1;
}

/* Does the plan yield its rows in the order that is asked for? */
static bool is_ordered(const sqlite3_index_info *info, int plan)
{
    if (info->nOrderBy < 1 || info->nOrderBy > 2 || info->aOrderBy[0].desc)
        return false;
    int first = info->aOrderBy[0].iColumn;
    if (info->nOrderBy == 1)
        return plan == PLAN_EXPIRY
                   ? first == COLUMN_EXPIRES_AT || first == COLUMN_REMAINING
                   : first == COLUMN_RESOURCE;
    return plan != PLAN_EXPIRY && first == COLUMN_RESOURCE &&
           info->aOrderBy[1].iColumn == COLUMN_HOLDER &&
           !info->aOrderBy[1].desc;
}

/* Hand the constraint's value to xFilter as its next argument. */
static void pass(sqlite3_index_info *info, int constraint, int *argc)
{
    info->aConstraintUsage[constraint].argvIndex = ++*argc;
}

/* The bounds of a range that are there, in the order that xFilter reads. */
static int pass_range(sqlite3_index_info *info)
{
    static const int uses[] = {RANGE_LOW, RANGE_HIGH, RANGE_GLOB, RANGE_LIKE};
    int plan = 0;
    int argc = 0;
    for (int i = 0; i < 4; i++) {
        int constraint = constraint_find(info, uses[i]);
        if (constraint < 0)
            continue;
        pass(info, constraint, &argc);
        plan |= uses[i];
    }
    return plan == 0 ? PLAN_ALL : PLAN_RANGE | plan;
}

int plan_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
    (void)vtab;
    int argc = 0;
    int resource = constraint_find(info, PLAN_RESOURCE);
    int holder = constraint_find(info, PLAN_HOLDER);
    if (resource >= 0) {
        pass(info, resource, &argc);
        info->idxNum = PLAN_RESOURCE;
        info->estimatedCost = 10;
        info->estimatedRows = 2;
    } else if (holder >= 0) {
        pass(info, holder, &argc);
        info->idxNum = PLAN_HOLDER;
        info->estimatedCost = 100;
        info->estimatedRows = 25;
    } else {
        info->idxNum = pass_range(info);
        info->estimatedCost = info->idxNum == PLAN_ALL ? 1e6 : 1e4;
        info->estimatedRows = info->idxNum == PLAN_ALL ? 1000000 : 10000;
        if (info->idxNum == PLAN_ALL && is_ordered(info, PLAN_EXPIRY))
            info->idxNum = PLAN_EXPIRY;
    }
    info->orderByConsumed = is_ordered(info, info->idxNum & PLAN_MASK);
    return SQLITE_OK;
}

/*
 * How many bytes at the head of a pattern stand for themselves. LIKE folds the
 * case of letters, and an ICU build that of others too: it stops before them.
 */
static int pattern_prefix(const char *pattern, bool like)
{
    int n = 0;
    for (; pattern[n] != '\0'; n++) {
        unsigned char ch = (unsigned char)pattern[n];
        bool letter = (ch | 0x20) >= 'a' && (ch | 0x20) <= 'z';
        if (like ? strchr("%_", ch) != NULL || letter || ch >= 0x80
                 : strchr("*?[", ch) != NULL)
            break;
    }
    return n;
}

/*
 * Bind the range of what starts with the pattern's prefix: up to the prefix and
 * a byte above all of UTF-8. In a UTF-16 file there is no such end; then only
 * the low bound helps.
 */
static int bind_prefix(const struct engine *engine, struct statement *s,
                       sqlite3_value *pattern, bool like)
{
    const char *text = (const char *)sqlite3_value_text(pattern);
    int n = text ? pattern_prefix(text, like) : 0;
    if (n == 0)
        return SQLITE_OK;
    int rc = sqlite3_bind_text(s->stmt, s->index[PARAM_LOW], text, n,
                               SQLITE_TRANSIENT);
    if (rc != SQLITE_OK || !engine->utf8)
        return rc;
    char *high = sqlite3_mprintf("%.*s\xff", n, text);
    if (high == NULL)
        return SQLITE_NOMEM;
    return sqlite3_bind_text(s->stmt, s->index[PARAM_HIGH], high, -1,
                             sqlite3_free);
}

/*
 * Such a bound bounds no text: from a column it is below every text, or makes
 * a number of each text that looks like one ('8' is below 70); written in the
 * query it stands for its text.
 */
static bool is_number(sqlite3_value *value)
{
    int type = sqlite3_value_type(value);
    return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

static int bind_range(const struct engine *engine, struct statement *s,
                      int plan, sqlite3_value **argv)
{
    int low = s->index[PARAM_LOW];
    int high = s->index[PARAM_HIGH];
    int rc = sqlite3_bind_text(s->stmt, low, "", 0, SQLITE_STATIC);
    if (rc == SQLITE_OK) /* above every text */
        rc = sqlite3_bind_zeroblob(s->stmt, high, 0);
    if (rc == SQLITE_OK && (plan & RANGE_LOW)) {
        if (!is_number(*argv))
            rc = sqlite3_bind_value(s->stmt, low, *argv);
        argv++;
    }
    if (rc == SQLITE_OK && (plan & RANGE_HIGH)) {
        /* SQLite's own end of a prefix: the prefix with its last byte of UTF-8
         * increased, which in UTF-16 may be below what has the prefix. */
        if (!is_number(*argv) &&
            (engine->utf8 || !(plan & (RANGE_GLOB | RANGE_LIKE))))
            rc = sqlite3_bind_value(s->stmt, high, *argv);
        argv++;
    }
    if (rc == SQLITE_OK && (plan & RANGE_GLOB)) {
        if (!(plan & (RANGE_LOW | RANGE_HIGH)))
            rc = bind_prefix(engine, s, *argv, false);
        argv++;
    }
    if (rc == SQLITE_OK && (plan & RANGE_LIKE) &&
        !(plan & (RANGE_LOW | RANGE_HIGH | RANGE_GLOB)))
        rc = bind_prefix(engine, s, *argv, true);
    return rc;
}

int plan_bind(const struct engine *engine, struct statement *s, int plan,
              sqlite3_value **argv)
{
    switch (plan & PLAN_MASK) {
    case PLAN_RESOURCE:
        return engine_bind_value(s, PARAM_RESOURCE, argv[0]);
    case PLAN_HOLDER:
        return engine_bind_value(s, PARAM_HOLDER, argv[0]);
    case PLAN_RANGE:
        return bind_range(engine, s, plan, argv);
    default:
        return SQLITE_OK;
    }
}

enum stmt plan_statement(int *plan, sqlite3_value **argv)
{
    /* A name compared with a number: SQLite may compare as numbers, where '05'
     * is 5, so it looks at every lease itself. */
    if ((*plan == PLAN_RESOURCE || *plan == PLAN_HOLDER) && is_number(argv[0]))
        *plan = PLAN_ALL;
    return plan_stmt[*plan & PLAN_MASK];
}
