/*
 * dbfile.h: the database file: may this process have it, and is it the only
 * service that does?
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef DBFILE_H
#define DBFILE_H

#include <stddef.h>

enum { DBFILE_PATH_MAX = 4096 };

struct dbfile {
    char path[DBFILE_PATH_MAX]; /* absolute, links followed */
    int lock;                   /* descriptor of path + "-service", or -1 */
};

/*
 * Find the file, which may be missing unlike its folder, and take the lock on
 * the file beside it. A service that is on its way out is waited for, up to
 * wait_ms. Returns 0, or -1 with one line in why, which names file and reason.
 * End with dbfile_close(), also after a failure.
 */
int dbfile_open(struct dbfile *file, const char *path, int wait_ms, char *why,
                size_t why_size);
void dbfile_close(struct dbfile *file);

#endif
