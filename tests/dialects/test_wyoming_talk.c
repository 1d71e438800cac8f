/* SPDX-License-Identifier: Apache-2.0
 * A client of Wyoming that has a text spoken: which text goes into its speech, what it is told, and how long it may
 * stay while it speaks. The speeches and the clock are the test's own, also libevent's clock. */
#include "tests/server/happened.h"
#include "tests/server/posed_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/dialects/wyoming/wyoming.h"
#include "server/loop/conn/port.h"
#include "server/speech/speech.h"
#include "server/speech/voices_parts.h"

static struct serve_options options;
static struct server server;
static struct voices voices;
static int client;

/* ---- Speeches ---- */

struct speech {
    const struct speech_sink *sink;
    void *user;
};
static struct speech *speech; /* that is spoken */
static bool is_full;

struct fields_model speech_fields_model(const struct server *s)
{
    static const char *const languages[] = {"english", "german"};
    assert_ptr_equal(s, &server);
    return (struct fields_model){.id = "m",
        .kind = "custom_voice",
        .languages = languages,
        .n_languages = 2,
        .default_format = ENCODE_MP3};
}

struct speech *speech_start(struct server *s, const struct speech_request *request,
    const struct speech_sink *sink, void *user, struct refusal *refusal)
{
    const struct fields *f = request->fields;
    assert_true(s == &server && request->endpoint == METRICS_STREAM && !request->account);
    assert_true(request->read_at == clock_seconds() && !request->patient && !request->trace);
    assert_true(f->sound.format == ENCODE_PCM && f->sound.sample_rate == 0 && !f->input);
    note("start %s of %s, voice %s, language %s|", request->id, request->client,
        f->voice ? f->voice : "-", f->language ? f->language : "-");
    if (is_full) {
        return refuse(refusal, 503, NULL, "full"), NULL;
    }
    assert_null(speech);
    speech = test_calloc(1, sizeof *speech);
    *speech = (struct speech){sink, user};
    return speech;
}

void speech_text(struct speech *p, const char *text, size_t n)
{
    assert_ptr_equal(p, speech);
    n > 99 ? note("%zu bytes|", n) : note("\"%.*s\"|", (int)n, text);
}

void speech_finish(struct speech *p)
{
    assert_ptr_equal(p, speech);
    note("finish|");
}

void speech_cancel(struct speech *p)
{
    if (p) {
        assert_ptr_equal(p, speech);
        note("cancel|");
        test_free(p);
        speech = NULL;
    }
}

void speech_hold(struct speech *p, bool held)
{
    assert_true(!p || p == speech);
    if (p && held) {
        note("hold|");
    }
}

static void end_speech_as(int status)
{
    struct speech_end e = {.good = status == 200};
    struct speech *ends = speech;
    refuse(&e.refusal, status, NULL, "why");
    speech = NULL;
    ends->sink->end(ends->user, &e);
    test_free(ends);
}

static void end_speech(bool good)
{
    end_speech_as(good ? 200 : 404);
}

/* ---- The client ---- */

static void turn(void)
{
    for (int i = 0; i < 8; i++) {
        event_base_loop(server.base, EVLOOP_NONBLOCK);
    }
}

static void wait_for(double seconds)
{
    now_s += seconds;
    turn();
}

static void expect_clients(int n)
{
    for (int i = 0; i < 60000 && server.n_wyoming != n; i++) {
        turn();
        poll(NULL, 0, 1);
    }
    assert_int_equal(server.n_wyoming, n);
}

static void come(void)
{
    struct sockaddr_storage at;
    socklen_t bytes = sizeof at;
    client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(
        getsockname(port_socket(server.ports[PORT_WYOMING]), (struct sockaddr *)&at, &bytes), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&at, bytes), 0);
    assert_int_equal(fcntl(client, F_SETFL, O_NONBLOCK), 0);
    expect_clients(1);
}

static void begin(void)
{
    now_s = 2048;
    happened[0] = 0;
    is_full = false;
    options = (struct serve_options){.model = "", .wyoming = "tcp://127.0.0.1:0", .quiet = true};
    server = (struct server){.options = &options,
        .base = event_base_new(),
        .voices = &voices,
        .was_ready = true,
        .boot = "boot"};
    server.ready = (struct wire_ready){
        .kind_name = "custom_voice", .sample_rate = 8000, .voices = {"clara", "miles"}, .n_voices = 2};
    TAILQ_INIT(&voices.entries);
    assert_int_equal(event_base_priority_init(server.base, SERVER_PRIORITIES), 0);
    assert_true(wyoming_open(&server));
    come();
}

static void end(void)
{
    wyoming_close(&server);
    assert_true(!speech && server.n_wyoming == 0);
    event_base_free(server.base);
    close(client);
}

