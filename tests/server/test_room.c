/* SPDX-License-Identifier: Apache-2.0
 * All places are taken, and somebody comes: who goes, who stays. And what one connection, and one address, may send in
 * a second. */
#include "base/clock.h"
#include "tests/support.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/minmax.h"
#include "server/loop/conn/conn.h"

enum { PLACES = 8, LONG_AGO = 100, BODY = 14000000 };

static const char HALF_HEAD[] = "GET /answer HTTP/1.1\r\nHost: a\r\n",
                  HALF_BODY[] = "POST /answer HTTP/1.1\r\nHost: a\r\nContent-Length: 14000000\r\n\r\nx",
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

static void on_gone(void *user)
{
    (void)user;
}

static void on_message(void *user, const struct websocket_event *event)
{
    (void)user, (void)event;
}

static bool on_speaks(const void *user)
{
    return ((const struct conn *)user)->has_said && speaks;
}

static const struct conn_owner owner = {on_gone, NULL, on_message, NULL, on_speaks};

static bool admit(struct conn *c, size_t *body_limit, struct refusal *refusal)
{
    (void)c, (void)refusal;
    *body_limit = BODY;
    return true;
}

/* What is no WebSocket is never answered. */
static void request(struct conn *c)
{
    char accept[29];
    conn_own(c, &owner, c);
    if (strcmp(c->head.path, "/socket") == 0 && conn_handshake(c, accept)) {
        conn_upgrade(c, accept, LIMIT_WS_MESSAGE);
    }
}

static const struct conn_service service = {admit, request};

static void turn(void)
{
    for (int i = 0; i < 4; i++) {
        event_base_loop(s.base, EVLOOP_NONBLOCK);
    }
}

static void begin(void)
{
    static const struct serve_options options = {.quiet = true};
    s = (struct server){.options = &options, .base = event_base_new(), .most_conns = PLACES};
    assert_int_equal(event_base_priority_init(s.base, SERVER_PRIORITIES), 0);
    conn_places(&s);
    speaks = false;
}

static void end(void)
{
    for (struct conn *c; (c = TAILQ_FIRST(&s.conns));) {
        conn_drop(c);
    }
    turn();
    assert_null(s.origins.most);
    origins_end(&s.origins);
    assert_int_equal(s.origins.n_left, 0);
    event_base_free(s.base);
}

static struct sockaddr_in from(const char *address)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    assert_int_equal(inet_pton(AF_INET, address, &at.sin_addr), 1);
    return at;
}

/* From there; nothing of what it may send has been read when this returns. */
static struct client come(const char *address)
{
    struct sockaddr_in at = from(address);
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    struct conn *c = conn_new(&s, &service, pair[0], (struct sockaddr *)&at);
    assert_non_null(c);
    return (struct client){pair[1], c};
}

static void say(const struct client *c, const char *bytes, size_t n)
{
    assert_int_equal(send(c->socket, bytes, n, 0), n);
}
#define SAY(client, bytes) say(client, bytes, sizeof(bytes) - 1)

/* Whoever has come until now has done nothing for long. */
static void age(void)
{
    struct conn *c;
    turn();
    TAILQ_FOREACH(c, &s.conns, entry)
    {
        c->went_on -= LONG_AGO;
        c->last_write -= LONG_AGO;
    }
}

static bool has_gone(const struct client *c)
{
    char bytes[4096];
    ssize_t n;
    while ((n = recv(c->socket, bytes, sizeof bytes, 0)) > 0) {
    }
    return n == 0 || errno == ECONNRESET; /* the latter: it had not read all */
}

static bool makes_room(const char *newcomer)
{
    struct sockaddr_in at = from(newcomer);
    bool room = conn_make_room(&s, (struct sockaddr *)&at);
    turn(); /* libevent closes a socket then */
    return room;
}

static void leave(struct client *all, int n)
{
    for (int i = 0; i < n; i++) {
        close(all[i].socket);
    }
}

/* They go in the order in which they stand in `all`. */
static void go_in_order(const struct client *all, int n, const char *newcomer)
{
    for (int i = 0; i < n; i++) {
        for (int k = i; k < n; k++) {
            assert_false(has_gone(&all[k]));
        }
        assert_true(makes_room(newcomer));
        assert_true(has_gone(&all[i]));
    }
}

