/*
 * op.c: one operation, made, answered and freed.
 *
 * SPDX-License-Identifier: MIT
 */
#include "op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "metrics.h"
#include "parts.h"
#include "problem.h"

/* For the case that not even a body could be made. */
static const char NO_BODY[] =
    "{\"type\":\"about:blank\",\"status\":500,\"code\":\"internal\","
    "\"title\":\"Internal Server Error\","
    "\"detail\":\"The service failed; its log says how.\"}";

struct value value_text(const char *text)
{
    struct value value = {0};
    if (text) {
        value.type = VALUE_TEXT;
        value.as.text = text;
        value.length = strlen(text);
    }
    return value;
}

struct value value_integer(int64_t integer)
{
    return (struct value){.type = VALUE_INTEGER, .as.integer = integer};
}

int64_t value_ms(const struct value *value)
{
    switch (value->type) {
    case VALUE_INTEGER:
        return value->as.integer * 1000;
    case VALUE_REAL:
        return (int64_t)(value->as.real * 1000);
    case VALUE_TEXT: {
        char text[32];
        snprintf(text, sizeof text, "%.*s", (int)value->length, value->as.text);
        return (int64_t)(strtod(text, NULL) * 1000);
    }
    default:
        return 0;
    }
}

struct value *op_field(struct op *op, const char *name)
{
    return &op->value[route_field(op->route, name)];
}

struct op *op_new(const struct route *route, size_t room)
{
    struct op *op = malloc(sizeof *op + room);
    if (!op)
        return NULL;
    memset(op, 0, sizeof *op);
    op->route = route;
    op->fd = -1;
    op->room = room;
    op->began_us = clock_us();
    return op;
}

bool op_split(struct op *op, size_t n)
{
    op->parts = n ? calloc(n, sizeof *op->parts) : NULL;
    if (!op->parts)
        return false;
    for (size_t i = 0; i < n; i++) {
        op->parts[i].fd = -1;
        op->parts[i].next = i + 1 < n ? &op->parts[i + 1] : NULL;
    }
    op->more = n - 1;
    return true;
}

void op_free(struct op *op)
{
    if (!op)
        return;
    if (op->fd >= 0)
        close(op->fd);
    if (op->finished)
        atomic_store(op->finished, true);
    for (struct op *part = op->parts; part; part = part->next)
        outcome_clear(&part->outcome);
    free(op->parts);
    outcome_clear(&op->outcome);
    free(op->waiters);
    free(op);
}

void op_set_text(struct op *op, struct value *value, const char *text,
                 size_t length)
{
    if (length > op->room - op->used)
        length = op->room - op->used;
    value->type = VALUE_TEXT;
    value->as.text = op->text + op->used;
    value->length = length;
    memcpy(op->text + op->used, text, length);
    op->used += length;
}

void outcome_clear(struct outcome *outcome)
{
    free(outcome->body);
    *outcome = (struct outcome){0};
}

/* Of a batch that was answered the first part that failed stands for all. */
static void answer_log(const struct op *op, const struct reply *reply)
{
    if (op->fd < 0 || !op->stats)
        return;
    if (reply->status >= 500) {
        problem_log(op->stats, op->route, op->outcome.rc, reply);
        return;
    }
    for (const struct op *part = op->parts; part; part = part->next) {
        const struct outcome *outcome = &part->outcome;
        if (outcome->status >= 500) {
            struct reply told = {.status = outcome->status,
                                 .body = outcome->body,
                                 .length = outcome->length,
                                 .request_id = op->name};
            problem_log(op->stats, part->route, outcome->rc, &told);
            return;
        }
    }
}

void op_answer(struct op *op, int wait_ms)
{
    metrics_answered(op);
    if (op->parts && !op->outcome.status)
        parts_tell(op);
    struct reply reply = {
        .status = op->outcome.status,
        .body = op->outcome.body,
        .length = op->outcome.length,
        .type = op->outcome.type,
        .retry_after = op->outcome.retry_after,
        .request_id = op->name,
    };
    if (!reply.status || !reply.body) {
        reply.status = 500;
        reply.body = NO_BODY;
        reply.length = sizeof NO_BODY - 1;
    }
    answer_log(op, &reply);
    if (op->fd >= 0)
        reply_send(op->fd, op->id, &reply, wait_ms);
    op->fd = -1;
    op_free(op);
}
