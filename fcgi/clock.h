/*
 * clock.h: time inside the service: how long something waits or took.
 * It never decides about a lease; lease time comes from the engine.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>
#include <time.h>

/* Microseconds on a clock that never steps. */
static inline int64_t clock_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Milliseconds on the same clock. */
static inline int64_t clock_ms(void)
{
    return clock_us() / 1000;
}

/* The point ms milliseconds from now, for pthread_cond_timedwait() with a
 * condition on CLOCK_MONOTONIC. */
static inline struct timespec clock_after(int64_t ms)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)(ms / 1000);
    at.tv_nsec += (long)(ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

#endif
