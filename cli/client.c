/*
 * client.c: whom to ask, and a lease that was got there.
 *
 * SPDX-License-Identifier: MIT
 */
#include "client.h"

#include <string.h>

#include "db.h"
#include "http.h"
#include "say.h"

bool client_open(struct client *client, const struct options *options)
{
    *client = (struct client){.options = options};
    client->json = json_open();
    if (client->json)
        client->transport = options->db
                                ? db_open(options->db)
                                : http_open(&options->http, client->json);
    if (!client->transport)
        say("out of memory");
    return client->transport != NULL;
}

void client_close(struct client *client)
{
    if (client->transport)
        client->transport->close(client->transport);
    json_close(client->json);
}

static int status_exit(int status, const char *code)
{
    switch (status) {
    case 409:
        return EXIT_HELD;
    case 410:
    case 412:
        return EXIT_OVER;
    case 404:
        return strcmp(code, "unknown") == 0 ? EXIT_OVER : EXIT_BROKEN;
    case 400:
    case 413:
    case 422:
        return EXIT_USAGE;
    default:
        return EXIT_BROKEN;
    }
}

int client_complain(struct client *client, const struct answer *answer,
                    bool quiet)
{
    struct problem problem;
    json_problem(client->json, answer, &problem);
    if (!quiet)
        say("%s", problem.text);
    return status_exit(answer->status, problem.code);
}

bool tenure_take(struct client *client, struct tenure *tenure,
                 const struct answer *answer)
{
    struct lease lease;
    if (answer->status != 200 ||
        !json_lease(client->json, answer->body, &lease))
        return false;
    int64_t deadline_ms = answer->sent_ms + lease.remaining_ms;
    tenure->lease = lease;
    tenure->sent_ms = answer->sent_ms;
    /* A renewal never shortens. */
    if (deadline_ms > tenure->deadline_ms)
        tenure->deadline_ms = deadline_ms;
    return true;
}

static void tenure_ask(struct client *client, const struct tenure *tenure,
                       enum route_id route, int64_t timeout_ms, int wake_fd,
                       struct answer *answer)
{
    struct ask ask = {
        .route = route, .timeout_ms = timeout_ms, .wake_fd = wake_fd};
    ask.fields.v[FIELD_RESOURCE] = client->options->fields.v[FIELD_RESOURCE];
    value_set_integer(&ask.fields.v[FIELD_TOKEN], tenure->lease.token);
    client->transport->ask(client->transport, &ask, answer);
}

enum renewal tenure_renew(struct client *client, struct tenure *tenure,
                          int64_t timeout_ms, int wake_fd,
                          struct answer *answer)
{
    struct problem problem;
    tenure_ask(client, tenure, ROUTE_RENEW, timeout_ms, wake_fd, answer);
    if (tenure_take(client, tenure, answer))
        return RENEWED;
    json_problem(client->json, answer, &problem);
    return status_exit(answer->status, problem.code) == EXIT_OVER
               ? RENEW_OVER
               : RENEW_FAILED;
}

int tenure_release(struct client *client, const struct tenure *tenure,
                   int64_t timeout_ms)
{
    struct answer answer;
    tenure_ask(client, tenure, ROUTE_RELEASE, timeout_ms, -1, &answer);
    int status = answer.status;
    answer_clear(&answer);
    return status;
}
