/*
 * clock.h: the clock that leases are counted on here, and chance.
 *
 * CLOCK_BOOTTIME: nobody sets it, and it runs on while the machine sleeps.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>

/* Milliseconds of the boot clock. */
int64_t clock_ms(void);

/* A timer on the boot clock, for poll(). Returns a descriptor or -1. */
int clock_timer_open(void);

/* Make the timer's descriptor readable from that instant on. */
void clock_timer_set(int fd, int64_t at_ms);

/* Sleep so long; returns early when wake_fd (or -1) is readable, then 1. */
int clock_sleep(int64_t ms, int wake_fd);

/* A number by chance, from low to high. */
int64_t chance_between(int64_t low, int64_t high);

/* 32 hexadecimal digits that nobody had before. */
void chance_key(char key[33]);

#endif
