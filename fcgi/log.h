/*
 * log.h: the service's log, one line a message on standard error.
 *
 *     log_line("error", "event=commit_failed rc=%d", rc);
 *
 * Lines are key=value. What a client sent never goes in raw: only values that
 * were checked to be plain (an X-Request-Id) or numbers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LOG_H
#define LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Write one line. level is "info", "warning" or "error". Any thread. */
void log_line(const char *level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Is it time for another line of its kind? At most once a second per *last_ms,
 * which starts as 0 and belongs to one kind of line. Any thread.
 */
bool log_due(_Atomic int64_t *last_ms);

/* For a kind of line of which each is wanted, as long as they are not too
 * many. Begins as zeros. */
struct log_bound {
    _Atomic int64_t second, lines; /* so many in this one */
    _Atomic int64_t left_out;      /* so many not written, and not yet told */
};

/* Is there room for one more of it? LOG_LINES_MAX a second. Any thread. */
bool log_room(struct log_bound *bound);

/* Tell how many were left out, if any were, in a line. */
void log_left_out(struct log_bound *bound);

#endif
