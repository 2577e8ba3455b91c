/*
 * held.c: which resources were refused lately.
 *
 * SPDX-License-Identifier: MIT
 */
#include "held.h"

#include "clock.h"

/* FNV-1a. */
static _Atomic int64_t *place(struct held *held, const struct value *resource)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < resource->length; i++)
        hash = (hash ^ (unsigned char)resource->as.text[i]) * 16777619u;
    return &held->refused_ms[hash % HELD_PLACES];
}

void held_note(struct held *held, const struct value *resource)
{
    atomic_store_explicit(place(held, resource), clock_ms(),
                          memory_order_relaxed);
}

bool held_lately(struct held *held, const struct value *resource)
{
    int64_t at =
        atomic_load_explicit(place(held, resource), memory_order_relaxed);
    return at && clock_ms() - at < HELD_MS;
}
