/*
 * limits.h: every bound of the service, in one place.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LIMITS_H
#define LIMITS_H

enum {
    WORKERS = 8,      /* threads that accept and read requests */
    WORKERS_BUSY = 3, /* of them at work: lighttpd, which has one thread, keeps
                       * two busy, and more only wake each other. Who has to
                       * wait for its peer lets another work */
    READERS = 4,      /* connections that only read */
    THREAD_STACK = 512 << 10,

    BODY_MAX = 64 << 10,     /* bytes of a request's body */
    BODY_MAX_LONG = 1 << 20, /* the same, of POST /v1/batch */
    JSON_DEPTH_MAX = 32,     /* containers inside each other */

    PARTS_MAX = 1000, /* operations in a POST /v1/batch;
                       * sql/http_fields.sql has it, too */
    MORE_MAX = 10000, /* operations behind the first of each batch not yet done:
                       * beyond, no batch is taken */
    QUEUE_MAX = 4096, /* requests taken and not yet answered */
    BATCH_MAX = 512,  /* operations of one transaction; the last may be a
                       * POST /v1/batch and bring more */
    LOCK_STEP_MS = 50,    /* longest wait for a foreign lock in one go */
    LOCK_START_MS = 5000, /* the same while the service starts */
    OVERDUE_MS = 5000,    /* a queued request is answered by then */
    HELD_MS = 1000,       /* so long a refusal is a reason to ask a reader */
    HELD_PLACES = 1024,   /* resources remembered for that, at most */
    SUSPECT_MS = 100,     /* a request this old of a client that has left is
                           * not done */
    CLIENTS_ASKED = 32,   /* asked for in one go */
    CLIENTS_KNOWN = 256,  /* addresses that clients came from */

    WAITERS_MAX = 10000,     /* grants that wait */
    WAITERS_LINE_MAX = 6000, /* for one resource */
    WAITERS_BUCKETS = 4096,
    WAITERS_TOLD = 100, /* by name, of one resource */
    WAIT_LOOK_MS = 10,  /* so often the writer looks at those who wait, and at
                         * what other processes do */

    WATCHERS_MAX = 2000,  /* event streams and long polls */
    TAIL_EVENTS = 8192,   /* newest events kept in memory for them */
    TAIL_BYTES = 4 << 20, /* as JSON */
    EVENTS_DEFAULT = 100, /* on a page; sql/http_events.sql has it, too */

    DESCRIPTORS_OWN = 256, /* for what is neither parked nor queued */
    DESCRIPTORS = 30000,   /* lighttpd.conf asks for so many, and hands them on.
                            * It needs two for each that is parked: those are
                            * two fifths of them at most */

    SWEEP_MAX = 1000,      /* expiries recorded by one operation */
    SWEEP_PAUSE_MS = 5,    /* between two of them */
    SWEEP_FAILED_MS = 200, /* the same when nothing can be written */
    SWEEP_LOOK_MS = 1000,  /* longest sleep of the sweeper */
    LOG_LINES_MAX = 100,   /* a second, of answers that are told in the log */

    WAL_PAGES = 1000,     /* checkpoint when the log has this many more */
    WAL_PAGES_BIG = 3000, /* start the log anew when it has this many; its
                           * file keeps 4,000, see sql/http_open_writer.sql */

    PEER_MS = 2000,    /* longest wait for the web server: for all of a request
                        * together, for each piece of an answer */
    PEER_SOON_MS = 20, /* who says nothing for this long is waited for while
                        * another works */
    DRAIN_MS = 1000,   /* at the end: for requests not yet accepted */
    END_S = 4,         /* at the end: all of it, then by force */
    LOCK_FILE_MS = 6000,  /* for a service that is on its way out */
    CHECK_LOCK_MS = 2000, /* the same, by a mere check */
    LINGER_MS = 300       /* who cannot start stays for this long */
};

#endif
