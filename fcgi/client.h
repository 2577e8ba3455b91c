/*
 * client.h: is the client of a request still there?
 *
 * The web server often does not notice that a client leaves while the request
 * is in here. So the kernel is asked, by the addresses and ports of the
 * client's connection.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef CLIENT_H
#define CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "limits.h"

/* The web server's end of a TCP connection, in network order. */
struct client {
    int family; /* AF_INET, AF_INET6; 0: not known */
    bool seen;  /* the kernel has known it */
    bool gone;  /* the connection is over, or half closed by the client */
    bool fresh; /* but it said something within SUSPECT_MS */
    uint16_t server_port, client_port;
    uint32_t server[4], client[4];
};

/* Where to ask the kernel; for one thread. */
struct client_watch {
    int fd;
    uint32_t asked;                /* questions so far */
    uint32_t known[CLIENTS_KNOWN]; /* see client.c */
};

/* From the texts that the web server passes; any may be NULL. */
void client_set(struct client *client, const char *server_addr,
                const char *server_port, const char *remote_addr,
                const char *remote_port);

/* client_watch_close() also after client_watch_open() failed: then nobody is
 * ever gone. */
void client_watch_open(struct client_watch *watch);
void client_watch_close(struct client_watch *watch);

/* Find out which of n clients have gone. Not gone is also one of whom that
 * cannot be found out. */
void clients_look(struct client_watch *watch, struct client *const *clients,
                  size_t n);

/* The same for one. */
bool client_gone(struct client_watch *watch, struct client *client);

#endif
