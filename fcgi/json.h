/*
 * json.h: is this text JSON, strictly, and fit for SQLite?
 *
 * SQLite's own JSON functions accept more than RFC 8259 does and stop at NUL.
 * A body goes to them only after this check.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef JSON_H
#define JSON_H

#include <stddef.h>

/*
 * Check n bytes: one object by RFC 8259 and nothing after it, valid UTF-8,
 * no NUL, no \u0000, no lone surrogate, at most JSON_DEPTH_MAX containers
 * deep. One pass, no allocation, no recursion. Sizes of numbers are not
 * judged here.
 * Returns NULL when it holds, else what is wrong (a constant, to be read after
 * "the body"), with *at the offset of the offending byte.
 */
const char *json_check(const char *text, size_t n, size_t *at);

#endif
