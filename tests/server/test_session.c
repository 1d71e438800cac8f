/* SPDX-License-Identifier: Apache-2.0
 * Sessions at their bounds: how much text may wait, what is no text, who is idle, what becomes of one in a drain, and
 * of what waits when a speech cannot be had or is lost. */
#include "tests/server/posed_front.h"

enum { LONG_S = 20, MOST = 1 << 18, KIB_128 = 128 << 10, PART_BYTES = 384 };

static int client;
static uint8_t in[MOST];
static char told[MOST]; /* a line for each message */
static size_t n_in, n_told;
static bool has_head;

static struct conn *session(void)
{
    return TAILQ_FIRST(&posed.conns);
}

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    n_told += (size_t)vsnprintf(told + n_told, sizeof told - n_told, format, list);
    va_end(list);
    assert_true(n_told < sizeof told);
}

static void forget(size_t n)
{
    n_in -= n;
    memmove(in, in + n, n_in);
}

/* One frame, where all of it has come. */
static bool take_frame(void)
{
    const size_t n_number = n_in < 2 ? 0 : in[1] == 126 ? 2 : in[1] == 127 ? 8 : 0;
    uint64_t n = n_in < 2 ? 0 : in[1] & 127;
    for (size_t i = 0; i < n_number && n_in >= 2 + n_number; i++) {
        n = (i ? n << 8 : 0) | in[2 + i];
    }
    if (n_in < 2 + n_number || n_in < 2 + n_number + n) {
        return false;
    }
    const uint8_t *at = in + 2 + n_number;
    if ((in[0] & 15) == 8) {
        note("close %d %.*s\n", at[0] << 8 | at[1], (int)n - 2, (const char *)at + 2);
    } else if ((in[0] & 15) == 1) {
        note("%.*s\n", (int)n, (const char *)at);
    } else {
        note("(sound)\n");
    }
    forget(2 + n_number + (size_t)n);
    return true;
}

static void turn(void)
{
    posed_turn();
    const ssize_t n = recv(client, in + n_in, sizeof in - n_in, 0);
    n_in += n > 0 ? (size_t)n : 0;
    const char *end = has_head ? NULL : memmem(in, n_in, "\r\n\r\n", 4);
    if (end) {
        forget((size_t)(end + 4 - (const char *)in));
        has_head = true;
    }
    while (has_head && take_frame()) {
    }
}

/* Until it has been told this. */
static void hear(const char *words)
{
    const double until = clock_seconds() + LONG_S;
    while (!strstr(told, words) && clock_seconds() < until) {
        turn();
    }
    if (!strstr(told, words)) {
        fail_msg("no %s in: %s", words, told);
    }
}

static void forget_told(void)
{
    n_told = 0;
    told[0] = 0;
}

static void send_all(const void *bytes, size_t n)
{
    const double until = clock_seconds() + LONG_S;
    for (size_t at = 0; at < n && clock_seconds() < until;) {
        const ssize_t sent = send(client, (const char *)bytes + at, n - at, MSG_NOSIGNAL);
        at += sent > 0 ? (size_t)sent : 0;
        turn();
    }
}

