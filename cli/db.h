/*
 * db.h: questions to the engine in this process, on a database file.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef DB_H
#define DB_H

#include "ask.h"

/* Opens nothing yet; path must outlive it. Returns NULL without memory. */
struct transport *db_open(const char *path);

#endif
