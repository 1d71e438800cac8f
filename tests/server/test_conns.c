/* SPDX-License-Identifier: Apache-2.0
 * One connection, byte for byte: heads and pieces of answers, what is refused before it is read, and when a connection
 * that does nothing ends. */
#include <stdio.h>

#include "server/loop/conn/conn_whole.h"
#include "tests/server/posed_conns.h"

enum { SMALL_BODY = 100, MOST_TOLD = 1 << 16 };

static char told[MOST_TOLD]; /* what the client was told since the last question */
static size_t n_told;

/* Takes what has come. True: and the end. */
static bool listen_to(const struct client *c)
{
    ssize_t n;
    turn();
    n_told = 0;
    while ((n = recv(c->socket, told + n_told, sizeof told - 1 - n_told, 0)) > 0) {
        n_told += (size_t)n;
    }
    told[n_told] = 0;
    return n == 0 || errno == ECONNRESET;
}

static void expect_told(const char *expected)
{
    if (n_told != strlen(expected) || memcmp(told, expected, n_told) != 0) {
        fail_msg("told '%s'\ninstead of '%s'", told, expected);
    }
}

static void expect_line(const char *line, bool is_there)
{
    char all[300];
    snprintf(all, sizeof all, "\r\n%s\r\n", line);
    if ((strstr(told, all) != NULL) != is_there) {
        fail_msg("'%s' %s in %s", line, is_there ? "is not" : "is", told);
    }
}

static const char *body(void)
{
    const char *end = strstr(told, "\r\n\r\n");
    assert_non_null(end);
    return end + 4;
}

/* Reads a body of up to SMALL_BODY bytes, and leaves the answer to the test. */
static bool admit_little(struct conn *c, size_t *body_limit, struct refusal *refusal)
{
    *body_limit = SMALL_BODY;
    return strcmp(c->head.path, "/closed") != 0 || refuse(refusal, 403, NULL, "closed");
}

static char had[SMALL_BODY + 1]; /* the body of the last request */
static int n_requests;

static void note_request(struct conn *c)
{
    size_t n = evbuffer_get_length(c->body);
    assert_true(n <= SMALL_BODY);
    evbuffer_copyout(c->body, had, n);
    had[n] = 0;
    n_requests++;
}

static const struct conn_service little = {admit_little, note_request};

static struct client come_to(const struct conn_service *at)
{
    struct sockaddr_in address = from("10.0.0.1");
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    struct conn *c = conn_new(&s, at, pair[0], (struct sockaddr *)&address);
    assert_non_null(c);
    return (struct client){pair[1], c};
}

static void end_with(const struct client *c)
{
    end();
    close(c->socket);
}

/* ---- Answers ---- */

static void each_status_has_its_words(void **state)
{
    static const struct {
        int status;
        const char *line;
    } cases[] = {{200, "200 OK"}, {201, "201 Created"}, {204, "204 No Content"},
        {400, "400 Bad Request"}, {401, "401 Unauthorized"}, {403, "403 Forbidden"},
        {404, "404 Not Found"}, {405, "405 Method Not Allowed"}, {408, "408 Request Timeout"},
        {409, "409 Conflict"}, {411, "411 Length Required"}, {413, "413 Content Too Large"},
        {415, "415 Unsupported Media Type"}, {417, "417 Expectation Failed"},
        {426, "426 Upgrade Required"}, {429, "429 Too Many Requests"},
        {431, "431 Request Header Fields Too Large"}, {500, "500 Internal Server Error"},
        {501, "501 Not Implemented"}, {503, "503 Service Unavailable"},
        {505, "505 HTTP Version Not Supported"}, {507, "507 Insufficient Storage"},
        {299, "299 Status"}};
    char line[100];
    (void)state;
    begin();
    struct client c = come_to(&little);
    for (size_t i = 0; i < sizeof cases / sizeof *cases;
         i++) { /* one after the other on one connection */
        SAY(&c, ASKS), turn();
        conn_answer(c.conn, cases[i].status, "text/x", "abc", 3);
        assert_false(listen_to(&c));
        snprintf(line, sizeof line, "HTTP/1.1 %s\r\n", cases[i].line);
        assert_memory_equal(told, line, strlen(line));
        expect_line("Content-Type: text/x", true);
        expect_line("Content-Length: 3", true);
        expect_line("Connection: keep-alive", true);
        expect_line("Cache-Control: no-cache", true);
        assert_string_equal(body(), "abc");
        snprintf(line, sizeof line, "x-request-id: req--%zx", i + 1);
        expect_line(line, true);
    }
    end_with(&c);
}

