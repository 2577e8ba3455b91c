/*
 * schema.c: compare main with sql/schema.sql, create it, bring it up to date.
 *
 * HOW IT WORKS. SQLite keeps the text of every definition as it was given,
 * without the "main." before the name. So a file is ours when each statement
 * of schema.sql is found in sqlite_schema to the letter and nothing more hangs
 * on our names: then no foreign trigger, view or column can run when a
 * function writes. Nothing of the file is run before that is known. An older
 * file, and one that was brought up to date, differ in some definitions: each
 * such form is a file of sql/ with those alone.
 *
 * SPDX-License-Identifier: MIT
 */
#include "schema.h"

#include <string.h>

#include "sql.h"

SQLITE_EXTENSION_INIT3

/* First column of the first row of sql, with text bound to :sql. -1: no row. */
static int schema_ask(sqlite3 *db, const char *sql, const char *text, int bytes,
                      int64_t *answer)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    if (rc == SQLITE_OK && text != NULL)
        rc = sqlite3_bind_text(stmt, 1, text, bytes, SQLITE_STATIC);
    if (rc == SQLITE_OK) {
        *answer = -1;
        rc = sqlite3_step(stmt);
        if (rc == SQLITE_ROW) {
            *answer = sqlite3_column_int64(stmt, 0);
            rc = SQLITE_DONE;
        }
    }
    int end = sqlite3_finalize(stmt);
    return rc == SQLITE_DONE ? end : rc;
}

/* A form in which our schema may be found. */
struct form {
    const char *instead; /* definitions that stand in place of schema.sql's */
    const char *upgrade; /* what makes the next version of it; NULL: none */
};

static const struct form forms[] = {
    {"", NULL}, /* as schema.sql says */
#ifdef LEASE_TEST_CLOCK
    {SQL_TEST_SCHEMA_0, SQL_TEST_UPGRADE_0},
    {SQL_TEST_SCHEMA_0_UPGRADED, NULL},
#endif
};

enum { FORMS = sizeof forms / sizeof *forms };

/* A CREATE statement inside a file of sql/. */
struct definition {
    const char *kind; /* what it creates: the words before the name */
    int kind_bytes;
    const char *name; /* without "main.", to the end, without semicolon */
    int name_bytes;
    int bytes; /* from name on */
};

/* The next definition at or after *at, which goes past it. A statement ends
 * with a semicolon and a blank line. */
static bool schema_next(const char **at, struct definition *next)
{
    const char *from = strstr(*at, "CREATE ");
    if (from == NULL)
        return false;
    const char *end = strstr(from, ";\n\n");
    *at = end != NULL ? end : from + strlen(from) - strlen(";\n");
    const char *name = strstr(from, "main.");
    next->kind = from;
    next->kind_bytes = (int)(name - from);
    next->name = name + strlen("main.");
    next->name_bytes = (int)strcspn(next->name, " ");
    next->bytes = (int)(*at - next->name);
    return true;
}

/* Put in place of *wanted what the form has under its name. */
static void schema_replace(const char *instead, struct definition *wanted)
{
    struct definition other;
    while (schema_next(&instead, &other))
        if (other.name_bytes == wanted->name_bytes &&
            memcmp(other.name, wanted->name, (size_t)other.name_bytes) == 0)
            *wanted = other;
}

/* Is the definition in main, as SQLite keeps it? */
static int schema_has(sqlite3 *db, const struct definition *wanted, bool *there)
{
    int64_t found = -1;
    char *text = sqlite3_mprintf("%.*s%.*s", wanted->kind_bytes, wanted->kind,
                                 wanted->bytes, wanted->name);
    if (text == NULL)
        return SQLITE_NOMEM;
    int rc = schema_ask(db, SQL_SCHEMA_OBJECT, text, -1, &found);
    sqlite3_free(text);
    *there = found == 1;
    return rc;
}

