/*
 * preload.c: between the service and the system: writes down the order of
 * writes, syncs and answers, and makes calls fail.
 *
 *     POWER_TRACE=file LD_PRELOAD=build/preload.so lease-fcgi
 *         one record a call: kind, number of bytes of the name, offset, size,
 *         then the name and the data (tests/preload.py reads it)
 *     POWER_FAULTS=file LD_PRELOAD=…
 *         the file is a struct control, which a test changes as it likes
 *
 * Only writes and syncs of the database and its log, and what is sent, are
 * written down. A sync counts for what was written down before it began.
 *
 * SPDX-License-Identifier: MIT
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))
#define REAL(type, name, ...)                                                  \
    static type (*real)(__VA_ARGS__);                                          \
    if (!real)                                                                 \
    real = (type(*)(__VA_ARGS__))(uintptr_t)dlsym(RTLD_NEXT, name)

/* What can fail; the numbers are in tests/preload.py, too. */
enum kind {
    FAIL_NOTHING,
    FAIL_OUR_MEMORY,    /* asked for by the program itself */
    FAIL_SQLITE_MEMORY, /* by libsqlite3 */
    FAIL_WRITE,         /* of the database or its log */
    FAIL_SYNC,
    FAIL_OPEN,
    FAIL_INTERRUPTED /* whatever may be interrupted by a signal */
};

struct control {
    _Atomic int32_t kind, countdown; /* the countdown-th call fails */
    _Atomic int32_t every;           /* then each such, 0: no more */
    _Atomic int32_t error;           /* errno */
    _Atomic int64_t hits;
};

struct record {
    uint32_t kind, name_bytes;
    int64_t at, size;
};

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);

static struct control *control;
static int trace = -1;
static uintptr_t program[2], sqlite[2]; /* where their code is */

/* --- setting up ----------------------------------------------------------- */

static int object_look(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size, (void)context;
    bool is_sqlite = strstr(info->dlpi_name, "libsqlite3") != NULL;
    if (*info->dlpi_name && !is_sqlite)
        return 0;
    uintptr_t *range = is_sqlite ? sqlite : program;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X))
            continue;
        range[0] = info->dlpi_addr + part->p_vaddr;
        range[1] = range[0] + part->p_memsz;
    }
    return 0;
}

__attribute__((constructor)) static void set_up(void)
{
    const char *name = getenv("POWER_FAULTS");
    dl_iterate_phdr(object_look, NULL);
    int fd = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
    if (fd >= 0) {
        void *at = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE,
                        MAP_SHARED, fd, 0);
        close(fd);
        control = at == MAP_FAILED ? NULL : at;
    }
    if ((name = getenv("POWER_TRACE")))
        trace = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static bool fails(enum kind kind)
{
    if (!control || atomic_load(&control->kind) != (int32_t)kind ||
        atomic_load(&control->countdown) <= 0 ||
        atomic_fetch_sub(&control->countdown, 1) != 1)
        return false;
    atomic_store(&control->countdown, atomic_load(&control->every));
    atomic_fetch_add(&control->hits, 1);
    errno = atomic_load(&control->error);
    return true;
}

/* --- memory --------------------------------------------------------------- */

static bool memory_fails(void *caller)
{
    uintptr_t at = (uintptr_t)caller;
    if (!control)
        return false;
    if (at >= program[0] && at < program[1])
        return fails(FAIL_OUR_MEMORY);
    return at >= sqlite[0] && at < sqlite[1] && fails(FAIL_SQLITE_MEMORY);
}

PUBLIC void *malloc(size_t size)
{
    return memory_fails(__builtin_return_address(0)) ? NULL
                                                     : __libc_malloc(size);
}

PUBLIC void *calloc(size_t n, size_t size)
{
    return memory_fails(__builtin_return_address(0)) ? NULL
                                                     : __libc_calloc(n, size);
}

PUBLIC void *realloc(void *old, size_t size)
{
    return memory_fails(__builtin_return_address(0))
               ? NULL
               : __libc_realloc(old, size);
}

/* --- files ---------------------------------------------------------------- */

