/* SPDX-License-Identifier: Apache-2.0
 * The kernel does not let go of a file that it watches: the front end does not turn in circles for it. */
#include "base/clock.h"
#include "tests/support.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/loop/conn/conn.h"
#include "server/loop/conn/lapse.h"
#include "server/loop/server.h"

static const char ASKS[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

static bool keeps_hold; /* the kernel, of whoever waits to write */
static int n_kept, n_turns;

/* What libevent calls. */
int epoll_ctl(int epoll, int what, int file, struct epoll_event *event)
{
    if (keeps_hold && what == EPOLL_CTL_MOD && !(event->events & EPOLLOUT)) {
        n_kept++;
        errno = ENOMEM;
        return -1;
    }
    return (int)syscall(SYS_epoll_ctl, epoll, what, file, event);
}

int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout_ms)
{
    n_turns++;
    return (int)syscall(SYS_epoll_pwait, epoll, events, most, timeout_ms, NULL, 0);
}

static bool admit(struct conn *c, size_t *body_limit, struct refusal *refusal)
{
    (void)c, (void)body_limit, (void)refusal;
    return true;
}

static void request(struct conn *c)
{
    conn_answer(c, 200, "text/plain", "said", 4);
}

static const struct conn_service service = {admit, request};

static void on_lapse(void *user, evutil_socket_t file)
{
    conn_lapsed(user, file);
}

static void run_for(struct event_base *base, int ms)
{
    event_base_loopexit(base, &(struct timeval){0, 1000 * ms});
    event_base_dispatch(base);
}

static struct conn *come(struct server *s, int *client)
{
    struct sockaddr_in from = {.sin_family = AF_INET};
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    *client = pair[1];
    return conn_new(s, &service, pair[0], (struct sockaddr *)&from);
}

static void ask(int client)
{
    assert_int_equal(send(client, ASKS, sizeof ASKS - 1, 0), sizeof ASKS - 1);
}

static void who_is_not_let_go_of_ends(void **state)
{
    static const struct serve_options options = {.quiet = true};
    struct server s = {.options = &options, .base = event_base_new(), .most_conns = 8};
    char said[1024] = "";
    int client, other;
    (void)state;
    assert_int_equal(event_base_priority_init(s.base, SERVER_PRIORITIES), 0);
    conn_places(&s);
    lapse_begin(on_lapse, &s);
    assert_non_null(come(&s, &client));
    assert_non_null(come(&s, &other));
    keeps_hold = true;
    ask(client);
    n_turns = 0;
    run_for(s.base, 200);
    assert_true(n_kept == 1 && n_turns < 100); /* and not as often as a processor can */
    assert_int_equal(s.n_conns, 1);
    assert_true(recv(client, said, sizeof said - 1, 0) > 0 && strstr(said, "said"));
    assert_int_equal(recv(client, said, sizeof said, 0), 0);
    keeps_hold = false;
    ask(other); /* the rest goes on */
    run_for(s.base, 50);
    assert_true(s.n_conns == 1 && recv(other, said, sizeof said, 0) > 0);
    conn_drop(TAILQ_FIRST(&s.conns));
    run_for(s.base, 1);
    lapse_end();
    origins_end(&s.origins);
    event_base_free(s.base);
    close(client), close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(who_is_not_let_go_of_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
