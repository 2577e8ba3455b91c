/*
 * story.h: the life of a database that is recorded: all that an SQL host or
 * the service does to it, in an order that a seed repeats.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef STORY_H
#define STORY_H

#include "judge.h"

struct way {
    const char *name;
    const char *what;    /* in a sentence, for a person */
    const char *pragmas; /* of each connection */
    bool service;        /* the log in one piece, and a second connection that
                          * checkpoints it */
    bool fence;          /* the database that is written to, not of leases */
    bool lies;           /* the disk does not do what it is asked */
    bool sound;          /* nothing may be lost */
};

extern const struct way ways[];

/* The way of that name, or NULL. */
const struct way *way_find(const char *name);

/* Live `steps` steps on path while disk records, and note each acknowledged
 * state. Ends the program when something goes wrong that should not. */
void story_live(const struct way *way, uint64_t seed, int steps,
                const char *path, struct disk *disk, struct book *book);

#endif