/* The name of the database's file or its log; false for all others. */
static bool file_named(int fd, char name[512])
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, name, 511);
    if (n <= 0)
        return false;
    name[n] = 0;
    size_t length = strlen(name);
    return (length > 3 && strcmp(name + length - 3, ".db") == 0) ||
           (length > 4 && strcmp(name + length - 4, "-wal") == 0);
}

static void record_add(char kind, const char *name, int64_t at,
                       const struct iovec *data, int n)
{
    struct record record = {(unsigned char)kind, (uint32_t)strlen(name), at, 0};
    struct iovec parts[10] = {
        {&record, sizeof record},
        {(void *)(uintptr_t)name, record.name_bytes},
    };
    for (int i = 0; i < n && i < 8; i++) {
        parts[2 + i] = data[i];
        record.size += (int64_t)data[i].iov_len;
    }
    ssize_t written = writev(trace, parts, 2 + n);
    (void)written;
}

PUBLIC ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at)
{
    char name[512];
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    bool ours = (trace >= 0 || control) && file_named(fd, name);
    if (ours && fails(FAIL_WRITE))
        return -1;
    ssize_t written = real(fd, data, n, at);
    if (ours && trace >= 0 && written > 0) {
        struct iovec part = {(void *)(uintptr_t)data, (size_t)written};
        record_add('w', name, at, &part, 1);
    }
    return written;
}

PUBLIC int ftruncate64(int fd, off64_t size)
{
    char name[512];
    REAL(int, "ftruncate64", int, off64_t);
    bool ours = (trace >= 0 || control) && file_named(fd, name);
    if (ours && fails(FAIL_WRITE))
        return -1;
    int rc = real(fd, size);
    if (ours && trace >= 0 && rc == 0)
        record_add('t', name, size, NULL, 0);
    return rc;
}

PUBLIC int fdatasync(int fd)
{
    char name[512];
    REAL(int, "fdatasync", int);
    bool ours = (trace >= 0 || control) && file_named(fd, name);
    if (ours && fails(FAIL_SYNC))
        return -1;
    if (ours && trace >= 0)
        record_add('b', name, gettid(), NULL, 0);
    int rc = real(fd);
    if (ours && trace >= 0 && rc == 0)
        record_add('s', name, gettid(), NULL, 0);
    return rc;
}

PUBLIC int open64(const char *name, int flags, ...)
{
    va_list args;
    REAL(int, "open64", const char *, int, ...);
    va_start(args, flags);
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, int) : 0;
    va_end(args);
    return fails(FAIL_OPEN) ? -1 : real(name, flags, mode);
}

/* --- talking -------------------------------------------------------------- */

PUBLIC ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    REAL(ssize_t, "sendmsg", int, const struct msghdr *, int);
    if (fails(FAIL_INTERRUPTED))
        return -1;
    if (trace >= 0)
        record_add('a', "", fd, message->msg_iov, (int)message->msg_iovlen);
    return real(fd, message, flags);
}

PUBLIC int accept4(int fd, __SOCKADDR_ARG address, socklen_t *n, int flags)
{
    REAL(int, "accept4", int, struct sockaddr *, socklen_t *, int);
    return fails(FAIL_INTERRUPTED) ? -1
                                   : real(fd, address.__sockaddr__, n, flags);
}

PUBLIC ssize_t recv(int fd, void *to, size_t n, int flags)
{
    REAL(ssize_t, "recv", int, void *, size_t, int);
    return fails(FAIL_INTERRUPTED) ? -1 : real(fd, to, n, flags);
}

PUBLIC ssize_t send(int fd, const void *data, size_t n, int flags)
{
    REAL(ssize_t, "send", int, const void *, size_t, int);
    return fails(FAIL_INTERRUPTED) ? -1 : real(fd, data, n, flags);
}

PUBLIC int poll(struct pollfd *fds, nfds_t n, int timeout)
{
    REAL(int, "poll", struct pollfd *, nfds_t, int);
    return fails(FAIL_INTERRUPTED) ? -1 : real(fds, n, timeout);
}

PUBLIC int epoll_wait(int fd, struct epoll_event *events, int n, int timeout)
{
    REAL(int, "epoll_wait", int, struct epoll_event *, int, int);
    return fails(FAIL_INTERRUPTED) ? -1 : real(fd, events, n, timeout);
}
