/*
 * acquire.c: get a lease, waiting for it if told to.
 *
 * HOW IT WORKS: the service is asked to hold the question until the resource
 * is free. Where it cannot, and on a file, the question is asked again and
 * again, at the end of the holder's time or after a pause by chance.
 *
 * SPDX-License-Identifier: MIT
 */
#include "acquire.h"

#include <string.h>

#include "clock.h"

enum {
    AGAIN = -2,
    SERVER_WAIT_MS = 60000, /* the most that a service holds a question */
    POLL_MS = 1000,         /* the longest pause between two questions */
    FAILURES = 2,           /* repeated that often though told not to wait */
    SETTLE_MS = 1000
};

struct attempt {
    struct client *client;
    struct ask ask;
    char key[33];
    bool own_key;      /* made here, not told by an option */
    bool server_waits; /* as far as we know */
    bool in_doubt;     /* a grant may have been made that we did not hear of */
    int failures;
    int64_t start_ms;
    int64_t until_ms;
};

static int64_t left_ms(const struct attempt *a)
{
    int64_t left = a->until_ms - clock_ms();
    return left > 0 ? left : 0;
}

static void key_renew(struct attempt *a)
{
    chance_key(a->key);
    value_set_text(&a->ask.fields.v[FIELD_REQUEST_ID], a->key);
    a->in_doubt = false;
}

static void grant_ask(struct attempt *a, struct answer *answer)
{
    struct value *wait = &a->ask.fields.v[FIELD_WAIT];
    int64_t wait_ms = a->server_waits ? left_ms(a) : 0;
    if (wait_ms > SERVER_WAIT_MS)
        wait_ms = SERVER_WAIT_MS;
    wait->type = VALUE_NONE;
    if (wait_ms > 0)
        value_set_real(wait, (double)wait_ms / 1000);
    a->ask.timeout_ms = a->client->options->timeout_ms + wait_ms;
    answer_clear(answer);
    a->client->transport->ask(a->client->transport, &a->ask, answer);
    a->in_doubt = a->in_doubt || !answer->status;
}

/* We leave. If that grant was made nevertheless, give it back. */
static int woken(struct attempt *a)
{
    struct answer answer = {0};
    struct tenure tenure = {0};
    if (!a->in_doubt)
        return ACQUIRE_WOKEN;
    a->ask.fields.v[FIELD_WAIT].type = VALUE_NONE;
    a->ask.wake_fd = -1;
    a->ask.timeout_ms = SETTLE_MS;
    a->client->transport->ask(a->client->transport, &a->ask, &answer);
    if (tenure_take(a->client, &tenure, &answer))
        tenure_release(a->client, &tenure, SETTLE_MS);
    answer_clear(&answer);
    return ACQUIRE_WOKEN;
}

static int rest(struct attempt *a, int64_t ms)
{
    int64_t left = left_ms(a);
    if (clock_sleep(ms < left || !left ? ms : left, a->ask.wake_fd))
        return woken(a);
    return AGAIN;
}

static int held(struct attempt *a, const struct problem *problem)
{
    if (!left_ms(a))
        return EXIT_HELD;
    /* Else another asks with our request_id: not at once, or the two would
     * drive each other out without end. */
    if (a->ask.fields.v[FIELD_WAIT].type && strcmp(problem->code, "held") == 0)
        return AGAIN; /* the service has waited for us */
    int64_t ms = chance_between(POLL_MS / 2, POLL_MS);
    if (problem->remaining_ms >= 0 && problem->remaining_ms < ms)
        ms = problem->remaining_ms + chance_between(1, 50);
    return rest(a, ms);
}

static int failed(struct attempt *a, const struct answer *answer)
{
    int64_t ms = (int64_t)100 << a->failures;
    if (a->failures < 4)
        a->failures++;
    if (!left_ms(a) &&
        (a->failures > FAILURES ||
         clock_ms() - a->start_ms >= a->client->options->timeout_ms))
        return EXIT_BROKEN;
    int64_t told_ms = (int64_t)answer->retry_after * 1000;
    if (left_ms(a) && told_ms > ms)
        ms = told_ms;
    return rest(a, chance_between(ms, 2 * ms));
}

static int judge(struct attempt *a, const struct answer *answer,
                 struct tenure *tenure)
{
    struct problem problem;
    if (answer->woken)
        return woken(a);
    if (tenure_take(a->client, tenure, answer))
        return EXIT_DONE;
    json_problem(a->client->json, answer, &problem);
    if (answer->status == 409)
        return held(a, &problem);
    if (answer->status == 410 && a->own_key) {
        key_renew(a); /* we got it and it ran out, unheard */
        return AGAIN;
    }
    if (answer->status == 422 && problem.no_wait && a->server_waits) {
        a->server_waits = false;
        return AGAIN;
    }
    if (answer->status == 0 || answer->status >= 500)
        return failed(a, answer);
    return client_complain(a->client, answer, true);
}

int acquire(struct client *client, int wake_fd, struct tenure *tenure,
            struct answer *answer)
{
    const struct options *options = client->options;
    struct attempt a = {
        .client = client,
        .ask = {.route = ROUTE_GRANT,
                .fields = options->fields,
                .wake_fd = wake_fd},
        .own_key = !options->fields.v[FIELD_REQUEST_ID].type,
        .server_waits = !options->db,
        .start_ms = clock_ms(),
    };
    int verdict = AGAIN;
    a.until_ms = a.start_ms + options->wait_ms;
    if (a.own_key)
        key_renew(&a);
    *answer = (struct answer){0};
    *tenure = (struct tenure){.ttl_ms = options->ttl_ms};
    while (verdict == AGAIN) {
        grant_ask(&a, answer);
        verdict = judge(&a, answer, tenure);
    }
    return verdict;
}
