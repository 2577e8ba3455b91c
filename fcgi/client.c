/*
 * client.c: is the client of a request still there?
 *
 * HOW IT WORKS: sock_diag(7) with the exact four numbers of the connection
 * answers its state, or an error when the kernel no longer knows it. One that
 * it has never known may be the client of a proxy in front that hands on
 * addresses: it counts as gone only if others from its address were known.
 * The kernel also knows how long ago a client said something, so it does not
 * matter who held its request up: this service, the web server, or a machine
 * that stood still.
 *
 * SPDX-License-Identifier: MIT
 */
#include "client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* An address, which lighttpd writes in brackets at times. */
static bool address_read(int family, const char *text, uint32_t *address)
{
    char bare[INET6_ADDRSTRLEN];
    size_t n = strcspn(text += *text == '[', "]");
    if (n >= sizeof bare)
        return false;
    memcpy(bare, text, n);
    bare[n] = 0;
    return inet_pton(family, bare, address) == 1;
}

static uint16_t port_read(const char *text)
{
    unsigned long port = text ? strtoul(text, NULL, 10) : 0;
    return htons((uint16_t)port);
}

void client_set(struct client *client, const char *server_addr,
                const char *server_port, const char *remote_addr,
                const char *remote_port)
{
    memset(client, 0, sizeof *client);
    if (!server_addr || !remote_addr)
        return;
    int family = strchr(remote_addr, ':') ? AF_INET6 : AF_INET;
    client->server_port = port_read(server_port);
    client->client_port = port_read(remote_port);
    if (client->server_port && client->client_port &&
        address_read(family, server_addr, client->server) &&
        address_read(family, remote_addr, client->client))
        client->family = family;
}

void client_watch_open(struct client_watch *watch)
{
    watch->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
}

void client_watch_close(struct client_watch *watch)
{
    if (watch->fd > 0)
        close(watch->fd);
    watch->fd = -1;
}

/* --- asking --------------------------------------------------------------- */

struct question {
    struct nlmsghdr head;
    struct inet_diag_req_v2 body;
};

static struct question question(const struct client *client, uint32_t number)
{
    struct question q = {
        .head = {.nlmsg_len = sizeof q,
                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = NLM_F_REQUEST,
                 .nlmsg_seq = number},
        .body = {.sdiag_family = (uint8_t)client->family,
                 .sdiag_protocol = IPPROTO_TCP,
                 .idiag_ext = 1 << (INET_DIAG_INFO - 1),
                 .idiag_states = ~0u,
                 .id = {.idiag_sport = client->server_port,
                        .idiag_dport = client->client_port,
                        .idiag_cookie = {INET_DIAG_NOCOOKIE,
                                         INET_DIAG_NOCOOKIE}}},
    };
    memcpy(q.body.id.idiag_src, client->server, sizeof client->server);
    memcpy(q.body.id.idiag_dst, client->client, sizeof client->client);
    return q;
}

/* --- answers -------------------------------------------------------------- */

union answer {
    struct nlmsghdr head;
    char bytes[768];
};

/* Where the address of the client is noted as known, and as what. */
static uint32_t *known_place(struct client_watch *watch,
                             const struct client *client, uint32_t *hash)
{
    *hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < sizeof client->client; i++)
        *hash =
            (*hash ^ ((const unsigned char *)client->client)[i]) * 16777619u;
    *hash |= 1;
    return &watch->known[(*hash >> 8) % CLIENTS_KNOWN];
}

/* Did the client say something within SUSPECT_MS? */
static bool heard_lately(const struct inet_diag_msg *told, size_t length)
{
    const struct rtattr *part = (const struct rtattr *)(told + 1);
    unsigned left = (unsigned)(length - sizeof *told);
    struct tcp_info info;
    for (; RTA_OK(part, left); part = RTA_NEXT(part, left)) {
        if (part->rta_type != INET_DIAG_INFO)
            continue;
        memset(&info, 0, sizeof info);
        memcpy(&info, RTA_DATA(part),
               RTA_PAYLOAD(part) < sizeof info ? RTA_PAYLOAD(part)
                                               : sizeof info);
        return info.tcpi_last_data_recv <= SUSPECT_MS;
    }
    return false;
}

/* The state of the connection; TCP_LISTEN when the kernel does not know it, for
 * it may answer with the socket that listens; 0 when it does not say. */
static int answer_state(const union answer *answer, size_t n)
{
    const struct nlmsgerr *error = NLMSG_DATA(&answer->head);
    const struct inet_diag_msg *told = NLMSG_DATA(&answer->head);
    if (answer->head.nlmsg_type == SOCK_DIAG_BY_FAMILY)
        return n >= NLMSG_LENGTH(sizeof *told) ? told->idiag_state : 0;
    return answer->head.nlmsg_type == NLMSG_ERROR &&
                   n >= NLMSG_LENGTH(sizeof error->error) &&
                   error->error == -ENOENT
               ? TCP_LISTEN
               : 0;
}

static void answer_take(struct client_watch *watch, struct client *client,
                        const union answer *answer, size_t n)
{
    uint32_t hash, *known = known_place(watch, client, &hash);
    int state = answer_state(answer, n);
    if (state == TCP_LISTEN) {
        client->gone = client->seen || *known == hash;
        client->fresh = false;
        if (!client->gone)
            client->family = 0; /* Not to be asked for again. */
    } else if (state) {
        client->seen = true;
        *known = hash;
        /* With TCP Fast Open a request may come before the handshake ends. */
        client->gone = state != TCP_ESTABLISHED && state != TCP_SYN_RECV;
        client->fresh =
            heard_lately(NLMSG_DATA(&answer->head), n - NLMSG_LENGTH(0));
    }
}

/* Read n answers: they are there when the questions were taken. */
static void answers_read(struct client_watch *watch,
                         struct client *const *clients, size_t n)
{
    union answer answers[CLIENTS_ASKED];
    struct iovec parts[CLIENTS_ASKED];
    struct mmsghdr messages[CLIENTS_ASKED] = {0};
    for (size_t i = 0; i < n; i++) {
        parts[i] = (struct iovec){&answers[i], sizeof answers[i]};
        messages[i].msg_hdr.msg_iov = &parts[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    int got = recvmmsg(watch->fd, messages, (unsigned)n, MSG_DONTWAIT, NULL);
    for (int i = 0; i < got; i++) {
        uint32_t place = answers[i].head.nlmsg_seq - watch->asked;
        if (messages[i].msg_len >= sizeof answers[i].head && place < n)
            answer_take(watch, clients[place], &answers[i],
                        messages[i].msg_len);
    }
}

void clients_look(struct client_watch *watch, struct client *const *clients,
                  size_t n)
{
    struct question questions[CLIENTS_ASKED];
    size_t asked = 0;
    if (watch->fd < 0)
        return;
    for (; n > 0; clients += asked, n -= asked) {
        for (asked = 0; asked < n && asked < CLIENTS_ASKED; asked++)
            questions[asked] =
                question(clients[asked], watch->asked + (uint32_t)asked);
        if (send(watch->fd, questions, asked * sizeof *questions, 0) < 0)
            return;
        answers_read(watch, clients, asked);
        watch->asked += (uint32_t)asked;
    }
}

bool client_gone(struct client_watch *watch, struct client *client)
{
    clients_look(watch, &client, client->family != 0);
    return client->gone;
}
