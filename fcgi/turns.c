/*
 * turns.c: whose turn it is.
 *
 * HOW IT WORKS: while somebody waits, each transaction reads what the log has
 * new and tries the first of each line that a lease of has ended, and the next
 * after a success. So what frees a resource and the grant to the next are one
 * transaction and one fsync. With nothing to do the writer looks every
 * WAIT_LOOK_MS whether another process has written.
 *
 * SPDX-License-Identifier: MIT
 */
#include "turns.h"

#include <sqlite3.h>
#include <stdlib.h>

#include "clock.h"
#include "fields.h"
#include "limits.h"
#include "parts.h"
#include "problem.h"
#include "reply.h"
#include "writer.h"

enum { LOOKS = 25 /* at clients, every WAIT_LOOK_MS */ };

/* It waits no longer but is queued again. True: others wait behind it. */
static bool turn_leave(struct writer *writer, struct op *op)
{
    stat_add(writer->stats, STAT_waits, -1);
    stat_add(writer->stats, STAT_queued, 1);
    op->queued_ms = clock_ms();
    bool others = waits_leave(&writer->waits, op);
    if (writer->waits.n == 0)
        writer->seen = -1;
    return others;
}

/* Answer one that need not be run. */
static void turn_answer(struct writer *writer, struct op *op, const char *code)
{
    stat_add(writer->stats, STAT_queued, -1);
    problem_answer(writer->store, op, code);
}

static bool op_left(struct writer *writer, struct op *op)
{
    return reply_unwanted(op->fd) || client_gone(&writer->clients, &op->client);
}

static bool op_refused(const struct op *op)
{
    return op->route == ROUTE_GRANT && op->outcome.status == 409;
}

/* Let a refused grant wait. False: it would not, or cannot. */
static bool op_wait(struct writer *writer, struct op *op)
{
    if (!op_refused(op) || op->wait.deadline_ms <= clock_ms() ||
        atomic_load(&writer->stopping))
        return false;
    bool full =
        stats_parked(writer->stats) >= stat_get(writer->stats, STAT_parked_max);
    if (full || !waits_join(&writer->waits, op)) {
        problem_set(writer->store, op, "overloaded", NULL, NULL);
        return false;
    }
    outcome_clear(&op->outcome);
    stat_add(writer->stats, STAT_waits, 1);
    stat_add(writer->stats, STAT_queued, -1);
    return true;
}

/* A request that came again waits in the place of the first. */
static bool op_take_over(struct writer *writer, struct op *op)
{
    struct op *old = waits_twin(&writer->waits, op);
    if (!old)
        return false;
    if (!waits_same(old, op)) {
        turn_answer(writer, op, "idempotency_mismatch");
        return true;
    }
    if (!waits_replace(&writer->waits, old, op))
        return false;
    turn_answer(writer, old, "taken_over");
    return true;
}

/* --- in the transaction --------------------------------------------------- */

/* Run it; a failure of its own is its outcome. */
static int op_run(struct writer *writer, struct op *op)
{
    int rc = store_run(writer->store, op);
    if (!rc || !store_in_transaction(writer->store))
        return rc;
    if (rc != SQLITE_ERROR || !fields_outdated(writer->store, op))
        problem_set_rc(writer->store, op, rc);
    return 0;
}

/* Try the first of the line, and the next after a success. */
static int line_serve(struct writer *writer, struct line *line,
                      struct chain *done)
{
    bool others = true;
    while (others) {
        struct op *op = line->first;
        if (writer->served >= BATCH_MAX) {
            waits_ready(&writer->waits, line);
            return 0;
        }
        if (op_left(writer, op)) {
            others = turn_leave(writer, op);
            turn_answer(writer, op, "left");
            continue;
        }
        op->ahead = 0;
        int rc = op_run(writer, op);
        if (!rc && op_refused(op)) {
            outcome_clear(&op->outcome);
            return 0;
        }
        writer->served++;
        others = turn_leave(writer, op);
        chain_add(done, op);
        if (rc)
            return rc;
    }
    return 0;
}

/* Run what does not wait yet. With done those who wait before it may be
 * served. */
static int op_try(struct writer *writer, struct op *op, struct chain *done)
{
    bool grant = op->route == ROUTE_GRANT;
    bool asks = op->route == ROUTE_WAITERS;
    op->ahead = grant || asks ? waits_ahead(&writer->waits, op) : 0;
    if (asks) {
        free(op->waiters);
        op->waiters = waits_tell(&writer->waits, op_field(op, "resource"),
                                 WAITERS_TOLD, clock_ms());
    }
    int rc = op_run(writer, op);
    if (!rc && op_refused(op))
        held_note(&writer->held, op_field(op, "resource"));
    if (!rc && done && op->ahead > 0 && op_refused(op) &&
        !op->outcome.expires_at) {
        /* Nobody holds it any more: the one who has waited longest gets it. */
        rc = line_serve(
            writer, waits_line(&writer->waits, op_field(op, "resource")), done);
        op->ahead = waits_ahead(&writer->waits, op);
        if (!rc)
            rc = op_run(writer, op);
    }
    return rc;
}

struct part_context {
    struct writer *writer;
    struct chain *done;
};

