/*
 * fuzz.h: what the fuzz targets share.
 *
 * A target is one file with LLVMFuzzerInitialize() and
 * LLVMFuzzerTestOneInput(). Linked with libFuzzer it searches (make fuzz),
 * linked with replay.c it runs what was found before (make test).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process with what is wrong, unless it holds. */
#define REQUIRE(holds)                                                         \
    ((holds) ? (void)0 : fuzz_fail(__FILE__, __LINE__, #holds, ""))
#define REQUIRE_BUT(holds, seen)                                               \
    ((holds) ? (void)0 : fuzz_fail(__FILE__, __LINE__, #holds, seen))
_Noreturn void fuzz_fail(const char *file, int line, const char *holds,
                         const char *seen);

/* A path in a folder of this process in memory, made and removed by itself. */
const char *fuzz_path(const char *name);

/* The input, taken byte by byte; behind its end there are zeros. */
struct input {
    const uint8_t *at, *end;
};
static inline bool input_left(const struct input *in)
{
    return in->at < in->end;
}
static inline unsigned input_byte(struct input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}
uint64_t input_number(struct input *in, int bytes);
/* Up to n bytes, as many as there are. */
const char *input_bytes(struct input *in, size_t n, size_t *length);

/* The engine's clocks, in place of ext/clock.c: they stand still. */
void fuzz_clock_set(int64_t boottime_ms, int64_t wall_ms, int boot);
void fuzz_clock_advance(int64_t ms);

#endif
