/*
 * reply.c: an answer to the web server, written as FastCGI records.
 *
 * HOW IT WORKS: one sendmsg() for everything that fits into one record: head,
 * body and end of request from where they lie. A longer body goes out in
 * records of CHUNK bytes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "reply.h"

#include <errno.h>
#include <fastcgi.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { CHUNK = 32768, HEAD_MAX = 512 };

static const char *status_phrase(int status)
{
    static const struct {
        int status;
        const char *phrase;
    } PHRASES[] = {
        {200, "OK"},
        {204, "No Content"},
        {400, "Bad Request"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {409, "Conflict"},
        {410, "Gone"},
        {411, "Length Required"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {421, "Misdirected Request"},
        {422, "Unprocessable Content"},
        {503, "Service Unavailable"},
        {507, "Insufficient Storage"},
    };
    for (size_t i = 0; i < sizeof PHRASES / sizeof *PHRASES; i++)
        if (PHRASES[i].status == status)
            return PHRASES[i].phrase;
    return "Internal Server Error";
}

static FCGI_Header record_head(int type, int id, size_t length)
{
    return (FCGI_Header){
        .version = FCGI_VERSION_1,
        .type = (unsigned char)type,
        .requestIdB1 = (unsigned char)(id >> 8),
        .requestIdB0 = (unsigned char)id,
        .contentLengthB1 = (unsigned char)(length >> 8),
        .contentLengthB0 = (unsigned char)length,
    };
}

/* The HTTP head into text, which has HEAD_MAX bytes. Returns its length. */
static size_t head_write(char *text, const struct reply *reply)
{
    size_t n = (size_t)snprintf(
        text, HEAD_MAX,
        "Status: %d %s\r\nX-Request-Id: %.*s\r\nCache-Control: no-store\r\n",
        reply->status, status_phrase(reply->status), REQUEST_ID_MAX,
        reply->request_id);
    if (reply->retry_after)
        n += (size_t)snprintf(text + n, HEAD_MAX - n, "Retry-After: %d\r\n",
                              reply->retry_after);
    if (reply->allow)
        n += (size_t)snprintf(text + n, HEAD_MAX - n, "Allow: %s\r\n",
                              reply->allow);
    const char *type = reply->type           ? reply->type
                       : reply->status < 400 ? "application/json"
                                             : "application/problem+json";
    if (reply->body)
        n += (size_t)snprintf(text + n, HEAD_MAX - n,
                              "Content-Type: %s\r\nContent-Length: %zu\r\n",
                              type, reply->length);
    n += (size_t)snprintf(text + n, HEAD_MAX - n, "\r\n");
    return n;
}

/* Drop the first n bytes from the parts. */
static void parts_advance(struct msghdr *message, size_t n)
{
    while (message->msg_iovlen > 0 && n >= message->msg_iov->iov_len) {
        n -= message->msg_iov->iov_len;
        message->msg_iov++;
        message->msg_iovlen--;
    }
    if (message->msg_iovlen > 0) {
        message->msg_iov->iov_base = (char *)message->msg_iov->iov_base + n;
        message->msg_iov->iov_len -= n;
    }
}

static bool parts_send(int fd, struct iovec *parts, size_t n, int wait_ms)
{
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = n};
    for (;;) {
        ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0) {
            parts_advance(&message, (size_t)sent);
            if (message.msg_iovlen == 0)
                return true;
        } else if (errno == EAGAIN && wait_ms > 0) {
            struct pollfd room = {.fd = fd, .events = POLLOUT};
            if (poll(&room, 1, wait_ms) <= 0)
                return false;
        } else if (errno != EINTR) {
            return false;
        }
    }
}

static struct iovec part(const void *base, size_t length)
{
    return (struct iovec){.iov_base = (void *)(uintptr_t)base,
                          .iov_len = length};
}

struct ending {
    FCGI_Header stdout_end;
    FCGI_EndRequestRecord request_end;
};

static struct ending ending(int id)
{
    return (struct ending){
        record_head(FCGI_STDOUT, id, 0),
        {record_head(FCGI_END_REQUEST, id, sizeof(FCGI_EndRequestBody)), {0}}};
}

void reply_send(int fd, int id, const struct reply *reply, int wait_ms)
{
    char head[HEAD_MAX];
    size_t head_length = head_write(head, reply);
    const char *body = reply->body ? reply->body : "";
    size_t left = reply->body ? reply->length : 0;
    struct ending end = ending(id);
    bool last = false;
    while (!last) {
        struct iovec parts[4];
        size_t n = left < CHUNK ? left : CHUNK;
        last = n == left;
        FCGI_Header record = record_head(FCGI_STDOUT, id, head_length + n);
        parts[0] = part(&record, sizeof record);
        parts[1] = part(head, head_length);
        parts[2] = part(body, n);
        parts[3] = part(&end, sizeof end);
        if (!parts_send(fd, parts, last ? 4 : 3, wait_ms))
            break;
        head_length = 0;
        body += n;
        left -= n;
    }
    close(fd);
}

/* Keep what of the parts was not taken. */
static int rest_keep(struct reply_stream *stream, const struct msghdr *message)
{
    size_t n = 0;
    for (size_t i = 0; i < message->msg_iovlen; i++)
        n += message->msg_iov[i].iov_len;
    if (n == 0)
        return 0;
    if (!(stream->rest = malloc(n)))
        return -1;
    for (size_t i = 0; i < message->msg_iovlen; i++) {
        memcpy(stream->rest + stream->rest_n, message->msg_iov[i].iov_base,
               message->msg_iov[i].iov_len);
        stream->rest_n += message->msg_iov[i].iov_len;
    }
    return 0;
}

int reply_piece(struct reply_stream *stream, const char *text, size_t n)
{
    FCGI_Header record = record_head(FCGI_STDOUT, stream->id, n);
    struct iovec parts[] = {part(&record, sizeof record), part(text, n)};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t sent = sendmsg(stream->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR)
        return -1;
    parts_advance(&message, sent < 0 ? 0 : (size_t)sent);
    return rest_keep(stream, &message);
}

int reply_begin(struct reply_stream *stream, const char *request_id)
{
    char head[HEAD_MAX];
    int n = snprintf(head, sizeof head,
                     "Status: 200 OK\r\nX-Request-Id: %.*s\r\n"
                     "Cache-Control: no-store\r\nX-Accel-Buffering: no\r\n"
                     "Content-Type: text/event-stream\r\n\r\n",
                     REQUEST_ID_MAX, request_id);
    return reply_piece(stream, head, (size_t)n);
}

int reply_flush(struct reply_stream *stream)
{
    ssize_t sent = send(stream->fd, stream->rest, stream->rest_n,
                        MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    stream->rest_n -= (size_t)sent;
    if (stream->rest_n > 0) {
        memmove(stream->rest, stream->rest + sent, stream->rest_n);
        return 0;
    }
    free(stream->rest);
    stream->rest = NULL;
    return 0;
}

void reply_end(struct reply_stream *stream)
{
    if (stream->fd < 0)
        return;
    struct ending end = ending(stream->id);
    if (!stream->rest)
        send(stream->fd, &end, sizeof end, MSG_NOSIGNAL | MSG_DONTWAIT);
    free(stream->rest);
    stream->rest = NULL;
    close(stream->fd);
    stream->fd = -1;
}

int reply_unwanted(int fd)
{
    char byte;
    ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    /* After the request the web server says nothing but FCGI_ABORT_REQUEST. */
    return n >= 0 || (errno != EAGAIN && errno != EINTR);
}
