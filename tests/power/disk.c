/*
 * disk.c: the recording VFS.
 *
 * HOW IT WORKS. SQLite makes the name of a new journal or log certain with the
 * first sync of it, and that of a removed file only when it asks for it
 * (xDelete with syncDir); nobody else syncs a folder. So both are recorded
 * as DISK_DIRSYNC.
 *
 * SPDX-License-Identifier: MIT
 */
#include "disk.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../fcgi/walfile.h"

enum { PAGE = 4096 };

const char *const disk_suffix[DISK_NAMES] = {"", "-journal", "-wal"};

struct disk_fault disk_fault;

static struct disk *recording;
static sqlite3_vfs *system_vfs;

struct disk_file {
    sqlite3_file base;
    int file; /* -1: not recorded */
    sqlite3_file *real;
};

void *disk_alloc(void *old, size_t size)
{
    void *new = realloc(old, size ? size : 1);
    if (new == NULL)
        abort();
    return new;
}

bool disk_fault_now(enum disk_call call)
{
    if (disk_fault.countdown == 0 || call != disk_fault.call)
        return false;
    if (disk_fault.countdown > 1) {
        disk_fault.countdown--;
        return false;
    }
    if (!disk_fault.lasting)
        disk_fault.countdown = 0;
    disk_fault.hits++;
    return true;
}

/* --- contents ------------------------------------------------------------- */

static void content_reach(struct content *content, int64_t size)
{
    if (size > content->room) {
        content->room = size * 2;
        content->data = disk_alloc(content->data, (size_t)content->room);
    }
    if (size > content->size) {
        memset(content->data + content->size, 0,
               (size_t)(size - content->size));
        content->size = size;
    }
}

void content_write(struct content *content, const unsigned char *data,
                   int64_t at, int64_t size)
{
    content_reach(content, at + size);
    memcpy(content->data + at, data, (size_t)size);
}

void content_truncate(struct content *content, int64_t size)
{
    content_reach(content, size);
    content->size = size;
}

bool content_load(struct content *content, const char *path)
{
    FILE *file = fopen(path, "rb");
    unsigned char piece[65536];
    size_t n;
    memset(content, 0, sizeof *content);
    if (file == NULL)
        return false;
    content_reach(content, 1);
    content->size = 0;
    while ((n = fread(piece, 1, sizeof piece, file)) > 0)
        content_write(content, piece, content->size, (int64_t)n);
    fclose(file);
    return true;
}

/* --- recording ------------------------------------------------------------ */

static struct disk_op *op_add(enum disk_kind kind, int file)
{
    struct disk *disk = recording;
    if (disk->n == disk->room) {
        disk->room = disk->room ? disk->room * 2 : 1024;
        disk->ops =
            disk_alloc(disk->ops, (size_t)disk->room * sizeof *disk->ops);
    }
    struct disk_op *op = &disk->ops[disk->n++];
    *op = (struct disk_op){.kind = kind, .file = file};
    return op;
}

/* Which of the recorded names is this? DISK_NAMES: none. */
static enum disk_name name_of(const char *path)
{
    size_t length = recording ? strlen(recording->path) : 0;
    if (!recording || !path || strncmp(path, recording->path, length) != 0)
        return DISK_NAMES;
    enum disk_name name = DISK_DB;
    while (name < DISK_NAMES && strcmp(path + length, disk_suffix[name]) != 0)
        name++;
    return name;
}

static int real_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at)
{
    sqlite3_file *real = ((struct disk_file *)f)->real;
    if (disk_fault_now(CALL_READ))
        return disk_fault.rc;
    return real->pMethods->xRead(real, to, n, at);
}

static int real_close(sqlite3_file *f)
{
    sqlite3_file *real = ((struct disk_file *)f)->real;
    return real->pMethods->xClose(real);
}

