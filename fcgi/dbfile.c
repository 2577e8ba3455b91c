/*
 * dbfile.c: the database file: may this process have it, and is it the only
 * service that does?
 *
 * HOW IT WORKS: the lock is flock() on a file of its own, for closing any
 * descriptor of the database itself would drop SQLite's locks on it. It ends
 * with the process, however that ends. The file stays: removing it would let
 * two services lock two files of one name.
 *
 * SPDX-License-Identifier: MIT
 */
#include "dbfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"

enum { RETRY_MS = 20 };

static int refuse(char *why, size_t size, const char *path, const char *reason)
{
    snprintf(why, size, "%s: %s", path, reason);
    return -1;
}

/* folder/name into out, which has DBFILE_PATH_MAX bytes. */
static int path_join(char *out, const char *folder, const char *name)
{
    int n = snprintf(out, DBFILE_PATH_MAX, "%s/%s", folder, name);
    if (n < DBFILE_PATH_MAX)
        return 0;
    errno = ENAMETOOLONG;
    return -1;
}

/* file->path from path: absolute, links followed; its folder must be there. */
static int path_find(struct dbfile *file, const char *path)
{
    char full[DBFILE_PATH_MAX], real[PATH_MAX];
    char *folder = *path == '/' ? NULL : getcwd(real, sizeof real);
    if (*path != '/' && !folder)
        return -1;
    if (path_join(full, folder ? folder : "", path) != 0)
        return -1;
    if (realpath(full, real))
        return path_join(file->path, "", real + 1);
    /* Not there yet: then its folder is what has links. */
    char *name = strrchr(full, '/');
    *name++ = 0;
    if (errno != ENOENT || !realpath(*full ? full : "/", real))
        return -1;
    return path_join(file->path, real[1] ? real : "", name);
}

/* One of the database's files exists and is not ours to write. */
static int file_check(const struct dbfile *file, const char *suffix, char *why,
                      size_t why_size)
{
    char path[DBFILE_PATH_MAX + 16];
    struct stat stat_of;
    snprintf(path, sizeof path, "%s%s", file->path, suffix);
    if (stat(path, &stat_of) != 0)
        return errno == ENOENT ? 0
                               : refuse(why, why_size, path, strerror(errno));
    if (!S_ISREG(stat_of.st_mode))
        return refuse(why, why_size, path, "is not a regular file");
    /* By another name it would have another log, and another service. */
    if (stat_of.st_nlink > 1)
        return refuse(why, why_size, path, "has more names (hard links)");
    if (access(path, R_OK | W_OK) == 0)
        return 0;
    if (errno != EACCES)
        return refuse(why, why_size, path, strerror(errno));
    snprintf(
        why, why_size,
        "%s: cannot be written by user %u: it belongs to user %u (mode %03o)",
        path, (unsigned)geteuid(), (unsigned)stat_of.st_uid,
        (unsigned)stat_of.st_mode & 0777u);
    return -1;
}

static int lock_take(struct dbfile *file, int wait_ms, char *why,
                     size_t why_size)
{
    char path[DBFILE_PATH_MAX + 16], owner[32] = "";
    int64_t until = clock_ms() + wait_ms;
    snprintf(path, sizeof path, "%s-service", file->path);
    file->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file->lock < 0)
        return refuse(why, why_size, path, strerror(errno));
    while (flock(file->lock, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return refuse(why, why_size, path, strerror(errno));
        if (clock_ms() >= until) {
            ssize_t n = pread(file->lock, owner, sizeof owner - 1, 0);
            owner[n > 0 ? strcspn(owner, "\n") : 0] = 0;
            snprintf(why, why_size,
                     "%s: another service has this database (process %s)",
                     file->path, *owner ? owner : "unknown");
            return -1;
        }
        usleep(RETRY_MS * 1000);
    }
    int n = snprintf(owner, sizeof owner, "%ld\n", (long)getpid());
    if (ftruncate(file->lock, 0) != 0 ||
        pwrite(file->lock, owner, (size_t)n, 0) != n)
        return refuse(why, why_size, path, strerror(errno));
    return 0;
}

int dbfile_open(struct dbfile *file, const char *path, int wait_ms, char *why,
                size_t why_size)
{
    static const char *const SUFFIXES[] = {"", "-wal", "-shm"};
    file->lock = -1;
    if (path_find(file, path) != 0)
        return refuse(why, why_size, path, strerror(errno));
    for (int i = 0; i < 3; i++)
        if (file_check(file, SUFFIXES[i], why, why_size) != 0)
            return -1;
    return lock_take(file, wait_ms, why, why_size);
}

void dbfile_close(struct dbfile *file)
{
    if (file->lock >= 0)
        close(file->lock);
    file->lock = -1;
}
