/* SPDX-License-Identifier: Apache-2.0
 * Clients that do not read what they are sent, in the words of other services: the model makes no more for them until
 * they do. And for how long who says nothing may stay, where the client has a say in that. */
#include <fcntl.h>
#include <math.h>

#include "server/loop/conn/port.h"
#include "server/speech/speech_parts.h"
#include "tests/server/posed_front.h"

enum { LONG_S = 20, MANY = 700 };

static int client = -1;

static void connect_http(void)
{
    static const struct sockaddr from = {.sa_family = AF_UNIX};
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    assert_non_null(conn_new(&posed, &route_service, pair[0], &from));
    client = pair[1];
}

/* With little room on the way, so that the system does not take all that is sent. */
static void connect_wyoming(void)
{
    struct sockaddr_storage at;
    socklen_t bytes = sizeof at;
    const int little = 1 << 16, port = port_socket(posed.ports[PORT_WYOMING]);
    client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(setsockopt(client, SOL_SOCKET, SO_RCVBUF, &little, sizeof little), 0);
    assert_int_equal(setsockopt(port, SOL_SOCKET, SO_SNDBUF, &little, sizeof little), 0);
    assert_int_equal(getsockname(port, (struct sockaddr *)&at, &bytes), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&at, bytes), 0);
    assert_int_equal(fcntl(client, F_SETFL, O_NONBLOCK), 0);
}

static void say(const char *text)
{
    assert_int_equal(send(client, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Asks, by HTTP or at Wyoming's port, for a text of so many letters, of which each gives a frame; its lane is kept. */
static void ask(bool wyoming, int n)
{
    static char text[MANY + 1], body[MANY + 300], request[MANY + 600];
    memset(text, 'a', sizeof text), memcpy(text, "wait", 4), text[n] = 0;
    if (wyoming) {
        snprintf(
            request, sizeof request, "{\"type\":\"synthesize\",\"data\":{\"text\":\"%s\"}}\n", text);
        connect_wyoming();
    } else {
        snprintf(body, sizeof body,
            "{\"transcript\":\"%s\",\"output_format\":{\"container\":\"raw\",\"encoding\":\"pcm_"
            "s16le\","
            "\"sample_rate\":24000}}",
            text);
        snprintf(request, sizeof request,
            "POST /tts/bytes HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s",
            strlen(body), body);
        connect_http();
    }
    say(request);
}

static const struct speech *running(void)
{
    return TAILQ_FIRST(&posed.links->running);
}

/* Until so many frames have come from the worker. */
static void wait_for_frames(int n)
{
    const double until = clock_seconds() + LONG_S;
    while (!running() || running()->made_s < n * (double)POSED_FRAME / POSED_RATE - 1e-6) {
        assert_true(clock_seconds() < until);
        posed_turn();
    }
}

static void leave(void)
{
    const double until = clock_seconds() + LONG_S;
    close(client);
    while (posed.n_conns + posed.n_wyoming + posed.n_running > 0) {
        assert_true(clock_seconds() < until);
        posed_turn();
    }
}

static void who_does_not_read_is_waited_for(void **state)
{
    (void)state;
    posed_wyoming = true;
    posed_begin();
    for (int wyoming = 0; wyoming < 2; wyoming++) {
        ask(wyoming, 9); /* so little is never too much */
        wait_for_frames(9);
        assert_false(running()->held);
        leave();
        ask(wyoming, MANY);
        wait_for_frames(MANY); /* the posed worker makes all of it, whatever it is told */
        assert_true(running()->held);
        size_t n_read = 0;
        static char bytes[1 << 16];
        for (double until = clock_seconds() + LONG_S; running()->held;) {
            assert_true(clock_seconds() < until);
            const ssize_t n = recv(client, bytes, sizeof bytes, 0);
            n_read += n > 0 ? (size_t)n : 0;
            posed_turn();
        }
        assert_true(n_read > 0 && posed.metrics.dropped_stalled == 0);
        leave();
    }
    posed_end();
    posed_wyoming = false;
}

/* ElevenLabs' clients say how long their connection may be silent, from a second to three minutes. */
static void a_client_says_how_long_it_may_be_silent(void **state)
{
    static const struct {
        const char *asked;
        double idle_s;
    } cases[] = {{"", 20}, {"&inactivity_timeout=1", 1}, {"&inactivity_timeout=0.9", 20},
        {"&inactivity_timeout=90", 90}, {"&inactivity_timeout=180", 180},
        {"&inactivity_timeout=180.1", 20}, {"&inactivity_timeout=x", 20},
        {"&inactivity_timeout=-5", 20}};
    static const char *const paths[] = {"stream-input", "multi-stream-input"};
    (void)state;
    posed_begin();
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        char request[500];
        connect_http();
        snprintf(request, sizeof request,
            "GET /v1/text-to-speech/clara/%s?output_format=pcm_24000%s HTTP/1.1\r\nHost: localhost\r\n"
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
            paths[i % 2], cases[i / 2].asked);
        const double before = clock_seconds();
        say(request);
        while (!TAILQ_FIRST(&posed.conns)->socket) {
            assert_true(clock_seconds() < before + LONG_S);
            posed_turn();
        }
        const double deadline = TAILQ_FIRST(&posed.conns)->deadline;
        assert_true(deadline >= before + cases[i / 2].idle_s);
        assert_true(deadline <= clock_seconds() + cases[i / 2].idle_s);
        leave();
    }
    posed_end();
}

int main(int n, char **arguments)
{
    if (n == 3 && strcmp(arguments[1], "serve-worker") == 0) {
        return posed_worker(atoi(arguments[2]), posed_answer_all);
    }
    signal(SIGPIPE, SIG_IGN); /* as the server has it */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_does_not_read_is_waited_for),
        cmocka_unit_test(a_client_says_how_long_it_may_be_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