static void who_is_worth_least_goes_first(void **state)
{
    struct client c[PLACES];
    (void)state;
    begin();
    for (int i = PLACES;
         i-- > 0;) { /* those of one worth: the last one of these is there for longest */
        c[i] = come("10.0.0.1");
    }
    SAY(&c[0], HALF_BODY), turn(), SAY(&c[1], HALF_HEAD), turn();
    SAY(&c[2], SOCKET), SAY(&c[6], SOCKET), SAY(&c[7], ASKS), turn();
    SAY(&c[6], SAYS), turn(); /* 3 to 5 say nothing at all */
    age();
    struct client order[] = {c[0], c[1], c[2], c[5], c[4], c[3], c[6]};
    go_in_order(order, 7, "10.0.0.1");
    assert_false(makes_room("10.0.0.1"));
    assert_false(has_gone(&c[7])); /* is being answered */
    end();
    leave(c, PLACES);
}

static void the_address_with_most_places_pays(void **state)
{
    struct client few[3], many[PLACES - 3];
    (void)state;
    begin();
    for (int i = 0; i < 3; i++) {
        few[i] = come("10.0.0.2");
        SAY(&few[i], HALF_BODY); /* worth less than who is idle */
    }
    age();
    for (int i = 0; i < PLACES - 3; i++) {
        many[i] = come("10.0.0.1");
    }
    age();
    go_in_order(many, 1, "10.0.0.3"); /* 4 of 7 are left: no more than half of the places */
    for (int i = 0; i < 3; i++) {
        assert_false(has_gone(&few[i]));
    }
    go_in_order(few, 1, "10.0.0.1");
    end();
    leave(few, 3), leave(many, PLACES - 3);
}

static void who_has_most_gets_no_more_of_others(void **state)
{
    struct client other, c[PLACES - 1];
    (void)state;
    begin();
    other = come("10.0.0.2");
    for (int i = 0; i < PLACES - 1; i++) {
        c[i] = come("10.0.0.1");
        SAY(&c[i], ASKS);
    }
    age();
    assert_false(makes_room("10.0.0.1"));
    assert_false(has_gone(&other));
    assert_true(makes_room("10.0.0.3"));
    assert_true(has_gone(&other));
    end();
    close(other.socket), leave(c, PLACES - 1);
}

static void who_has_just_come_is_left_alone(void **state)
{
    struct client older, just, asks;
    (void)state;
    begin();
    asks = come("10.0.0.1"), older = come("10.0.0.1");
    age();
    SAY(&asks, ASKS); /* which nobody has read yet */
    just = come("10.0.0.1");
    SAY(&just, HALF_BODY), turn(); /* worth less, but it may go on */
    struct client order[] = {older, just};
    go_in_order(order, 2, "10.0.0.1");
    assert_false(makes_room("10.0.0.1"));
    assert_false(has_gone(&asks));
    end();
    close(older.socket), close(just.socket), close(asks.socket);
}

static void whose_body_goes_on_is_left_alone(void **state)
{
    char piece[4096] = "";
    (void)state;
    begin();
    struct client idle = come("10.0.0.1"), drips = come("10.0.0.1"), sends = come("10.0.0.1");
    SAY(&drips, HALF_BODY), SAY(&sends, HALF_BODY);
    age();
    say(&drips, piece, 1), say(&sends, piece, sizeof piece);
    turn();
    struct client order[] = {drips, idle, sends};
    go_in_order(order, 3, "10.0.0.1");
    end();
    leave(order, 3);
}

static void who_listens_stays(void **state)
{
    (void)state;
    begin();
    struct client c = come("10.0.0.1");
    SAY(&c, SOCKET), turn();
    SAY(&c, SAYS), age();
    speaks = true;
    assert_false(makes_room("10.0.0.2"));
    assert_false(has_gone(&c));
    speaks = false;
    age();
    assert_true(makes_room("10.0.0.2"));
    uint8_t told[] = {0x88, 2, WEBSOCKET_TRY_LATER >> 8, WEBSOCKET_TRY_LATER & 255}, got[sizeof told];
    assert_int_equal(recv(c.socket, got, sizeof got, 0), sizeof got);
    assert_memory_equal(got, told, sizeof told);
    end();
    close(c.socket);
}

