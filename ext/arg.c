/*
 * arg.c: what each argument may be.
 *
 * Wrong types are errors, not casts. Some host languages bind numbers as text,
 * so a text that as a whole is a decimal number counts as that number.
 *
 * SPDX-License-Identifier: MIT
 */
#include "arg.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

SQLITE_EXTENSION_INIT3

enum kind { KIND_TEXT, KIND_SECONDS, KIND_INTEGER };

static const int64_t TEN_YEARS_MS = INT64_C(315360000000);
/* More than any bound, and far from overflow when a time is added to it. */
static const int64_t BEYOND = INT64_C(1) << 60;

struct rule {
    const char *name;
    enum kind kind;
    int64_t min; /* bytes, ms or the number itself */
    int64_t max;
    bool control; /* may control characters be in it? */
};

static const struct rule rules[ARG_COUNT] = {
    [ARG_RESOURCE] = {"resource", KIND_TEXT, 1, 512, false},
    [ARG_HOLDER] = {"holder", KIND_TEXT, 1, 256, false},
    [ARG_DATA] = {"data", KIND_TEXT, 0, 4096, true},
    [ARG_REQUEST_ID] = {"request_id", KIND_TEXT, 1, 128, false},
    [ARG_ACTOR] = {"actor", KIND_TEXT, 1, 256, false},
    [ARG_REASON] = {"reason", KIND_TEXT, 0, 512, false},
    [ARG_TTL] = {"ttl", KIND_SECONDS, INT64_MIN, INT64_MAX, false},
    [ARG_MIN_REMAINING] = {"min_remaining", KIND_SECONDS, 0, TEN_YEARS_MS,
                           false},
    [ARG_SETTING] = {"value", KIND_SECONDS, 1, TEN_YEARS_MS, false},
    [ARG_TOKEN] = {"token", KIND_INTEGER, 1, (INT64_C(1) << 53) - 1, false},
    [ARG_CAPACITY] = {"capacity", KIND_INTEGER, 1, 10000, false},
    [ARG_LIMIT] = {"limit", KIND_INTEGER, 1, 1000000, false},
    [ARG_EVENT_ROWS] = {"value", KIND_INTEGER, 1000, INT64_C(1000000000000),
                        false},
    [ARG_NAME] = {"name", KIND_TEXT, 1, 64, false},
    [ARG_TABLE] = {"table", KIND_TEXT, 1, 1000, true},
    [ARG_RESOURCE_COLUMN] = {"resource_column", KIND_TEXT, 1, 1000, true},
    [ARG_TOKEN_COLUMN] = {"token_column", KIND_TEXT, 1, 1000, true},
    [ARG_VALUE] = {"value", KIND_INTEGER, INT64_MIN, INT64_MAX, false},
    [ARG_MARGIN] = {"margin", KIND_INTEGER, 1, INT64_C(1) << 52, false},
};

const char *arg_name(enum arg arg)
{
    return rules[arg].name;
}

enum arg arg_find(const char *name)
{
    int arg = 0;
    while (arg < ARG_COUNT && strcmp(rules[arg].name, name) != 0)
        arg++;
    return (enum arg)arg;
}

bool arg_is_text(enum arg arg)
{
    return rules[arg].kind == KIND_TEXT;
}

static bool arg_wrong_type(const char *want, sqlite3_value *value,
                           char **problem)
{
    static const char *const type[] = {
        [SQLITE_INTEGER] = "an integer", [SQLITE_FLOAT] = "a real number",
        [SQLITE_TEXT] = "text",          [SQLITE_BLOB] = "a blob",
        [SQLITE_NULL] = "NULL",
    };
    *problem = sqlite3_mprintf("must be %s, not %s", want,
                               type[sqlite3_value_type(value)]);
    return false;
}

