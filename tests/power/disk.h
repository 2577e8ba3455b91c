/*
 * disk.h: a VFS that writes down what SQLite asks of the disk, and what may be
 * left of it when the power fails.
 *
 * The VFS "disk" passes everything on to the system's own. Of the database it
 * records, with its -journal and -wal, each write, truncation, sync, creation
 * and removal, in order. The -shm is never on a disk and not recorded.
 *
 *     disk_start(&disk, "folder/lease.db");
 *     sqlite3_open_v2("folder/lease.db", &db, flags, "disk");
 *     … disk.n operations so far …
 *     disk_end(&disk);
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef DISK_H
#define DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum disk_name { DISK_DB, DISK_JOURNAL, DISK_WAL, DISK_NAMES };

enum disk_kind {
    DISK_WRITE,
    DISK_TRUNCATE,
    DISK_SYNC,
    DISK_CREATE,  /* a file gets a name in the folder */
    DISK_UNLINK,  /* and loses it */
    DISK_DIRSYNC, /* what the folder lists is now certain */
    DISK_KINDS
};

struct disk_op {
    enum disk_kind kind;
    enum disk_name name; /* of create and unlink */
    int file;            /* which; a name that comes again is another file */
    int64_t at, size;
    unsigned char *data;
};

struct content {
    unsigned char *data;
    int64_t size, room;
};

enum { DISK_FILES_MAX = 4096 };

struct disk {
    char path[256]; /* of the database */
    struct disk_op *ops;
    int n, room;
    int files;                       /* numbers given so far */
    int current[DISK_NAMES];         /* the file of that name, or -1 */
    bool listed[DISK_FILES_MAX];     /* its name is certain */
    struct content base[DISK_NAMES]; /* the files as they were at the start,
                                      * numbers 0 … */
    int base_file[DISK_NAMES];       /* their numbers, or -1 */
    bool lies;                       /* syncs do nothing and say they did */
};

/* What can be made to fail. */
enum disk_call {
    CALL_READ,
    CALL_WRITE, /* half of it is written */
    CALL_TRUNCATE,
    CALL_SYNC,
    CALL_OPEN,
    CALL_DELETE,
    CALL_SIZE,
    CALL_LOCK,
    CALL_SHM,
    CALL_ALLOCATE, /* of memory: the program's own business */
    CALLS
};

/* Recorded or not: the countdown-th such call from now fails with rc; lasting:
 * and all after it. A countdown of 0: none does. */
struct disk_fault {
    enum disk_call call;
    long countdown;
    bool lasting;
    int rc;
    long hits; /* how many have failed */
};
extern struct disk_fault disk_fault;
bool disk_fault_now(enum disk_call call);

/* Have the VFS, also without a recording. */
void disk_register(void);

/* "-journal" and so on. */
extern const char *const disk_suffix[DISK_NAMES];

/* Record from here on what happens to path and its side files, which are
 * there or not. One recording at a time. */
void disk_start(struct disk *disk, const char *path);
void disk_end(struct disk *disk);

void content_write(struct content *content, const unsigned char *data,
                   int64_t at, int64_t size);
void content_truncate(struct content *content, int64_t size);
/* Data NULL and false when there is no such file. */
bool content_load(struct content *content, const char *path);

/* malloc() and realloc() that do not fail. */
void *disk_alloc(void *old, size_t size);

#endif