static void say_bytes(int kind, const char *text, size_t n)
{
    const uint8_t head[14] = {(uint8_t)(0x80 | kind), 0x80 | 127, [6] = (uint8_t)(n >> 24),
        (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};
    const uint8_t middle[8] = {head[0], 0x80 | 126, head[8], head[9]},
                  little[6] = {head[0], (uint8_t)(0x80 | n)};
    n > 65535 ? send_all(head, 14) : n > 125 ? send_all(middle, 8) : send_all(little, 6);
    send_all(text, n);
}

static void say(const char *text)
{
    say_bytes(1, text, strlen(text));
}

/* So many blanks, which wait: no word is to be spoken. */
static void say_blanks(size_t n)
{
    static char text[KIB_128 + 100];
    static const char begin[] = "{\"type\":\"input.text\",\"text\":\"";
    memcpy(text, begin, sizeof begin - 1);
    memset(text + sizeof begin - 1, ' ', n);
    memcpy(text + sizeof begin - 1 + n, "\"}", 2);
    say_bytes(1, text, sizeof begin - 1 + n + 2);
}

/* A session that is configured so. */
static void come(const char *config)
{
    static const struct sockaddr from = {.sa_family = AF_UNIX};
    static const char asks[] =
        "GET /v1/audio/speech/stream HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    client = pair[1];
    n_in = 0;
    has_head = false;
    forget_told();
    assert_non_null(conn_new(&posed, &route_service, pair[0], &from));
    send_all(asks, sizeof asks - 1);
    say(config);
    hear("session.created");
    forget_told();
}

static void go(void)
{
    close(client);
    for (double until = clock_seconds() + LONG_S; posed.n_conns > 0 && clock_seconds() < until;) {
        posed_turn();
    }
}

#define CONFIG "{\"type\":\"session.config\"}"
#define SENTENCES "{\"type\":\"session.config\",\"split_granularity\":\"sentence\"}"
#define TEXT(text) "{\"type\":\"input.text\",\"text\":\"" text "\"}"
#define DONE "{\"type\":\"input.done\"}"

/* Behind a message it has been told nothing but this. */
static void expect_error(const char *words)
{
    hear("\"type\":\"error\"");
    if (!strstr(told, words) || strchr(told, '\n') != told + n_told - 1) {
        fail_msg("not only %s: %s", words, told);
    }
    forget_told();
}

/* ---- What may wait ---- */

static void text_has_a_length(void **state)
{
    (void)state;
    posed_begin();
    come(CONFIG);
    say_blanks(KIB_128 + 1);
    expect_error("\"message\":\"\\\"text\\\" must be at most 128 KiB in one message\"");
    for (int i = 0; i < 7; i++) {
        say_blanks(KIB_128);
    }
    say_blanks(KIB_128 - PART_BYTES + 1);
    expect_error("\"message\":\"more than 1 MiB of text waits in this session\",\"type\":"
                 "\"invalid_request_error\",\"param\":\"text\"");
    say_blanks(KIB_128 - PART_BYTES);
    say("{\"type\":7}");
    expect_error("\"\\\"type\\\" must be session.config");
    say_blanks(1);
    expect_error("\"message\":\"more than 1 MiB of text waits in this session\",\"type\":"
                 "\"invalid_request_error\",\"param\":\"text\"");
    say(DONE);
    hear("\"type\":\"session.done\",\"utterance_index\":0,\"total_sentences\":0}\n");
    assert_true(session()->owner_bytes < PART_BYTES);
    go();
    posed_end();
}

static void what_is_no_text_is_refused(void **state)
{
    (void)state;
    posed_begin();
    come(CONFIG);
    say_bytes(2, "ab", 2);
    hear("close");
    assert_string_equal(told, "close 1003 only text messages are known here\n");
    go();
    posed_end();
}

/* With its own code, where it gives one. */
static void who_says_goodbye_is_answered(void **state)
{
    (void)state;
    posed_begin();
    come(CONFIG);
    say_bytes(8, "\x0B\xB9too late", 10);
    hear("close");
    assert_string_equal(told, "close 3001 \n");
    go();
    come(CONFIG);
    say_bytes(8, "", 0);
    hear("close");
    assert_string_equal(told, "close 1000 \n");
    go();
    posed_end();
}

/* ---- Who is idle ---- */

static void its_time_has_passed(void)
{
    turn();
    session()->deadline = 1;
    turn();
}

static void who_says_nothing_is_idle(void **state)
{
    static const char *const said[] = {
        NULL, TEXT("now")}; /* a text that is not over is waited for no longer */
    (void)state;
    posed_begin();
    for (int i = 0; i < 2; i++) {
        come(CONFIG);
        if (said[i]) {
            say(said[i]);
            hear("(sound)");
            forget_told();
        }
        its_time_has_passed();
        hear("close");
        const char *end = strstr(told, "close");
        assert_string_equal(end, "close 1000 idle\n");
        assert_non_null(strstr(told, "\"message\":\"the session was idle for too long\""));
        go();
    }
    posed_end();
}

static void who_listens_is_not_idle(void **state)
{
    (void)state;
    posed_begin();
    come(CONFIG);
    say(TEXT("wait")), say(DONE);
    hear("(sound)");
    its_time_has_passed();
    const double left = session()->deadline - clock_seconds();
    assert_true(left > WS_IDLE_S - LONG_S && left <= WS_IDLE_S);
    assert_null(strstr(told, "close"));
    say("{\"type\":\"session.close\"}");
    hear("close 1000 \n");
    go();
    posed_end();
}

/* ---- A drain ---- */

static void a_drain_begins(void)
{
    posed.draining = true;
    conn_drain(&posed);
}

/* Whoever waits for the end of a text hears it. */
static void what_is_said_in_a_drain_is_heard(void **state)
{
    (void)state;
    posed_begin();
    come(SENTENCES);
    link_still(&posed.links[0], true);
    say(TEXT("One. Two")), say(DONE);
    turn();
    a_drain_begins();
    turn();
    assert_string_equal(told, "");
    link_still(&posed.links[0], false);
    hear("close");
    assert_non_null(
        strstr(told, "\"type\":\"audio.done\",\"utterance_index\":0,\"sentence_index\":0,"));
    assert_string_equal(strstr(told, "close"), "close 1001 \n");
    posed.draining = false;
    go();
    posed_end();
}

static void who_says_nothing_in_a_drain_goes(void **state)
{
    static const char *const said[] = {NULL, TEXT("now")};
    (void)state;
    for (int i = 0; i < 2; i++) {
        posed_begin();
        come(CONFIG);
        if (said[i]) {
            say(said[i]);
            hear("(sound)");
        }
        a_drain_begins();
        hear("close");
        assert_string_equal(strstr(told, "close"), "close 1001 the server is about to stop\n");
        assert_null(strstr(told, "error"));
        posed.draining = false;
        go();
        posed_end();
    }
}

/* ---- What cannot be spoken ---- */

#define SPOKEN_NEXT                                                                                    \
    "{\"type\":\"audio.start\",\"utterance_index\":1,\"sentence_index\":0,\"sentence_text\":"

/* What waits is forgotten; what still comes of the text is not looked at. Then the next one is spoken. */
static void what_is_refused_is_over(void **state)
{
    (void)state;
    posed_begin();
    come(SENTENCES);
    posed.draining = true;
    say(TEXT("One. Two. Three"));
    hear("session.done");
    posed.draining = false;
    assert_string_equal(told,
        "{\"error\":{\"message\":\"the server is about to stop\",\"type\":\"overloaded_error\","
        "\"param\":null,\"code\":null},\"type\":\"error\",\"message\":\"the server is about to "
        "stop\"}\n"
        "{\"type\":\"session.done\",\"utterance_index\":0,\"total_sentences\":2}\n");
    forget_told();
    say(TEXT("and more"));
    say("{\"type\":7}");
    expect_error("\"type\\\" must be session.config");
    say(DONE), say(TEXT("Hi")), say(DONE);
    hear("session.done");
    assert_memory_equal(told, SPOKEN_NEXT, sizeof SPOKEN_NEXT - 1);
    go();
    posed_end();
}

/* In milliseconds, and in their order: it waited for a lane, its first sound came, all of it. */
static void times_are_told(void **state)
{
    double queue_ms = -1, first_ms = -1, total_ms = -1;
    (void)state;
    posed_begin();
    come(CONFIG);
    const double began = clock_seconds();
    say(TEXT("Hi")), say(DONE);
    hear("session.done");
    const double most_ms = 1e3 * (clock_seconds() - began);
    const char *at = strstr(told, "\"queue_ms\":");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "\"queue_ms\":%lf,\"first_ms\":%lf,\"total_ms\":%lf}", &queue_ms,
                         &first_ms, &total_ms),
        3);
    assert_true(0 <= queue_ms && queue_ms <= first_ms && first_ms <= total_ms && total_ms <= most_ms);
    go();
    posed_end();
}

