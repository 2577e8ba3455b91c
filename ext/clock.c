/*
 * clock.c: the kernel's clocks and boot id, or those of a test.
 *
 * The test build (-DLEASE_TEST_CLOCK) reads the file that the environment
 * variable LEASE_TEST_CLOCK names, anew each time: one line
 * "BOOTTIME_MS WALL_MS BOOT_ID", shared by all processes of a test.
 *
 * SPDX-License-Identifier: MIT
 */
#include "clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t clock_kernel_ms(clockid_t id, int64_t *later)
{
    struct timespec t = {0};
    if (clock_gettime(id, &t) != 0)
        return 0;
    int64_t ms = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
    *later = ms + (t.tv_nsec % 1000000 != 0);
    return ms;
}

/* The first line of the file without its end; false when there is none. */
static bool clock_read_line(const char *path, char *line, int size)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    bool ok = fgets(line, size, file) != NULL;
    fclose(file);
    if (ok)
        line[strcspn(line, "\n")] = '\0';
    return ok && line[0] != '\0';
}

#ifdef LEASE_TEST_CLOCK
static bool clock_read_test(struct clock_reading *reading, bool *ok)
{
    const char *path = getenv("LEASE_TEST_CLOCK");
    char line[128];
    if (path == NULL)
        return false;
    long long boottime = 0;
    long long wall = 0;
    *ok =
        clock_read_line(path, line, sizeof line) &&
        sscanf(line, "%lld %lld %63s", &boottime, &wall, reading->boot_id) == 3;
    reading->boottime_ms = boottime;
    reading->wall_ms = wall;
    return true;
}
#endif

bool clock_read(struct clock_reading *reading)
{
#ifdef LEASE_TEST_CLOCK
    bool ok;
    if (clock_read_test(reading, &ok))
        return ok;
#endif
    int64_t later;
    reading->boottime_ms = clock_kernel_ms(CLOCK_BOOTTIME, &later);
    reading->wall_ms = clock_kernel_ms(CLOCK_REALTIME, &later);
    if (reading->boottime_ms <= 0)
        return false;
    return reading->boot_id[0] != '\0' ||
           clock_read_line("/proc/sys/kernel/random/boot_id", reading->boot_id,
                           CLOCK_BOOT_ID_BYTES);
}

int64_t clock_boottime_ms(int64_t *later)
{
    *later = 0;
#ifdef LEASE_TEST_CLOCK
    struct clock_reading reading;
    bool ok;
    if (clock_read_test(&reading, &ok)) {
        *later = ok ? reading.boottime_ms : 0;
        return *later;
    }
#endif
    return clock_kernel_ms(CLOCK_BOOTTIME, later);
}
