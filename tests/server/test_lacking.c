/* SPDX-License-Identifier: Apache-2.0
 * Memory that lacks: each allocation that the front end makes for a client fails, one after the other. The client is
 * told so, or sees the end, and takes nothing for whole that is not; nothing of it is left, and all goes on as ever. */
#include <fcntl.h>

#include "base/minmax.h"
#include "server/loop/conn/port.h"
#include "tests/server/posed_front.h"

enum {
    MOST = 1 << 18,
    LONG_S = 20,
    STEP = SUPPORT_SANITIZED ? 7 : 3 /* each of so many fails, of the next talk each other one */
};

/* What a client says, and the last words that it is told; NULL: it sees the end. */
struct talk {
    const char *method, *path, *body; /* of a request, or of a WebSocket; method: NULL, for Wyoming */
    const char *messages[5], *last;
};

static char got[MOST];
static size_t n_got;

static bool has_come(const char *words)
{
    return memmem(got, n_got, words, strlen(words)) != NULL;
}

static const char *readable(void)
{
    for (size_t i = 0; i < n_got; i++) {
        got[i] = (char)(got[i] == '\n' || (got[i] >= ' ' && got[i] <= '~') ? got[i] : '.');
    }
    got[min(n_got, 2000)] = 0;
    return got;
}

/* Takes what comes until it has been told all, or why not, or sees the end. */
static void listen_to(int socket, const char *last)
{
    const double until = clock_seconds() + LONG_S;
    bool has_ended = false;
    while (!has_ended && !(last && (has_come(last) || has_come("out of memory")))) {
        const ssize_t n = recv(socket, got + n_got, MOST - n_got, 0);
        n_got += n > 0 ? (size_t)n : 0;
        has_ended = n == 0 || (n < 0 && errno != EAGAIN);
        posed_turn();
        if (clock_seconds() > until) {
            fail_msg("it is told no end, but: %s", readable());
        }
    }
}

/* Until nothing of a client is left, and there is a worker. */
static void settle(void)
{
    const double until = clock_seconds() + LONG_S;
    do {
        posed_turn();
        if (clock_seconds() > until) {
            fail_msg("%d, %d, %d, %d are left, %d is ready", posed.n_conns, posed.n_wyoming,
                posed.n_running, posed.n_queued, links_ready(&posed));
        }
    } while (posed.n_conns + posed.n_wyoming + posed.n_running + posed.n_queued > 0 ||
             posed.voices->n_uploads > 0 || links_ready(&posed) == 0);
    assert_true(posed.held_bytes == 0 && posed.unsent_bytes == 0 && posed.n_files == 0);
}

static void say(int socket, const void *bytes, size_t n)
{
    (void)!send(socket, bytes, n, MSG_NOSIGNAL); /* it may be gone already */
}

static void say_message(int socket, const char *text)
{
    const size_t n = strlen(text);
    const uint8_t head[] = {0x81, 0x80 | 126, (uint8_t)(n >> 8), (uint8_t)n, 0, 0, 0, 0},
                  little[] = {0x81, (uint8_t)(0x80 | n), 0, 0, 0, 0};
    n < 126 ? say(socket, little, sizeof little) : say(socket, head, sizeof head);
    say(socket, text, n);
}

static void say_request(int socket, const struct talk *t)
{
    char head[1000];
    int n = snprintf(head, sizeof head,
        "%s %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %zu\r\n\r\n%s", t->method, t->path,
        t->last ? "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                  "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
                : "Connection: close\r\n",
        strlen(t->body), t->body);
    say(socket, head, (size_t)n);
}

static int connect_wyoming(void)
{
    struct sockaddr_storage at;
    socklen_t bytes = sizeof at;
    const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(
        getsockname(port_socket(posed.ports[PORT_WYOMING]), (struct sockaddr *)&at, &bytes), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&at, bytes), 0);
    assert_int_equal(fcntl(client, F_SETFL, O_NONBLOCK), 0);
    return client;
}

/* -1: it was not let in. */
static int connect_client(void)
{
    static const struct sockaddr from = {.sa_family = AF_UNIX};
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    if (!conn_new(&posed, &route_service, pair[0], &from)) {
        close(pair[0]);
        close(pair[1]);
        return -1;
    }
    return pair[1];
}

