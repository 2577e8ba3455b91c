/*
 * clock.h: the kernel's clocks and boot id, in one reading.
 *
 * Lease time is an anchor kept in the database plus the time since boot,
 * which runs on in suspend and which nobody can step. The wall clock counts
 * only when a boot's anchor is chosen.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEASE_CLOCK_H
#define LEASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

enum { CLOCK_BOOT_ID_BYTES = 64 };

struct clock_reading {
    int64_t boottime_ms; /* since boot, suspend included */
    int64_t wall_ms;     /* Unix epoch */
    char boot_id[CLOCK_BOOT_ID_BYTES];
};

/*
 * Read the clocks, and the boot id unless it is there already: a process does
 * not outlive its boot. Start with a zeroed reading. Returns false when a
 * clock or the boot id is unreadable.
 */
bool clock_read(struct clock_reading *reading);

/*
 * Milliseconds since boot, suspend included; 0 when unreadable. *later is the
 * same rounded up: an instant lies between the two.
 */
int64_t clock_boottime_ms(int64_t *later);

#endif
