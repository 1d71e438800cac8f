/* SPDX-License-Identifier: Apache-2.0
 * A server of connections alone, whose clients are the test: it takes all requests, and answers none of itself. */
#ifndef TESTS_SERVER_POSED_CONNS_H
#define TESTS_SERVER_POSED_CONNS_H

#include "base/clock.h"
#include "tests/support.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/loop/conn/conn_parts.h"

enum { PLACES = 8, BODY = 14000000 };

static const char HALF_BODY[] = "POST /answer HTTP/1.1\r\nHost: a\r\nContent-Length: 14000000\r\n\r\nx",
                  ASKS[] = "GET /answer HTTP/1.1\r\nHost: a\r\n\r\n",
                  SOCKET[] = "GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
                             "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                             "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
                  SAYS[] = "\x81\x81\0\0\0\0x";

static struct server s;
static bool speaks; /* those WebSockets that have said something */

struct client {
    int socket;
    struct conn *conn;
};

static inline void on_gone(void *user)
{
    (void)user;
}

static inline void on_message(void *user, const struct websocket_event *event)
{
    (void)user, (void)event;
}

static inline bool on_speaks(const void *user)
{
    return ((const struct conn *)user)->has_said && speaks;
}

static const struct conn_owner owner = {on_gone, NULL, on_message, NULL, on_speaks};

static inline bool admit(struct conn *c, size_t *body_limit, struct refusal *refusal)
{
    (void)c, (void)refusal;
    *body_limit = BODY;
    return true;
}

/* What is no WebSocket is never answered. */
static inline void request(struct conn *c)
{
    char accept[29];
    conn_own(c, &owner, c);
    if (strcmp(c->head.path, "/socket") == 0 && conn_handshake(c, accept)) {
        conn_upgrade(c, accept, LIMIT_WS_MESSAGE);
    }
}

static const struct conn_service service = {admit, request};

static inline void turn(void)
{
    for (int i = 0; i < 4; i++) {
        event_base_loop(s.base, EVLOOP_NONBLOCK);
    }
}

static inline void begin(void)
{
    static const struct serve_options options = {.quiet = true};
    s = (struct server){.options = &options, .base = event_base_new(), .most_conns = PLACES};
    assert_int_equal(event_base_priority_init(s.base, SERVER_PRIORITIES), 0);
    conn_places(&s);
    speaks = false;
}

static inline void end(void)
{
    for (struct conn *c; (c = TAILQ_FIRST(&s.conns));) {
        conn_drop(c);
    }
    turn();
    assert_null(s.origins.majority);
    origins_end(&s.origins);
    assert_int_equal(s.origins.n_left, 0);
    event_base_free(s.base);
}

static inline struct sockaddr_in from(const char *address)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    assert_int_equal(inet_pton(AF_INET, address, &at.sin_addr), 1);
    return at;
}

/* From there; nothing of what it may send has been read when this returns. */
static inline struct client come(const char *address)
{
    struct sockaddr_in at = from(address);
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    struct conn *c = conn_new(&s, &service, pair[0], (struct sockaddr *)&at);
    assert_non_null(c);
    return (struct client){pair[1], c};
}

static inline void say(const struct client *c, const char *bytes, size_t n)
{
    assert_int_equal(send(c->socket, bytes, n, 0), n);
}
#define SAY(client, bytes) say(client, bytes, sizeof(bytes) - 1)

static inline bool has_gone(const struct client *c)
{
    char bytes[4096];
    ssize_t n;
    while ((n = recv(c->socket, bytes, sizeof bytes, 0)) > 0) {
    }
    return n == 0 || errno == ECONNRESET; /* the latter: it had not read all */
}

static inline void leave(struct client *all, int n)
{
    for (int i = 0; i < n; i++) {
        close(all[i].socket);
    }
}

#endif