/* Page by page of the file: that is how it gets to the disk, in any order. */
static void write_record(int file, const unsigned char *data, int64_t n,
                         int64_t at)
{
    while (n > 0) {
        int64_t size = PAGE - at % PAGE;
        struct disk_op *op = op_add(DISK_WRITE, file);
        op->at = at;
        op->size = size = size < n ? size : n;
        op->data = disk_alloc(NULL, (size_t)size);
        memcpy(op->data, data, (size_t)size);
        data += size;
        at += size;
        n -= size;
    }
}

static int disk_write(sqlite3_file *f, const void *data, int n,
                      sqlite3_int64 at)
{
    struct disk_file *file = (struct disk_file *)f;
    if (disk_fault_now(CALL_WRITE)) {
        file->real->pMethods->xWrite(file->real, data, n / 2, at);
        return disk_fault.rc;
    }
    int rc = file->real->pMethods->xWrite(file->real, data, n, at);
    if (rc == SQLITE_OK && file->file >= 0 && recording)
        write_record(file->file, data, n, at);
    return rc;
}

static int disk_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    struct disk_file *file = (struct disk_file *)f;
    if (disk_fault_now(CALL_TRUNCATE))
        return disk_fault.rc;
    int rc = file->real->pMethods->xTruncate(file->real, size);
    if (rc == SQLITE_OK && file->file >= 0 && recording)
        op_add(DISK_TRUNCATE, file->file)->size = size;
    return rc;
}

static int disk_sync(sqlite3_file *f, int flags)
{
    struct disk_file *file = (struct disk_file *)f;
    if (disk_fault_now(CALL_SYNC))
        return disk_fault.rc;
    int rc = file->real->pMethods->xSync(file->real, flags);
    if (rc != SQLITE_OK || file->file < 0 || !recording || recording->lies)
        return rc;
    op_add(DISK_SYNC, file->file);
    if (!recording->listed[file->file]) {
        recording->listed[file->file] = true;
        op_add(DISK_DIRSYNC, file->file);
    }
    return rc;
}

static int real_size(sqlite3_file *f, sqlite3_int64 *size)
{
    sqlite3_file *real = ((struct disk_file *)f)->real;
    if (disk_fault_now(CALL_SIZE))
        return disk_fault.rc;
    return real->pMethods->xFileSize(real, size);
}

static int real_lock(sqlite3_file *f, int level)
{
    sqlite3_file *real = ((struct disk_file *)f)->real;
    if (disk_fault_now(CALL_LOCK))
        return disk_fault.rc;
    return real->pMethods->xLock(real, level);
}

static int real_unlock(sqlite3_file *f, int level)
{
    sqlite3_file *real = ((struct disk_file *)f)->real;
    return real->pMethods->xUnlock(real, level);
}

static int real_reserved(sqlite3_file *f, int *out)
{
    sqlite3_file *real = ((struct disk_file *)f)->real;
    return real->pMethods->xCheckReservedLock(real, out);
}

static int real_control(sqlite3_file *f, int op, void *arg)
{
    sqlite3_file *real = ((struct disk_file *)f)->real;
    return real->pMethods->xFileControl(real, op, arg);
}

static int real_sector(sqlite3_file *f)
{
    sqlite3_file *real = ((struct disk_file *)f)->real;
    return real->pMethods->xSectorSize(real);
}

static int real_device(sqlite3_file *f)
{
    sqlite3_file *real = ((struct disk_file *)f)->real;
    return real->pMethods->xDeviceCharacteristics(real);
}

static int real_shm_map(sqlite3_file *f, int region, int size, int extend,
                        void volatile **to)
{
    sqlite3_file *real = ((struct disk_file *)f)->real;
    if (disk_fault_now(CALL_SHM))
        return disk_fault.rc;
    return real->pMethods->xShmMap(real, region, size, extend, to);
}

static int real_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
    sqlite3_file *real = ((struct disk_file *)f)->real;
    return real->pMethods->xShmLock(real, offset, n, flags);
}

static void real_shm_barrier(sqlite3_file *f)
{
    sqlite3_file *real = ((struct disk_file *)f)->real;
    real->pMethods->xShmBarrier(real);
}