/* A worker that ends takes the sound with it that it had not made. */
static void what_is_lost_is_told(void **state)
{
    (void)state;
    posed_begin();
    come(CONFIG);
    say(TEXT("now"));
    hear("(sound)");
    forget_told();
    kill(posed.links[0].pid, SIGKILL);
    hear("session.done");
    assert_non_null(
        strstr(told, "\"partial_audio\":true,\"action\":\"discard\"}\n"
                     "{\"type\":\"audio.done\",\"utterance_index\":0,\"sentence_index\":0,"
                     "\"total_bytes\":3840,\"error\":true,\"finish_reason\":\"incomplete\","));
    assert_non_null(strstr(told, "\"utterance_index\":0,\"total_sentences\":1}\n"));
    forget_told();
    say(TEXT("and more")), say(DONE);
    for (double until = clock_seconds() + LONG_S;
         links_ready(&posed) == 0 && clock_seconds() < until;) {
        turn();
    }
    say(TEXT("Hi")), say(DONE);
    hear("session.done");
    assert_memory_equal(told, SPOKEN_NEXT, sizeof SPOKEN_NEXT - 1);
    go();
    posed_end();
}

int main(int n, char **arguments)
{
    if (n == 3 && strcmp(arguments[1], "serve-worker") == 0) {
        return posed_worker(atoi(arguments[2]), posed_answer_all);
    }
    if (n > 1) {
        return 2;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_has_a_length),
        cmocka_unit_test(what_is_no_text_is_refused),
        cmocka_unit_test(who_says_goodbye_is_answered),
        cmocka_unit_test(who_says_nothing_is_idle),
        cmocka_unit_test(who_listens_is_not_idle),
        cmocka_unit_test(what_is_said_in_a_drain_is_heard),
        cmocka_unit_test(who_says_nothing_in_a_drain_goes),
        cmocka_unit_test(what_is_refused_is_over),
        cmocka_unit_test(times_are_told),
        cmocka_unit_test(what_is_lost_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
