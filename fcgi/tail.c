/*
 * tail.c: the newest events of the log, in memory.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tail.h"

#include <stdlib.h>
#include <string.h>

static void tail_forget_first(struct tail *tail)
{
    struct tail_event *event = tail->ring[tail->first];
    tail->from = event->token;
    tail->bytes -= event->json_n + event->resource_n;
    tail->first = (tail->first + 1) % TAIL_EVENTS;
    tail->n--;
    free(event);
}

void tail_restart(struct tail *tail, int64_t at)
{
    while (tail->n > 0)
        tail_forget_first(tail);
    tail->from = tail->to = at;
}

void tail_add(struct tail *tail, int64_t token, const struct value *resource,
              const struct value *json)
{
    struct tail_event *event =
        malloc(sizeof *event + json->length + resource->length);
    if (!event) {
        tail_restart(tail, token);
        return;
    }
    event->token = token;
    event->hash = tail_hash(resource);
    event->json_n = (uint32_t)json->length;
    event->resource_n = (uint32_t)resource->length;
    memcpy(event->text, json->as.text, json->length);
    if (resource->length)
        memcpy(event->text + json->length, resource->as.text, resource->length);
    while (tail->n == TAIL_EVENTS || (tail->n > 0 && tail->bytes > TAIL_BYTES))
        tail_forget_first(tail);
    tail->ring[(tail->first + tail->n++) % TAIL_EVENTS] = event;
    tail->bytes += event->json_n + event->resource_n;
    tail->to = token;
}

size_t tail_find(const struct tail *tail, int64_t after)
{
    size_t low = 0, high = tail->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (tail_at(tail, middle)->token > after)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

const struct tail_event *tail_at(const struct tail *tail, size_t place)
{
    return tail->ring[(tail->first + place) % TAIL_EVENTS];
}

uint32_t tail_hash(const struct value *resource)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < resource->length; i++)
        hash = (hash ^ (unsigned char)resource->as.text[i]) * 16777619u;
    return hash;
}

bool tail_event_is(const struct tail_event *event, uint32_t hash,
                   const struct value *resource)
{
    return resource->type == VALUE_NULL ||
           (event->hash == hash && event->resource_n == resource->length &&
            memcmp(event->text + event->json_n, resource->as.text,
                   resource->length) == 0);
}
