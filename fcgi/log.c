/*
 * log.c: the service's log, one line a message on standard error.
 *
 * SPDX-License-Identifier: MIT
 */
#include "log.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "limits.h"

/* A line break in a message must not begin a line of its own. */
static void line_flatten(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = ' ';
}

static void line_write(const char *level, const char *format, va_list args)
{
    char line[1024], stamp[32];
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &utc);
    int n = snprintf(line, sizeof line, "%s.%03ldZ lease-fcgi: level=%s ",
                     stamp, now.tv_nsec / 1000000, level);
    /* One byte stays free for the line's end. */
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it is not. */
    vsnprintf(line + n, sizeof line - 1 - (size_t)n, format, args);
    line_flatten(line);
    size_t length = strlen(line);
    line[length++] = '\n';
    /* Where nobody takes the lines, they are lost and nothing stands still. */
    struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
    ssize_t written =
        poll(&room, 1, 0) > 0 ? write(STDERR_FILENO, line, length) : 0;
    (void)written;
}

void log_line(const char *level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    line_write(level, format, args);
    va_end(args);
}

bool log_due(_Atomic int64_t *last_ms)
{
    int64_t now = clock_ms();
    int64_t last = atomic_load(last_ms);
    return (!last || now - last >= 1000) &&
           atomic_compare_exchange_strong(last_ms, &last, now);
}

bool log_room(struct log_bound *bound)
{
    int64_t now = clock_ms() / 1000;
    if (atomic_exchange(&bound->second, now) != now)
        atomic_store(&bound->lines, 0);
    if (atomic_fetch_add(&bound->lines, 1) < LOG_LINES_MAX)
        return true;
    atomic_fetch_add(&bound->left_out, 1);
    return false;
}

void log_left_out(struct log_bound *bound)
{
    int64_t n = atomic_exchange(&bound->left_out, 0);
    if (n)
        log_line("warning", "event=left_out lines=%lld", (long long)n);
}