/* The length of the UTF-8 sequence at s, 0 when it is not valid. */
static int utf8_length(const unsigned char *s, int left)
{
    int n = s[0] < 0x80 ? 1 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (n == 1)
        return 1;
    if (s[0] < 0xc2 || s[0] > 0xf4 || n > left)
        return 0;
    for (int i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    /* Overlong forms, surrogates, and what lies above U+10FFFF. */
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

static bool utf8_is_control(const unsigned char *s)
{
    return s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0);
}

static bool arg_fits_text(const struct rule *rule, sqlite3_value *value,
                          char **problem)
{
    if (sqlite3_value_type(value) != SQLITE_TEXT)
        return arg_wrong_type("text", value, problem);
    const unsigned char *text = sqlite3_value_text(value);
    int bytes = sqlite3_value_bytes(value);
    *problem = NULL;
    if (text == NULL)
        return false;
    if (bytes < rule->min || bytes > rule->max) {
        *problem = sqlite3_mprintf("must be %lld to %lld bytes, it has %d",
                                   rule->min, rule->max, bytes);
        return false;
    }
    const char *wrong = NULL;
    for (int i = 0, n; i < bytes && wrong == NULL; i += n) {
        n = utf8_length(text + i, bytes - i);
        if (n == 0)
            wrong = "must be valid UTF-8";
        else if (text[i] == 0)
            wrong = "must not hold a NUL character";
        else if (!rule->control && utf8_is_control(text + i))
            wrong = "must not hold control characters";
    }
    if (wrong != NULL)
        *problem = sqlite3_mprintf("%s", wrong);
    return wrong == NULL;
}

/*
 * Does the text as a whole spell a decimal number? Digits, with a minus sign
 * before them and, where a fraction is allowed, one point between them.
 */
static bool text_is_number(const char *text, int bytes, bool fraction)
{
    int i = bytes > 0 && text[0] == '-';
    int digits = 0;
    int points = 0;
    for (; i < bytes; i++) {
        if (text[i] >= '0' && text[i] <= '9')
            digits++;
        else if (fraction && text[i] == '.' && digits > 0 && i + 1 < bytes)
            points++;
        else
            return false;
    }
    return digits > 0 && digits < 300 && points <= 1;
}

/*
 * Seconds as milliseconds, to the nearest; BEYOND when out of all bounds.
 * Without llround(): not every host has the library of mathematics loaded.
 */
static int64_t seconds_to_ms(double seconds)
{
    if (!(seconds > -1e13 && seconds < 1e13))
        return seconds < 0 ? -BEYOND : BEYOND;
    return (int64_t)(seconds * 1000 + (seconds < 0 ? -0.5 : 0.5));
}

static int64_t integer_seconds_to_ms(int64_t seconds)
{
    if (seconds > INT64_C(10000000000000) || seconds < -INT64_C(10000000000000))
        return seconds < 0 ? -BEYOND : BEYOND;
    return seconds * 1000;
}

static bool arg_read_seconds(sqlite3_value *value, int64_t *ms)
{
    const char *text;
    switch (sqlite3_value_type(value)) {
    case SQLITE_INTEGER:
        *ms = integer_seconds_to_ms(sqlite3_value_int64(value));
        return true;
    case SQLITE_FLOAT:
        *ms = seconds_to_ms(sqlite3_value_double(value));
        return true;
    case SQLITE_TEXT:
        text = (const char *)sqlite3_value_text(value);
        if (text == NULL ||
            !text_is_number(text, sqlite3_value_bytes(value), true))
            return false;
        *ms = seconds_to_ms(sqlite3_value_double(value));
        return true;
    default:
        return false;
    }
}

static bool arg_read_integer(sqlite3_value *value, int64_t *number)
{
    if (sqlite3_value_type(value) == SQLITE_TEXT) {
        const char *text = (const char *)sqlite3_value_text(value);
        int bytes = sqlite3_value_bytes(value);
        if (text == NULL || !text_is_number(text, bytes, false))
            return false;
        /* More digits than an integer has are out of every bound. */
        *number = bytes > 18 ? (text[0] == '-' ? -BEYOND : BEYOND)
                             : strtoll(text, NULL, 10);
        return true;
    }
    *number = sqlite3_value_int64(value);
    return sqlite3_value_type(value) == SQLITE_INTEGER;
}

static bool arg_fits_integer(const struct rule *rule, sqlite3_value *value,
                             int64_t *number, char **problem)
{
    if (!arg_read_integer(value, number))
        return arg_wrong_type("an integer", value, problem);
    if (*number >= rule->min && *number <= rule->max)
        return true;
    *problem = sqlite3_mprintf("must be %lld to %lld", rule->min, rule->max);
    return false;
}

bool arg_fits(enum arg arg, sqlite3_value *value, int64_t *number,
              char **problem)
{
    const struct rule *rule = &rules[arg];
    switch (rule->kind) {
    case KIND_TEXT:
        return arg_fits_text(rule, value, problem);
    case KIND_INTEGER:
        return arg_fits_integer(rule, value, number, problem);
    default:
        if (!arg_read_seconds(value, number))
            return arg_wrong_type("a number of seconds", value, problem);
        return arg_ttl_fits(*number, rule->min, rule->max, problem);
    }
}

bool arg_ttl_fits(int64_t ttl_ms, int64_t min_ms, int64_t max_ms,
                  char **problem)
{
    if (ttl_ms >= min_ms && ttl_ms <= max_ms)
        return true;
    *problem = sqlite3_mprintf("must be %.15g to %.15g seconds",
                               (double)min_ms / 1000, (double)max_ms / 1000);
    return false;
}
