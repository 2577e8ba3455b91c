/*
 * request.c: one FastCGI request, read.
 *
 * HOW IT WORKS: the connection is accepted here and given to libfcgi as one
 * it keeps open (ipcFd, keepConnection): so that reads have a time limit, and
 * so that libfcgi's own accept, which polls, and its close, which waits for
 * the peer, are out of the way. libfcgi reads the records; its objects are
 * freed before the answer, which reply.c writes itself.
 *
 * Of the threads that read requests WORKERS_BUSY have their turn. One keeps it
 * from request to request, and gives it away when its peer says nothing: it
 * ends that request without, and waits for its turn before the next. Who has a
 * turn may wait for a connection for ever, so nobody waits for a turn who has
 * one.
 *
 * SPDX-License-Identifier: MIT
 */
#include "request.h"

#include <errno.h>
#include <fcgiapp.h>
#include <poll.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "limits.h"
#include "route.h"

struct held {
    struct request request; /* first: callers see only this */
    FCGX_Request fcgx;
    char body[BODY_MAX + 1];
    char *long_body; /* malloc()ed, for one that does not fit, or NULL */
};

/* NOLINTBEGIN(bugprone-macro-parentheses): field is the name of a member */
#define PARAM(name, field)                                                     \
    {                                                                          \
        (name), sizeof(name) - 1, offsetof(struct request, field)              \
    }
/* NOLINTEND(bugprone-macro-parentheses) */
static const struct {
    const char *name;
    size_t length, offset;
} PARAMS[] = {
    PARAM("REQUEST_METHOD", method),
    PARAM("REQUEST_URI", uri),
    PARAM("CONTENT_TYPE", content_type),
    PARAM("CONTENT_LENGTH", content_length),
    PARAM("HTTP_ACCEPT", accept),
    PARAM("HTTP_LAST_EVENT_ID", last_event_id),
    PARAM("HTTP_HOST", host),
    PARAM("HTTP_ORIGIN", origin),
    PARAM("SERVER_ADDR", server_addr),
    PARAM("SERVER_PORT", server_port),
    PARAM("REMOTE_ADDR", remote_addr),
    PARAM("_L_EXTFORWARD_ACTUAL_FOR", forwarded_by),
    PARAM("REMOTE_PORT", remote_port),
    PARAM("REMOTE_USER", remote_user),
    PARAM("HTTPS", https),
    PARAM("HTTP_IDEMPOTENCY_KEY", idempotency_key),
    PARAM("HTTP_X_REQUEST_ID", x_request_id),
};

static sem_t turns;
static _Thread_local bool my_turn;

void request_turns(unsigned n)
{
    sem_init(&turns, 0, n);
}

static void turn_take(void)
{
    while (!my_turn)
        my_turn = sem_wait(&turns) == 0;
}

static void turn_give(void)
{
    if (my_turn)
        sem_post(&turns);
    my_turn = false;
}

static bool readable(int fd, int wait_ms)
{
    struct pollfd more = {.fd = fd, .events = POLLIN};
    int rc;
    do
        rc = poll(&more, 1, wait_ms);
    while (rc < 0 && errno == EINTR);
    return rc > 0;
}

/* Milliseconds that are left for the peer of this request to say it all. */
static _Thread_local int peer_ms;

/* Time in which the process stood still does not count. */
static bool peer_wait(int fd, int wait_ms)
{
    int64_t start = clock_ms();
    bool more = readable(fd, wait_ms);
    int64_t took = clock_ms() - start;
    peer_ms -= took < wait_ms ? (int)took : wait_ms;
    return more;
}

/* Wait for a peer that has not said all. After one that does not, libfcgi is
 * not to wait any more either, not even in its close. */
static bool peer_says_more(int fd)
{
    if (peer_ms > PEER_SOON_MS && peer_wait(fd, PEER_SOON_MS))
        return true;
    turn_give();
    if (peer_ms > 0 && peer_wait(fd, peer_ms))
        return true;
    shutdown(fd, SHUT_RDWR);
    return false;
}