static void converse(const struct talk *t)
{
    const int client = t->method ? connect_client() : connect_wyoming();
    n_got = 0;
    if (client < 0) {
        return;
    }
    if (t->method) {
        say_request(client, t);
    }
    if (t->method && t->last) { /* before it has been answered it says nothing */
        listen_to(client, "\r\n\r\n");
    }
    for (const char *const *m = t->messages; *m; m++) {
        t->method ? say_message(client, *m) : say(client, *m, strlen(*m));
    }
    listen_to(client, t->last);
    close(client);
}

/* Whether what came is all that there was to come. */
static bool is_whole(const struct talk *t)
{
    const char *body = memmem(got, n_got, "\r\n\r\n", 4),
               *length = memmem(got, n_got, "Content-Length: ", 16);
    if (t->last) {
        return has_come(t->last);
    }
    return length && body ? n_got - (size_t)(body + 4 - got) == strtoul(length + 16, NULL, 10)
                          : has_come("\r\n0\r\n");
}

/* What is not as it would be with memory says that there was none, under the number that stands for it. */
static void judge(const struct talk *t, long n, size_t n_usual)
{
    static const size_t times = 200; /* the letters of times, which are others each time */
    const int status = n_got > 12 && memcmp(got, "HTTP/1.1 ", 9) == 0 ? atoi(got + 9) : 0;
    const bool has_place = has_come("\"param\":\"out of"); /* no field of theirs is the reason */
    if (has_place || (status >= 400 && status != 500 && status != 503)) {
        fail_msg("%s, allocation %ld: %s", t->path, n, readable());
    }
    const bool is_refused = has_come("HTTP/1.1 503 ") || has_come("HTTP/1.1 500 ");
    const bool is_told = has_come("out of memory") || has_come("Cannot allocate memory") ||
                         has_come("there is no room") || (is_refused && has_come("\r\n{}"));
    const bool is_good = !is_refused && !has_come("HTTP/1.1 4");
    if (is_told || (is_good && !is_whole(t)) ||
        (is_good && n_got < n_usual + times && n_usual < n_got + times)) {
        return;
    }
    fail_msg("%s, allocation %ld: %zu bytes, not %zu: %s", t->path, n, n_got, n_usual, readable());
}

static void lack(const struct talk *t, long first, int step)
{
    bool failed = true;
    converse(t);
    settle();
    assert_true(is_whole(t) && !has_come("out of memory"));
    const size_t n_usual = n_got;
    for (long n = first; failed; n += step) {
        support_fail_at(SUPPORT_MALLOC, n);
        converse(t);
        failed = support_failed();
        support_fail_off();
        judge(t, n, n_usual);
        settle();
    }
    assert_true(is_whole(t));
}

static void lack_each(const struct talk *talks, size_t n)
{
    posed_begin();
    for (size_t i = 0; i < n; i++) {
        lack(&talks[i], 1 + (long)i % STEP, STEP);
    }
    posed_end();
}
#define LACK_EACH(talks) lack_each(talks, sizeof(talks) / sizeof *(talks))

/* ---- What they ask for ---- */

/* Each allocation of these fails. */
static void who_asks_for_little(void **state)
{
    static const struct talk talk = {"POST", "/v1/audio/speech", "{\"input\":\"Hi\"}", {NULL}, NULL};
    (void)state;
    posed_begin();
    lack(&talk, 1, 1);
    posed_end();
}

static void who_asks_for_sound(void **state)
{
    static const struct talk talks[] = {
        {"POST", "/v1/audio/speech", "{\"input\":\"Hi\",\"stream\":false,\"word_timestamps\":true}",
            {NULL}, NULL},
        {"POST", "/v1/audio/speech",
            "{\"input\":\"Hi\",\"stream_format\":\"sse\",\"word_timestamps\":true}", {NULL}, NULL},
    };
    (void)state;
    LACK_EACH(talks);
}

static void who_asks_in_other_words(void **state)
{
    static const struct talk talks[] = {
        {"POST", "/v1/text-to-speech/clara/with-timestamps?output_format=pcm_24000",
            "{\"text\":\"Hi\"}", {NULL}, NULL},
        {"POST", "/tts/sse",
            "{\"transcript\":\"Hi\",\"add_timestamps\":true,\"output_format\":{\"container\":\"raw\","
            "\"encoding\":\"pcm_s16le\",\"sample_rate\":24000}}",
            {NULL}, NULL},
        {"POST", "/v1/speak?encoding=linear16&container=none", "{\"text\":\"Hi\"}", {NULL}, NULL},
    };
    (void)state;
    LACK_EACH(talks);
}

