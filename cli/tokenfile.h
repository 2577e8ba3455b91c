/*
 * tokenfile.h: LEASE_FILE, a file that always holds the newest token and a
 * newline: a reader sees the one before or the new one, never a part.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TOKENFILE_H
#define TOKENFILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct tokenfile {
    char path[PATH_MAX]; /* "" while there is none */
};

/* Put the token into the file; the first call makes it, readable by its owner
 * only, in XDG_RUNTIME_DIR, TMPDIR or /tmp. False with errno set. */
bool tokenfile_write(struct tokenfile *file, int64_t token);

/* Remove it, if there is one. */
void tokenfile_remove(struct tokenfile *file);

#endif
