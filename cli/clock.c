/*
 * clock.c: the clock that leases are counted on here, and chance.
 *
 * SPDX-License-Identifier: MIT
 */
#include "clock.h"

#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

int64_t clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int clock_timer_open(void)
{
    return timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
}

void clock_timer_set(int fd, int64_t at_ms)
{
    if (at_ms < 1)
        at_ms = 1; /* 0 would switch it off */
    struct itimerspec at = {
        .it_value = {.tv_sec = (time_t)(at_ms / 1000),
                     .tv_nsec = (long)(at_ms % 1000) * 1000000}};
    timerfd_settime(fd, TFD_TIMER_ABSTIME, &at, NULL);
}

int clock_sleep(int64_t ms, int wake_fd)
{
    int woken = 0;
    int64_t until = clock_ms() + ms;
    struct pollfd fds[2] = {{.fd = clock_timer_open(), .events = POLLIN},
                            {.fd = wake_fd, .events = POLLIN}};
    clock_timer_set(fds[0].fd, until);
    do {
        /* Without a timer: by steps. */
        if (poll(fds, 2, fds[0].fd < 0 ? 10 : -1) > 0)
            woken = fds[1].revents != 0;
    } while (!woken && clock_ms() < until);
    if (fds[0].fd >= 0)
        close(fds[0].fd);
    return woken;
}

int64_t chance_between(int64_t low, int64_t high)
{
    uint32_t bits = 0;
    if (high <= low)
        return low;
    if (getrandom(&bits, sizeof bits, 0) < 0)
        bits = (uint32_t)clock_ms();
    return low + (int64_t)(bits % (uint64_t)(high - low + 1));
}

void chance_key(char key[33])
{
    unsigned char bytes[16] = {0};
    if (getrandom(bytes, sizeof bytes, 0) < 0)
        snprintf((char *)bytes, sizeof bytes, "%lx%x", (long)clock_ms(),
                 (unsigned)getpid());
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(key + 2 * i, 3, "%02x", bytes[i]);
}
