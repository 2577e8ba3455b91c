/*
 * instant.c: an instant as text, RFC 3339 in UTC with milliseconds.
 *
 * SPDX-License-Identifier: MIT
 */
#include "instant.h"

#include <stdint.h>
#include <time.h>

SQLITE_EXTENSION_INIT3

static const int64_t YEAR_1_MS = -INT64_C(62135596800000);
static const int64_t YEAR_10000_MS = INT64_C(253402300800000);

/* A number of so many digits, and what follows it. Returns its end. */
static char *put(char *at, int number, int digits, char follows)
{
    for (int i = digits; i-- > 0; number /= 10)
        at[i] = (char)('0' + number % 10);
    at[digits] = follows;
    return at + digits + 1;
}

void instant_text(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    int64_t ms = sqlite3_value_int64(argv[0]);
    (void)argc;
    if (sqlite3_value_type(argv[0]) == SQLITE_NULL || ms < YEAR_1_MS ||
        ms >= YEAR_10000_MS)
        return;
    int fraction = (int)((ms % 1000 + 1000) % 1000);
    time_t seconds = (time_t)((ms - fraction) / 1000);
    struct tm date;
    char text[32], *end = text;
    if (gmtime_r(&seconds, &date) == NULL)
        return;
    end = put(end, date.tm_year + 1900, 4, '-');
    end = put(end, date.tm_mon + 1, 2, '-');
    end = put(end, date.tm_mday, 2, 'T');
    end = put(end, date.tm_hour, 2, ':');
    end = put(end, date.tm_min, 2, ':');
    end = put(end, date.tm_sec, 2, '.');
    end = put(end, fraction, 3, 'Z');
    sqlite3_result_text(ctx, text, (int)(end - text), SQLITE_TRANSIENT);
}
