/*
 * acquire.h: get a lease, waiting for it if told to.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ACQUIRE_H
#define ACQUIRE_H

#include "client.h"

/* What acquire() answers when wake_fd put an end to it. */
enum { ACQUIRE_WOKEN = -1 };

/*
 * Ask for the lease that the options tell, up to their wait_ms. A grant whose
 * answer was lost is asked for again with the same request_id. When given up
 * because wake_fd (or -1) is readable, nothing stays held.
 * Returns EXIT_DONE with *tenure, another exit status, or ACQUIRE_WOKEN. The
 * last answer is in *answer (free it with answer_clear()).
 */
int acquire(struct client *client, int wake_fd, struct tenure *tenure,
            struct answer *answer);

#endif
