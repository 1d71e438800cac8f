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
#include "server/loop/conn/conn_parts.h"

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
    assert_null(s.origins.majority);
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
    assert_int_equal(s.metrics.limited[METRICS_MADE_WAY], 0);
    go_in_order(many, 1, "10.0.0.3"); /* 4 of 7 are left: no more than half of the places */
    for (int i = 0; i < 3; i++) {
        assert_false(has_gone(&few[i]));
    }
    go_in_order(few, 1, "10.0.0.1");
    assert_int_equal(s.metrics.limited[METRICS_MADE_WAY], 1);
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

/* Many come from everywhere, and none is a second old. */
static void a_session_stays_while_others_have_just_come(void **state)
{
    struct client session, young[3];
    (void)state;
    begin();
    session = come("10.0.0.1");
    SAY(&session, SOCKET), turn(), SAY(&session, SAYS);
    age();
    for (int i = 0; i < 3; i++) {
        young[i] = come(i == 1 ? "10.0.0.3" : "10.0.0.2");
        SAY(&young[i], HALF_HEAD), turn();
    }
    struct client order[] = {young[0], young[1], young[2], session};
    go_in_order(order, 4, "10.0.0.4");
    end();
    leave(order, 4);
}

/* The last answer of a connection, which has rested before, for its many requests. */
static void who_does_not_take_an_answer_goes(void **state)
{
    enum { MOST = 1000, BYTES = 1 << 20 };
    static const char last[] = "GET /answer HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
                      sound[BYTES];
    (void)state;
    begin();
    struct client idle = come("10.0.0.1"), c = come("10.0.0.1");
    for (int i = 0; i < 20 * MOST && c.conn->resume_at <= 0; i++) {
        SAY(&c, ASKS), turn();
        conn_answer(c.conn, 200, "text/plain", "", 0);
        has_gone(&c);
    }
    SAY(&c, last), turn();
    if (c.conn->state != CONN_ANSWER) { /* it rests */
        conn_tick(&s, clock_seconds() + 5), turn();
    }
    assert_int_equal(c.conn->state, CONN_ANSWER);
    conn_rest(c.conn, 60, METRICS_ASKED);
    conn_answer(c.conn, 200, "audio/wav", sound, sizeof sound);
    turn();
    assert_int_equal(c.conn->state, CONN_CLOSING);
    idle.conn->went_on -= LONG_AGO;
    assert_true(makes_room("10.0.0.2"));
    assert_true(has_gone(&idle)); /* and not the one that is being sent something */
    assert_false(makes_room("10.0.0.2"));
    age();
    assert_true(makes_room("10.0.0.2"));
    assert_true(TAILQ_EMPTY(&s.conns));
    end();
    close(idle.socket), close(c.socket);
}

static struct origin *enter(const char *address, int places)
{
    struct sockaddr_in6 at = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET};
    bool is_six = inet_pton(AF_INET6, address, &at.sin6_addr) == 1;
    assert_true(is_six || inet_pton(AF_INET, address, &four.sin_addr) == 1);
    return origin_enter(
        &s.origins, is_six ? (struct sockaddr *)&at : (struct sockaddr *)&four, places, 0);
}

static void leave_all(void)
{
    struct origin *o;
    for (int i = 0; i < ORIGIN_CHAINS; i++) {
        while ((o = LIST_FIRST(&s.origins.chains[i]))) {
            origin_leave(&s.origins, o, PLACES, 0);
        }
    }
}

static void addresses_are_told_apart(void **state)
{
    static const struct {
        const char *one, *other;
        bool same;
    } pairs[] = {{"10.0.0.1", "10.0.0.1", true}, {"10.0.0.1", "10.0.0.2", false},
        {"10.0.0.1", "::ffff:10.0.0.1", true}, {"::ffff:10.0.0.1", "::ffff:10.0.0.2", false},
        {"2001:db8::1", "2001:db8::2:0:0:1", true}, {"2001:db8::1", "2001:db8:0:1::1", false},
        {"::1", "127.0.0.1", false}};
    (void)state;
    begin();
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        assert_int_equal(enter(pairs[i].one, PLACES) == enter(pairs[i].other, PLACES), pairs[i].same);
        leave_all();
    }
    /* Neighbours do not stand in one chain, whatever the secret. */
    for (s.origins.secret = 1; s.origins.secret < 1u << 31; s.origins.secret *= 37) {
        int n_chains = 0;
        for (int i = 0; i < 256; i++) {
            char address[32];
            snprintf(address, sizeof address, "192.168.%d.%d", i % 4, i);
            enter(address, PLACES);
        }
        for (int i = 0; i < ORIGIN_CHAINS; i++) {
            n_chains += !LIST_EMPTY(&s.origins.chains[i]);
        }
        assert_true(n_chains > 100);
        leave_all();
    }
    end();
}