/*
 * In place of libfcgi's own, which waits for ever, and takes a read that a
 * signal interrupts for the end of the connection.
 */
int OS_Read(int fd, char *buffer, size_t size);
__attribute__((visibility("default"))) int OS_Read(int fd, char *buffer,
                                                   size_t size)
{
    ssize_t n;
    do
        n = recv(fd, buffer, size, MSG_DONTWAIT);
    while (n < 0 &&
           (errno == EINTR || (errno == EAGAIN && peer_says_more(fd))));
    return (int)n;
}

struct request *request_new(void)
{
    struct held *held = calloc(1, sizeof *held);
    if (!held)
        return NULL;
    /* No listening socket: libfcgi never accepts by itself. */
    if (FCGX_InitRequest(&held->fcgx, -1, 0) != 0) {
        free(held);
        return NULL;
    }
    held->fcgx.ipcFd = -1;
    return &held->request;
}

static void long_body_free(struct held *held)
{
    free(held->long_body);
    held->long_body = NULL;
}

void request_free(struct request *request)
{
    turn_give();
    if (!request)
        return;
    FCGX_Free(&((struct held *)request)->fcgx, 1);
    long_body_free((struct held *)request);
    free(request);
}

static void params_read(struct held *held)
{
    memset(&held->request, 0, sizeof held->request);
    for (char **param = held->fcgx.envp; *param; param++) {
        const char *equals = strchr(*param, '=');
        if (!equals)
            continue;
        size_t n = (size_t)(equals - *param);
        for (size_t i = 0; i < sizeof PARAMS / sizeof *PARAMS; i++) {
            if (n != PARAMS[i].length || memcmp(*param, PARAMS[i].name, n) != 0)
                continue;
            *(const char **)((char *)&held->request + PARAMS[i].offset) =
                equals + 1;
            break;
        }
    }
}

/* How long a body may be, with room for one byte more. */
static size_t body_room(struct held *held)
{
    const struct request *request = &held->request;
    const char *length = request->content_length;
    size_t max = request->uri ? route_body_max(request->uri) : BODY_MAX;
    if (max <= BODY_MAX || !length || strtoul(length, NULL, 10) <= BODY_MAX)
        return BODY_MAX;
    held->long_body = malloc(max + 1);
    return held->long_body ? max : BODY_MAX;
}

/* To the end of the stream in any case: closing a socket with unread bytes
 * would take the answer from the web server again. */
static int body_read(struct held *held)
{
    struct request *request = &held->request;
    size_t max = body_room(held);
    char *body = held->long_body ? held->long_body : held->body;
    int n = FCGX_GetStr(body, (int)max + 1, held->fcgx.in);
    if (n > (int)max) {
        request->body_too_large = true;
        char rest[4096];
        while (FCGX_GetStr(rest, sizeof rest, held->fcgx.in) > 0)
            ;
        n = 0;
    }
    if (FCGX_GetError(held->fcgx.in) != 0)
        return -1;
    body[n] = 0;
    request->body = body;
    request->body_len = (size_t)n;
    const char *length = request->content_length;
    if (length && !request->body_too_large)
        request->body_short = strtoul(length, NULL, 10) != (unsigned long)n;
    return 0;
}

int request_accept(struct request *request, int listen_fd)
{
    struct held *held = (struct held *)request;
    FCGX_Free(&held->fcgx, 1);
    long_body_free(held);
    turn_take();
    int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return -1;
    peer_ms = PEER_MS;
    held->fcgx.ipcFd = fd;
    held->fcgx.keepConnection = 1;
    if (FCGX_Accept_r(&held->fcgx) == 0) {
        params_read(held);
        if (body_read(held) == 0)
            return 0;
    }
    FCGX_Free(&held->fcgx, 1);
    errno = ECONNABORTED;
    return -1;
}

int request_take(struct request *request, int *id)
{
    FCGX_Request *fcgx = &((struct held *)request)->fcgx;
    int fd = fcgx->ipcFd;
    *id = fcgx->requestId;
    FCGX_Free(fcgx, 0);
    long_body_free((struct held *)request);
    fcgx->ipcFd = -1;
    return fd;
}
