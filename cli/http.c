/*
 * http.c: questions to the service, by libcurl.
 *
 * HOW IT WORKS: one easy handle that keeps its connection. It is driven by
 * the multi interface, so that a question can be given up when another
 * descriptor becomes readable. After a failure the next one takes a new
 * connection: the old one may lead into nowhere.
 *
 * SPDX-License-Identifier: MIT
 */
#include "http.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../ext/lease.h"
#include "clock.h"

enum { BODY_MAX = 16 << 20, URL_MAX = 8192 };

struct http {
    struct transport transport; /* first: callers see only this */
    const struct http_options *options;
    struct json *json;
    CURLM *multi;
    CURL *easy;
    bool fresh; /* take a new connection */
};

struct received {
    char *body;
    size_t length;
};

static size_t body_receive(char *data, size_t size, size_t n, void *context)
{
    struct received *received = context;
    n *= size;
    if (n > BODY_MAX - received->length)
        return 0;
    char *body = realloc(received->body, received->length + n + 1);
    if (!body)
        return 0;
    memcpy(body + received->length, data, n);
    received->length += n;
    body[received->length] = 0;
    received->body = body;
    return n;
}

/* Add name=value to the query. */
static void query_add(struct http *http, char *url, const char *name,
                      const struct value *value)
{
    char number[32];
    const char *text = value->text;
    if (value->type == VALUE_INTEGER)
        snprintf(number, sizeof number, "%lld", (long long)value->integer);
    else if (value->type == VALUE_REAL)
        snprintf(number, sizeof number, "%.3f", value->real);
    if (value->type != VALUE_TEXT)
        text = number;
    char *escaped = curl_easy_escape(http->easy, text, 0);
    size_t length = strlen(url);
    if (escaped)
        snprintf(url + length, URL_MAX - length, "%c%s=%s",
                 strchr(url, '?') ? '&' : '?', name, escaped);
    curl_free(escaped);
}

static void url_write(struct http *http, const struct ask *ask, char *url)
{
    const struct route *route = &ROUTES[ask->route];
    const char *base = http->options->url;
    size_t length = strlen(base);
    while (length > 0 && base[length - 1] == '/')
        length--;
    snprintf(url, URL_MAX, "%.*s%s", (int)length, base, route->path);
    if (route->post)
        return;
    for (int i = 0; i < FIELD_REQUEST_ID; i++)
        if (ask->fields.v[i].type != VALUE_NONE)
            query_add(http, url, FIELD_NAMES[i], &ask->fields.v[i]);
}

static struct curl_slist *headers_new(const struct ask *ask)
{
    const struct value *key = &ask->fields.v[FIELD_REQUEST_ID];
    struct curl_slist *headers = NULL;
    char line[256];
    if (ROUTES[ask->route].post)
        headers = curl_slist_append(headers, "Content-Type: application/json");
    if (key->type == VALUE_TEXT) {
        snprintf(line, sizeof line, "Idempotency-Key: %s", key->text);
        headers = curl_slist_append(headers, line);
    }
    return headers;
}

static void options_set(struct http *http)
{
    const struct http_options *options = http->options;
    CURL *easy = http->easy;
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "lease/" LEASE_VERSION);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, body_receive);
    if (options->cacert)
        curl_easy_setopt(easy, CURLOPT_CAINFO, options->cacert);
    if (options->user) {
        curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
        curl_easy_setopt(easy, CURLOPT_USERNAME, options->user);
        curl_easy_setopt(easy, CURLOPT_PASSWORD,
                         options->password ? options->password : "");
    }
}

/* Until the question is answered, overdue or given up. */
static CURLcode drive(struct http *http, const struct ask *ask,
                      struct answer *answer)
{
    struct curl_waitfd wake = {.fd = ask->wake_fd, .events = CURL_WAIT_POLLIN};
    unsigned wakes = ask->wake_fd >= 0 ? 1 : 0;
    int64_t until = clock_ms() + ask->timeout_ms;
    int running = 1;
    int left;
    for (;;) {
        if (curl_multi_perform(http->multi, &running) != CURLM_OK)
            return CURLE_FAILED_INIT;
        CURLMsg *message = curl_multi_info_read(http->multi, &left);
        if (message)
            return message->data.result;
        int64_t rest = until - clock_ms();
        if (rest <= 0)
            return CURLE_OPERATION_TIMEDOUT;
        wake.revents = 0;
        curl_multi_poll(http->multi, &wake, wakes, (int)rest, NULL);
        if (wakes && wake.revents) {
            answer->woken = true;
            return CURLE_ABORTED_BY_CALLBACK;
        }
    }
}

static void answer_take(struct http *http, CURLcode rc,
                        struct received *received, struct answer *answer)
{
    long status = 0;
    curl_off_t retry_after = 0;
    http->fresh = rc != CURLE_OK;
    if (rc == CURLE_OK) {
        curl_easy_getinfo(http->easy, CURLINFO_RESPONSE_CODE, &status);
        curl_easy_getinfo(http->easy, CURLINFO_RETRY_AFTER, &retry_after);
        answer->status = (int)status;
        answer->retry_after =
            retry_after > 0 && retry_after < 3600 ? (int)retry_after : 0;
        answer->body = received->body ? received->body : strdup("");
        return;
    }
    free(received->body);
    snprintf(answer->why, sizeof answer->why, "%s: %s", http->options->url,
             answer->woken ? "given up" : curl_easy_strerror(rc));
}

static void http_ask(struct transport *transport, const struct ask *ask,
                     struct answer *answer)
{
    struct http *http = (struct http *)transport;
    struct received received = {0};
    struct curl_slist *headers = headers_new(ask);
    char *body = NULL;
    char url[URL_MAX];
    curl_easy_reset(http->easy);
    options_set(http);
    url_write(http, ask, url);
    if (ROUTES[ask->route].post) {
        body = json_body(http->json, &ask->fields);
        curl_easy_setopt(http->easy, CURLOPT_POSTFIELDS, body ? body : "");
    }
    curl_easy_setopt(http->easy, CURLOPT_URL, url);
    curl_easy_setopt(http->easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(http->easy, CURLOPT_WRITEDATA, &received);
    curl_easy_setopt(http->easy, CURLOPT_FRESH_CONNECT, http->fresh ? 1L : 0L);
    *answer = (struct answer){.sent_ms = clock_ms()};
    curl_multi_add_handle(http->multi, http->easy);
    CURLcode rc = drive(http, ask, answer);
    curl_multi_remove_handle(http->multi, http->easy);
    answer_take(http, rc, &received, answer);
    curl_slist_free_all(headers);
    free(body);
}

static void http_close(struct transport *transport)
{
    struct http *http = (struct http *)transport;
    if (!http)
        return;
    curl_easy_cleanup(http->easy);
    curl_multi_cleanup(http->multi);
    free(http);
}

struct transport *http_open(const struct http_options *options,
                            struct json *json)
{
    struct http *http = calloc(1, sizeof *http);
    if (!http)
        return NULL;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    http->transport = (struct transport){http_ask, http_close};
    http->options = options;
    http->json = json;
    http->multi = curl_multi_init();
    http->easy = curl_easy_init();
    if (!http->multi || !http->easy) {
        http_close(&http->transport);
        return NULL;
    }
    return &http->transport;
}
