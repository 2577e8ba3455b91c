/*
 * active.h: the eponymous table lease_active.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEASE_ACTIVE_H
#define LEASE_ACTIVE_H

#include "engine.h"

/* Register lease_active; it holds a reference to the engine. */
int active_register(struct engine *engine);

#endif