/* What has come until these words have; or "end" until it is over. */
static const char *told(const char *until)
{
    static char text[100000];
    size_t n = 0;
    bool is_over = false;
    text[0] = 0;
    for (int i = 0; i < 60000 && !is_over && !strstr(text, until); i++) {
        struct pollfd polled = {client, POLLIN, 0};
        turn();
        poll(&polled, 1, 1);
        const ssize_t more = recv(client, text + n, sizeof text - 1 - n, 0);
        n += more > 0 ? (size_t)more : 0;
        text[n] = 0;
        is_over = more == 0;
    }
    assert_int_equal(is_over, strcmp(until, "end") == 0);
    return text;
}

/* Says an event, and one that is answered: what was said has been taken then. */
static void say(const char *event)
{
    static const char ping[] = "{\"type\":\"ping\",\"data\":{\"text\":\"x\"}}\n";
    assert_int_equal(send(client, event, strlen(event), MSG_NOSIGNAL), strlen(event));
    assert_int_equal(send(client, ping, sizeof ping - 1, MSG_NOSIGNAL), sizeof ping - 1);
    told("{\"text\":\"x\"}");
}

static void say_only(const char *event)
{
    assert_int_equal(send(client, event, strlen(event), MSG_NOSIGNAL), strlen(event));
}

#define EVENT(type, data) "{\"type\":\"" type "\",\"data\":" data "}\n"
#define START EVENT("synthesize-start", "{}")
#define STOP "{\"type\":\"synthesize-stop\"}\n"
#define CHUNK(text) EVENT("synthesize-chunk", "{\"text\":\"" text "\"}")

/* ---- Texts ---- */

static void text_goes_into_a_speech(void **state)
{
    (void)state;
    begin();
    say(EVENT(
        "synthesize", "{\"text\":\" Hi <b>you\",\"voice\":{\"name\":\"miles\",\"language\":\"de\"}}"));
    EXPECT("start boot-w1 of 127.0.0.1, voice miles, language german|\" Hi you\"|finish|");
    speech->sink->bytes(speech->user, "ab", 2);
    const char *all = told("audio-chunk");
    assert_non_null(strstr(all, "audio-start"));
    end_speech(true);
    assert_null(strstr(told("audio-stop"), "stopped"));
    /* In pieces; white space in front of the first word is none of it, and markup may be cut anywhere. */
    say(START);
    say(CHUNK(" \\n") CHUNK("<b") CHUNK(">a") CHUNK(" <") STOP CHUNK("late") STOP);
    EXPECT("start boot-w1 of 127.0.0.1, voice -, language -|\"a\"|\" \"|\"<\"|finish|");
    end_speech(true);
    told("synthesize-stopped");
    say(START STOP); /* nothing */
    EXPECT("start boot-w1 of 127.0.0.1, voice -, language -|cancel|");
    say(START CHUNK("a")); /* its speech ends before its text */
    end_speech(true);
    EXPECT("start boot-w1 of 127.0.0.1, voice -, language -|\"a\"|");
    say(CHUNK("b") STOP);
    EXPECT("");
    say(START CHUNK("<x") STOP); /* what was held of another text is no part of this one */
    EXPECT("start boot-w1 of 127.0.0.1, voice -, language -|\"<x\"|finish|");
    end_speech(true);
    say(EVENT("synthesize", "{\"text\":\"b\"}"));
    EXPECT("start boot-w1 of 127.0.0.1, voice -, language -|\"b\"|finish|");
    end();
    EXPECT("cancel|");
}

/* A text of so many bytes, in two pieces. */
static void say_long(size_t n_first, size_t n_second)
{
    const size_t sizes[] = {n_first, n_second};
    for (int i = 0; i < 2; i++) {
        char *event = malloc(sizes[i] + 100);
        assert_non_null(event);
        size_t n = (size_t)sprintf(event, "{\"type\":\"synthesize-chunk\",\"data\":{\"text\":\"");
        memset(event + n, 'a', sizes[i]);
        strcpy(event + n + sizes[i], "\"}}\n");
        for (size_t at = 0, all = strlen(event); at < all;) {
            const ssize_t sent = send(client, event + at, all - at, MSG_NOSIGNAL);
            at += sent > 0 ? (size_t)sent : 0;
            turn();
        }
        free(event);
    }
}

static void a_text_has_its_length(void **state)
{
    enum { MOST = 128 << 10, FIRST = 60000 }; /* a line has 64 KiB */
    (void)state;
    for (int more = 0; more < 2; more++) {
        begin();
        say(START);
        say_long(FIRST, FIRST);
        say_long(MOST - 2 * FIRST - 1, 1 + (size_t)more);
        if (more) {
            assert_non_null(strstr(told("end"), "a synthesis takes at most 128 KiB of text"));
            EXPECT("start boot-w1 of 127.0.0.1, voice -, language -|60000 bytes|60000 bytes|11071 "
                   "bytes|cancel|");
            assert_int_equal(server.metrics.rejected[METRICS_INVALID], 1);
        } else {
            say(STOP);
            EXPECT("start boot-w1 of 127.0.0.1, voice -, language -|60000 bytes|60000 bytes|11071 "
                   "bytes|\"a\"|finish|");
            end_speech(true);
            told("synthesize-stopped");
            say(START); /* the next one has its own */
            say_long(FIRST, 1);
            say(STOP);
            EXPECT("start boot-w1 of 127.0.0.1, voice -, language -|60000 bytes|\"a\"|finish|");
        }
        end();
        happened[0] = 0;
    }
}

