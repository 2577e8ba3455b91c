/*
 * query.c: the query of a URL as a JSON object of strings.
 *
 * SPDX-License-Identifier: MIT
 */
#include "query.h"

#include <stdbool.h>
#include <string.h>

struct writer {
    char *out;
    size_t n, used;
};

static void put(struct writer *w, char byte)
{
    if (w->used < w->n)
        w->out[w->used] = byte;
    w->used++;
}

static void put_escaped(struct writer *w, unsigned char byte)
{
    static const char HEX[] = "0123456789abcdef";
    if (byte >= ' ' && byte != '"' && byte != '\\') {
        put(w, (char)byte);
        return;
    }
    for (const char *p = "\\u00"; *p; p++)
        put(w, *p);
    put(w, HEX[byte >> 4]);
    put(w, HEX[byte & 15]);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Copy one name or value up to a byte of stops. NULL: a malformed escape. */
static const char *put_part(struct writer *w, const char *p, const char *stops)
{
    put(w, '"');
    while (*p && !strchr(stops, *p)) {
        if (*p != '%') {
            put_escaped(w, (unsigned char)(*p == '+' ? ' ' : *p));
            p++;
            continue;
        }
        int high = hex_digit(p[1]);
        int low = high < 0 ? -1 : hex_digit(p[2]);
        if (low < 0)
            return NULL;
        put_escaped(w, (unsigned char)(high * 16 + low));
        p += 3;
    }
    put(w, '"');
    return p;
}

const char *query_to_json(const char *query, char *out, size_t n, size_t *used)
{
    struct writer w = {.out = out, .n = n};
    bool first = true;
    put(&w, '{');
    for (const char *p = query; *p;) {
        if (*p == '&') {
            p++;
            continue;
        }
        if (!first)
            put(&w, ',');
        first = false;
        if (!(p = put_part(&w, p, "=&")))
            return "has a malformed escape";
        put(&w, ':');
        if (*p == '=')
            p++;
        if (!(p = put_part(&w, p, "&")))
            return "has a malformed escape";
    }
    put(&w, '}');
    *used = w.used;
    return w.used <= n ? NULL : "is too long";
}
