/*
 * instant.h: an instant as text, RFC 3339 in UTC with milliseconds.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEASE_INSTANT_H
#define LEASE_INSTANT_H

#include "lease.h"

/*
 * The SQL function lease_instant(ms): what
 * strftime('%Y-%m-%dT%H:%M:%fZ', ms / 1000.0, 'unixepoch') gives, for a
 * tenth of the work. NULL for NULL, and outside the years 1 to 9999.
 */
void instant_text(sqlite3_context *ctx, int argc, sqlite3_value **argv);

#endif
