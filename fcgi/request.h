/*
 * request.h: one FastCGI request, read. The only place that reads libfcgi's
 * input.
 *
 *     struct request *request = request_new();
 *     while (request_accept(request, listen_fd) == 0) {
 *         … request->method, request->body …
 *         reply_send(request_take(request, &id), id, &reply);
 *     }
 *     request_free(request);
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef REQUEST_H
#define REQUEST_H

#include <stdbool.h>
#include <stddef.h>

/* Of each: the text as the web server passed it, or NULL when absent. Valid
 * until the next request_accept() or request_take(). */
struct request {
    const char *method;
    const char *uri; /* as the client spelled it, query included */
    const char *content_type;
    const char *content_length;
    const char *accept;
    const char *last_event_id;
    const char *host;
    const char *origin;
    const char *server_addr;
    const char *server_port;
    const char *remote_addr;
    const char *remote_port;
    const char *forwarded_by; /* the proxy, when remote_addr is from it */
    const char *remote_user;
    const char *https; /* NULL: came without TLS */
    const char *idempotency_key;
    const char *x_request_id;
    char *body; /* body_len bytes */
    size_t body_len;
    bool body_too_large; /* for its route: read to its end, not kept */
    bool body_short;     /* fewer bytes than content_length says */
};

/* So many threads may be at work at a time, beside those whose peer keeps them
 * waiting; once, before the first request_accept(). */
void request_turns(unsigned n);

/* A request to be filled again and again, or NULL without memory. */
struct request *request_new(void);
void request_free(struct request *request); /* by the thread that used it */

/*
 * Take the next connection of listen_fd and read its request to the end.
 * Connections that keep it waiting for more than PEER_MS in all are dropped.
 * Drops a request that was accepted before and not taken. Returns 0, or -1 with
 * errno: ECONNABORTED for a dropped connection, EINVAL when listen_fd was shut
 * down and nothing waits, or what accept4() says.
 */
int request_accept(struct request *request, int listen_fd);

/*
 * Hand over the connection: the caller answers on it with the FastCGI request
 * number *id and closes it. Frees what was read.
 */
int request_take(struct request *request, int *id);

#endif
