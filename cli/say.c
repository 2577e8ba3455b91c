/*
 * say.c: one line to people, on stderr.
 *
 * SPDX-License-Identifier: MIT
 */
#include "say.h"

#include <stdarg.h>
#include <stdio.h>

static void line_write(const char *format, va_list list)
{
    char line[1024];
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it is not. */
    vsnprintf(line, sizeof line, format, list);
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
    fprintf(stderr, "lease: %s\n", line);
}

void say(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    line_write(format, list);
    va_end(list);
}
