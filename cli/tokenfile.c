/*
 * tokenfile.c: LEASE_FILE, a file that always holds the newest token.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tokenfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *folder(void)
{
    const char *names[] = {"XDG_RUNTIME_DIR", "TMPDIR"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = getenv(names[i]);
        if (path && path[0] == '/' && access(path, W_OK | X_OK) == 0)
            return path;
    }
    return "/tmp";
}

bool tokenfile_write(struct tokenfile *file, int64_t token)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/lease.XXXXXX", folder());
    if (n < 0 || (size_t)n >= sizeof path) {
        errno = ENAMETOOLONG;
        return false;
    }
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return false;
    bool good = dprintf(fd, "%lld\n", (long long)token) > 0;
    close(fd);
    if (good && !file->path[0])
        memcpy(file->path, path, sizeof path);
    else if (!good || rename(path, file->path) != 0) {
        int error = errno;
        unlink(path);
        errno = error;
        return false;
    }
    return true;
}

void tokenfile_remove(struct tokenfile *file)
{
    if (file->path[0])
        unlink(file->path);
    file->path[0] = 0;
}
