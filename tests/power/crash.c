/*
 * crash.c: from a recording to the files that may survive.
 *
 * SPDX-License-Identifier: MIT
 */
#include "crash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t dice_roll(uint64_t *seed)
{
    uint64_t x = *seed += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t seed = a * 0x100000001b3u + b;
    return dice_roll(&seed);
}

void crash_start(struct crash *crash, const struct disk *disk, uint64_t seed)
{
    memset(crash, 0, sizeof *crash);
    crash->disk = disk;
    crash->seed = seed;
    crash->whole = 4;
    crash->dice = 6;
    crash->durable =
        disk_alloc(NULL, (size_t)disk->files * sizeof *crash->durable);
    memset(crash->durable, 0, (size_t)disk->files * sizeof *crash->durable);
    for (int name = 0; name < DISK_NAMES; name++) {
        int file = crash->names[name] = disk->base_file[name];
        if (file >= 0)
            content_write(&crash->durable[file], disk->base[name].data, 0,
                          disk->base[name].size);
    }
}

void crash_end(struct crash *crash)
{
    for (int file = 0; file < crash->disk->files; file++)
        free(crash->durable[file].data);
    free(crash->durable);
}

static void op_apply(struct content *content, const struct disk_op *op)
{
    if (op->kind == DISK_WRITE)
        content_write(content, op->data, op->at, op->size);
    else if (op->kind == DISK_TRUNCATE)
        content_truncate(content, op->size);
}

static void name_apply(int *names, const struct disk_op *op)
{
    if (op->kind == DISK_CREATE)
        names[op->name] = op->file;
    else if (names[op->name] == op->file)
        names[op->name] = -1;
}

static bool of_folder(const struct disk_op *op)
{
    return op->kind == DISK_CREATE || op->kind == DISK_UNLINK;
}

/* A sync: what it is for is certain now. */
static void settle(struct crash *crash, const struct disk_op *sync)
{
    int kept = 0;
    for (int i = 0; i < crash->n; i++) {
        const struct disk_op *op = &crash->disk->ops[crash->pending[i]];
        if (sync->kind == DISK_DIRSYNC && of_folder(op))
            name_apply(crash->names, op);
        else if (sync->kind == DISK_SYNC && !of_folder(op) &&
                 op->file == sync->file)
            op_apply(&crash->durable[op->file], op);
        else
            crash->pending[kept++] = crash->pending[i];
    }
    crash->n = kept;
}

bool crash_step(struct crash *crash)
{
    if (crash->at == crash->disk->n)
        return false;
    const struct disk_op *op = &crash->disk->ops[crash->at];
    if (op->kind == DISK_SYNC || op->kind == DISK_DIRSYNC) {
        settle(crash, op);
    } else {
        if (crash->n == CRASH_PENDING_MAX)
            abort();
        crash->pending[crash->n++] = crash->at;
    }
    crash->at++;
    return true;
}

/* --- fates ---------------------------------------------------------------- */

bool crash_fate(const struct crash *crash, int number, struct fate *fate)
{
    *fate = (struct fate){
        .seed = mix(mix(crash->seed, (uint64_t)crash->at), (uint64_t)number),
        .sector = number % 2 ? 512 : 4096};
    int subsets = crash->n <= crash->whole ? 1 << crash->n : 2;
    if (number < subsets) {
        fate->kind = FATE_SUBSET;
        fate->subset = subsets > 2 || !number ? (uint64_t)number : UINT64_MAX;
        return true;
    }
    number -= subsets;
    if (crash->n == 0 || number >= crash->dice)
        return false;
    static const int kinds[] = {FATE_TORN,  FATE_RANDOM, FATE_GROWN,
                                FATE_NOISE, FATE_RANDOM, FATE_TORN};
    fate->kind = (unsigned)kinds[number % 6];
    return true;
}

static bool op_survives(const struct fate *fate, int i)
{
    uint64_t seed = mix(fate->seed, (uint64_t)i);
    switch (fate->kind) {
    case FATE_SUBSET:
        return i < 64 ? fate->subset >> i & 1 : fate->subset == UINT64_MAX;
    case FATE_RANDOM: /* one fate in three loses much, one little */
        return dice_roll(&seed) % 8 < 1 + fate->seed % 3 * 3;
    case FATE_GROWN:
        return false;
    default:
        return dice_roll(&seed) % 8 != 0;
    }
}