/* However much was taken, who stops is free again soon. */
static void debts_have_an_end(void **state)
{
    static const struct bucket_rate rate = {10, 20};
    struct bucket b = bucket_full(&rate, 0);
    (void)state;
    double wait = 0;
    for (int i = 0; i < 1000; i++) {
        wait = bucket_take(&b, &rate, 0, 7);
    }
    assert_true(wait == 2);
    assert_true(bucket_take(&b, &rate, 2, 0) == 0);
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

/* Sends up to so many bytes, until it rests and nothing more is taken; returns how many were. */
static size_t pour(const struct client *c, size_t most)
{
    static const char piece[65536];
    size_t sent = 0;
    ssize_t n = 0;
    for (double until = clock_seconds() + 60;
         sent < most && (n > 0 || c->conn->resume_at <= 0) && clock_seconds() < until;) {
        n = send(c->socket, piece, min(sizeof piece, most - sent), MSG_NOSIGNAL);
        sent += n > 0 ? (size_t)n : 0;
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

/* Sends no request: when the connection is told, and ends. */
static double told_at(struct client *c)
{
    double began = clock_seconds();
    SAY(c, "nonsense\r\n\r\n");
    turn();
    while (!has_gone(c) && clock_seconds() < began + 60) {
        usleep(1000);
        conn_tick(&s, clock_seconds());
        turn();
    }
    return clock_seconds();
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
    double began = clock_seconds();
    for (int i = 0; i < AT_ONCE; i++) {
        many[i] = come("10.0.0.1");
        SAY(&many[i], "nonsense\r\n\r\n");
    }
    turn();
    struct client again = come("10.0.0.1"), other = come("10.0.0.2"), asks = come("10.0.0.1");
    double asked = clock_seconds(), other_s = told_at(&other) - asked,
           again_s = told_at(&again) - began;
    SAY(&asks, ASKS), turn();
    assert_int_equal(asks.conn->state, CONN_ANSWER);                /* no fault, no wait */
    assert_true(other_s < again_s && again_s >= 2 && again_s < 50); /* 20 a second, 2 s at most */
    assert_true(s.metrics.limited[METRICS_HELD] >= AT_ONCE / 2 && s.metrics.limited[METRICS_SENT] == 0);
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
    double began = clock_seconds();
    do {
        SAY(&c, ASKS), turn();
        conn_answer(c.conn, 200, "text/plain", "", 0);
        assert_false(has_gone(&c));
        n++;
    } while (c.conn->resume_at <= 0 && n < 10 * MOST);
    assert_true(n >= MOST && n <= MOST + MOST / 2 * (clock_seconds() - began) + 1);
    end();
    close(c.socket);
}

/* Others of the address have asked for more than it may have. */
static void ask_too_much(const struct client *c)
{
    for (int i = 0; i < 100000; i++) {
        origin_ask(c->conn->origin, clock_seconds(), 1);
    }
}

static void one_address_asks_so_often_a_second(void **state)
{
    enum { LONG_S = 2, MINUTE_S = 61 };
    (void)state;
    begin();
    struct client again = come("10.0.0.1"), seldom = come("10.0.0.1"), socket = come("10.0.0.1"),
                  other = come("10.0.0.2");
    SAY(&socket, SOCKET), turn();
    assert_int_equal(socket.conn->state, CONN_SOCKET);
    ask_too_much(&again);
    seldom.conn->asked_at -= LONG_S;
    SAY(&again, ASKS), SAY(&seldom, ASKS), SAY(&socket, SAYS), SAY(&other, ASKS), turn();
    assert_int_equal(other.conn->state, CONN_ANSWER);
    assert_int_equal(seldom.conn->state, CONN_ANSWER);
    assert_true(again.conn->state == CONN_HEAD && again.conn->resume_at > 0);
    assert_true(socket.conn->has_said && socket.conn->resume_at > 0);
    assert_true(s.metrics.limited[METRICS_ASKED] == 2 && again.conn->origin->told_at > 0);
    assert_true(
        other.conn->origin->told_at <= 0 && !origin_is_news(again.conn->origin, clock_seconds()));
    assert_true(origin_is_news(again.conn->origin, clock_seconds() + MINUTE_S));
    ask_too_much(&again); /* and nobody waits for ever for that */
    conn_tick(&s, clock_seconds() + LONG_S), turn();
    assert_int_equal(again.conn->state, CONN_ANSWER);
    assert_true(socket.conn->state == CONN_SOCKET && socket.conn->resume_at <= 0);
    end();
    close(again.socket), close(seldom.socket), close(socket.socket), close(other.socket);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_worth_least_goes_first),
        cmocka_unit_test(the_address_with_most_places_pays),
        cmocka_unit_test(who_has_most_gets_no_more_of_others),
        cmocka_unit_test(who_has_just_come_is_left_alone),
        cmocka_unit_test(a_session_stays_while_others_have_just_come),
        cmocka_unit_test(who_does_not_take_an_answer_goes),
        cmocka_unit_test(addresses_are_told_apart),
        cmocka_unit_test(debts_have_an_end),
        cmocka_unit_test(whose_body_goes_on_is_left_alone),
        cmocka_unit_test(who_listens_stays),
        cmocka_unit_test(who_sends_too_much_waits),
        cmocka_unit_test(who_is_thrown_out_again_and_again_waits_for_it),
        cmocka_unit_test(one_connection_asks_so_often_a_second),
        cmocka_unit_test(one_address_asks_so_often_a_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
