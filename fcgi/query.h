/*
 * query.h: the query of a URL as a JSON object of strings, so that fields
 * are read and checked in one way wherever they stand.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef QUERY_H
#define QUERY_H

#include <stddef.h>

/*
 * Turn "a=1&b=x%20y" into {"a":"1","b":"x y"}. + is a blank. Bytes are not
 * judged here: json_check() the result. out has room for n bytes.
 * Returns NULL with *used the length, or what is wrong (a constant, to be
 * read after "the query").
 */
const char *query_to_json(const char *query, char *out, size_t n, size_t *used);

#endif