static void who_talks(void **state)
{
    static const struct talk talks[] = {
        {"GET", "/v1/audio/speech/stream", "",
            {"{\"type\":\"session.config\",\"word_timestamps\":true}",
                "{\"type\":\"input.text\",\"text\":\"Hi\"}", "{\"type\":\"input.done\"}", NULL},
            "session.done"},
        {"GET", "/v1/speak?encoding=linear16", "",
            {"{\"type\":\"Speak\",\"text\":\"Hi\"}", "{\"type\":\"Flush\"}", NULL}, "Flushed"},
        {"GET", "/v2/speak?encoding=linear16", "",
            {"{\"type\":\"Speak\",\"text\":\"Hi\"}", "{\"type\":\"Flush\"}", NULL}, "SpeechMetadata"},
        {"GET", "/v1/text-to-speech/clara/stream-input?output_format=pcm_24000", "",
            {"{\"text\":\"Hi \"}", "{\"text\":\"\"}", NULL}, "\"isFinal\":true"},
        {"GET", "/tts/websocket", "",
            {"{\"transcript\":\"Hi\",\"context_id\":\"c\",\"add_timestamps\":true,\"output_format\":{"
             "\"encoding\":\"pcm_s16le\",\"sample_rate\":24000}}",
                NULL},
            "\"done\":true"},
    };
    (void)state;
    LACK_EACH(talks);
}

static void who_is_at_home(void **state)
{
    static const struct talk talks[] = {
        {NULL, "wyoming", NULL,
            {"{\"type\":\"describe\"}\n", "{\"type\":\"synthesize\",\"data\":{\"text\":\"Hi\"}}\n",
                NULL},
            "audio-stop"},
    };
    (void)state;
    posed_wyoming = true;
    LACK_EACH(talks);
    posed_wyoming = false;
}

static void who_asks_for_much(void **state)
{
    static const struct talk talks[] = {
        {"POST", "/v1/audio/speech/batch",
            "{\"items\":[{\"input\":\"Hi\",\"word_timestamps\":true},{\"input\":\"you\"}]}", {NULL},
            NULL},
    };
    (void)state;
    LACK_EACH(talks);
}

static void who_brings_a_voice(void **state)
{
    static const struct talk talks[] = {
        {"POST", "/v1/audio/voices",
            "{\"name\":\"Ann\",\"audio_sample\":\"Z29vZA==\",\"consent\":\"yes\",\"overwrite\":"
            "true}",
            {NULL}, NULL},
        {"POST", "/v1/audio/speech", "{\"input\":\"Hi\",\"ref_audio\":\"Z29vZA==\"}", {NULL}, NULL},
    };
    static const struct talk last = {"DELETE", "/v1/audio/voices/Ann", "", {NULL}, NULL};
    char folder[] = P_tmpdir "/utter-lacking-XXXXXX";
    (void)state;
    posed_voices = mkdtemp(folder);
    posed_begin();
    for (size_t i = 0; i < sizeof talks / sizeof *talks; i++) {
        lack(&talks[i], 1 + (long)i % STEP, STEP);
    }
    converse(&last);
    assert_true(has_come("HTTP/1.1 200 "));
    settle();
    posed_end();
    assert_int_equal(rmdir(folder), 0);
    posed_voices = NULL;
}

int main(int n, char **arguments)
{
    if (n == 3 && strcmp(arguments[1], "serve-worker") == 0) {
        return posed_worker(atoi(arguments[2]), posed_answer_all);
    }
    if (n == 6 && strcmp(arguments[1], "serve-clone") == 0) {
        return posed_clone(arguments + 2);
    }
    if (n > 1) {
        return 2;
    }
    signal(SIGPIPE, SIG_IGN); /* as the program does */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_asks_for_little),
        cmocka_unit_test(who_asks_for_sound),
        cmocka_unit_test(who_asks_in_other_words),
        cmocka_unit_test(who_talks),
        cmocka_unit_test(who_is_at_home),
        cmocka_unit_test(who_asks_for_much),
        cmocka_unit_test(who_brings_a_voice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
