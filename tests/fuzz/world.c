/*
 * world.c: what the fuzz targets share: a clock that stands still, a folder in
 * memory, and the reading of an input.
 *
 * SPDX-License-Identifier: MIT
 */
#include <ftw.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../ext/clock.h"
#include "fuzz.h"

/* --- the engine's clock ----------------------------------------------------
 */

static struct clock_reading clock_at;

void fuzz_clock_set(int64_t boottime_ms, int64_t wall_ms, int boot)
{
    clock_at.boottime_ms = boottime_ms;
    clock_at.wall_ms = wall_ms;
    snprintf(clock_at.boot_id, sizeof clock_at.boot_id, "boot-%d", boot);
}

void fuzz_clock_advance(int64_t ms)
{
    clock_at.boottime_ms += ms;
    clock_at.wall_ms += ms;
}

bool clock_read(struct clock_reading *reading)
{
    *reading = clock_at;
    return true;
}

int64_t clock_boottime_ms(int64_t *later)
{
    *later = clock_at.boottime_ms;
    return clock_at.boottime_ms;
}

/* --- failing ---------------------------------------------------------------
 */

void fuzz_fail(const char *file, int line, const char *holds, const char *seen)
{
    fprintf(stderr, "%s:%d: does not hold: %s\n%s\n", file, line, holds, seen);
    abort();
}

/* --- a folder in memory ----------------------------------------------------
 */

static char folder[64];

static int folder_drop(const char *path, const struct stat *stat, int type,
                       struct FTW *ftw)
{
    (void)stat;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void folder_remove(void)
{
    nftw(folder, folder_drop, 8, FTW_DEPTH | FTW_PHYS);
}

const char *fuzz_path(const char *name)
{
    static char path[128];
    if (!*folder) {
        const char *base = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
        snprintf(folder, sizeof folder, "%s/leasehold-fuzz-XXXXXX", base);
        REQUIRE(mkdtemp(folder));
        atexit(folder_remove);
    }
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* --- the input -------------------------------------------------------------
 */

uint64_t input_number(struct input *in, int bytes)
{
    uint64_t number = 0;
    while (bytes-- > 0)
        number = number << 8 | input_byte(in);
    return number;
}

const char *input_bytes(struct input *in, size_t n, size_t *length)
{
    const char *bytes = (const char *)in->at;
    size_t left = (size_t)(in->end - in->at);
    *length = n < left ? n : left;
    in->at += *length;
    return bytes;
}

/* --- options of the sanitizers ---------------------------------------------
 */

/* What they look at less is worth the speed while searching: to look at a
 * finding, ASAN_OPTIONS=malloc_context_size=30 overrides it. */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
    return "malloc_context_size=0:quarantine_size_mb=1:max_malloc_fill_size=0:"
           "thread_local_quarantine_size_kb=64:detect_stack_use_after_return=0:"
           "allocator_release_to_os_interval_ms=-1";
}

/* Without a sanitizer: memory that is given back after each input comes again
 * by page faults. */
__attribute__((constructor)) static void memory_keep(void)
{
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    mallopt(M_TOP_PAD, 16 << 20);
    mallopt(M_MMAP_THRESHOLD, 64 << 20);
}