/* ---- Failures ---- */

static void what_fails_ends_the_connection(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        begin();
        if (i == 4) {
            say(EVENT("synthesize", "{\"text\":\"a\"}"));
            end_speech_as(500);
            assert_non_null(strstr(told("end"), "{\"text\":\"why\",\"code\":\"server_error\"}"));
        } else if (i == 0) { /* its speech */
            say(EVENT("synthesize", "{\"text\":\"a\"}"));
            end_speech(false);
            assert_non_null(
                strstr(told("end"), "{\"text\":\"why\",\"code\":\"invalid_request_error\"}"));
        } else if (i == 1) { /* there is no place for it */
            is_full = true;
            say_only(EVENT("synthesize", "{\"text\":\"a\"}"));
            assert_non_null(strstr(told("end"), "{\"text\":\"full\",\"code\":\"overloaded_error\"}"));
        } else if (i == 2) { /* another one beside it, which ends both */
            say(EVENT("synthesize", "{\"text\":\"a\"}"));
            say_only(EVENT("synthesize", "{\"text\":\"b\"}"));
            assert_non_null(strstr(told("end"), "one synthesis at a time on a connection"));
            assert_null(speech);
        } else {
            say(START);
            say_only(START);
            assert_non_null(strstr(told("end"), "one synthesis at a time on a connection"));
            assert_null(speech);
        }
        assert_int_equal(server.metrics.rejected[METRICS_INVALID], i != 1 && i != 4);
        expect_clients(1); /* it takes what still comes, for a moment */
        wait_for(LINGER_S - 0.125);
        expect_clients(1);
        wait_for(0.25);
        expect_clients(0);
        end();
    }
}

/* ---- Time ---- */

/* Who waits for sound stays however long it takes, and who does not send the rest of its text does not. */
static void who_speaks_is_not_silent(void **state)
{
    (void)state;
    begin();
    say(EVENT("synthesize", "{\"text\":\"a\"}"));
    for (int i = 0; i < 3; i++) {
        wait_for(121);
        expect_clients(1);
    }
    end_speech(true);
    told("audio-stop");
    wait_for(121); /* now it has nothing to wait for */
    wait_for(1);
    expect_clients(0);
    end();
    begin();
    say(START CHUNK("a"));
    wait_for(60);
    speech->sink->bytes(speech->user, "ab", 2); /* what it hears counts */
    told("audio-chunk");
    wait_for(61);
    expect_clients(1);
    wait_for(120.125);
    expect_clients(0);
    assert_null(speech);
    end();
    begin();
    say(START CHUNK("a") STOP); /* all of it is there */
    wait_for(121), wait_for(121);
    expect_clients(1);
    end();
}

/* Who does not take its sound is waited for, and let go in the end. */
static void who_does_not_read_is_let_go(void **state)
{
    static char sound[1 << 16];
    (void)state;
    begin();
    say(EVENT("synthesize", "{\"text\":\"a\"}"));
    happened[0] = 0;
    speech->sink->bytes(speech->user, sound, 1000);
    turn();
    EXPECT("");
    while (!strstr(happened, "hold|")) {
        speech->sink->bytes(speech->user, sound, sizeof sound);
        turn();
    }
    expect_clients(1);
    for (int i = 0; i < 100; i++) { /* what the system takes for it is no sign of it */
        wait_for(0);
    }
    wait_for(STALL_S + 0.125);
    expect_clients(0);
    end();
}

/* ---- The server goes ---- */

static void a_drain_waits_for_the_end_of_a_speech(void **state)
{
    (void)state;
    begin();
    say(EVENT("synthesize", "{\"text\":\"a\"}"));
    server.draining = true;
    wyoming_drain(&server);
    wait_for(60);
    expect_clients(1);
    end_speech(true);
    assert_non_null(strstr(told("end"), "audio-stop"));
    close(client);
    expect_clients(0);
    end();
    begin();
    say("");
    server.draining = true;
    wyoming_drain(&server); /* who has been answered is not waited for */
    assert_int_equal(server.n_wyoming, 0);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_goes_into_a_speech),
        cmocka_unit_test(a_text_has_its_length),
        cmocka_unit_test(what_fails_ends_the_connection),
        cmocka_unit_test(who_speaks_is_not_silent),
        cmocka_unit_test(who_does_not_read_is_let_go),
        cmocka_unit_test(a_drain_waits_for_the_end_of_a_speech),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
