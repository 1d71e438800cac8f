/* SPDX-License-Identifier: Apache-2.0
 * A port that clients connect to, and how it is left when the server stops without a client that has connected and is
 * never told anything. */
#ifndef SERVER_PORT_H
#define SERVER_PORT_H

#include <event2/event.h>

struct addrinfo;
struct port;
struct sockaddr;

/* Somebody has connected from that address. The socket is the callee's. */
typedef void port_let_in(void *user, evutil_socket_t socket, const struct sockaddr *from);

/* NULL, and errno: it cannot be had. */
struct port *port_open(
    struct event_base *base, const struct addrinfo *at, port_let_in *let_in, void *user);
/* The one that listens: accepted ones take its options over. */
evutil_socket_t port_socket(const struct port *p);
/* Nobody begins to connect from now on: the kernel drops what newcomers send, so they try again after a second. All who
 * have connected are let in by this call, and those whose handshake has begun as soon as it is done, while the port
 * stays open. Accepts NULL. */
void port_shut_out(struct port *p);
/* Who tries from now on is refused. Accepts NULL. */
void port_close(struct port *p);

#endif
