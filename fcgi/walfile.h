/*
 * walfile.h: a VFS that writes the log in one piece, for the connection that
 * writes.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef WALFILE_H
#define WALFILE_H

/* The VFS's name, for sqlite3_open_v2(). Only for a connection with
 * synchronous = FULL and cache_spill = OFF, see walfile.c. */
#define WALFILE_VFS "lease-wal"

/* Make it known to SQLite, once, before the first connection. below: the name
 * of the VFS it stands on, NULL for the system's own. Returns SQLite's result
 * code. */
int walfile_register(const char *below);

#endif
