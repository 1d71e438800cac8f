/* SPDX-License-Identifier: Apache-2.0
 * A client of Wyoming whom the system has no memory to watch (epoll_ctl fails) is let go at once: nothing that it does
 * would ever be seen, its end neither. */
#include "tests/support.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/dialects/wyoming/wyoming.h"
#include "server/loop/server.h"

static const char PING[] = "{\"type\":\"ping\"}\n";
static bool lacks_memory;

/* libevent's, too. */
int epoll_ctl(int epoll, int what, int file, struct epoll_event *event)
{
    if (lacks_memory && what != EPOLL_CTL_DEL) {
        errno = ENOMEM;
        return -1;
    }
    return (int)syscall(SYS_epoll_ctl, epoll, what, file, event);
}

static struct serve_options options;
static struct server server;
static struct sockaddr_in address;

/* A port that was free a moment ago. */
static void choose_port(char *uri, size_t size)
{
    socklen_t bytes = sizeof address;
    int s = socket(AF_INET, SOCK_STREAM, 0);
    address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(bind(s, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(s, (struct sockaddr *)&address, &bytes), 0);
    close(s);
    snprintf(uri, size, "tcp://127.0.0.1:%d", ntohs(address.sin_port));
}

static int begin(void **state)
{
    static char uri[64];
    (void)state;
    choose_port(uri, sizeof uri);
    options = (struct serve_options){.model = "", .wyoming = uri, .quiet = true};
    server = (struct server){.options = &options, .base = event_base_new()};
    assert_int_equal(event_base_priority_init(server.base, SERVER_PRIORITIES), 0);
    lacks_memory = false;
    return wyoming_open(&server) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    wyoming_close(&server);
    event_base_free(server.base);
    return 0;
}

static int come(void)
{
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(s, (struct sockaddr *)&address, sizeof address), 0);
    return s;
}

/* Lets the server go on until there is something for the client, its end with 0 bytes; returns how many bytes. */
static ssize_t hear(int s, char *text, size_t size)
{
    ssize_t n = -1;
    for (int i = 0; i < 60000 && n < 0; i++) {
        event_base_loop(server.base, EVLOOP_NONBLOCK);
        n = recv(s, text, size, MSG_DONTWAIT);
        usleep(n < 0 ? 1000 : 0);
    }
    return n;
}

static void the_next_is_served(void)
{
    char text[512] = "";
    lacks_memory = false;
    int s = come();
    assert_int_equal(send(s, PING, sizeof PING - 1, 0), sizeof PING - 1);
    assert_true(hear(s, text, sizeof text - 1) > 0);
    assert_non_null(strstr(text, "pong"));
    assert_int_equal(server.n_wyoming, 1);
    close(s);
}

static void who_comes(void **state)
{
    char text[512];
    (void)state;
    lacks_memory = true;
    int s = come();
    assert_int_equal(hear(s, text, sizeof text), 0);
    assert_int_equal(server.n_wyoming, 0);
    close(s);
    the_next_is_served();
}

/* A client that asks for more than its share. */
static int ask_much(void)
{
    enum { EVENTS = 1200 };
    static const char other[] = "{\"type\":\"x\"}\n";
    static char all[EVENTS * (sizeof other - 1)];
    int s = come();
    for (int i = 0; i < 60000 && server.n_wyoming == 0; i++) {
        event_base_loop(server.base, EVLOOP_NONBLOCK);
        usleep(1000);
    }
    assert_int_equal(server.n_wyoming, 1);
    for (size_t i = 0; i < EVENTS; i++) {
        memcpy(all + i * (sizeof other - 1), other, sizeof other - 1);
    }
    assert_int_equal(send(s, all, sizeof all, 0), sizeof all);
    return s;
}

/* It is read again as soon as it has rested: after each event for 2 ms. */
static void who_asks_much_rests_a_little(void **state)
{
    char text[512];
    (void)state;
    int s = ask_much();
    assert_int_equal(send(s, PING, sizeof PING - 1, 0), sizeof PING - 1);
    assert_true(hear(s, text, sizeof text) > 0);
    close(s);
}

/* It would be read again, and cannot be watched. */
static void who_has_rested(void **state)
{
    char text[512];
    (void)state;
    int s = ask_much();
    lacks_memory = true;
    assert_true(hear(s, text, sizeof text) <= 0); /* the end, or a reset where it had sent more */
    assert_int_equal(server.n_wyoming, 0);
    close(s);
    the_next_is_served();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_comes, begin, end),
        cmocka_unit_test_setup_teardown(who_asks_much_rests_a_little, begin, end),
        cmocka_unit_test_setup_teardown(who_has_rested, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
