/*
 * fsyncs.c: counts how often a program has its writes stored for good.
 *
 *     LD_PRELOAD=build/bench/fsyncs.so BENCH_FSYNCS=file program
 *
 * The file, of 8 bytes, has the number.
 *
 * SPDX-License-Identifier: MIT
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic int64_t *count;

__attribute__((constructor)) static void count_open(void)
{
    const char *path = getenv("BENCH_FSYNCS");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *at =
        mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    count = at == MAP_FAILED ? NULL : at;
}

static int sync_as(long number, int fd)
{
    if (count)
        atomic_fetch_add(count, 1);
    return (int)syscall(number, fd);
}

__attribute__((visibility("default"))) int fdatasync(int fd)
{
    return sync_as(SYS_fdatasync, fd);
}

__attribute__((visibility("default"))) int fsync(int fd)
{
    return sync_as(SYS_fsync, fd);
}
