/*
 * json.c: is this text JSON, strictly, and fit for SQLite?
 *
 * HOW IT WORKS: a cursor over the bytes and a small stack of open containers
 * ('{' or '['). Each function moves the cursor past what it accepted; the
 * first complaint stays in error and ends everything.
 *
 * SPDX-License-Identifier: MIT
 */
#include "json.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "limits.h"

struct cursor {
    const unsigned char *at, *end;
    const char *error;
};

static bool fail(struct cursor *c, const char *error)
{
    if (!c->error)
        c->error = error;
    return false;
}

/* The byte under the cursor, or 0, which no rule accepts. */
static unsigned char peek(const struct cursor *c)
{
    return c->at < c->end ? *c->at : 0;
}

static void skip_space(struct cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' ||
                              *c->at == '\r' || *c->at == '\t'))
        c->at++;
}

static bool take(struct cursor *c, unsigned char byte)
{
    if (c->at == c->end || *c->at != byte)
        return false;
    c->at++;
    return true;
}

/* One character of two to four bytes: shortest form, no surrogate, at most
 * U+10FFFF. */
static bool take_multibyte(struct cursor *c)
{
    unsigned char first = *c->at;
    int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    if (first < 0xc2 || first > 0xf4 || c->end - c->at <= more)
        return fail(c, "is not valid UTF-8");
    unsigned char second = c->at[1];
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
        (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f))
        return fail(c, "is not valid UTF-8");
    for (int i = 1; i <= more; i++)
        if ((c->at[i] & 0xc0) != 0x80)
            return fail(c, "is not valid UTF-8");
    c->at += more + 1;
    return true;
}

static int hex_digit(unsigned char b)
{
    if (b >= '0' && b <= '9')
        return b - '0';
    b |= 0x20;
    return b >= 'a' && b <= 'f' ? b - 'a' + 10 : -1;
}

static bool take_hex4(struct cursor *c, int *value)
{
    *value = 0;
    for (int i = 0; i < 4; i++, c->at++) {
        if (c->at == c->end)
            return fail(c, "ends inside an escape");
        int digit = hex_digit(*c->at);
        if (digit < 0)
            return fail(c, "has a malformed \\u escape");
        *value = *value * 16 + digit;
    }
    return true;
}

/* The cursor stands behind \u. */
static bool take_unicode_escape(struct cursor *c)
{
    int value, low;
    if (!take_hex4(c, &value))
        return false;
    if (value == 0)
        return fail(c, "has \\u0000 in a string");
    if (value < 0xd800 || value > 0xdfff)
        return true;
    if (value > 0xdbff || !take(c, '\\') || !take(c, 'u'))
        return fail(c, "has a lone surrogate");
    if (!take_hex4(c, &low))
        return false;
    return (low >= 0xdc00 && low <= 0xdfff) || fail(c, "has a lone surrogate");
}

/* The cursor stands behind the backslash. */
static bool take_escape(struct cursor *c)
{
    if (c->at == c->end)
        return fail(c, "ends inside an escape");
    if (take(c, 'u'))
        return take_unicode_escape(c);
    if (!*c->at || !strchr("\"\\/bfnrt", *c->at))
        return fail(c, "has an unknown escape");
    c->at++;
    return true;
}

static bool take_string(struct cursor *c)
{
    if (!take(c, '"'))
        return fail(c, "has something else where a string must be");
    while (c->at < c->end) {
        unsigned char b = *c->at;
        if (b < ' ')
            return fail(c, "has a control character in a string");
        if (b >= 0x80) {
            if (!take_multibyte(c))
                return false;
            continue;
        }
        c->at++;
        if (b == '"')
            return true;
        if (b == '\\' && !take_escape(c))
            return false;
    }
    return fail(c, "ends inside a string");
}

static size_t take_digits(struct cursor *c)
{
    const unsigned char *start = c->at;
    while (peek(c) >= '0' && peek(c) <= '9')
        c->at++;
    return (size_t)(c->at - start);
}

static bool take_number(struct cursor *c)
{
    take(c, '-');
    bool zero = peek(c) == '0';
    size_t whole = take_digits(c);
    if (whole == 0)
        return fail(c, "has something that is no JSON value");
    if (zero && whole > 1)
        return fail(c, "has a number with a leading zero");
    if (take(c, '.') && take_digits(c) == 0)
        return fail(c, "has a number that ends with a point");
    if (take(c, 'e') || take(c, 'E')) {
        if (!take(c, '+'))
            take(c, '-');
        if (take_digits(c) == 0)
            return fail(c, "has a number without digits after e");
    }
    return true;
}

static bool take_word(struct cursor *c, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0)
        return fail(c, "has something that is no JSON value");
    c->at += n;
    return true;
}

static bool take_scalar(struct cursor *c)
{
    switch (peek(c)) {
    case '"':
        return take_string(c);
    case 't':
        return take_word(c, "true");
    case 'f':
        return take_word(c, "false");
    case 'n':
        return take_word(c, "null");
    default:
        if (c->at == c->end)
            return fail(c, "ends too early");
        return take_number(c);
    }
}

static bool take_key(struct cursor *c)
{
    skip_space(c);
    if (!take_string(c))
        return false;
    skip_space(c);
    return take(c, ':') || fail(c, "has no colon after a key");
}

/*
 * Behind a value: close containers that end here, then stand before the next
 * value or, with *depth 0, behind the document.
 */
static bool after_value(struct cursor *c, const char *stack, size_t *depth)
{
    while (*depth > 0) {
        bool object = stack[*depth - 1] == '{';
        skip_space(c);
        if (take(c, ','))
            return !object || take_key(c);
        if (c->at == c->end)
            return fail(c, "ends too early");
        if (!take(c, object ? '}' : ']'))
            return fail(c, "has no comma or bracket after a value");
        --*depth;
    }
    return true;
}

/* Open a container. *empty when it closes at once. */
static bool open_container(struct cursor *c, char *stack, size_t *depth,
                           bool *empty)
{
    if (*depth == JSON_DEPTH_MAX)
        return fail(c, "is nested too deeply");
    char open = (char)*c->at++;
    stack[(*depth)++] = open;
    skip_space(c);
    *empty = peek(c) == (open == '{' ? '}' : ']');
    return *empty || open != '{' || take_key(c);
}

static bool take_document(struct cursor *c)
{
    char stack[JSON_DEPTH_MAX];
    size_t depth = 0;
    do {
        bool empty = false;
        skip_space(c);
        if (peek(c) == '{' || peek(c) == '[') {
            if (!open_container(c, stack, &depth, &empty))
                return false;
            if (!empty)
                continue;
        } else if (!take_scalar(c)) {
            return false;
        }
        if (!after_value(c, stack, &depth))
            return false;
    } while (depth > 0);
    return true;
}

const char *json_check(const char *text, size_t n, size_t *at)
{
    struct cursor c = {.at = (const unsigned char *)text};
    c.end = c.at + n;
    skip_space(&c);
    unsigned char first = peek(&c);
    if (c.at == c.end) {
        fail(&c, "is empty, it must be a JSON object");
    } else if (take_document(&c)) {
        skip_space(&c);
        if (c.at != c.end)
            fail(&c, "goes on after its JSON value");
        else if (first != '{')
            fail(&c, "must be a JSON object");
    }
    *at = (size_t)(c.at - (const unsigned char *)text);
    return c.error;
}
