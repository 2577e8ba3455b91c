/*
 * ask.h: one question to the lease manager and its answer, whoever gives it:
 * the service (http.c) or the engine in this process (db.c).
 *
 *     struct ask ask = {.route = ROUTE_RENEW, .timeout_ms = 2000,
 *                       .wake_fd = -1};
 *     value_set_text(&ask.fields.v[FIELD_RESOURCE], "nightly");
 *     value_set_integer(&ask.fields.v[FIELD_TOKEN], 7);
 *     transport->ask(transport, &ask, &answer);
 *     if (answer.status == 200) puts(answer.body);
 *     answer_clear(&answer);
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef ASK_H
#define ASK_H

#include <stdbool.h>
#include <stdint.h>

enum field {
    FIELD_RESOURCE,
    FIELD_HOLDER,
    FIELD_TTL,
    FIELD_CAPACITY,
    FIELD_DATA,
    FIELD_WAIT,
    FIELD_TOKEN,
    FIELD_MIN_REMAINING,
    FIELD_REASON,
    FIELD_PREFIX,
    FIELD_LIMIT,
    FIELD_AFTER,
    FIELD_REQUEST_ID, /* the Idempotency-Key */
    FIELD_ACTOR,      /* --db only: the service knows who asks */
    FIELD_BODY,       /* an answer, for statements that take it apart */
    FIELD_CODE,       /* of a problem */
    FIELD_DETAIL,     /* of a problem */
    FIELD_N
};

/* The names of the fields, the same in JSON, queries and SQL. */
extern const char *const FIELD_NAMES[FIELD_N];

enum value_type { VALUE_NONE, VALUE_INTEGER, VALUE_REAL, VALUE_TEXT };

/* A text belongs to somebody else and must outlive the value. */
struct value {
    enum value_type type;
    int64_t integer;
    double real;
    const char *text;
};

struct fields {
    struct value v[FIELD_N];
};

void value_set_text(struct value *value, const char *text);
void value_set_integer(struct value *value, int64_t integer);
void value_set_real(struct value *value, double real);

enum route_id {
    ROUTE_GRANT,
    ROUTE_RENEW,
    ROUTE_RELEASE,
    ROUTE_CHECK,
    ROUTE_REVOKE,
    ROUTE_LEASES,
    ROUTE_EVENTS,
    ROUTE_STATUS,
    ROUTE_N
};

/* The same question in both languages. */
struct route {
    const char *path; /* over HTTP */
    bool post;        /* fields in a JSON body, else in the query */
    const char *sql;  /* --db: yields status, body, retry_after */
    bool writes;      /* --db: in a transaction that is committed first */
    bool creates;     /* --db: makes the file and the tables where missing */
};

extern const struct route ROUTES[ROUTE_N];

struct ask {
    enum route_id route;
    struct fields fields;
    int64_t timeout_ms; /* no question takes longer */
    int wake_fd;        /* given up when this is readable; -1: never */
};

struct answer {
    int status;      /* of HTTP; 0: there was none, why says why */
    char *body;      /* malloc()ed JSON, or NULL when status is 0 */
    int retry_after; /* seconds, or 0 */
    int64_t sent_ms; /* boot clock, before the question was sent */
    bool woken;      /* given up because of wake_fd */
    char why[256];
};

void answer_clear(struct answer *answer);

/* A way to ask. close() frees it. */
struct transport {
    void (*ask)(struct transport *transport, const struct ask *ask,
                struct answer *answer);
    void (*close)(struct transport *transport);
};

#endif
