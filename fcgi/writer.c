/*
 * writer.c: the one thread that changes the database.
 *
 * HOW IT WORKS: nothing of a batch is answered before COMMIT, refusals
 * included, for they may rest on a grant of the same batch. An operation that
 * fails alone spoils nobody: SQLite undoes its statement and the transaction
 * goes on. When SQLite undid the whole transaction (a full disk shows at
 * COMMIT), each operation runs once more in one of its own.
 *
 * SPDX-License-Identifier: MIT
 */
#include "writer.h"

#include <sqlite3.h>

#include "checkpointer.h"
#include "clock.h"
#include "limits.h"
#include "log.h"
#include "problem.h"
#include "turns.h"
#include "watch.h"

enum { OVERDUE_STOPPING_MS = 500, FEW = 4 };

/* Count n requests as taken, with more operations in them, or, below 0, as
 * done. Returns how many requests there were before. */
static int64_t queued_add(struct writer *writer, int64_t n, int64_t more)
{
    if (more)
        stat_add(writer->stats, STAT_queued_more, more);
    return stat_add(writer->stats, STAT_queued, n);
}

bool writer_submit(struct writer *writer, struct op *op)
{
    struct chain chain = {0};
    int64_t more = (int64_t)op->more;
    if (queued_add(writer, 1, more) >= QUEUE_MAX ||
        (more && stat_get(writer->stats, STAT_queued_more) > MORE_MAX)) {
        queued_add(writer, -1, -more);
        return false;
    }
    op->queued_ms = op->wait.since_ms = clock_ms();
    if (op->route == ROUTE_GRANT)
        op->wait.deadline_ms = op->queued_ms + value_ms(op_field(op, "wait"));
    chain_add(&chain, op);
    queue_put(&writer->queue, &chain);
    return true;
}

/* Answer operations: a few at once, which never blocks; of many, or of those
 * in a POST /v1/batch, the answering thread sends the answers while the next
 * batch runs. */
static void writer_finish(struct writer *writer, struct chain *chain)
{
    if (!chain->n)
        return;
    queued_add(writer, -(int64_t)chain->n, -(int64_t)chain->more);
    if (chain->n + chain->more > FEW)
        queue_put(writer->answers, chain);
    for (struct op *op = chain_take(chain); op; op = chain_take(chain))
        op_answer(op, 0);
}

/* Answer what has waited too long for a lock that somebody else holds. */
static void overdue_finish(struct writer *writer, struct chain *batch)
{
    struct chain kept = {0}, overdue = {0};
    struct op *op;
    int64_t most =
        atomic_load(&writer->stopping) ? OVERDUE_STOPPING_MS : OVERDUE_MS;
    int64_t now = clock_ms();
    while ((op = chain_take(batch))) {
        if (now - op->queued_ms < most) {
            chain_add(&kept, op);
        } else {
            problem_set(writer->store, op, "busy", NULL, NULL);
            chain_add(&overdue, op);
        }
    }
    *batch = kept;
    writer_finish(writer, &overdue);
}

/*
 * Begin a transaction for the batch, which shrinks and grows while another
 * process holds the lock. Returns SQLITE_OK, SQLITE_BUSY when the batch is
 * empty by then, or what SQLite says.
 */
static int batch_begin(struct writer *writer, struct chain *batch)
{
    int64_t start = clock_ms(), before = start, now;
    int rc;
    while (((rc = store_begin(writer->store)) & 0xff) == SQLITE_BUSY) {
        struct chain more = queue_take(&writer->queue, QUEUE_MAX, 0);
        chain_append(batch, &more);
        turns_tick(writer, batch);
        overdue_finish(writer, batch);
        now = clock_ms();
        stat_set(writer->stats, STAT_locked_ms, now - start);
        stat_add(writer->stats, STAT_busy_ms, now - before);
        before = now;
        if (!batch->n)
            break;
    }
    now = clock_ms();
    stat_add(writer->stats, STAT_busy_ms, now - before);
    int64_t waited = now - start;
    if (waited > 1000 && log_due(&writer->stats->delay_logged_ms))
        log_line("warning", "event=locked_out waited_ms=%lld",
                 (long long)waited);
    if (!rc)
        stat_set(writer->stats, STAT_locked_ms, 0);
    return rc;
}

/* Which clients are still there? All are asked for, not only those of requests
 * that were long in here: it may have been the web server that stood still. */
static void batch_look(struct writer *writer, const struct chain *batch)
{
    struct client *clients[CLIENTS_ASKED];
    size_t n = 0;
    for (struct op *op = batch->first; op; op = op->next) {
        if (op->client.family)
            clients[n++] = &op->client;
        if (n == CLIENTS_ASKED || !op->next) {
            clients_look(&writer->clients, clients, n);
            n = 0;
        }
    }
}

/* Who says all of it and closes its half at once is still answered. */
static bool op_unwanted(struct op *op, int64_t now)
{
    if (op->client.gone && !op->client.fresh)
        return true;
    return op->fd >= 0 && now - op->queued_ms > SUSPECT_MS &&
           reply_unwanted(op->fd);
}

/* A request whose client has left is not done. */
static void batch_sift(struct writer *writer, struct chain *batch)
{
    struct chain kept = {0};
    struct op *op;
    int64_t now = clock_ms();
    batch_look(writer, batch);
    while ((op = chain_take(batch))) {
        if (!op_unwanted(op, now)) {
            chain_add(&kept, op);
            continue;
        }
        queued_add(writer, -1, -(int64_t)op->more);
        problem_answer(writer->store, op, "left");
    }
    *batch = kept;
}