static void a_head_alone_has_no_body(void **state)
{
    (void)state;
    begin();
    struct client c = come_to(&little);
    SAY(&c, "HEAD /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"), turn();
    conn_answer_more(c.conn, 200, NULL, "More: 1\r\n", "abc", 3);
    assert_true(listen_to(&c));
    expect_line("Content-Length: 3", true);
    expect_line("More: 1", true);
    expect_line("Connection: close", true);
    assert_null(strstr(told, "\r\nContent-Type"));
    assert_string_equal(body(), "");
    end_with(&c);
}

static void a_refusal_says_what_to_do(void **state)
{
    static const struct {
        struct refusal r;
        const char *is_there[2], *is_not[2];
    } cases[] = {{{.status = 401}, {"WWW-Authenticate: Bearer"}, {"Upgrade: websocket", "Allow: "}},
        {{.status = 426}, {"Upgrade: websocket", "Sec-WebSocket-Version: 13"},
            {"WWW-Authenticate: Bearer"}},
        {{.status = 405, .allow = "GET, HEAD"}, {"Allow: GET, HEAD"}, {"Upgrade: websocket"}},
        {{.status = 503, .retry_ms = 1001}, {"Retry-After: 2", "retry-after-ms: 1001"},
            {"x-should-retry: false"}},
        {{.status = 500, .never_retry = true}, {"x-should-retry: false"}, {"Retry-After: 0"}},
        {{.status = 429, .retry_ms = 7, .never_retry = true},
            {"x-should-retry: false", "retry-after-ms: 7"}, {"Allow: "}}};
    (void)state;
    begin();
    struct client c = come_to(&little);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        SAY(&c, ASKS), turn();
        conn_refuse(c.conn, &cases[i].r);
        listen_to(&c);
        assert_int_equal(atoi(told + 9), cases[i].r.status);
        for (int k = 0; k < 2 && cases[i].is_there[k]; k++) {
            expect_line(cases[i].is_there[k], true);
        }
        for (int k = 0; k < 2 && cases[i].is_not[k]; k++) {
            expect_line(cases[i].is_not[k], false);
        }
    }
    end_with(&c);
}

static void try_handshake(struct conn *c)
{
    char accept[29];
    n_requests += conn_handshake(c, accept);
}

static const struct conn_service sockets = {admit_little, try_handshake};

/* What is asked for in another way than version 13 has it. */
static void a_handshake_that_is_none_is_refused(void **state)
{
    static const struct {
        const char *asks;
        int status;
    } cases[] = {{"GET /a HTTP/1.1\r\nHost: a\r\n\r\n", 426},
        {"GET /a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
         "Sec-WebSocket-Version: 12\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
            426},
        {"GET /a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
         "Sec-WebSocket-Version: 13\r\n\r\n",
            400},
        {"GET /a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
         "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAA\r\n\r\n",
            400}};
    (void)state;
    n_requests = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin();
        struct client c = come_to(&sockets);
        say(&c, cases[i].asks, strlen(cases[i].asks));
        listen_to(&c);
        assert_int_equal(atoi(told + 9), cases[i].status);
        assert_int_equal(n_requests, 0);
        end_with(&c);
    }
}