/* Does main hold this form, all of it, and nothing else of ours? */
static int schema_compare(sqlite3 *db, const struct form *form, int64_t objects,
                          bool *same)
{
    struct definition wanted;
    const char *at = SQL_SCHEMA;
    int64_t found = 0;
    *same = true;
    while (*same && schema_next(&at, &wanted)) {
        schema_replace(form->instead, &wanted);
        int rc = schema_has(db, &wanted, same);
        if (rc != SQLITE_OK)
            return rc;
        found++;
    }
    *same = *same && found == objects;
    return SQLITE_OK;
}

/* Which form is it? FORMS when none. */
static int schema_find_form(sqlite3 *db, int64_t objects, int *form)
{
    bool same = false;
    int rc = SQLITE_OK;
    for (*form = 0; *form < FORMS; ++*form) {
        rc = schema_compare(db, &forms[*form], objects, &same);
        if (rc != SQLITE_OK || same)
            break;
    }
    return rc;
}

/*
 * Is the version row beyond what this program knows? Says so in *problem. Only
 * for a main whose lease_config can be read without running anything of it.
 */
static int schema_newer(sqlite3 *db, char **problem)
{
    int64_t version = -1;
    int rc = schema_ask(db, SQL_SCHEMA_VERSION, NULL, 0, &version);
    if (rc != SQLITE_OK || version <= SCHEMA_VERSION)
        return rc;
    *problem = sqlite3_mprintf(
        "the database has lease schema %lld, this Leasehold " LEASE_VERSION
        " knows up to %d: use a newer one",
        version, SCHEMA_VERSION);
    return SQLITE_MISUSE;
}

/* What a person should read about a main that is not as schema.sql says. */
static int schema_foreign(sqlite3 *db, char **problem)
{
    int64_t plain = -1;
    int rc = schema_ask(db, SQL_SCHEMA_PLAIN, NULL, 0, &plain);
    if (rc == SQLITE_OK && plain == 1)
        rc = schema_newer(db, problem);
    if (rc != SQLITE_OK && rc != SQLITE_ERROR) /* newer, locked, damaged */
        return rc;
    *problem = sqlite3_mprintf(
        "the database holds tables, views, indexes or triggers under "
        "Leasehold's names that are not as Leasehold makes them; it is "
        "left alone");
    return SQLITE_MISUSE;
}

int schema_look(struct engine *engine, enum schema_state *state, char **problem)
{
    *problem = NULL;
    *state = SCHEMA_OURS;
    if (engine->schema_ok)
        return SQLITE_OK;
    int64_t objects = 0;
    int rc = schema_ask(engine->db, SQL_SCHEMA_OBJECTS, NULL, 0, &objects);
    if (rc != SQLITE_OK)
        return rc;
    if (objects == 0) {
        *state = SCHEMA_ABSENT;
        return SQLITE_OK;
    }
    int form = FORMS;
    rc = schema_find_form(engine->db, objects, &form);
    if (rc != SQLITE_OK)
        return rc;
    if (form == FORMS)
        return schema_foreign(engine->db, problem);
    if (forms[form].upgrade != NULL) {
        *state = SCHEMA_OLD;
        return SQLITE_OK;
    }
    rc = schema_newer(engine->db, problem);
    if (rc != SQLITE_OK)
        return rc;
    int64_t letter_bytes = 0;
    rc = schema_ask(engine->db, SQL_SCHEMA_ENCODING, NULL, 0, &letter_bytes);
    engine->utf8 = letter_bytes == 1;
    engine->schema_ok = rc == SQLITE_OK;
    return rc;
}

int schema_read(struct engine *engine, enum stmt id, enum schema_state *state,
                struct statement *lent, char **problem)
{
    memset(lent, 0, sizeof *lent);
    bool known = engine->schema_ok;
    int rc = schema_look(engine, state, problem);
    if (rc != SQLITE_OK || *state == SCHEMA_ABSENT)
        return rc;
    if (*state == SCHEMA_OLD) {
        *problem = sqlite3_mprintf("the database is of an older version: call "
                                   "lease_init() to bring it up to date");
        return SQLITE_MISUSE;
    }
    rc = engine_read(engine, id, lent);
    if (rc != SQLITE_ERROR || !known)
        return rc;
    engine_give(engine, lent);
    engine_forget(engine);
    return schema_read(engine, id, state, lent, problem);
}

