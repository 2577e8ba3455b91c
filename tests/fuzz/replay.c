/*
 * replay.c: run inputs that are kept through a fuzz target, without libFuzzer.
 *
 *     build/fuzz/request tests/fuzz/corpus/request
 *     build/fuzz/json crash-0123      one input, as libFuzzer leaves it
 *
 * A corpus is one file: its inputs one after the other, each behind its length
 * in four bytes, the first the highest, and at the beginning the line MAGIC.
 * Prints how many there were.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static const char MAGIC[] = "leasehold corpus\n";

static uint8_t *file_read(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = NULL;
    size_t room = 0;
    *size = 0;
    if (!file)
        return NULL;
    do {
        room = room ? 2 * room : 65536;
        REQUIRE(bytes = realloc(bytes, room));
        *size += fread(bytes + *size, 1, room - *size, file);
    } while (*size == room);
    fclose(file);
    return bytes;
}

/* An input in memory of its own, so that reading beyond it is seen. */
static void input_run(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    REQUIRE(copy);
    memcpy(copy, bytes, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static int corpus_run(const uint8_t *bytes, size_t size)
{
    struct input in = {bytes + sizeof MAGIC - 1, bytes + size};
    int n = 0;
    for (; input_left(&in); n++) {
        size_t length = (size_t)input_number(&in, 4), there;
        const char *one = input_bytes(&in, length, &there);
        REQUIRE(there == length);
        input_run((const uint8_t *)one, length);
    }
    return n;
}

int main(int argc, char **argv)
{
    int n = 0;
    LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++) {
        size_t size;
        uint8_t *bytes = file_read(argv[i], &size);
        if (!bytes) {
            perror(argv[i]);
            return 1;
        }
        if (size >= sizeof MAGIC - 1 &&
            memcmp(bytes, MAGIC, sizeof MAGIC - 1) == 0) {
            n += corpus_run(bytes, size);
        } else {
            input_run(bytes, size);
            n++;
        }
        free(bytes);
    }
    printf("%d inputs\n", n);
    return 0;
}
