/* SPDX-License-Identifier: Apache-2.0
 * All places are taken, and somebody comes: who goes, who stays. */
#include <stdio.h>

#include "tests/server/posed_conns.h"

enum { LONG_AGO = 100 };

static const char HALF_HEAD[] = "GET /answer HTTP/1.1\r\nHost: a\r\n";

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

static bool makes_room(const char *newcomer)
{
    struct sockaddr_in at = from(newcomer);
    bool room = conn_make_room(&s, (struct sockaddr *)&at);
    turn(); /* libevent closes a socket then */
    return room;
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

/* Who has done much and gone is remembered until he may do as much as anybody, and no longer. */
static void who_has_gone_is_forgotten_in_time(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 3; i++) {
        struct origin *o = enter("10.0.0.3", PLACES);
        if (i == 0) {
            origin_ask(o, 0, 4000);
        } else if (i == 1) {
            origin_take(o, 0, 100 << 20);
        } else {
            origin_throw_out(o, 0);
        }
        origin_leave(&s.origins, o, PLACES, 0);
        origins_tick(&s.origins, 0.01);
        assert_int_equal(s.origins.n_left, 1);
        origins_tick(&s.origins, 10);
        assert_int_equal(s.origins.n_left, 0);
    }
    end();
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

/* Who has left asks for nothing more. */
static void what_has_come_is_known_before_it_is_read(void **state)
{
    (void)state;
    begin();
    struct client c = come("10.0.0.1"), gone = come("10.0.0.2");
    assert_false(server_has_come(c.conn->bev));
    SAY(&c, "G");
    assert_true(server_has_come(c.conn->bev));
    assert_int_equal(shutdown(gone.socket, SHUT_WR), 0);
    assert_false(server_has_come(gone.conn->bev));
    end();
    close(c.socket), close(gone.socket);
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
        cmocka_unit_test(who_has_gone_is_forgotten_in_time),
        cmocka_unit_test(whose_body_goes_on_is_left_alone),
        cmocka_unit_test(who_listens_stays),
        cmocka_unit_test(what_has_come_is_known_before_it_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
