/* SPDX-License-Identifier: Apache-2.0
 * A port that shuts newcomers out, by the kernel itself: who has connected comes in, and so does who is in the middle
 * of a handshake; a newcomer is refused once the port is closed. */
#include "tests/support.h"

#include <errno.h>
#include <linux/filter.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/loop/conn/port.h"

enum { MOST = 8, SOON_MS = 50, LATE_MS = 60000 };

static struct event_base *base;
static struct sockaddr_in address;
static int n_in;
static evutil_socket_t in[MOST];

static void let_in(void *user, evutil_socket_t socket, const struct sockaddr *from)
{
    (void)user;
    assert_int_equal(from->sa_family, AF_INET);
    assert_true(n_in < MOST);
    in[n_in++] = socket;
}

static struct port *open_any(void)
{
    socklen_t bytes = sizeof address;
    address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct addrinfo at = {.ai_addr = (struct sockaddr *)&address, .ai_addrlen = sizeof address};
    struct port *p = port_open(base, &at, let_in, NULL);
    assert_non_null(p);
    assert_int_equal(getsockname(port_socket(p), (struct sockaddr *)&address, &bytes), 0);
    return p;
}

static int begin_to_connect(int flags)
{
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    assert_true(s >= 0);
    if (connect(s, (struct sockaddr *)&address, sizeof address) != 0) {
        assert_int_equal(errno, EINPROGRESS);
    }
    return s;
}

/* Lets the loop run until so many are in. */
static void wait_for(int n)
{
    for (int i = 0; i < LATE_MS && n_in < n; i++) {
        event_base_loop(base, EVLOOP_NONBLOCK);
        usleep(n_in < n ? 1000 : 0);
    }
    assert_int_equal(n_in, n);
}

static void hear(evutil_socket_t from, char said)
{
    char heard = 0;
    struct pollfd polled = {.fd = from, .events = POLLIN};
    assert_int_equal(poll(&polled, 1, LATE_MS), 1);
    assert_int_equal(recv(from, &heard, 1, 0), 1);
    assert_int_equal(heard, said);
}

static bool knows_filters(void)
{
    struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, UINT32_MAX)};
    struct sock_fprog program = {1, all};
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool good = setsockopt(s, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
    close(s);
    return good;
}

static void newcomers_alone_are_shut_out(void **state)
{
    int error = 0, wait_s = 30;
    socklen_t bytes = sizeof error;
    (void)state;
    if (!knows_filters()) {
        skip();
    }
    n_in = 0;
    base = event_base_new();
    struct port *p = open_any();
    int connected = begin_to_connect(0);
    /* The kernel puts the end of the next handshake off until there is something to read. */
    assert_int_equal(
        setsockopt(port_socket(p), IPPROTO_TCP, TCP_DEFER_ACCEPT, &wait_s, sizeof wait_s), 0);
    int halfway = begin_to_connect(0);
    port_shut_out(p);
    assert_int_equal(n_in, 1); /* at once, not when the loop runs */
    int newcomer = begin_to_connect(SOCK_NONBLOCK);
    struct pollfd polled = {.fd = newcomer, .events = POLLOUT};
    assert_int_equal(poll(&polled, 1, SOON_MS), 0);
    assert_int_equal(send(connected, "a", 1, 0), 1);
    hear(in[0], 'a');
    assert_int_equal(send(halfway, "b", 1, 0), 1);
    wait_for(2);
    hear(in[1], 'b');
    assert_int_equal(poll(&polled, 1, 0), 0);
    port_close(p);
    assert_int_equal(
        poll(&polled, 1, LATE_MS), 1); /* it has tried again, a second after the first time */
    assert_int_equal(getsockopt(newcomer, SOL_SOCKET, SO_ERROR, &error, &bytes), 0);
    assert_int_equal(error, ECONNREFUSED);
    close(connected), close(halfway), close(newcomer), close(in[0]), close(in[1]);
    event_base_free(base);
}

static void who_comes_is_let_in(void **state)
{
    int clients[MOST];
    (void)state;
    n_in = 0;
    base = event_base_new();
    struct port *p = open_any();
    for (int i = 0; i < MOST; i++) {
        clients[i] = begin_to_connect(0);
    }
    wait_for(MOST);
    for (int i = 0; i < MOST; i++) {
        close(clients[i]);
        close(in[i]);
    }
    struct addrinfo at = {.ai_addr = (struct sockaddr *)&address, .ai_addrlen = sizeof address};
    assert_null(port_open(base, &at, let_in, NULL)); /* taken */
    assert_int_equal(errno, EADDRINUSE);
    port_close(p);
    port_shut_out(NULL);
    port_close(NULL);
    event_base_free(base);
}

/* Memory lacks: the socket, which listened already, is closed. */
static void what_cannot_be_opened_leaves_nothing(void **state)
{
    (void)state;
    base = event_base_new();
    const int n_files = support_count_files("/proc/self/fd");
    address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct addrinfo at = {.ai_addr = (struct sockaddr *)&address, .ai_addrlen = sizeof address};
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        struct port *p = port_open(base, &at, let_in, NULL);
        assert_int_equal(p == NULL, support_failed());
        assert_true(p || errno == ENOMEM);
        port_close(p);
        assert_int_equal(support_count_files("/proc/self/fd"), n_files);
    }
    event_base_free(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_comes_is_let_in),
        cmocka_unit_test(what_cannot_be_opened_leaves_nothing),
        cmocka_unit_test(newcomers_alone_are_shut_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