static int schema_run(sqlite3 *db, const char *sql)
{
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? rc : sqlite3_extended_errcode(db);
}

/* Create what schema.sql has and main has not. */
static int schema_fill(sqlite3 *db)
{
    struct definition wanted;
    const char *at = SQL_SCHEMA;
    int rc = SQLITE_OK;
    while (rc == SQLITE_OK && schema_next(&at, &wanted)) {
        char *name = sqlite3_mprintf("%.*s", wanted.name_bytes, wanted.name);
        char *text =
            sqlite3_mprintf("%.*s", (int)(at - wanted.kind), wanted.kind);
        int64_t there = -1;
        rc = name && text ? schema_ask(db, SQL_SCHEMA_NAME, name, -1, &there)
                          : SQLITE_NOMEM;
        if (rc == SQLITE_OK && there != 1)
            rc = schema_run(db, text);
        sqlite3_free(name);
        sqlite3_free(text);
    }
    return rc;
}

/* One step from an older form towards today's. */
static int schema_step(sqlite3 *db)
{
    int64_t objects = 0;
    int form = FORMS;
    int rc = schema_ask(db, SQL_SCHEMA_OBJECTS, NULL, 0, &objects);
    if (rc == SQLITE_OK)
        rc = schema_find_form(db, objects, &form);
    if (rc == SQLITE_OK && form < FORMS)
        rc = schema_run(db, forms[form].upgrade);
    return rc == SQLITE_OK ? schema_fill(db) : rc;
}

/* Create everything or bring it up to date, in an open transaction. */
static int schema_make(struct engine *engine, void *arg, char **problem)
{
    enum schema_state state;
    (void)arg;
    int rc = schema_look(engine, &state, problem);
    if (rc != SQLITE_OK || state == SCHEMA_OURS)
        return rc;
    rc = state == SCHEMA_ABSENT ? schema_run(engine->db, SQL_SCHEMA)
                                : schema_step(engine->db);
    return rc == SQLITE_OK ? schema_make(engine, arg, problem) : rc;
}

/* After ROLLBACK sqlite3_errmsg() would say "not an error": keep the text. */
static int schema_rollback(struct engine *engine, int rc, char **problem)
{
    if (*problem == NULL)
        *problem = sqlite3_mprintf("%s", sqlite3_errmsg(engine->db));
    engine->schema_ok = false;
    if (!sqlite3_get_autocommit(engine->db))
        sqlite3_exec(engine->db, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}

int schema_transact(struct engine *engine,
                    int (*body)(struct engine *engine, void *arg,
                                char **problem),
                    void *arg, char **problem)
{
    if (!sqlite3_get_autocommit(engine->db))
        return body(engine, arg, problem);
    if (sqlite3_txn_state(engine->db, NULL) == SQLITE_TXN_WRITE) {
        *problem = sqlite3_mprintf("this creates tables or triggers, and a "
                                   "statement is writing: call lease_init() "
                                   "or lease_guard() on its own first");
        return SQLITE_MISUSE;
    }
    int rc = schema_run(engine->db, "BEGIN IMMEDIATE");
    if (rc != SQLITE_OK)
        return rc;
    rc = body(engine, arg, problem);
    if (rc == SQLITE_OK)
        rc = schema_run(engine->db, "COMMIT");
    return rc == SQLITE_OK ? rc : schema_rollback(engine, rc, problem);
}

int schema_ensure(struct engine *engine, char **problem)
{
    enum schema_state state;
    int rc = schema_look(engine, &state, problem);
    if (rc != SQLITE_OK || state == SCHEMA_OURS)
        return rc;
    return schema_transact(engine, schema_make, NULL, problem);
}
