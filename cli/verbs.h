/*
 * verbs.h: what the program can be told to do.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef VERBS_H
#define VERBS_H

#include "options.h"

/* Both return the program's exit status. */
int verb_run(const struct verb *verb, struct options *options);
/* Every verb but run: ask, and print what is answered. */
int verb_ask(const struct verb *verb, struct options *options);

#endif
