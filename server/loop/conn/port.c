/* SPDX-License-Identifier: Apache-2.0
 * A socket that listens: who waits there is let in. */
#include "server/loop/conn/port.h"

#include <errno.h>
#include <event2/listener.h>
#include <linux/filter.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/memory.h"

enum { BACKLOG = 1024, ACCEPTS = 8 };

struct port {
    struct evconnlistener *listener; /* holds the socket; accepting is ours */
    struct event *accept;
    port_let_in *let_in;
    void *user;
};

/* False, and errno: nobody was accepted (EAGAIN: nobody waits). */
static bool accept_one(struct port *p)
{
    struct sockaddr_storage from;
    socklen_t bytes = sizeof from;
    int socket =
        accept4(port_socket(p), (struct sockaddr *)&from, &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket >= 0) {
        p->let_in(p->user, socket, (const struct sockaddr *)&from);
    }
    return socket >= 0;
}

/* A few at a time: a thousand clients who come at once must not hold up those who hear something. */
static void on_accept(evutil_socket_t listening, short what, void *user)
{
    (void)listening, (void)what;
    for (int i = 0; i < ACCEPTS && accept_one(user); i++) {
    }
}

struct port *port_open(
    struct event_base *base, const struct addrinfo *at, port_let_in *let_in, void *user)
{
    struct port *p = memory_new(1, sizeof *p);
    if (!p) {
        return NULL;
    }
    p->let_in = let_in;
    p->user = user;
    p->listener = evconnlistener_new_bind(base, NULL, NULL,
        LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE, BACKLOG, at->ai_addr,
        (int)at->ai_addrlen);
    p->accept =
        p->listener ? event_new(base, port_socket(p), EV_READ | EV_PERSIST, on_accept, p) : NULL;
    if (!p->accept || event_add(p->accept, NULL) != 0) {
        int why = errno;
        port_close(p);
        errno = why;
        return NULL;
    }
    return p;
}

evutil_socket_t port_socket(const struct port *p)
{
    return evconnlistener_get_fd(p->listener);
}

/* The kernel drops SYN, the first packet of who would connect, and takes all others, among them the last one of a
 * handshake that has begun. Where it knows no filters, newcomers are let in as before. */
static void drop_newcomers(evutil_socket_t listening)
{
    enum { FLAGS = 13, SYN = 2 }; /* of a TCP header, which the filter sees */
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, FLAGS),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, SYN, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    setsockopt(listening, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

void port_shut_out(struct port *p)
{
    if (!p) {
        return;
    }
    drop_newcomers(port_socket(p));
    /* What fails about one of those who wait is not the others' loss. */
    for (int i = 0; i < 2 * BACKLOG; i++) {
        if (!accept_one(p) && errno == EAGAIN) {
            break;
        }
    }
}

void port_close(struct port *p)
{
    if (!p) {
        return;
    }
    if (p->accept) {
        event_free(p->accept);
    }
    if (p->listener) {
        evconnlistener_free(p->listener);
    }
    memory_free(p);
}
