/*
 * http.c: the rules of HTTP that hold before anything is looked up.
 *
 * HOW IT WORKS: the path is compared as the client spelled it, undecoded: no
 * other spelling of a path reaches a route. The host is checked against DNS
 * rebinding: a name that an attacker's page brings along is not in the list,
 * and an address is only right when it is the one that was connected to.
 *
 * SPDX-License-Identifier: MIT
 */
#include "http.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The name in a Host header or an origin: without port, brackets, final dot. */
static size_t host_name(const char *host, const char **name)
{
    size_t n;
    *name = host;
    if (*host == '[') {
        *name = host + 1;
        n = strcspn(*name, "]");
        const char *rest = *name + n;
        return *rest == ']' && (!rest[1] || rest[1] == ':') ? n : 0;
    }
    n = strcspn(host, ":");
    return n > 1 && host[n - 1] == '.' ? n - 1 : n;
}

static bool name_is(const char *name, size_t n, const char *other,
                    size_t other_n)
{
    return n == other_n && strncasecmp(name, other, n) == 0;
}

static bool host_known(const struct request *request, const char *hosts)
{
    const char *name, *own = request->server_addr;
    size_t own_n = own ? strlen(own) : 0;
    if (!request->host)
        return false;
    size_t n = host_name(request->host, &name);
    if (n == 0)
        return false;
    if (name_is(name, n, "localhost", 9))
        return true;
    if (own_n && *own == '[') /* lighttpd, when bound to one IPv6 address */
        own_n = host_name(own, &own);
    if (own_n && name_is(name, n, own, own_n))
        return true;
    while (hosts && *hosts) {
        size_t length = strcspn(hosts, ", ");
        if (length && name_is(name, n, hosts, length))
            return true;
        hosts += length;
        hosts += strspn(hosts, ", ");
    }
    return false;
}

/* A page may only ask from where it could have come from: the same host and
 * port, and under TLS not from a page that came without. Programs send no
 * Origin. */
static bool origin_known(const struct request *request)
{
    const char *origin = request->origin;
    if (!origin)
        return true;
    if (strncasecmp(origin, "http://", 7) == 0 && !request->https)
        origin += 7;
    else if (strncasecmp(origin, "https://", 8) == 0)
        origin += 8;
    else
        return false;
    return strcasecmp(origin, request->host) == 0;
}

/* application/json, if with a charset then UTF-8. */
static bool type_known(const char *type)
{
    static const char JSON[] = "application/json";
    if (!type || strncasecmp(type, JSON, sizeof JSON - 1) != 0)
        return false;
    type += sizeof JSON - 1;
    type += strspn(type, " \t");
    if (!*type)
        return true;
    if (*type++ != ';')
        return false;
    type += strspn(type, " \t");
    return !*type || strcasecmp(type, "charset=utf-8") == 0 ||
           strcasecmp(type, "charset=\"utf-8\"") == 0;
}

/* What a POST must bring. */
static const char *body_judge(const struct request *request)
{
    if (!type_known(request->content_type))
        return "unsupported_type";
    if (!request->content_length)
        return "length_required";
    if (request->body_too_large)
        return "too_large";
    return request->body_short ? "malformed" : NULL;
}

const char *http_judge(const struct request *request, const char *hosts,
                       enum group group, struct http *http)
{
    const char *uri = request->uri ? request->uri : "";
    const char *method = request->method ? request->method : "";
    size_t n = strcspn(uri, "?");
    *http = (struct http){.query = uri[n] ? uri + n + 1 : ""};
    if (!host_known(request, hosts))
        return "foreign_host";
    http->route = route_find(uri, n);
    if (!http->route)
        return "not_found";
    if (!origin_known(request))
        return "foreign_origin";
    if (strcmp(method, "OPTIONS") == 0) {
        http->options = true;
        return NULL;
    }
    if (group < http->route->group)
        return "forbidden";
    if (http->route->post)
        return strcmp(method, "POST") == 0 ? body_judge(request)
                                           : "method_not_allowed";
    return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0
               ? NULL
               : "method_not_allowed";
}

void http_request_id(const struct request *request, unsigned long long number,
                     char *name)
{
    const char *given = request->x_request_id;
    size_t n = given ? strlen(given) : 0;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)given[i]) && !strchr("-_.:", given[i]))
            n = 0;
    if (n > 0 && n <= REQUEST_ID_MAX)
        snprintf(name, REQUEST_ID_MAX + 1, "%s", given);
    else
        snprintf(name, REQUEST_ID_MAX + 1, "%016llx", number);
}
