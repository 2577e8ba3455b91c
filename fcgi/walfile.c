/*
 * walfile.c: a VFS that writes the log in one piece.
 *
 * HOW IT WORKS: SQLite writes each page of a transaction with two calls, and a
 * call costs more than the page. This VFS leaves all to the one below, but what
 * COMMIT writes to the log, piece after piece, is gathered, and written with
 * one call when COMMIT syncs the log. Only then does it tell anybody of the
 * pages, so nobody looks for what is not there yet.
 *
 * With synchronous = FULL, and with cache_spill = OFF: else pages go to the log
 * before COMMIT, and what was gathered of a transaction that is then rolled
 * back would be written over what another process has committed there since.
 *
 * SPDX-License-Identifier: MIT
 */
#include "walfile.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <string.h>

/* Bytes: headers and pages. SQLite's own VFS writes 131,071 in one call, and
 * tells of a full disk when it is given more. */
enum { GATHERED_MAX = 31 * (24 + 4096) };

/* Lies behind the file of the VFS below, whose other methods stay as they are.
 */
struct walfile {
    const sqlite3_io_methods *below;
    sqlite3_io_methods methods;
    sqlite3_int64 at; /* where what is gathered belongs */
    int length;
    char *gathered;
};

static sqlite3_vfs *below_vfs;

static struct walfile *walfile_of(sqlite3_file *file)
{
    return (struct walfile *)((char *)file + below_vfs->szOsFile);
}

/* After a failure what was gathered is gone: SQLite rolls back. */
static int walfile_flush(sqlite3_file *file)
{
    struct walfile *log = walfile_of(file);
    int length = log->length;
    log->length = 0;
    return length ? log->below->xWrite(file, log->gathered, length, log->at)
                  : SQLITE_OK;
}

/* What does not go on where the last ended would be of two transactions. */
static int walfile_write(sqlite3_file *file, const void *data, int n,
                         sqlite3_int64 at)
{
    struct walfile *log = walfile_of(file);
    if (log->length && at != log->at + log->length) {
        log->length = 0;
        return SQLITE_IOERR_WRITE;
    }
    if (n > GATHERED_MAX - log->length) {
        int rc = walfile_flush(file);
        if (rc)
            return rc;
    }
    if (!log->length)
        log->at = at;
    memcpy(log->gathered + log->length, data, (size_t)n);
    log->length += n;
    return SQLITE_OK;
}

static int walfile_sync(sqlite3_file *file, int flags)
{
    int rc = walfile_flush(file);
    return rc ? rc : walfile_of(file)->below->xSync(file, flags);
}

static int walfile_close(sqlite3_file *file)
{
    struct walfile *log = walfile_of(file);
    sqlite3_free(log->gathered);
    log->gathered = NULL;
    return log->below->xClose(file);
}

static void walfile_take_over(sqlite3_file *file, char *room)
{
    struct walfile *log = walfile_of(file);
    *log = (struct walfile){.below = file->pMethods, .gathered = room};
    log->methods = *file->pMethods;
    log->methods.xClose = walfile_close;
    log->methods.xWrite = walfile_write;
    log->methods.xSync = walfile_sync;
    file->pMethods = &log->methods;
}

static int walfile_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file,
                        int flags, int *flags_out)
{
    (void)vfs;
    char *room = NULL;
    file->pMethods = NULL;
    if (flags & SQLITE_OPEN_WAL && !(room = sqlite3_malloc(GATHERED_MAX)))
        return SQLITE_NOMEM;
    int rc = below_vfs->xOpen(below_vfs, name, file, flags, flags_out);
    if (rc)
        sqlite3_free(room);
    else if (room)
        walfile_take_over(file, room);
    return rc;
}

int walfile_register(const char *below)
{
    static sqlite3_vfs vfs;
    int rc = sqlite3_initialize();
    if (rc)
        return rc;
    below_vfs = sqlite3_vfs_find(below);
    if (!below_vfs)
        return SQLITE_ERROR;
    vfs = *below_vfs;
    vfs.zName = WALFILE_VFS;
    vfs.szOsFile += (int)sizeof(struct walfile);
    vfs.xOpen = walfile_open;
    return sqlite3_vfs_register(&vfs, 0);
}
