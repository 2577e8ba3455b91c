/*
 * lease.c: the entry point, and the table of all SQL functions.
 *
 *     .load build/lease
 *     SELECT lease_grant('shard/0', 'worker-1', 30);     -- 1, the token
 *     SELECT lease_grant('shard/0', 'worker-2', 30);     -- NULL, it is held
 *     SELECT resource, holder, remaining FROM lease_active;
 *
 * Loading writes nothing; the tables come with the first write. Functions that
 * write can only be called from top-level SQL, never from a view or trigger.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lease.h"

#include "active.h"
#include "call.h"
#include "sql.h"

SQLITE_EXTENSION_INIT1

enum { LEASE_MIN_SQLITE = 3037000 };

static const struct function functions[] = {
    {"lease_grant",
     3,
     7,
     {{ARG_RESOURCE, PARAM_RESOURCE, 0},
      {ARG_HOLDER, PARAM_HOLDER, 0},
      {ARG_TTL, PARAM_TTL, 0},
      {ARG_CAPACITY, PARAM_CAPACITY, 1},
      {ARG_DATA, PARAM_DATA, 0},
      {ARG_REQUEST_ID, PARAM_REQUEST_ID, 0},
      {ARG_ACTOR, PARAM_ACTOR, 0}},
     STMT_LEASE_GRANT,
     true,
     call_grant},
    {"lease_renew",
     2,
     4,
     {{ARG_RESOURCE, PARAM_RESOURCE, 0},
      {ARG_TOKEN, PARAM_TOKEN, 0},
      {ARG_TTL, PARAM_TTL, 0},
      {ARG_ACTOR, PARAM_ACTOR, 0}},
     STMT_LEASE_RENEW,
     true,
     call_token},
    {"lease_release",
     2,
     3,
     {{ARG_RESOURCE, PARAM_RESOURCE, 0},
      {ARG_TOKEN, PARAM_TOKEN, 0},
      {ARG_ACTOR, PARAM_ACTOR, 0}},
     STMT_LEASE_RELEASE,
     true,
     call_changes},
    {"lease_revoke",
     1,
     4,
     {{ARG_RESOURCE, PARAM_RESOURCE, 0},
      {ARG_HOLDER, PARAM_HOLDER, 0},
      {ARG_REASON, PARAM_REASON, 0},
      {ARG_ACTOR, PARAM_ACTOR, 0}},
     STMT_LEASE_REVOKE,
     true,
     call_changes},
    {"lease_sweep",
     0,
     1,
     {{ARG_LIMIT, PARAM_LIMIT, 1000}},
     STMT_LEASE_SWEEP,
     true,
     call_changes},
    {"lease_restore",
     0,
     1,
     {{ARG_MARGIN, PARAM_MARGIN, 0}},
     STMT_LEASE_RESTORE,
     true,
     call_token},
    {"lease_fence",
     2,
     2,
     {{ARG_RESOURCE, PARAM_RESOURCE, 0}, {ARG_TOKEN, PARAM_TOKEN, 0}},
     STMT_LEASE_FENCE,
     true,
     call_fence},
    {"lease_guard",
     3,
     3,
     {{ARG_TABLE, PARAM_TABLE, 0},
      {ARG_RESOURCE_COLUMN, PARAM_RESOURCE_COLUMN, 0},
      {ARG_TOKEN_COLUMN, PARAM_TOKEN_COLUMN, 0}},
     STMT_LEASE_GUARD,
     true,
     call_guard},
    {"lease_init",
     0,
     0,
     {{ARG_VALUE, PARAM_VALUE, 0}},
     STMT_COUNT,
     true,
     call_init},
    {"lease_config",
     1,
     2,
     {{ARG_NAME, PARAM_NAME, 0}, {ARG_VALUE, PARAM_VALUE, 0}},
     STMT_LEASE_CONFIG_SET,
     true,
     call_config},
    {"lease_check",
     2,
     3,
     {{ARG_RESOURCE, PARAM_RESOURCE, 0},
      {ARG_TOKEN, PARAM_TOKEN, 0},
      {ARG_MIN_REMAINING, PARAM_MIN_REMAINING, 0}},
     STMT_LEASE_CHECK,
     false,
     call_check},
    {"lease_why",
     2,
     2,
     {{ARG_RESOURCE, PARAM_RESOURCE, 0}, {ARG_TOKEN, PARAM_TOKEN, 0}},
     STMT_LEASE_WHY,
     false,
     call_why},
    {"lease_problem",
     2,
     2,
     {{ARG_NAME, PARAM_NAME, 0}, {ARG_VALUE, PARAM_VALUE, 0}},
     STMT_LEASE_BOUNDS,
     false,
     call_problem},
    {"lease_now",
     0,
     0,
     {{ARG_VALUE, PARAM_VALUE, 0}},
     STMT_LEASE_NOW,
     false,
     call_now},
    {"lease_version",
     0,
     0,
     {{ARG_VALUE, PARAM_VALUE, 0}},
     STMT_COUNT,
     false,
     call_version},
};

/* One SQL function; its target and a reference to the engine go with it. */
static void lease_drop_target(void *pointer)
{
    struct call_target *target = pointer;
    engine_unref(target->engine);
    sqlite3_free(target);
}

static int lease_register(struct engine *engine, const struct function *f)
{
    struct call_target *target = sqlite3_malloc(sizeof *target);
    if (target == NULL)
        return SQLITE_NOMEM;
    target->engine = engine;
    target->function = f;
    engine->refs++;
    int access = f->writes ? SQLITE_DIRECTONLY : SQLITE_INNOCUOUS;
    return sqlite3_create_function_v2(
        engine->db, f->name, -1, SQLITE_UTF8 | access, target, call_function,
        NULL, NULL, lease_drop_target);
}

/* Is a Leasehold registered with db already? */
static int lease_is_loaded(sqlite3 *db)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, SQL_ENGINE_LOADED, -1, &stmt, NULL);
    sqlite3_finalize(stmt);
    return rc == SQLITE_OK;
}

__attribute__((visibility("default"))) int
sqlite3_lease_init(sqlite3 *db, char **errmsg, const sqlite3_api_routines *api)
{
    SQLITE_EXTENSION_INIT2(api);
    (void)api;
    if (sqlite3_libversion_number() < LEASE_MIN_SQLITE) {
        *errmsg = sqlite3_mprintf("lease: needs SQLite 3.37.0 or newer, this "
                                  "is %s",
                                  sqlite3_libversion());
        return SQLITE_ERROR;
    }
    if (lease_is_loaded(db))
        return SQLITE_OK;
    struct engine *engine = engine_new(db);
    if (engine == NULL)
        return SQLITE_NOMEM;
    engine->refs++; /* ours, until the end of this function */
    int rc = active_register(engine);
    if (rc == SQLITE_OK)
        rc = engine_register(engine);
    for (size_t i = 0;
         i < sizeof functions / sizeof *functions && rc == SQLITE_OK; i++)
        rc = lease_register(engine, &functions[i]);
    engine_unref(engine);
    return rc;
}
