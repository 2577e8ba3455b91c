/*
 * tail.h: the newest events of the log, in memory, each told once in JSON, for
 * all who watch.
 *
 * Holds every event behind number from, up to number to, and forgets the
 * oldest when it has TAIL_EVENTS or TAIL_BYTES. Belongs to one thread.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TAIL_H
#define TAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "limits.h"
#include "op.h"

struct tail_event {
    int64_t token;
    uint32_t hash; /* of the resource */
    uint32_t json_n, resource_n;
    char text[]; /* JSON, then the resource */
};

struct tail {
    int64_t from, to;
    struct tail_event *ring[TAIL_EVENTS];
    size_t first, n; /* of ring */
    size_t bytes;
};

/* Forget everything and go on behind number at. */
void tail_restart(struct tail *tail, int64_t at);

/* Add the next event. Without memory the tail begins anew behind it. */
void tail_add(struct tail *tail, int64_t token, const struct value *resource,
              const struct value *json);

/* The place of the first event behind number after, which is not before
 * from; events have the places up to n - 1. */
size_t tail_find(const struct tail *tail, int64_t after);
const struct tail_event *tail_at(const struct tail *tail, size_t place);

/* A number of a resource, to tell most of them apart quickly. */
uint32_t tail_hash(const struct value *resource);

/* Is the event of this resource, which has this hash? NULL: of any? */
bool tail_event_is(const struct tail_event *event, uint32_t hash,
                   const struct value *resource);

#endif
