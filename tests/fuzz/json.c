/*
 * json.c: fuzz target: the bodies and queries of the JSON routes, through the
 * SQL that reads their fields, to the operation and its answer.
 *
 *     a0{"resource":"r","holder":"w1","ttl":30}
 *     b1k-1                     route, a to m; flags: a line with the
 *     {"resource":"r"}          Idempotency-Key comes first, and who asks
 *     h0prefix=r&limit=3        of a GET the query
 *
 * Reads through a reader's connection and writes through the writer's, on a
 * real database, in a transaction that is undone at the end. No answer may be
 * one of breakage, and each must be strict JSON.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../fcgi/worker.c" /* its parts are nobody else's */

#include <sqlite3.h>

#include "../../ext/lease.h"
#include "fuzz.h"

enum { FLAG_KEY = 1, FLAG_ACTOR = 2, FLAG_STREAM = 4, FLAG_WORKER = 8 };

static struct workers workers;
static struct readers readers;
static struct writer writer;
static struct stats stats;
static struct store *reader, *store;

/* --- the database -----------------------------------------------------------
 */

static const char CONTENT[] =
    "SELECT lease_grant('r', 'a', 10, 1, 'old'), lease_fence('r', 1);"
    "SELECT lease_renew('r', 1, 0.5);";
static const char LATER[] =
    "SELECT lease_grant('r', 'b', 60, 1, 'data', 'k-1', 'alice'),"
    " lease_grant('s', 'a', 60, 3), lease_grant('s', 'b', 90, 3),"
    " lease_grant('t/1', 'a', 1000), lease_grant('t/2', 'a', 1000),"
    " lease_renew('t/1', 7), lease_grant('u', 'w1', 5, 1, NULL, 'k-2'),"
    " lease_release('u', 11), lease_grant('v', 'w1', 5),"
    " lease_revoke('v', 'w1', 'why'), lease_grant('w', 'w1', 5),"
    " lease_fence('r', 4), lease_fence('s', 9)";

static void content_make(const char *path)
{
    sqlite3 *db;
    char *why = NULL;
    fuzz_clock_set(1000000, 1700000000000, 1);
    REQUIRE(sqlite3_open(path, &db) == SQLITE_OK);
    REQUIRE(sqlite3_lease_init(db, &why, NULL) == SQLITE_OK);
    REQUIRE(sqlite3_exec(db, CONTENT, NULL, NULL, NULL) == SQLITE_OK);
    fuzz_clock_advance(20000);
    REQUIRE(sqlite3_exec(db, LATER, NULL, NULL, NULL) == SQLITE_OK);
    fuzz_clock_advance(6000);
    sqlite3_close(db);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    char why[256];
    (void)argc;
    (void)argv;
    const char *path = fuzz_path("lease.db");
    store_setup();
    content_make(path);
    metrics_init(&stats.metrics);
    int rc = store_open(&store, path, STORE_WRITES, &stats, why, sizeof why) ||
             store_open(&reader, path, STORE_READS, &stats, why, sizeof why);
    REQUIRE_BUT(!rc, why);
    readers.free[0] = reader;
    workers.readers = &readers;
    workers.writer = &writer;
    writer.stats = &stats;
    return 0;
}

/* --- answers ----------------------------------------------------------------
 */

static void outcome_judge(const struct op *op, const struct outcome *outcome)
{
    size_t at;
    char seen[400];
    snprintf(seen, sizeof seen, "%s: %d %.*s", op->route->path, outcome->status,
             outcome->body ? (int)outcome->length : 0,
             outcome->body ? outcome->body : "");
    REQUIRE_BUT(outcome->status >= 200 && outcome->status < 500, seen);
    if (outcome->status == 204)
        return;
    REQUIRE_BUT(outcome->body, seen);
    if (!outcome->type)
        REQUIRE_BUT(!json_check(outcome->body, outcome->length, &at), seen);
}

static void op_judge(struct op *op)
{
    REQUIRE(op->used <= op->room);
    if (op->parts && !op->outcome.status) {
        for (struct op *part = op->parts; part; part = part->next)
            outcome_judge(part, &part->outcome);
        parts_tell(op);
    }
    outcome_judge(op, &op->outcome);
}

/* --- operations -------------------------------------------------------------
 */

static int part_try(void *context, struct op *part)
{
    (void)context;
    part->ahead = part->route == ROUTE_GRANT ? part->outcome.status : 0;
    int rc = store_run(store, part);
    if (rc)
        problem_set_rc(store, part, rc);
    return 0;
}

/* As the writer does. */
static void op_write(struct op *op)
{
    REQUIRE(store_begin(store) == SQLITE_OK);
    if (op->parts)
        REQUIRE(parts_run(store, op, part_try, NULL) == SQLITE_OK);
    else
        part_try(NULL, op);
    op_judge(op);
    store_rollback(store);
}

static void op_try(struct op *op, const struct request *request)
{
    if (op_streams(op, request))
        return;
    if (op->route->writes) {
        op_write(op);
        return;
    }
    int rc = op->route == ROUTE_METRICS ? metrics_tell(reader, op)
                                        : store_run(reader, op);
    if (rc)
        problem_set_rc(reader, op, rc);
    op_judge(op);
}

/* --- input ------------------------------------------------------------------
 */

/* A line of the input as a text of its own, or NULL. */
static char *line_take(struct input *in, bool wanted)
{
    const uint8_t *from = in->at;
    if (!wanted)
        return NULL;
    while (input_left(in) && *in->at != '\n')
        in->at++;
    char *line = strndup((const char *)from, (size_t)(in->at - from));
    REQUIRE(line);
    in->at += input_left(in);
    return line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, data + size};
    unsigned letter = input_byte(&in), flags = input_byte(&in);
    if (letter < 'a' || letter > 'm')
        return 0;
    struct http http = {.route = &ROUTES[letter - 'a'], .query = ""};
    char *key = line_take(&in, flags & FLAG_KEY);
    char *actor = line_take(&in, flags & FLAG_ACTOR);
    char *rest = strndup((const char *)in.at, (size_t)(in.end - in.at));
    struct request request = {
        .method = http.route->post ? "POST" : "GET",
        .idempotency_key = key,
        .remote_user = actor,
        .accept = flags & FLAG_STREAM ? "text/event-stream" : NULL,
        .last_event_id = key,
    };
    if (http.route->post) {
        request.body = (char *)(uintptr_t)in.at;
        request.body_len = (size_t)(in.end - in.at);
    } else {
        http.query = rest;
    }
    struct op *op = op_for(&workers, &request, &http);
    REQUIRE(op);
    op->group = flags & FLAG_WORKER ? GROUP_WORKERS : GROUP_ADMINS;
    if (op_fill(reader, op, &request, &http))
        op_try(op, &request);
    else
        outcome_judge(op, &op->outcome);
    op_free(op);
    free(rest);
    free(key);
    free(actor);
    return 0;
}