static int real_shm_unmap(sqlite3_file *f, int remove)
{
    sqlite3_file *real = ((struct disk_file *)f)->real;
    return real->pMethods->xShmUnmap(real, remove);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = real_close,
    .xRead = real_read,
    .xWrite = disk_write,
    .xTruncate = disk_truncate,
    .xSync = disk_sync,
    .xFileSize = real_size,
    .xLock = real_lock,
    .xUnlock = real_unlock,
    .xCheckReservedLock = real_reserved,
    .xFileControl = real_control,
    .xSectorSize = real_sector,
    .xDeviceCharacteristics = real_device,
    .xShmMap = real_shm_map,
    .xShmLock = real_shm_lock,
    .xShmBarrier = real_shm_barrier,
    .xShmUnmap = real_shm_unmap,
};

static int disk_open(sqlite3_vfs *vfs, sqlite3_filename path, sqlite3_file *f,
                     int flags, int *out)
{
    struct disk_file *file = (struct disk_file *)f;
    enum disk_name name = name_of(path);
    (void)vfs;
    file->real = (sqlite3_file *)(file + 1);
    file->file = -1;
    file->base.pMethods = NULL;
    if (disk_fault_now(CALL_OPEN))
        return disk_fault.rc;
    int rc = system_vfs->xOpen(system_vfs, path, file->real, flags, out);
    file->base.pMethods = file->real->pMethods ? &methods : NULL;
    if (rc != SQLITE_OK || name == DISK_NAMES)
        return rc;
    if (recording->current[name] < 0) {
        if (recording->files == DISK_FILES_MAX)
            abort();
        recording->current[name] = recording->files++;
        op_add(DISK_CREATE, recording->current[name])->name = name;
        /* Nobody makes the name of a new database certain by itself; the
         * journal of its first transaction does. */
        recording->listed[recording->current[name]] = name == DISK_DB;
    }
    file->file = recording->current[name];
    return rc;
}

static int disk_delete(sqlite3_vfs *vfs, const char *path, int sync)
{
    enum disk_name name = name_of(path);
    (void)vfs;
    if (disk_fault_now(CALL_DELETE))
        return disk_fault.rc;
    int rc = system_vfs->xDelete(system_vfs, path, sync);
    if (rc != SQLITE_OK || name == DISK_NAMES || recording->current[name] < 0)
        return rc;
    op_add(DISK_UNLINK, recording->current[name])->name = name;
    recording->current[name] = -1;
    if (sync && !recording->lies)
        op_add(DISK_DIRSYNC, 0);
    return rc;
}

void disk_register(void)
{
    static sqlite3_vfs vfs;
    if (vfs.zName)
        return;
    system_vfs = sqlite3_vfs_find(NULL);
    vfs = *system_vfs;
    vfs.pNext = NULL;
    vfs.zName = "disk";
    vfs.szOsFile = (int)sizeof(struct disk_file) + system_vfs->szOsFile;
    vfs.xOpen = disk_open;
    vfs.xDelete = disk_delete;
    if (sqlite3_vfs_register(&vfs, 0) || walfile_register("disk"))
        abort();
}

void disk_start(struct disk *disk, const char *path)
{
    disk_register();
    memset(disk, 0, sizeof *disk);
    snprintf(disk->path, sizeof disk->path, "%s", path);
    for (int name = 0; name < DISK_NAMES; name++) {
        char side[300];
        snprintf(side, sizeof side, "%s%s", path, disk_suffix[name]);
        disk->base_file[name] = disk->current[name] = -1;
        if (content_load(&disk->base[name], side)) {
            disk->base_file[name] = disk->current[name] = disk->files;
            disk->listed[disk->files++] = true;
        }
    }
    recording = disk;
}

void disk_end(struct disk *disk)
{
    for (int i = 0; i < disk->n; i++)
        free(disk->ops[i].data);
    for (int name = 0; name < DISK_NAMES; name++)
        free(disk->base[name].data);
    free(disk->ops);
    recording = NULL;
}
