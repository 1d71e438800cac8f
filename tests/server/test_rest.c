/* SPDX-License-Identifier: Apache-2.0
 * What one connection, and one address, may send and ask in a second, and who rests for it. */
#include "base/minmax.h"
#include "tests/server/posed_conns.h"

static const char NONSENSE[] = "nonsense\r\n\r\n"; /* who sends it is thrown out */

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
        SAY(&c, NONSENSE);
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

/* Others of the address have sent more than it may; who goes on evenly, slower than one connection may send, rests. */
static void many_that_send_evenly_share_what_an_address_may_send(void **state)
{
    enum { PIECE = 32 << 10, LITTLE = 192 << 10, MOST = 8 << 20 };
    size_t sent = 0;
    (void)state;
    begin();
    struct client little = come("10.0.0.1"), much = come("10.0.0.1"), other = come("10.0.0.2");
    SAY(&little, HALF_BODY), SAY(&much, HALF_BODY), SAY(&other, HALF_BODY), turn();
    while (much.conn->resume_at <= 0 && sent < MOST) {
        origin_take(much.conn->origin, clock_seconds(), 1 << 30);
        much.conn->bytes.left = 16 << 20; /* as if it had taken its time */
        sent += pour(&much, PIECE);
    }
    assert_in_range(sent, LITTLE, MOST - 1);
    pour(&little, LITTLE);
    assert_true(little.conn->resume_at <= 0);
    pour(&other, MOST);
    assert_true(other.conn->resume_at <= 0);
    end();
    close(little.socket), close(much.socket), close(other.socket);
}

/* So long later for one connection, without waiting for it. */
static void pass(struct conn *c, double seconds)
{
    c->bytes.at -= seconds, c->sent.at -= seconds, c->resume_at -= seconds;
    conn_tick(&s, clock_seconds());
    turn();
}

/* The longest request, sent as fast as it is taken, by an address whose others send more than it may all the time. */
static void the_longest_request_comes_in_time_beside_neighbours(void **state)
{
    static const double tick_s = 0.1;
    double took = 0;
    size_t sent = 1;
    (void)state;
    begin();
    struct client c = come("10.0.0.1");
    SAY(&c, HALF_BODY), turn();
    for (; c.conn->state == CONN_BODY && took < BODY_S; took += tick_s) {
        origin_take(c.conn->origin, clock_seconds(), 1 << 30);
        sent += pour(&c, BODY - sent);
        pass(c.conn, tick_s);
    }
    assert_int_equal(c.conn->state, CONN_ANSWER);
    assert_true(took > BODY_S / 3.0 && took < BODY_S / 2.0); /* and no faster than each may */
    end();
    close(c.socket);
}