/* Sends up to so many bytes, until nothing more is taken for a while; returns how many were. */
static size_t pour(const struct client *c, size_t most)
{
    static const char piece[65536];
    size_t sent = 0;
    for (double until = clock_seconds() + 0.05; clock_seconds() < until && sent < most;) {
        ssize_t n = send(c->socket, piece, min(sizeof piece, most - sent), MSG_NOSIGNAL);
        if (n > 0) {
            sent += (size_t)n;
            until = clock_seconds() + 0.05;
        }
        turn();
    }
    return sent;
}

/* Connections that the server throws out, one after the other, and that send nevertheless. */
static void who_sends_too_much_waits(void **state)
{
    enum { MIB = 1 << 20, N = 12, BETWEEN = 4 }; /* BETWEEN: what lies between the two */
    double sent = 0, began = clock_seconds(), now = began;
    (void)state;
    begin();
    for (int i = 0; i < N; i++) {
        struct client c = come("10.0.0.1");
        double came = now;
        SAY(&c, "nonsense\r\n\r\n");
        turn();
        double n = (double)pour(&c, SIZE_MAX);
        now = clock_seconds();
        assert_true(n < (16 + BETWEEN + 16 * (now - came)) * MIB);
        sent += n;
        conn_drop(c.conn), close(c.socket);
    }
    assert_true(sent > 100.0 * MIB && sent < (128 + BETWEEN * N + 64 * (now - began)) * MIB);
    struct client other = come("10.0.0.2"), neighbour = come("10.0.0.1");
    SAY(&other, HALF_BODY), SAY(&neighbour, ASKS);
    turn();
    assert_int_equal(neighbour.conn->state, CONN_ANSWER); /* who sends little need not wait */
    assert_int_equal(pour(&other, BODY - 1), BODY - 1);   /* at once */
    turn();
    assert_int_equal(other.conn->state, CONN_ANSWER);
    end();
    close(other.socket), close(neighbour.socket);
}

/* Sends no request: until when the connection is told, and ends. */
static double told_after(struct client *c)
{
    double began = clock_seconds();
    SAY(c, "nonsense\r\n\r\n");
    turn();
    while (!has_gone(c) && clock_seconds() < began + 60) {
        usleep(1000);
        conn_tick(&s, clock_seconds());
        turn();
    }
    return clock_seconds() - began;
}

static void who_is_thrown_out_again_and_again_waits_for_it(void **state)
{
    enum { AT_ONCE = 50 };
    (void)state;
    begin();
    for (int i = 0; i < AT_ONCE; i++) {
        struct client c = come("10.0.0.1");
        SAY(&c, "nonsense\r\n\r\n");
        turn();
        assert_true(has_gone(&c)); /* it has been told, and nothing more will follow */
        conn_drop(c.conn), close(c.socket);
    }
    struct client many[AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++) {
        many[i] = come("10.0.0.1");
        SAY(&many[i], "nonsense\r\n\r\n");
    }
    turn();
    struct client again = come("10.0.0.1"), other = come("10.0.0.2"), asks = come("10.0.0.1");
    double other_s = told_after(&other), again_s = told_after(&again);
    SAY(&asks, ASKS), turn();
    assert_int_equal(asks.conn->state, CONN_ANSWER); /* no fault, no wait */
    assert_true(other_s < 1 && again_s > 1 && again_s < 50);
    end();
    leave(many, AT_ONCE), close(other.socket), close(again.socket), close(asks.socket);
}

static void one_connection_asks_so_often_a_second(void **state)
{
    enum { MOST = 1000 };
    int n = 0;
    (void)state;
    begin();
    struct client c = come("10.0.0.1");
    do {
        SAY(&c, ASKS), turn();
        conn_answer(c.conn, 200, "text/plain", "", 0);
        assert_false(has_gone(&c));
        n++;
    } while (c.conn->resume_at <= 0 && n < 10 * MOST);
    assert_true(n >= MOST && n < 2 * MOST);
    end();
    close(c.socket);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_worth_least_goes_first),
        cmocka_unit_test(the_address_with_most_places_pays),
        cmocka_unit_test(who_has_most_gets_no_more_of_others),
        cmocka_unit_test(who_has_just_come_is_left_alone),
        cmocka_unit_test(whose_body_goes_on_is_left_alone),
        cmocka_unit_test(who_listens_stays),
        cmocka_unit_test(who_sends_too_much_waits),
        cmocka_unit_test(who_is_thrown_out_again_and_again_waits_for_it),
        cmocka_unit_test(one_connection_asks_so_often_a_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