/* Whoever knows no chunks has the end of the connection as the end of the answer. */
static void an_answer_in_pieces_has_an_end(void **state)
{
    static const struct {
        const char *minor;
        bool breaks;
        const char *pieces;
        bool ends;
    } cases[] = {{"1", false, "5\r\nHello\r\n10\r\n, sixteen bytes.\r\n0\r\nX-End: 1\r\n\r\n", false},
        {"1", true, "5\r\nHello\r\n10\r\n, sixteen bytes.\r\n", true},
        {"0", false, "Hello, sixteen bytes.", true}, {"0", true, "Hello, sixteen bytes.", true}};
    char asks[100];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin();
        struct client c = come_to(&little);
        snprintf(asks, sizeof asks, "GET /a HTTP/1.%s\r\nHost: a\r\nConnection: keep-alive\r\n\r\n",
            cases[i].minor);
        say(&c, asks, strlen(asks)), turn();
        conn_begin(c.conn, 201, "a/b", "X: y\r\n");
        conn_piece(c.conn, "Hello", 5);
        conn_piece(c.conn, "", 0);
        conn_piece(c.conn, ", sixteen bytes.", 16);
        cases[i].breaks ? conn_break(c.conn) : conn_finish(c.conn, "X-End: 1\r\n");
        assert_int_equal(listen_to(&c), cases[i].ends);
        assert_memory_equal(told, "HTTP/1.1 201 Created\r\n", 22);
        expect_line("X: y", true);
        expect_line("Transfer-Encoding: chunked", cases[i].minor[0] == '1');
        expect_line("Connection: keep-alive", cases[i].minor[0] == '1');
        assert_string_equal(body(), cases[i].pieces);
        end_with(&c);
    }
}

/* ---- Requests ---- */

#define POST "POST /a HTTP/1.1\r\nHost: a\r\n"

static void bodies_come_in_any_pieces(void **state)
{
    static const struct {
        const char *request, *body;
    } cases[] = {{POST "Content-Length: 3\r\n\r\nabc", "abc"}, {POST "Content-Length: 0\r\n\r\n", ""},
        {POST "\r\n", ""},
        {POST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: 1\r\n\r\n",
            "abcde"},
        {POST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ""}};
    (void)state;
    begin();
    struct client c = come_to(&little);
    n_requests = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const size_t n = strlen(cases[i].request);
        for (size_t piece = 1; piece <= n; piece += piece < 8 ? 1 : n - piece > 8 ? 11 : 1) {
            const int before = n_requests;
            for (size_t at = 0; at < n; at += piece) {
                assert_int_equal(n_requests, before);
                say(&c, cases[i].request + at, n - at < piece ? n - at : piece), turn();
            }
            assert_int_equal(n_requests, before + 1);
            assert_string_equal(had, cases[i].body);
            conn_answer(c.conn, 200, NULL, "", 0);
            assert_false(listen_to(&c));
            c.conn->budget.messages.left = 1000; /* as if it had taken its time */
        }
    }
    /* Two at once: the second waits for the first one's answer. */
    const int before = n_requests;
    SAY(&c, ASKS), SAY(&c, POST "Content-Length: 1\r\n\r\nz"), turn();
    assert_int_equal(n_requests, before + 1);
    conn_answer(c.conn, 200, NULL, "", 0), turn();
    assert_int_equal(n_requests, before + 2);
    assert_string_equal(had, "z");
    end_with(&c);
}

