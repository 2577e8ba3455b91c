/*
 * held.h: which resources were refused to somebody lately, so that the next
 * who asks may be refused by what a reader sees, without the writer.
 *
 * It is a hint: two resources may share a place, and nothing is decided here.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef HELD_H
#define HELD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "limits.h"
#include "op.h"

struct held {
    _Atomic int64_t refused_ms[HELD_PLACES]; /* clock_ms(), 0: never */
};

/* The resource was refused just now. */
void held_note(struct held *held, const struct value *resource);

/* Was it in the last HELD_MS? */
bool held_lately(struct held *held, const struct value *resource);

#endif
