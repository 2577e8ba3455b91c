/*
 * crash.h: what a recording may leave behind when the power fails.
 *
 *     crash_start(&crash, &disk);
 *     while (crash_step(&crash))         one operation further
 *         for (i = 0; crash_fate(&crash, i, &fate); i++)
 *             crash_image(&crash, &fate, image);
 *     crash_end(&crash);
 *
 * What was synced is there. Of everything else any part may be there: whole
 * operations, sectors of them, sizes without the data, and noise where a file
 * has grown.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CRASH_H
#define CRASH_H

#include "disk.h"

enum { CRASH_PENDING_MAX = 4096 };

struct crash {
    const struct disk *disk;
    int at;                         /* operations that have happened */
    struct content *durable;        /* of each file, what is certain */
    int names[DISK_NAMES];          /* the certain file of each name, or -1 */
    int pending[CRASH_PENDING_MAX]; /* operations that are not certain */
    int n;
    int whole; /* up to so many, all subsets are tried */
    int dice;  /* how many random fates a crash point gets */
    uint64_t seed;
};

/* What becomes of the operations that are not certain. */
struct fate {
    enum { FATE_SUBSET, FATE_RANDOM, FATE_TORN, FATE_GROWN, FATE_NOISE } kind;
    uint64_t subset; /* bit i: pending[i] survives */
    uint64_t seed;
    int sector; /* of TORN and NOISE */
};

/* The file of each name; size -1: none. */
struct image {
    struct content file[DISK_NAMES];
    uint64_t hash;
};

void crash_start(struct crash *crash, const struct disk *disk, uint64_t seed);
void crash_end(struct crash *crash);
bool crash_step(struct crash *crash);

/* The fate of that number at this point, or false when there are no more. */
bool crash_fate(const struct crash *crash, int number, struct fate *fate);
void crash_image(const struct crash *crash, const struct fate *fate,
                 struct image *image);
void image_free(struct image *image);

/* The fate in words, for a person who must repeat it. */
void fate_tell(const struct crash *crash, const struct fate *fate, char *text,
               size_t size);

/* Random numbers that a seed repeats. */
uint64_t dice_roll(uint64_t *seed);

#endif
