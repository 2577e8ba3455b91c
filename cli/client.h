/*
 * client.h: whom to ask, and a lease that was got there.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CLIENT_H
#define CLIENT_H

#include "ask.h"
#include "json.h"
#include "options.h"

struct client {
    const struct options *options;
    struct transport *transport;
    struct json *json;
};

/* A lease that this process holds, and how long it may believe so. */
struct tenure {
    struct lease lease;
    int64_t ttl_ms;
    int64_t sent_ms;     /* boot clock: when the newest token was asked for */
    int64_t deadline_ms; /* boot clock: sent_ms and what remained */
};

/* False after saying why not. The caller ends it with client_close(), also
 * after a failure. Connects to nothing yet. */
bool client_open(struct client *client, const struct options *options);
void client_close(struct client *client);

/* Say what an answer says that is no success, unless quiet. Returns the exit
 * status for it. */
int client_complain(struct client *client, const struct answer *answer,
                    bool quiet);

enum renewal {
    RENEWED,
    RENEW_OVER,  /* it says that the lease is over */
    RENEW_FAILED /* no answer, or none that says anything of the lease */
};

/* Renew within timeout_ms; gives up when wake_fd is readable. *answer has
 * what was said. */
enum renewal tenure_renew(struct client *client, struct tenure *tenure,
                          int64_t timeout_ms, int wake_fd,
                          struct answer *answer);

/* Give it back within timeout_ms. Returns the answer's status. */
int tenure_release(struct client *client, const struct tenure *tenure,
                   int64_t timeout_ms);

/* Note what a lease that was answered says. False when it is no lease. */
bool tenure_take(struct client *client, struct tenure *tenure,
                 const struct answer *answer);

#endif
