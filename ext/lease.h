/*
 * lease.h: what a program that links the engine needs to know of it.
 *
 *     sqlite3_auto_extension((void (*)(void))sqlite3_lease_init);
 *
 * Everything else goes through SQL: SELECT lease_grant('shard/0', 'me', 30).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEASE_H
#define LEASE_H

#include <stddef.h>

#include <sqlite3ext.h>

/* The version of Leasehold: the one place where it stands. */
#define LEASE_VERSION "0.1.0"

/*
 * Register the lease functions and lease_active with db. Writes nothing.
 * Returns SQLITE_OK, also when they were there already, or an SQLite result
 * code with *errmsg set (free it with sqlite3_free()).
 */
int sqlite3_lease_init(sqlite3 *db, char **errmsg,
                       const sqlite3_api_routines *api);

#endif
