/*
 * say.h: one line to people, on stderr.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef SAY_H
#define SAY_H

/* Print "lease: …" and a newline. Control characters become '?', for names
 * and reasons are other people's. */
__attribute__((format(printf, 1, 2))) void say(const char *format, ...);

#endif
