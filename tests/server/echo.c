/* SPDX-License-Identifier: Apache-2.0
 * A WebSocket that sends each message back, on the server's own connections: for suites of tests that want an echo
 * (tests/server/autobahn). Usage: echo PORT; ends with its standard input. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/loop/conn/conn.h"

enum { MOST_MESSAGE = 17 << 20, TICK_MS = 250 };

static void on_gone(void *user)
{
    (void)user;
}

static void on_message(void *user, const struct websocket_event *event)
{
    conn_send(user, event->kind, event->data, event->bytes);
}

static void on_idle(void *user)
{
    conn_close_socket(user, WEBSOCKET_NORMAL, "idle");
}

static const struct conn_owner owner = {on_gone, NULL, on_message, on_idle, NULL};

static bool admit(struct conn *c, size_t *body_limit, struct refusal *refusal)
{
    (void)c, (void)refusal;
    *body_limit = 0;
    return true;
}

static void upgrade(struct conn *c)
{
    char accept[29];
    if (conn_handshake(c, accept)) {
        conn_own(c, &owner, c);
        conn_upgrade(c, accept, MOST_MESSAGE);
    }
}

static const struct conn_service service = {admit, upgrade};

static void on_accept(evutil_socket_t listening, short what, void *user)
{
    (void)what;
    struct sockaddr_in from;
    socklen_t n = sizeof from;
    int socket = accept4(listening, (struct sockaddr *)&from, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket >= 0 && !conn_new(user, &service, socket, (struct sockaddr *)&from)) {
        close(socket);
    }
}

static void on_tick(evutil_socket_t nothing, short what, void *user)
{
    struct server *s = user;
    struct conn *c;
    (void)nothing, (void)what;
    TAILQ_FOREACH(c, &s->conns, entry)
    { /* the suite's long messages are more than the server's budget of a second */
        budget_begin(&c->budget, clock_seconds());
        c->resume_at = c->resume_at > 0 ? clock_seconds() : 0;
    }
    conn_tick(s, clock_seconds());
}

static void on_input(evutil_socket_t input, short what, void *user)
{
    struct server *s = user;
    char byte;
    (void)what;
    if (read(input, &byte, 1) <= 0) {
        event_base_loopbreak(s->base);
    }
}

int main(int argc, char **argv)
{
    const struct serve_options options = {.quiet = true};
    struct server s = {.options = &options, .most_conns = 64};
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1, listening = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    at.sin_port = htons((uint16_t)(argc > 1 ? atoi(argv[1]) : 0));
    setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    conn_places(&s);
    s.base = event_base_new();
    if (!s.base || event_base_priority_init(s.base, SERVER_PRIORITIES) != 0 ||
        bind(listening, (struct sockaddr *)&at, sizeof at) != 0 || listen(listening, 16) != 0) {
        perror("echo");
        return 2;
    }
    struct timeval often = {0, 1000 * TICK_MS};
    struct event *events[] = {event_new(s.base, listening, EV_READ | EV_PERSIST, on_accept, &s),
        event_new(s.base, STDIN_FILENO, EV_READ | EV_PERSIST, on_input, &s),
        event_new(s.base, -1, EV_PERSIST, on_tick, &s)};
    event_add(events[0], NULL);
    event_add(events[1], NULL);
    event_add(events[2], &often);
    event_base_dispatch(s.base);
    for (struct conn *c; (c = TAILQ_FIRST(&s.conns));) {
        conn_drop(c);
    }
    origins_end(&s.origins);
    for (int i = 0; i < 3; i++) {
        event_free(events[i]);
    }
    event_base_free(s.base);
    close(listening);
    return 0;
}