static int part_run(void *context, struct op *part)
{
    struct part_context *c = context;
    return op_try(c->writer, part, c->done);
}

/* Others are not served inside of what may be undone. */
static int batch_run(struct writer *writer, struct op *op, struct chain *done)
{
    struct part_context context = {writer, op->atomic ? NULL : done};
    return parts_run(writer->store, op, part_run, &context);
}

int turns_run(struct writer *writer, struct op *op, bool serve,
              struct chain *done)
{
    struct chain *others = serve ? done : NULL;
    if (op->route == ROUTE_GRANT && op_take_over(writer, op))
        return 0;
    int rc =
        op->parts ? batch_run(writer, op, others) : op_try(writer, op, others);
    if (rc || !op_wait(writer, op))
        chain_add(done, op);
    return rc;
}

struct ended {
    struct writer *writer;
    int64_t after;
    bool missed; /* some was trimmed before it was seen */
};

static bool ended_take(void *context, const struct value *columns)
{
    struct ended *ended = context;
    struct writer *writer = ended->writer;
    struct line *line;
    writer->seen = columns[0].as.integer;
    ended->missed = columns[3].as.integer > ended->after;
    if (columns[1].type == VALUE_TEXT &&
        (line = waits_line(&writer->waits, &columns[1])))
        waits_ready(&writer->waits, line);
    if (columns[2].type == VALUE_INTEGER)
        sweeper_hint(writer->sweeper, columns[2].as.integer);
    return true;
}

static bool newest_take(void *context, const struct value *columns)
{
    ((struct writer *)context)->seen = columns[1].as.integer;
    return true;
}

/* Find the lines of which a lease has ended. */
static int ended_read(struct writer *writer)
{
    struct param params[] = {{":after", value_integer(writer->seen)}};
    struct ended ended = {writer, writer->seen, false};
    if (writer->seen >= 0) {
        int rc = store_query(writer->store, QUERY_ENDED, params, 1, ended_take,
                             &ended);
        if (ended.missed)
            waits_ready_all(&writer->waits);
        return rc;
    }
    waits_ready_all(&writer->waits);
    return store_query(writer->store, QUERY_LOG, NULL, 0, newest_take, writer);
}

int turns_serve(struct writer *writer, struct chain *done)
{
    struct line *line;
    int rc = 0;
    writer->served = 0;
    while (!rc && writer->waits.n > 0 && writer->served < BATCH_MAX &&
           !(rc = ended_read(writer)) &&
           (line = waits_ready_take(&writer->waits)))
        rc = line_serve(writer, line, done);
    if (rc && store_in_transaction(writer->store)) {
        turns_undone(writer);
        return 0;
    }
    return rc;
}

void turns_undone(struct writer *writer)
{
    writer->seen = -1;
}

/* --- between transactions ------------------------------------------------- */

/* It leaves its line. Who stands behind the first may fit where that one did
 * not. */
static void turn_quit(struct writer *writer, struct op *op)
{
    struct line *line = op->wait.line;
    bool first = op == line->first;
    if (turn_leave(writer, op) && first)
        waits_ready(&writer->waits, line);
}

static void turn_lose(struct writer *writer, struct op *op)
{
    turn_quit(writer, op);
    turn_answer(writer, op, "left");
}

static void turns_end(struct writer *writer)
{
    while (writer->waits.n > 0) {
        struct op *op = waits_next(&writer->waits);
        turn_leave(writer, op);
        turn_answer(writer, op, "stopping");
    }
}

/* Who has left loses his place. The web server does not always tell. */
static void turns_look(struct writer *writer, int64_t now)
{
    struct op *op;
    if (now - writer->looked_ms < WAIT_LOOK_MS)
        return;
    writer->looked_ms = now;
    while ((op = waits_gone(&writer->waits)))
        turn_lose(writer, op);
    for (int i = 0; i < LOOKS && (op = waits_next(&writer->waits)); i++)
        if (client_gone(&writer->clients, &op->client))
            turn_lose(writer, op);
}

void turns_tick(struct writer *writer, struct chain *batch)
{
    struct chain due = {0};
    struct op *op;
    int64_t now = clock_ms();
    if (writer->waits.n == 0)
        return;
    if (atomic_load(&writer->stopping)) {
        turns_end(writer);
        return;
    }
    turns_look(writer, now);
    while ((op = waits_due(&writer->waits, now))) {
        if (op_left(writer, op)) {
            turn_lose(writer, op);
        } else {
            turn_quit(writer, op);
            chain_add(&due, op);
        }
    }
    chain_append(&due, batch);
    *batch = due;
}

int64_t turns_sleep_ms(struct writer *writer)
{
    if (writer->waits.n == 0)
        return -1;
    if (writer->waits.ready_first)
        return 0;
    return waits_sleep_ms(&writer->waits, clock_ms(), WAIT_LOOK_MS);
}

static bool version_take(void *context, const struct value *columns)
{
    *(int64_t *)context = columns[0].as.integer;
    return true;
}

bool turns_news(struct writer *writer)
{
    int64_t before = writer->version;
    if (writer->waits.n == 0)
        return false;
    store_query(writer->store, QUERY_VERSION, NULL, 0, version_take,
                &writer->version);
    return writer->version != before || writer->seen < 0 ||
           writer->waits.ready_first;
}
