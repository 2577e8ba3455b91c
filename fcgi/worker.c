/*
 * worker.c: the threads that accept requests and read them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "fields.h"
#include "http.h"
#include "json.h"
#include "limits.h"
#include "log.h"
#include "metrics.h"
#include "parts.h"
#include "problem.h"
#include "query.h"

enum { QUERY_JSON_MAX = 16 << 10 };

/* Room for the texts of a request: its headers, and a body's texts are never
 * longer than in their JSON. */
static struct op *op_for(struct workers *workers, const struct request *request,
                         const struct http *http)
{
    const char *key = request->idempotency_key, *user = request->remote_user;
    const char *last = request->last_event_id;
    size_t room = http->route && http->route->post ? request->body_len
                                                   : 3 * strlen(http->query);
    room += (key ? strlen(key) : 0) + (user ? strlen(user) : 0) +
            (last ? strlen(last) : 0);
    struct op *op = op_new(http->route, room);
    if (!op)
        return NULL;
    op->stats = workers->writer->stats;
    if (!request->forwarded_by)
        client_set(&op->client, request->server_addr, request->server_port,
                   request->remote_addr, request->remote_port);
    if (key)
        op_set_text(op, &op->request_id, key, strlen(key));
    if (user && *user)
        op_set_text(op, &op->actor, user, strlen(user));
    return op;
}

/* The fields of the query into op, or false with the outcome set. A POST has
 * its fields in its body: there any are wrong. */
static bool query_read(struct store *store, struct op *op, const char *query)
{
    char json[QUERY_JSON_MAX], detail[128];
    size_t length = 0, at = 0;
    const char *wrong = query_to_json(query, json, sizeof json, &length);
    if (!wrong)
        wrong = json_check(json, length, &at);
    if (!wrong)
        return fields_read(store, op, json, length, true);
    snprintf(detail, sizeof detail, "The query %s.", wrong);
    problem_set(store, op, "malformed", detail, NULL);
    return false;
}

/* The same for the body. */
static bool body_read(struct store *store, struct op *op, const char *json,
                      size_t length)
{
    char detail[128];
    size_t at = 0;
    const char *wrong = json_check(json, length, &at);
    if (!wrong)
        return op->route == ROUTE_BATCH
                   ? parts_read(store, op, json, length)
                   : fields_read(store, op, json, length, false);
    snprintf(detail, sizeof detail, "The body %s (byte %zu).", wrong, at);
    problem_set(store, op, "malformed", detail, NULL);
    return false;
}

static bool op_fill(struct store *store, struct op *op,
                    const struct request *request, const struct http *http)
{
    if (!op->route->post)
        return query_read(store, op, http->query);
    return (!*http->query || query_read(store, op, http->query)) &&
           body_read(store, op, request->body, request->body_len);
}

/* Does the request want a stream of events? What it had last then counts more
 * than what its address says. */
static bool op_streams(struct op *op, const struct request *request)
{
    const char *accept = request->accept, *last = request->last_event_id;
    if (route_field(op->route, "wait") < 0 || op->route->post || !accept ||
        !strcasestr(accept, "text/event-stream") ||
        strcmp(request->method, "GET") != 0)
        return false;
    if (last && *last)
        op_set_text(op, op_field(op, "after"), last, strlen(last));
    return op->stream = true;
}

/* May a request that found nothing be parked? */
static bool op_waits(struct op *op, const struct request *request)
{
    if (op->outcome.status != 204)
        return false;
    if (strcmp(request->method, "GET") == 0)
        return true;
    op->outcome.status = 200;
    return false;
}

/*
 * Is a grant refused by what a reader sees? It is asked only where one was
 * refused lately, and nobody waits: who waits is known to the writer alone. A
 * repeated request may have what it asks for already.
 */
static bool op_held(struct workers *workers, struct store *store, struct op *op)
{
    struct writer *writer = workers->writer;
    if (op->route != ROUTE_GRANT || op->request_id.type != VALUE_NULL ||
        value_ms(op_field(op, "wait")) > 0 ||
        !held_lately(&writer->held, op_field(op, "resource")) ||
        stat_get(writer->stats, STAT_waits) > 0)
        return false;
    op->look = true;
    int rc = store_in_place(store);
    if (!rc)
        rc = store_run(store, op);
    op->look = false;
    if (!rc && op->outcome.status == 409)
        return true;
    outcome_clear(&op->outcome);
    return false;
}

/*
 * Do what can be done with a reader. Returns true when the operation has its
 * outcome, false when it is for the writer or to be parked.
 */
