/*
 * verbs.c: the verbs that ask and print, for scripts.
 *
 * SPDX-License-Identifier: MIT
 */
#include "verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acquire.h"
#include "clock.h"
#include "say.h"
#include "sql.h"

enum { PAGE = 1000, WATCH_WAIT_MS = 30000, WATCH_POLL_MS = 250 };

/* Print the answer, or what it refuses. Returns the exit status; *rows gets
 * the number of lines. */
static int answer_print(struct client *client, const struct verb *verb,
                        const struct answer *answer, int *rows)
{
    bool json = client->options->json;
    bool over = false;
    *rows = 0;
    if (answer->status != 200) {
        if (json && answer->status)
            printf("%s\n", answer->body);
        if (answer->status == 404 && verb->route == ROUTE_EVENTS) {
            say("%s has no events", client->options->http.url);
            return EXIT_BROKEN;
        }
        return client_complain(client, answer, json && answer->status);
    }
    *rows = json_print(client->json, verb->view, answer->body, json, &over);
    if (*rows < 0) {
        say("the answer is none of Leasehold's");
        return EXIT_BROKEN;
    }
    return over ? EXIT_OVER : EXIT_DONE;
}

static int ask_once(struct client *client, const struct verb *verb)
{
    struct answer answer;
    struct ask ask = {.route = verb->route,
                      .fields = client->options->fields,
                      .timeout_ms = client->options->timeout_ms,
                      .wake_fd = -1};
    int rows;
    client->transport->ask(client->transport, &ask, &answer);
    int status = answer_print(client, verb, &answer, &rows);
    answer_clear(&answer);
    return status;
}

static int grant(struct client *client, const struct verb *verb)
{
    struct tenure tenure;
    struct answer answer;
    int rows;
    acquire(client, -1, &tenure, &answer);
    int status = answer_print(client, verb, &answer, &rows);
    answer_clear(&answer);
    return status;
}

/* --- lists ------------------------------------------------------------------
 */

/* A walk through a list, page by page. */
struct walk {
    struct client *client;
    const struct verb *verb;
    struct ask ask;
    int64_t limit; /* rows to print at most, or 0 */
    char *owned;   /* the text in the field "after", if it is one */
};

static void walk_begin(struct walk *walk, struct client *client,
                       const struct verb *verb)
{
    *walk = (struct walk){
        .client = client,
        .verb = verb,
        .ask = {.route = verb->route,
                .fields = client->options->fields,
                .timeout_ms = client->options->timeout_ms,
                .wake_fd = -1},
        .limit = client->options->fields.v[FIELD_LIMIT].integer,
    };
}

/* Where the next page begins, in place of the one before. False at the end.
 */
static bool page_turn(struct walk *walk, const char *body)
{
    struct value *after = &walk->ask.fields.v[FIELD_AFTER];
    struct value next = json_value(walk->client->json, SQL_CLI_NEXT, body);
    if (next.type == VALUE_NONE ||
        (next.type == VALUE_INTEGER && after->type == VALUE_INTEGER &&
         next.integer == after->integer))
        return false;
    free(walk->owned);
    walk->owned = next.type == VALUE_TEXT ? (char *)(uintptr_t)next.text : NULL;
    *after = next;
    return true;
}

/* Print one page. *more: there may be another. */
static int page_print(struct walk *walk, bool *more)
{
    struct answer answer;
    int rows;
    int64_t n = walk->limit && walk->limit < PAGE ? walk->limit : PAGE;
    value_set_integer(&walk->ask.fields.v[FIELD_LIMIT], n);
    walk->client->transport->ask(walk->client->transport, &walk->ask, &answer);
    int status = answer_print(walk->client, walk->verb, &answer, &rows);
    *more = status == EXIT_DONE && page_turn(walk, answer.body);
    answer_clear(&answer);
    if (walk->limit && (walk->limit -= rows) <= 0)
        *more = false;
    return status;
}

static int pages(struct client *client, const struct verb *verb)
{
    struct walk walk;
    int status;
    bool more;
    walk_begin(&walk, client, verb);
    do
        status = page_print(&walk, &more);
    while (more && !ferror(stdout));
    free(walk.owned);
    return status;
}

/* --- watching ---------------------------------------------------------------
 */

/* Only what happens from now on. */
static int walk_to_end(struct walk *walk)
{
    struct client *client = walk->client;
    struct answer answer;
    struct ask ask = {.route = ROUTE_STATUS,
                      .timeout_ms = client->options->timeout_ms,
                      .wake_fd = -1};
    int status = EXIT_DONE;
    client->transport->ask(client->transport, &ask, &answer);
    if (answer.status == 200)
        walk->ask.fields.v[FIELD_AFTER] =
            json_value(client->json, SQL_CLI_NEWEST, answer.body);
    else
        status = client_complain(client, &answer, false);
    answer_clear(&answer);
    return status;
}

static int watch(struct client *client, const struct verb *verb)
{
    struct walk walk;
    int status = EXIT_DONE;
    bool more;
    walk_begin(&walk, client, verb);
    if (walk.ask.fields.v[FIELD_AFTER].type == VALUE_NONE)
        status = walk_to_end(&walk);
    if (!client->options->db) {
        value_set_integer(&walk.ask.fields.v[FIELD_WAIT], WATCH_WAIT_MS / 1000);
        walk.ask.timeout_ms += WATCH_WAIT_MS;
    }
    while (status == EXIT_DONE) {
        int64_t asked_ms = clock_ms();
        status = page_print(&walk, &more);
        if (fflush(stdout) != 0)
            break;
        /* An answer that came at once without news was no long poll. */
        if (!more && clock_ms() - asked_ms < WATCH_POLL_MS)
            clock_sleep(WATCH_POLL_MS, -1);
    }
    return status;
}

int verb_ask(const struct verb *verb, struct options *options)
{
    int status = EXIT_BROKEN;
    struct client client;
    if (client_open(&client, options)) {
        if (verb->kind == VERB_GRANT)
            status = grant(&client, verb);
        else if (verb->kind == VERB_LIST)
            status = pages(&client, verb);
        else if (verb->kind == VERB_WATCH)
            status = watch(&client, verb);
        else
            status = ask_once(&client, verb);
    }
    client_close(&client);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        say("cannot write the answer");
        status = EXIT_BROKEN;
    }
    return status;
}
