/*
 * reply.h: an answer to the web server, written as FastCGI records. The only
 * place that writes to it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef REPLY_H
#define REPLY_H

#include <stddef.h>

enum { REQUEST_ID_MAX = 64 };

struct reply {
    int status;       /* HTTP status */
    const char *body; /* length bytes; NULL with 204 */
    size_t length;
    const char *type;       /* of the body; NULL: JSON, of its status */
    int retry_after;        /* seconds, 0: no such header */
    const char *allow;      /* methods, NULL: no such header */
    const char *request_id; /* plain, at most REQUEST_ID_MAX bytes */
};

/*
 * Write the answer to FastCGI request id on fd, then close fd, in any case.
 * With wait_ms 0 it never blocks: a web server that does not take the answer
 * at once loses it. Otherwise it waits that long for room.
 */
void reply_send(int fd, int id, const struct reply *reply, int wait_ms);

/*
 * An answer that goes on and on: text/event-stream. Nothing of it ever
 * blocks; what the web server does not take at once is kept until
 * reply_flush().
 */
struct reply_stream {
    int fd, id;
    char *rest; /* malloc()ed, rest_n bytes not yet taken, or NULL */
    size_t rest_n;
};

/*
 * Send a piece, at most STREAM_PIECE_MAX bytes, and only when there is no
 * rest. 0, or -1 when the stream is broken. reply_begin() sends the head.
 */
enum { STREAM_PIECE_MAX = 65000 };
int reply_begin(struct reply_stream *stream, const char *request_id);
int reply_piece(struct reply_stream *stream, const char *text, size_t n);
int reply_flush(struct reply_stream *stream);

/* End the stream, in good order if there is no rest, and close it. */
void reply_end(struct reply_stream *stream);

/* Has the web server given up this request? Reads nothing, never blocks. */
int reply_unwanted(int fd);

#endif