static int writer_commit(struct writer *writer)
{
    int64_t start = clock_us();
    int rc = store_commit(writer->store);
    int64_t took = clock_us() - start;
    if (!rc) {
        stat_set(writer->stats, STAT_commit_us, took);
        metrics_commit(&writer->stats->metrics, took);
    }
    return rc;
}

/*
 * Run all in the open transaction and commit. The batch is then what has an
 * outcome. False: nothing happened, and no transaction is open; the batch is
 * what has to be run again.
 */
static bool batch_run(struct writer *writer, struct chain *batch)
{
    struct store *store = writer->store;
    struct chain done = {0};
    int rc = turns_serve(writer, &done);
    while (!rc && batch->n)
        rc = turns_run(writer, chain_take(batch), true, &done);
    if (!rc)
        rc = turns_serve(writer, &done);
    chain_append(&done, batch);
    *batch = done;
    if (!rc)
        rc = writer_commit(writer);
    if (!rc) {
        stat_set(writer->stats, STAT_write_error, 0);
        return true;
    }
    if (log_due(&writer->stats->batch_logged_ms))
        log_line("warning",
                 "event=batch_undone operations=%zu rc=%d why=\"%s\"",
                 batch->n + batch->more, rc, store_why(store, rc));
    store_rollback(store);
    return false;
}

static bool now_take(void *context, const struct value *columns)
{
    *(int64_t *)context = columns[0].as.integer;
    return true;
}

/* A lease that ran out while it was stored is none. Returns the earliest
 * expiry of the others. */
static int64_t ops_look_at_time(struct writer *writer, struct op *op,
                                int64_t now)
{
    int64_t earliest = INT64_MAX, expires_at;
    for (; op; op = op->next) {
        if (op->parts && !op->outcome.status)
            expires_at = ops_look_at_time(writer, op->parts, now);
        else
            expires_at = op->outcome.expires_at;
        if (!expires_at)
            continue;
        if (expires_at <= now && op->outcome.status == 200)
            problem_set(writer->store, op, "too_late", NULL, NULL);
        if (expires_at < earliest)
            earliest = expires_at;
    }
    return earliest;
}

/* Look at it, and tell the sweeper of the earliest. */
static void batch_look_at_time(struct writer *writer, struct chain *batch)
{
    int64_t now = 0;
    store_query(writer->store, QUERY_NOW, NULL, 0, now_take, &now);
    int64_t earliest = ops_look_at_time(writer, batch->first, now);
    if (earliest != INT64_MAX)
        sweeper_hint(writer->sweeper, earliest);
}

static void batch_refuse(struct writer *writer, struct chain *batch, int why)
{
    store_rollback(writer->store);
    stat_set(writer->stats, STAT_write_error, why);
    for (struct op *op = batch->first; op; op = op->next)
        problem_set_rc(writer->store, op, why);
}

/* Answer all of a batch, which is committed, and tell who wants to know. */
static void batch_close(struct writer *writer, struct chain *batch)
{
    batch_look_at_time(writer, batch);
    watch_hint(writer->watchers);
    stat_add(writer->stats, STAT_batches, 1);
    int64_t operations = (int64_t)(batch->n + batch->more);
    stat_add(writer->stats, STAT_operations, operations);
    if (operations)
        metrics_batch(&writer->stats->metrics, operations);
    writer_finish(writer, batch);
}

/* Run one operation in a transaction of its own, which began with rc, and
 * commit. Nobody else is served in it: its end is the end of one. */
static void op_run_alone(struct writer *writer, int rc, struct chain *one)
{
    struct store *store = writer->store;
    if (!rc && one->n)
        rc = turns_run(writer, chain_take(one), false, one);
    if (!rc)
        rc = writer_commit(writer);
    stat_set(writer->stats, STAT_write_error, rc);
    if (!rc)
        return;
    /* The outcome first: a rollback would change what store_why() says. */
    if (one->n)
        problem_set_rc(store, one->first, rc);
    store_rollback(store);
}

/* Run each alone, whatever comes of it, and answer it. */
static void batch_run_alone(struct writer *writer, struct chain *batch)
{
    store_rollback(writer->store);
    turns_undone(writer);
    while (batch->n) {
        struct chain one = {0};
        int rc = batch_begin(writer, batch);
        if (!batch->n)
            break;
        chain_add(&one, chain_take(batch));
        batch_sift(writer, &one);
        op_run_alone(writer, rc, &one);
        batch_close(writer, &one);
    }
    turns_undone(writer);
}

static void batch_do(struct writer *writer, struct chain *batch)
{
    int rc = batch_begin(writer, batch);
    batch_sift(writer, batch);
    int moved = store_in_place(writer->store);
    if (moved)
        batch_refuse(writer, batch, moved);
    else if (rc || !batch_run(writer, batch))
        batch_run_alone(writer, batch);
    batch_close(writer, batch);
    checkpointer_hint(writer->checkpointer,
                      stat_get(writer->stats, STAT_wal_pages));
}

void *writer_main(void *context)
{
    struct writer *writer = context;
    writer->seen = -1;
    while (!queue_over(&writer->queue) || writer->waits.n > 0) {
        struct chain batch =
            queue_take(&writer->queue, BATCH_MAX, turns_sleep_ms(writer));
        turns_tick(writer, &batch);
        checkpointer_yield(writer->checkpointer);
        if (batch.n || turns_news(writer))
            batch_do(writer, &batch);
    }
    return NULL;
}