static bool op_read(struct workers *workers, struct op *op,
                    const struct request *request, const struct http *http,
                    const char *problem)
{
    struct store *store = readers_take(workers->readers);
    bool done = true;
    if (problem) {
        problem_set(store, op, problem, NULL, NULL);
    } else if (op_fill(store, op, request, http)) {
        done = op->route->writes ? op_held(workers, store, op)
                                 : !op_streams(op, request);
        bool reads = done && !op->outcome.status;
        int rc = op->route->writes ? 0 : store_in_place(store);
        if (reads && !rc)
            rc = op->route == ROUTE_METRICS ? metrics_tell(store, op)
                                            : store_run(store, op);
        if (rc)
            problem_set_rc(store, op, rc);
        done = (rc || done) && !op_waits(op, request);
    }
    readers_give(workers->readers, store);
    return done;
}

static void op_submit(struct workers *workers, struct op *op)
{
    const char *code = "overloaded";
    if (op->route->writes ? writer_submit(workers->writer, op)
                          : watch_submit(workers->watch, op, &code))
        return;
    struct store *store = readers_take(workers->readers);
    problem_answer(store, op, code);
    readers_give(workers->readers, store);
}

/* OPTIONS, and refusals that say which methods there are. */
static void allow_answer(struct op *op, bool options)
{
    struct reply reply = {
        .status = options ? 204 : op->outcome.status,
        .body = options ? NULL : op->outcome.body,
        .length = op->outcome.length,
        .allow = route_allow(op->route),
        .request_id = op->name,
    };
    metrics_answered(op);
    reply_send(op->fd, op->id, &reply, PEER_MS);
    op->fd = -1;
    op_free(op);
}

/* Refuse a request that there is not even memory for. */
static void memory_answer(struct workers *workers, struct request *request,
                          const struct route *route, const char *request_id)
{
    static const char BODY[] =
        "{\"type\":\"about:blank\",\"title\":\"Service Unavailable\","
        "\"status\":503,\"code\":\"overloaded\","
        "\"detail\":\"There is no memory left; nothing was changed.\"}";
    struct reply reply = {
        .status = 503,
        .body = BODY,
        .length = sizeof BODY - 1,
        .retry_after = 1,
        .request_id = request_id,
    };
    int id, fd = request_take(request, &id);
    problem_log(workers->writer->stats, route, 0, &reply);
    reply_send(fd, id, &reply, PEER_MS);
}

static void request_serve(struct workers *workers, struct request *request)
{
    struct http http;
    char name[REQUEST_ID_MAX + 1];
    enum group group = groups_of(&workers->groups, request->remote_user);
    const char *problem = http_judge(request, workers->hosts, group, &http);
    struct op *op = op_for(workers, request, &http);
    http_request_id(request, atomic_fetch_add(&workers->next_number, 1),
                    op ? op->name : name);
    if (!op) {
        memory_answer(workers, request, http.route, name);
        return;
    }
    op->group = group;
    bool done = http.options || op_read(workers, op, request, &http, problem);
    op->fd = request_take(request, &op->id);
    if (http.options || (problem && op->outcome.status == 405))
        allow_answer(op, http.options);
    else if (done)
        op_answer(op, PEER_MS);
    else
        op_submit(workers, op);
}

static bool worker_late(struct workers *workers)
{
    int64_t stop_by_ms = atomic_load(&workers->stop_by_ms);
    return stop_by_ms && clock_ms() >= stop_by_ms;
}

void *worker_main(void *context)
{
    struct workers *workers = context;
    struct request *request = request_new();
    while (request && !worker_late(workers)) {
        if (request_accept(request, workers->listen_fd) == 0) {
            request_serve(workers, request);
            continue;
        }
        if (atomic_load(&workers->stop_by_ms) && errno != ECONNABORTED)
            break;
        if (errno == ECONNABORTED || errno == EINTR || errno == EAGAIN)
            continue;
        if (log_due(&workers->accept_logged_ms))
            log_line("error", "event=accept_failed errno=%d", errno);
        usleep(10000); /* Out of descriptors, most likely. */
    }
    request_free(request);
    return NULL;
}

void *answer_main(void *context)
{
    for (;;) {
        struct chain chain = queue_take(context, QUEUE_MAX, -1);
        struct op *op;
        if (!chain.n)
            return NULL;
        /* What a batch came to may be more than there is room for at once. */
        while ((op = chain_take(&chain)))
            op_answer(op, op->parts ? PEER_MS : 0);
    }
}