/* Some sectors of a write; noise where the others are beyond the old end. */
static void write_torn(struct content *content, const struct fate *fate, int i,
                       const struct disk_op *op, int64_t certain)
{
    int64_t from = op->at, end = op->at + op->size;
    uint64_t seed = mix(fate->seed, (uint64_t)i);
    while (from < end) {
        int64_t to = (from / fate->sector + 1) * fate->sector;
        to = to < end ? to : end;
        if (dice_roll(&seed) % 4 != 0) {
            content_write(content, op->data + (from - op->at), from, to - from);
        } else if (fate->kind == FATE_NOISE && from >= certain) {
            content_write(content, op->data, from, to - from);
            for (int64_t at = from; at < to; at++)
                content->data[at] = (unsigned char)dice_roll(&seed);
        }
        from = to;
    }
}

static void op_befall(struct content *content, const struct fate *fate, int i,
                      const struct disk_op *op, int64_t certain)
{
    if (op_survives(fate, i)) {
        bool torn = fate->kind == FATE_TORN || fate->kind == FATE_NOISE;
        if (torn && op->kind == DISK_WRITE)
            write_torn(content, fate, i, op, certain);
        else
            op_apply(content, op);
    } else if (fate->kind == FATE_GROWN && op->kind == DISK_WRITE &&
               op->at + op->size > content->size) {
        content_truncate(content, op->at + op->size);
    }
}

static void hash_add(uint64_t *hash, const unsigned char *data, int64_t size)
{
    uint64_t h = *hash ^ (uint64_t)(size + 7), word;
    for (; size >= 8; size -= 8, data += 8) {
        memcpy(&word, data, 8);
        h = (h ^ word) * 0x9fb21c651e98df25u;
        h ^= h >> 29;
    }
    for (; size > 0; size--, data++)
        h = (h ^ *data) * 0x100000001b3u;
    *hash = h;
}

void crash_image(const struct crash *crash, const struct fate *fate,
                 struct image *image)
{
    int names[DISK_NAMES];
    const struct disk_op *ops = crash->disk->ops;
    memcpy(names, crash->names, sizeof names);
    for (int i = 0; i < crash->n; i++)
        if (of_folder(&ops[crash->pending[i]]) && op_survives(fate, i))
            name_apply(names, &ops[crash->pending[i]]);
    image->hash = 0;
    for (int name = 0; name < DISK_NAMES; name++) {
        struct content *content = &image->file[name];
        int file = names[name];
        content->size = file < 0 ? -1 : 0;
        if (file >= 0) {
            int64_t certain = crash->durable[file].size;
            content_truncate(content, 0);
            if (certain)
                content_write(content, crash->durable[file].data, 0, certain);
            for (int i = 0; i < crash->n; i++) {
                const struct disk_op *op = &ops[crash->pending[i]];
                if (!of_folder(op) && op->file == file)
                    op_befall(content, fate, i, op, certain);
            }
        }
        hash_add(&image->hash, content->data, content->size);
    }
}

void image_free(struct image *image)
{
    for (int name = 0; name < DISK_NAMES; name++)
        free(image->file[name].data);
}

void fate_tell(const struct crash *crash, const struct fate *fate, char *text,
               size_t size)
{
    static const char *const kinds[] = {"subset", "random", "torn", "grown",
                                        "noise"};
    int n = snprintf(text, size, "%s (%llx, sector %d) of", kinds[fate->kind],
                     (unsigned long long)fate->subset, fate->sector);
    for (int i = 0; i < crash->n && n > 0 && (size_t)n < size; i++) {
        static const char *const verbs[] = {"write",  "truncate", "sync",
                                            "create", "unlink",   "dirsync"};
        const struct disk_op *op = &crash->disk->ops[crash->pending[i]];
        n += snprintf(text + n, size - (size_t)n, " %s#%d@%lld+%lld",
                      verbs[op->kind], op->file, (long long)op->at,
                      (long long)op->size);
    }
}
