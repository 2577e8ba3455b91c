/*
 * request.c: fuzz target: what the service parses of a request.
 *
 *     0POST /v1/grant?x=1          flags, method, URI
 *     Host: localhost              headers, as a client sends them
 *     !REMOTE_USER: alice          what the web server itself sets
 *
 *     {"resource":"r"}             body
 *
 * becomes FastCGI records as a web server makes them, and goes through
 * everything that happens to a request before the database is asked.
 *
 * SPDX-License-Identifier: MIT
 */
#include "../../fcgi/worker.c" /* its parts are nobody else's */

#include <ctype.h>
#include <fastcgi.h>
#include <fcgiapp.h>
#include <sys/socket.h>

#include "fuzz.h"

/* --- as a web server: text into records ------------------------------------
 */

enum { WIRE_MAX = 96 << 10, PARAMS_TEXT_MAX = 32 << 10 };
enum { FLAG_SMALL = 1, FLAG_PADDED = 2, FLAG_LONG = 4, FLAG_LENGTH_LIES = 8 };

struct wire {
    unsigned char bytes[WIRE_MAX];
    size_t n;
    unsigned flags;
};

static void wire_put(struct wire *wire, const void *bytes, size_t n)
{
    REQUIRE(n <= sizeof wire->bytes - wire->n);
    memcpy(wire->bytes + wire->n, bytes, n);
    wire->n += n;
}

static void wire_record(struct wire *wire, int type, const void *content,
                        size_t n)
{
    static const char PADDING[8];
    unsigned char padding = wire->flags & FLAG_PADDED ? 7 : 0;
    const unsigned char head[FCGI_HEADER_LEN] = {
        FCGI_VERSION_1,          (unsigned char)type, 0,      1,
        (unsigned char)(n >> 8), (unsigned char)n,    padding};
    wire_put(wire, head, sizeof head);
    wire_put(wire, content, n);
    wire_put(wire, PADDING, padding);
}

/* A stream: in pieces, and an empty one at its end. */
static void wire_stream(struct wire *wire, int type, const char *content,
                        size_t n)
{
    size_t most = wire->flags & FLAG_SMALL && n < 2048 ? 13 : 32768;
    while (n > 0) {
        size_t piece = n < most ? n : most;
        wire_record(wire, type, content, piece);
        content += piece;
        n -= piece;
    }
    wire_record(wire, type, "", 0);
}

struct params {
    char text[PARAMS_TEXT_MAX];
    size_t n;
    bool full, wide;
};

static void params_length(struct params *params, size_t n)
{
    unsigned char wide[] = {(unsigned char)(0x80 | n >> 24),
                            (unsigned char)(n >> 16), (unsigned char)(n >> 8),
                            (unsigned char)n};
    bool narrow = n < 0x80 && !params->wide;
    memcpy(params->text + params->n, narrow ? wide + 3 : wide, narrow ? 1 : 4);
    params->n += narrow ? 1 : 4;
}

static void params_add(struct params *params, const char *name, size_t name_n,
                       const char *value, size_t value_n)
{
    params->full |= params->n + name_n + value_n + 8 > sizeof params->text;
    if (params->full)
        return;
    params_length(params, name_n);
    params_length(params, value_n);
    memcpy(params->text + params->n, name, name_n);
    memcpy(params->text + params->n + name_n, value, value_n);
    params->n += name_n + value_n;
}

/* "Host: x" as HTTP_HOST. */
static void params_header(struct params *params, const char *line, size_t n)
{
    char name[128] = "HTTP_";
    size_t used = 5, length = 0;
    while (length < n && line[length] != ':')
        length++;
    size_t value = length + (length < n);
    while (value < n && line[value] == ' ')
        value++;
    if (length > 0 && line[0] == '!') {
        params_add(params, line + 1, length - 1, line + value, n - value);
        return;
    }
    if (length >= 8 && strncasecmp(line, "content-", 8) == 0)
        used = 0;
    for (size_t i = 0; i < length && used < sizeof name; i++)
        name[used++] =
            (char)(line[i] == '-' ? '_' : toupper((unsigned char)line[i]));
    params_add(params, name, used, line + value, n - value);
}

/* One line of the input, without its end. */
static const char *line_take(struct input *in, size_t *n)
{
    const char *line = (const char *)in->at;
    for (*n = 0; input_left(in) && *in->at != '\n'; ++*n)
        in->at++;
    in->at += input_left(in);
    return line;
}

static void params_first(struct params *params, const char *line, size_t n)
{
    size_t method = 0;
    while (method < n && line[method] != ' ')
        method++;
    size_t uri = method + (method < n);
    params_add(params, "REQUEST_METHOD", 14, line, method);
    params_add(params, "REQUEST_URI", 11, line + uri, n - uri);
    params_add(params, "SERVER_ADDR", 11, "127.0.0.1", 9);
    params_add(params, "SERVER_PORT", 11, "8184", 4);
}