/* Sends no request: when the connection is told, and ends. */
static double told_at(struct client *c)
{
    double began = clock_seconds();
    SAY(c, NONSENSE);
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
        SAY(&c, NONSENSE);
        turn();
        assert_true(has_gone(&c)); /* it has been told, and nothing more will follow */
        conn_drop(c.conn), close(c.socket);
    }
    struct client many[AT_ONCE];
    double began = clock_seconds();
    for (int i = 0; i < AT_ONCE; i++) {
        many[i] = come("10.0.0.1");
        SAY(&many[i], NONSENSE);
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

/* The log has who it was, what for, and how many connections came from there. */
static void a_limit_is_told_in_the_log(void **state)
{
    static const struct serve_options told = {.quiet = false};
    char text[500] = "";
    int ends[2], kept = dup(STDERR_FILENO);
    (void)state;
    assert_true(kept >= 0 && pipe(ends) == 0);
    begin();
    s.options = &told;
    struct client c = come("10.0.0.1");
    dup2(ends[1], STDERR_FILENO);
    conn_limited(c.conn, METRICS_HELD);
    dup2(kept, STDERR_FILENO);
    close(kept), close(ends[1]);
    assert_true(read(ends[0], text, sizeof text - 1) > 0);
    close(ends[0]);
    assert_non_null(strstr(text, "\"event\":\"limited\",\"client\":\"10.0.0.1\",\"how\":\""));
    assert_non_null(strstr(text, "\",\"connections\":1}"));
    assert_non_null(strstr(text, metrics_limit_name(METRICS_HELD)));
    end();
    close(c.socket);
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
    socket.conn->said = (struct bucket){-25, clock_seconds()}; /* has just said much */
    SAY(&again, ASKS), SAY(&seldom, ASKS), SAY(&socket, SAYS), SAY(&other, ASKS), turn();
    assert_int_equal(other.conn->state, CONN_ANSWER);
    assert_int_equal(seldom.conn->state, CONN_ANSWER);
    assert_true(again.conn->state == CONN_HEAD && again.conn->resume_at > 0);
    assert_true(again.conn->resume_at < clock_seconds() + 0.3); /* as may who asks whether we live */
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

static void who_only_connects_leaves_neighbours_alone(void **state)
{
    enum { COME = 12000 };
    (void)state;
    begin();
    for (int i = 0; i < COME; i++) {
        struct client c = come("10.0.0.1");
        conn_drop(c.conn), close(c.socket), turn();
    }
    struct client asks = come("10.0.0.1");
    SAY(&asks, ASKS), turn();
    assert_int_equal(asks.conn->state, CONN_ANSWER);
    end();
    close(asks.socket);
}

static void say_often(const struct client *c, int n)
{
    for (int i = 0; i < n; i++) {
        SAY(c, SAYS);
    }
    turn();
}

/* A session into which words come, as fast as they are spoken, or some at once. */
static void who_says_little_does_not_rest_for_neighbours(void **state)
{
    enum { LITTLE = 20, MUCH = 40 };
    (void)state;
    begin();
    struct client c = come("10.0.0.1");
    SAY(&c, SOCKET), turn();
    ask_too_much(&c);
    say_often(&c, LITTLE);
    assert_true(c.conn->has_said && c.conn->resume_at <= 0);
    say_often(&c, MUCH);
    assert_true(c.conn->resume_at > 0);
    end();
    close(c.socket);
}

static void a_session_goes_behind_others_for_its_own_fault_only(void **state)
{
    enum { MUCH = 60, TOO_MUCH = 100, MOST = 10000, LONG_S = 2 };
    (void)state;
    begin();
    struct client beside = come("10.0.0.1"), floods = come("10.0.0.2");
    SAY(&beside, SOCKET), SAY(&floods, SOCKET), turn();
    ask_too_much(&beside);
    say_often(&beside, MUCH);
    assert_true(beside.conn->resume_at > 0);
    conn_tick(&s, clock_seconds() + LONG_S), turn();
    assert_int_equal(bufferevent_get_priority(beside.conn->bev), SERVER_SOUND);
    for (int i = 0; i < MOST && floods.conn->resume_at <= 0; i += TOO_MUCH) {
        say_often(&floods, TOO_MUCH);
    }
    assert_true(floods.conn->resume_at > 0);
    assert_int_equal(bufferevent_get_priority(floods.conn->bev), SERVER_OTHER);
    end();
    close(beside.socket), close(floods.socket);
}

/* However many pieces the network makes of it. */
static void a_long_frame_is_one_message(void **state)
{
    enum { PIECES = 1500, PIECE = 40 };
    static const char head[] = "\x82\xFE\xEA\x60\0\0\0\0", piece[PIECE];
    (void)state;
    begin();
    struct client c = come("10.0.0.1");
    SAY(&c, SOCKET), turn();
    SAY(&c, head), turn();
    for (int i = 0; i < PIECES; i++) {
        assert_false(c.conn->has_said);
        say(&c, piece, PIECE), turn();
    }
    assert_true(c.conn->has_said && c.conn->resume_at <= 0);
    end();
    close(c.socket);
}

/* The server stops: a request that is there is answered, however much was asked beside it. */
static void who_rests_in_a_drain_is_read(void **state)
{
    (void)state;
    begin();
    struct client asks = come("10.0.0.1");
    ask_too_much(&asks);
    SAY(&asks, ASKS), turn();
    assert_true(asks.conn->state == CONN_HEAD && asks.conn->resume_at > 0);
    s.draining = true;
    conn_drain(&s);
    turn();
    assert_int_equal(asks.conn->state, CONN_ANSWER);
    end();
    close(asks.socket);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(debts_have_an_end),
        cmocka_unit_test(who_sends_too_much_waits),
        cmocka_unit_test(many_that_send_evenly_share_what_an_address_may_send),
        cmocka_unit_test(the_longest_request_comes_in_time_beside_neighbours),
        cmocka_unit_test(who_is_thrown_out_again_and_again_waits_for_it),
        cmocka_unit_test(a_limit_is_told_in_the_log),
        cmocka_unit_test(one_connection_asks_so_often_a_second),
        cmocka_unit_test(one_address_asks_so_often_a_second),
        cmocka_unit_test(who_only_connects_leaves_neighbours_alone),
        cmocka_unit_test(who_says_little_does_not_rest_for_neighbours),
        cmocka_unit_test(a_session_goes_behind_others_for_its_own_fault_only),
        cmocka_unit_test(a_long_frame_is_one_message),
        cmocka_unit_test(who_rests_in_a_drain_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