static void what_will_not_do_is_refused_unread(void **state)
{
    static const struct {
        const char *request;
        int status;
        enum metrics_rejection why;
        bool ends; /* the connection with it */
    } cases[] = {{POST "Content-Length: 101\r\n\r\n", 413, METRICS_TOO_LARGE, true},
        {POST "Transfer-Encoding: chunked\r\n\r\n65\r\n", 0, METRICS_TOO_LARGE, false},
        {POST "Transfer-Encoding: chunked\r\n\r\nx\r\n", 400, METRICS_INVALID, true},
        {"GET /a HTTP/1.1\r\n\r\n", 400, METRICS_INVALID, true},
        {"POST /closed HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n", 403, METRICS_N_REJECTIONS,
            true},
        {"GET /closed HTTP/1.1\r\nHost: a\r\n\r\n", 403, METRICS_N_REJECTIONS, false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin();
        struct client c = come_to(&little);
        say(&c, cases[i].request, strlen(cases[i].request));
        const bool has_ended = listen_to(&c);
        if (cases[i].status == 0) { /* a chunk may be as long as it likes, what of it comes may not */
            assert_int_equal(n_told, 0);
            char much[SMALL_BODY + 1];
            memset(much, 'x', sizeof much);
            say(&c, much, sizeof much);
            assert_true(listen_to(&c));
            assert_int_equal(atoi(told + 9), 413);
        } else if (has_ended != cases[i].ends || atoi(told + 9) != cases[i].status) {
            fail_msg("%s: %s", cases[i].request, told);
        }
        for (int k = 0; k < METRICS_N_REJECTIONS; k++) {
            assert_int_equal(s.metrics.rejected[k], k == (int)cases[i].why);
        }
        end_with(&c);
    }
}

static void the_longest_head_is_read(void **state)
{
    static const char begins[] = "GET /a HTTP/1.1\r\nHost: a\r\nX: ";
    char head[HTTP_HEAD_BYTES + 1];
    (void)state;
    for (int over = 0; over < 2; over++) {
        begin();
        struct client c = come_to(&little);
        const size_t n = HTTP_HEAD_BYTES;
        memset(head, 'a', sizeof head);
        memcpy(head, begins, sizeof begins - 1);
        memcpy(head + n - 4, over ? "aaaa" : "\r\n\r\n", 4);
        n_requests = 0;
        say(&c, head, n);
        assert_int_equal(listen_to(&c), over);
        assert_int_equal(n_requests, !over);
        assert_int_equal(n_told ? atoi(told + 9) : 0, over ? 431 : 0);
        end_with(&c);
    }
}

static void who_asks_first_is_told_to_go_on(void **state)
{
    (void)state;
    begin();
    struct client c = come_to(&little);
    SAY(&c, POST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    listen_to(&c);
    expect_told("HTTP/1.1 100 Continue\r\n\r\n");
    assert_int_equal(c.conn->state, CONN_BODY);
    SAY(&c, "ab"), turn();
    assert_string_equal(had, "ab");
    end_with(&c);
}

/* ---- What all clients hold together ---- */

static void who_holds_much_goes_when_all_hold_too_much(void **state)
{
    static const struct {
        size_t others, own;
        bool goes;
    } cases[] = {
        {LIMIT_HELD, 50000, true}, {LIMIT_HELD, 1000, false}, {LIMIT_HELD - 60000, 50000, false}};
    static char much[50000];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin();
        struct client c = come("10.0.0.1");
        SAY(&c, HALF_BODY), turn();
        s.held_bytes += cases[i].others;
        say(&c, much, cases[i].own), turn();
        listen_to(&c);
        assert_int_equal(n_told > 0, cases[i].goes);
        if (cases[i].goes) {
            assert_int_equal(atoi(told + 9), 503);
            expect_line("Retry-After: 1", true);
        } else {
            assert_int_equal(c.conn->held_bytes, 1 + cases[i].own);
        }
        s.held_bytes -= cases[i].others;
        end_with(&c);
        assert_int_equal(s.held_bytes, 0);
    }
}

static void who_sends_on_and_on_behind_a_request_ends(void **state)
{
    static char much[100000];
    (void)state;
    for (int over = 0; over < 2; over++) {
        begin();
        struct client c = come("10.0.0.1");
        SAY(&c, ASKS), turn();
        say(&c, much, over ? 70000 : 60000), turn();
        assert_int_equal(s.n_conns, !over);
        end_with(&c);
    }
}

/* ---- Time ---- */

static int n_idle;

static void on_idle(void *user)
{
    (void)user;
    n_idle++;
}

/* Of all states: what becomes of a connection when its time is up, and how long that is. */
static void each_state_has_its_time(void **state)
{
    static const struct conn_owner with_idle = {on_gone, NULL, on_message, on_idle, NULL};
    static const struct {
        const char *said;
        double least_s, most_s;
        int status; /* that it is told at its end */
    } cases[] = {
        {"", 5, 6.25, 0}, {"GET", 5, 6.25, 408}, {HALF_BODY, 30, 37.5, 408}, {SOCKET, 10, 10, -1}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin();
        n_idle = 0;
        struct client c = come("10.0.0.1");
        const double came = clock_seconds();
        say(&c, cases[i].said, strlen(cases[i].said)), turn();
        const double left = c.conn->deadline - came;
        assert_true(left > cases[i].least_s - 1e-6 && left < cases[i].most_s + 5);
        if (cases[i].status < 0) {
            c.conn->owner = &with_idle;
        }
        listen_to(&c);
        conn_tick(&s, c.conn->deadline);
        assert_false(listen_to(&c) || n_told > 0 || n_idle > 0);
        conn_tick(&s, c.conn->deadline + 0.001);
        assert_int_equal(listen_to(&c), cases[i].status >= 0);
        assert_int_equal(n_told ? atoi(told + 9) : 0, cases[i].status > 0 ? cases[i].status : 0);
        assert_int_equal(n_idle, cases[i].status < 0);
        assert_int_equal(s.n_lingering, cases[i].status > 0);
        if (cases[i].status > 0) { /* what it still sends is read for a second */
            assert_int_equal(c.conn->state, CONN_LINGER);
            conn_tick(&s, clock_seconds() + LINGER_S - 0.5);
            assert_int_equal(s.n_conns, 1);
            conn_tick(&s, clock_seconds() + LINGER_S + 0.1);
        }
        assert_int_equal(s.n_conns, cases[i].status < 0);
        end_with(&c);
    }
}

static void who_waits_for_its_answer_has_no_deadline(void **state)
{
    (void)state;
    begin();
    struct client c = come_to(&little);
    SAY(&c, ASKS), turn();
    conn_tick(&s, clock_seconds() + 1e6);
    assert_true(s.n_conns == 1 && c.conn->deadline <= 0);
    conn_answer(c.conn, 200, NULL, "", 0);
    const double left = c.conn->deadline - clock_seconds();
    assert_true(left > IDLE_S - 1 && left < IDLE_S * 1.25);
    conn_tick(&s, c.conn->deadline + 1);
    assert_int_equal(s.n_conns, 0);
    end_with(&c);
}

/* Who does not take its answer goes, and is counted; who takes some of it does not. */
static void who_takes_nothing_goes(void **state)
{
    static char much[4 << 20];
    (void)state;
    begin();
    struct client c = come_to(&little);
    SAY(&c, ASKS), turn();
    conn_answer(c.conn, 200, NULL, much, sizeof much), turn();
    assert_true(conn_unsent(c.conn) > 0 && s.unsent_bytes == conn_unsent(c.conn));
    c.conn->last_write -= 100;
    listen_to(&c), turn();
    conn_tick(&s, clock_seconds() + STALL_S - 1);
    assert_true(s.n_conns == 1 && s.metrics.dropped_stalled == 0);
    c.conn->last_write = 1000;
    conn_tick(&s, 1000 + STALL_S);
    assert_int_equal(s.n_conns, 1);
    conn_tick(&s, 1000 + STALL_S + 1e-3);
    assert_true(s.n_conns == 0 && s.metrics.dropped_stalled == 1 && s.unsent_bytes == 0);
    end_with(&c);
}

/* Many that end at once do not hold up those who hear: the rest is for the next tick. */
static void a_few_end_at_once(void **state)
{
    enum { MANY = 20, AT_ONCE = 16 };
    struct client all[MANY];
    (void)state;
    begin();
    s.most_conns = MANY;
    for (int i = 0; i < MANY; i++) {
        all[i] = come("10.0.0.1");
    }
    const double late = clock_seconds() + 100;
    assert_true(conn_tick(&s, late));
    assert_int_equal(s.n_conns, MANY - AT_ONCE);
    assert_false(conn_tick(&s, late));
    assert_int_equal(s.n_conns, 0);
    end();
    leave(all, MANY);
}

/* The server stops: who has just connected, or is in the middle of its request, has a second; who waits for its next
 * one goes; who is answered is told that nothing follows. */
static void a_drain_leaves_those_who_are_about_to_ask(void **state)
{
    (void)state;
    begin();
    s.most_conns = 8;
    struct client first = come_to(&little), half = come_to(&little), again = come_to(&little),
                  answered = come_to(&little), later = come_to(&little);
    SAY(&half, "GET"), SAY(&again, ASKS), SAY(&answered, ASKS), SAY(&later, ASKS), turn();
    conn_answer(again.conn, 200, NULL, "", 0), conn_answer(later.conn, 200, NULL, "", 0);
    listen_to(&again), listen_to(&later);
    SAY(&later, ASKS); /* is there, and not read yet */
    s.draining = true;
    conn_drain(&s);
    turn();
    assert_int_equal(s.n_conns, 4);
    assert_true(listen_to(&again));
    assert_true(first.conn->deadline < clock_seconds() + LINGER_S + 0.1);
    assert_true(half.conn->deadline < clock_seconds() + LINGER_S + 0.1);
    assert_int_equal(later.conn->state, CONN_ANSWER);
    conn_answer(answered.conn, 200, NULL, "", 0);
    assert_true(listen_to(&answered));
    expect_line("Connection: close", true);
    struct client newcomer = come_to(&little);
    assert_true(newcomer.conn->deadline < clock_seconds() + LINGER_S + 0.1);
    end();
    close(first.socket), close(half.socket), close(again.socket);
    close(answered.socket), close(later.socket), close(newcomer.socket);
}

/* Behind a request that is still being answered: the beginning of the next one, then the rest of it. */
static void what_was_sent_ahead_is_read(void **state)
{
    (void)state;
    begin();
    struct client c = come("10.0.0.1");
    SAY(&c, "GET /answer HTTP/1.1\r\nHost: a\r\n\r\nGET /next"), turn();
    assert_true(c.conn->state == CONN_ANSWER && strcmp(c.conn->head.path, "/answer") == 0);
    conn_answer(c.conn, 200, NULL, "1", 1), turn();
    assert_true(c.conn->state == CONN_HEAD && c.conn->reading);
    SAY(&c, " HTTP/1.1\r\nHost: a\r\n\r\n"), turn();
    assert_true(c.conn->state == CONN_ANSWER && strcmp(c.conn->head.path, "/next") == 0);
    end_with(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_sent_ahead_is_read),
        cmocka_unit_test(each_status_has_its_words),
        cmocka_unit_test(a_head_alone_has_no_body),
        cmocka_unit_test(a_refusal_says_what_to_do),
        cmocka_unit_test(a_handshake_that_is_none_is_refused),
        cmocka_unit_test(an_answer_in_pieces_has_an_end),
        cmocka_unit_test(bodies_come_in_any_pieces),
        cmocka_unit_test(what_will_not_do_is_refused_unread),
        cmocka_unit_test(the_longest_head_is_read),
        cmocka_unit_test(who_asks_first_is_told_to_go_on),
        cmocka_unit_test(who_holds_much_goes_when_all_hold_too_much),
        cmocka_unit_test(who_sends_on_and_on_behind_a_request_ends),
        cmocka_unit_test(each_state_has_its_time),
        cmocka_unit_test(who_waits_for_its_answer_has_no_deadline),
        cmocka_unit_test(who_takes_nothing_goes),
        cmocka_unit_test(a_few_end_at_once),
        cmocka_unit_test(a_drain_leaves_those_who_are_about_to_ask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