/* False: more than a web server lets through. */
static bool wire_write(struct wire *wire, struct input *in)
{
    static const unsigned char BEGIN[8] = {0, FCGI_RESPONDER, FCGI_KEEP_CONN};
    static struct params params;
    char length[24];
    size_t n;
    params.n = 0;
    params.full = false;
    wire->n = 0;
    wire->flags = input_byte(in);
    params.wide = wire->flags & FLAG_LONG;
    const char *line = line_take(in, &n);
    params_first(&params, line, n);
    while (input_left(in) && (line = line_take(in, &n), n > 0))
        params_header(&params, line, n);
    size_t body = (size_t)(in->end - in->at);
    snprintf(length, sizeof length, "%zu",
             body + (wire->flags & FLAG_LENGTH_LIES ? 1 : 0));
    if (body > 0)
        params_add(&params, "CONTENT_LENGTH", 14, length, strlen(length));
    if (params.full || params.n + 3 * body > WIRE_MAX / 2)
        return false;
    wire_record(wire, FCGI_BEGIN_REQUEST, BEGIN, sizeof BEGIN);
    wire_stream(wire, FCGI_PARAMS, params.text, params.n);
    wire_stream(wire, FCGI_STDIN, (const char *)in->at, body);
    return true;
}

/* --- as the service ---------------------------------------------------------
 */

static struct request *request;
static struct workers workers;
static struct writer writer;
static struct stats stats;

/* In place of accept4(): the connection on which the records have come. */
int __wrap_accept4(int fd, void *address, void *length, int flags);
int __wrap_accept4(int fd, void *address, void *length, int flags)
{
    (void)address;
    (void)length;
    (void)flags;
    return fd;
}

static int connection_with(const struct wire *wire)
{
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    REQUIRE(write(ends[0], wire->bytes, wire->n) == (ssize_t)wire->n);
    close(ends[0]);
    return ends[1];
}

static void name_judge(const char *name)
{
    size_t n = strlen(name);
    REQUIRE(n > 0 && n <= REQUEST_ID_MAX);
    for (size_t i = 0; i < n; i++)
        REQUIRE(isalnum((unsigned char)name[i]) || strchr("-_.:", name[i]));
}

/* What worker.c does before fields are read. Returns whether they would be. */
static bool text_judge(struct op *op, const struct http *http)
{
    static char text[QUERY_JSON_MAX];
    const char *json = request->body, *wrong = NULL;
    size_t length = request->body_len, at = 0;
    if (!op->route->post) {
        wrong = query_to_json(http->query, text, sizeof text, &length);
        REQUIRE(wrong || length <= sizeof text);
        json = text;
    }
    if (!wrong)
        wrong = json_check(json, length, &at);
    REQUIRE(at <= length);
    if (!wrong)
        op_streams(op, request);
    REQUIRE(op->used <= op->room);
    return !wrong;
}

static void request_judge(void)
{
    struct http http;
    REQUIRE(request->body && request->body[request->body_len] == 0);
    REQUIRE(request->body_len <= BODY_MAX_LONG);
    enum group group = groups_of(&workers.groups, request->remote_user);
    const char *problem = http_judge(request, workers.hosts, group, &http);
    REQUIRE(problem || http.route);
    struct op *op = op_for(&workers, request, &http);
    REQUIRE(op);
    http_request_id(request, 7, op->name);
    name_judge(op->name);
    bool fine = !problem && !http.options && text_judge(op, &http);
    struct reply reply = {
        .status = problem ? 400 : 200,
        .body = fine ? "{}" : NULL,
        .length = 2,
        .allow = http.route ? route_allow(http.route) : NULL,
        .request_id = op->name,
    };
    op->fd = request_take(request, &op->id);
    REQUIRE(op->id == 1);
    reply_send(op->fd, op->id, &reply, 0);
    op->fd = -1;
    op_free(op);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static struct member members[] = {{"admin", GROUP_ADMINS},
                                      {"worker", GROUP_WORKERS}};
    (void)argc;
    (void)argv;
    REQUIRE(FCGX_Init() == 0);
    request_turns(1);
    REQUIRE(request = request_new());
    writer.stats = &stats;
    workers.writer = &writer;
    workers.hosts = "example.org, other.example.org";
    workers.groups = (struct groups){true, NULL, 2, members};
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct wire wire;
    struct input in = {data, data + size};
    if (wire_write(&wire, &in) &&
        request_accept(request, connection_with(&wire)) == 0)
        request_judge();
    return 0;
}
