/* SPDX-License-Identifier: Apache-2.0
 * Wyoming's port without a model: where it listens, who is let in, how long who says nothing may stay, what there is
 * before the model is open, and who goes when the server drains. The clock is the test's own, also libevent's. */
#include "tests/support.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/dialects/wyoming/wyoming.h"
#include "server/loop/conn/port.h"
#include "server/loop/server.h"
#include "server/speech/voices_parts.h"
#include "tests/server/posed_clock.h"

static struct serve_options options;
static struct server server;
static struct voices voices;

static void begin(const char *uri)
{
    now_s = 2000;
    options = (struct serve_options){.model = "", .wyoming = uri, .quiet = true};
    server = (struct server){.options = &options, .base = event_base_new(), .voices = &voices};
    server.ready.kind_name = "";
    TAILQ_INIT(&voices.entries);
    assert_int_equal(event_base_priority_init(server.base, SERVER_PRIORITIES), 0);
}

static void end(void)
{
    wyoming_close(&server);
    assert_true(!server.wyoming && server.n_wyoming == 0);
    event_base_free(server.base);
}

/* Lets the server do all that there is. */
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

/* What the server says on standard error as it opens the port; "": it is open. */
static const char *opened(const char *uri, bool insecure)
{
    static char said[500];
    int ends[2], kept = dup(STDERR_FILENO);
    begin(uri);
    options.insecure = insecure;
    assert_true(pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0 && dup2(ends[1], STDERR_FILENO) >= 0);
    bool is = wyoming_open(&server);
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    ssize_t n = read(ends[0], said, sizeof said - 1);
    said[n > 0 ? n : 0] = 0;
    close(kept), close(ends[0]), close(ends[1]);
    assert_int_equal(is, n <= 0);
    assert_int_equal(is && uri, server.ports[PORT_WYOMING] != NULL);
    end();
    return said;
}

static void an_address_is_a_host_and_a_port(void **state)
{
    static const char *const bad[] = {"127.0.0.1:0", "tcp:/127.0.0.1:0", "udp://127.0.0.1:0",
        "tcp://127.0.0.1", "tcp://127.0.0.1:", "tcp://127.0.0.1:1x", "tcp://127.0.0.1:x",
        "tcp://127.0.0.1:-1", "tcp://127.0.0.1:102000", "tcp://:0", "tcp://[]:0", ""};
    char expected[1000], uri[400], host[300];
    (void)state;
    assert_string_equal(opened(NULL, false), "");
    assert_string_equal(opened("tcp://127.0.0.1:0", false), "");
    assert_string_equal(opened("tcp://127.0.0.1:00000", false), "");
    assert_string_equal(opened("tcp://localhost:0", false), "");
    assert_string_equal(opened("tcp://0.0.0.0:0", true), "");
    assert_string_equal(opened("tcp://0.0.0.0:0", false),
        "utter: --wyoming tcp://0.0.0.0:0: Wyoming has no keys, others could use this server (give "
        "--insecure)\n");
    const char *six = opened("tcp://[::1]:0", false); /* some machines have no such address */
    assert_true(!six[0] || strstr(six, strerror(EADDRNOTAVAIL)) || strstr(six, strerror(EAFNOSUPPORT)));
    assert_non_null(strstr(opened("tcp://[::]:0", false), "Wyoming has no keys"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(expected, sizeof expected,
            "utter: --wyoming %s: must be tcp://HOST:PORT (tcp://127.0.0.1:10200)\n", bad[i]);
        assert_string_equal(opened(bad[i], true), expected);
    }
    for (int n = 255; n <= 256; n++) { /* bytes of a name; no host has one of so many digits */
        memset(host, '1', (size_t)n), host[n] = 0;
        snprintf(uri, sizeof uri, "tcp://%s:0", host);
        assert_int_equal(strstr(opened(uri, true), "must be tcp://") != NULL, n == 256);
    }
    int s = socket(AF_INET, SOCK_STREAM, 0); /* a port that another has */
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    assert_int_equal(bind(s, (struct sockaddr *)&at, bytes), 0);
    assert_int_equal(listen(s, 1), 0);
    assert_int_equal(getsockname(s, (struct sockaddr *)&at, &bytes), 0);
    snprintf(uri, sizeof uri, "tcp://127.0.0.1:%d", ntohs(at.sin_port));
    snprintf(expected, sizeof expected, "utter: --wyoming %s: %s\n", uri, strerror(EADDRINUSE));
    assert_string_equal(opened(uri, false), expected);
    close(s);
}

/* ---- Clients ---- */

/* Until the server has so many. */
static void expect_clients(int n)
{
    for (int i = 0; i < 60000 && server.n_wyoming != n; i++) {
        turn();
        poll(NULL, 0, 1);
    }
    assert_int_equal(server.n_wyoming, n);
}

/* Until what was sent has come to the server's side. */
static void expect_sent(int s)
{
    struct tcp_info info = {.tcpi_unacked = 1};
    socklen_t bytes = sizeof info;
    for (int i = 0; i < 60000 && info.tcpi_unacked > 0; i++) {
        poll(NULL, 0, 1);
        assert_int_equal(getsockopt(s, IPPROTO_TCP, TCP_INFO, &info, &bytes), 0);
    }
    assert_int_equal(info.tcpi_unacked, 0);
}

static int come(void)
{
    struct sockaddr_storage at;
    socklen_t bytes = sizeof at;
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(
        getsockname(port_socket(server.ports[PORT_WYOMING]), (struct sockaddr *)&at, &bytes), 0);
    assert_int_equal(connect(s, (struct sockaddr *)&at, bytes), 0);
    return s;
}

static void say(int s, const char *event)
{
    assert_int_equal(send(s, event, strlen(event), MSG_NOSIGNAL), strlen(event));
    turn();
}

/* Nothing more than what it has heard. */
static void expect_silence(int s)
{
    char byte;
    turn();
    assert_true(recv(s, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
}

/* What the client is told; "end": that it is over. */
static const char *told(int s)
{
    static char text[100000];
    ssize_t n = -1;
    for (int i = 0; i < 60000 && n < 0; i++) {
        struct pollfd polled = {s, POLLIN, 0};
        turn();
        poll(&polled, 1, 1);
        n = recv(s, text, sizeof text - 1, MSG_DONTWAIT);
    }
    assert_true(n >= 0);
    text[n] = 0;
    return n == 0 ? strcpy(text, "end") : text;
}

static const char PING[] = "{\"type\":\"ping\",\"data\":{\"text\":\"x\"}}\n";

static void so_many_are_let_in(void **state)
{
    enum { MOST = 64 };
    int all[MOST + 1];
    (void)state;
    begin("tcp://127.0.0.1:0");
    assert_true(wyoming_open(&server));
    for (int i = 0; i <= MOST; i++) {
        all[i] = come();
        expect_clients(i < MOST ? i + 1 : MOST);
    }
    assert_string_equal(told(all[MOST]), "end");
    expect_silence(all[MOST - 1]);
    close(all[0]), close(all[MOST]);
    expect_clients(MOST - 1);
    all[MOST] = come();
    say(all[MOST], PING);
    assert_non_null(strstr(told(all[MOST]), "{\"text\":\"x\"}"));
    for (int i = 1; i <= MOST; i++) {
        close(all[i]);
    }
    end();
}

static void who_says_nothing_is_let_go(void **state)
{
    (void)state;
    begin("tcp://127.0.0.1:0");
    assert_true(wyoming_open(&server));
    int silent = come(), speaks = come();
    expect_clients(2);
    wait_for(60);
    say(speaks, PING);
    assert_non_null(strstr(told(speaks), "pong"));
    wait_for(59.5);
    expect_silence(silent);
    wait_for(0.75);
    assert_string_equal(told(silent), "end");
    wait_for(59.5);
    expect_silence(speaks);
    wait_for(0.5);
    assert_string_equal(told(speaks), "end");
    close(silent), close(speaks);
    /* Who has sent nonsense is told so, and what it still sends is not looked at. */
    int wrong = come();
    expect_clients(1);
    say(wrong, "nonsense\n");
    assert_non_null(strstr(told(wrong), "this is no event of Wyoming"));
    assert_string_equal(told(wrong), "end");
    say(wrong, PING);
    expect_clients(1);
    wait_for(LINGER_S + 0.25);
    assert_int_equal(server.n_wyoming, 0);
    close(wrong);
    end();
}

/* Home Assistant asks as it starts, perhaps before the model is open: then its config is told of. */
static void what_there_is_is_told_before_it_is_open(void **state)
{
    char folder[] = P_tmpdir "/utter-wyoming-XXXXXX", path[100];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/config.json", folder);
    FILE *file = fopen(path, "w");
    assert_true(file &&
                fputs("{\"talker_config\":{\"spk_id\":{\"zoe\":1},\"codec_language_id\":"
                      "{\"german\":2}}}",
                    file) > 0 &&
                fclose(file) == 0);
    begin("tcp://127.0.0.1:0");
    assert_true(wyoming_open(&server));
    int s = come();
    say(s, "{\"type\":\"describe\"}\n");
    const char *all = told(s);
    assert_true(strstr(all, "\"name\":\"alloy\"") && strstr(all, "\"languages\":[\"en\"]"));
    options.model = folder;
    say(s, "{\"type\":\"describe\"}\n");
    all = told(s);
    assert_true(strstr(all, "\"name\":\"zoe\"") && strstr(all, "\"languages\":[\"de\"]"));
    assert_true(!strstr(all, "alloy") && !strstr(all, "clara"));
    server.was_ready = true;
    server.ready = (struct wire_ready){
        .kind_name = "base", .width = 8, .languages = {"english"}, .n_languages = 1};
    struct voice_entry ann = {.name = (char *)"Ann", .width = 8}, bob = {.name = (char *)"Bob"};
    TAILQ_INSERT_TAIL(&voices.entries, &ann, entry);
    TAILQ_INSERT_TAIL(&voices.entries, &bob, entry);
    say(s, "{\"type\":\"describe\"}\n");
    all = told(s);
    assert_true(strstr(all, "\"name\":\"Ann\"") && strstr(all, "\"languages\":[\"en\"]"));
    assert_true(!strstr(all, "zoe") && !strstr(all, "Bob"));
    server.was_ready = false;
    say(s, "{\"type\":\"synthesize\",\"data\":{\"text\":\"Hi\"}}\n");
    assert_non_null(strstr(told(s), "the model is being opened"));
    assert_string_equal(told(s), "end");
    close(s);
    assert_true(unlink(path) == 0 && rmdir(folder) == 0);
    end();
}

static void a_drain_leaves_those_who_have_not_asked(void **state)
{
    (void)state;
    begin("tcp://127.0.0.1:0");
    wyoming_drain(&server); /* where there is none */
    assert_true(wyoming_open(&server));
    int idle = come(), fresh = come(), asks = come();
    expect_clients(3);
    say(idle, PING), say(asks, PING);
    assert_non_null(strstr(told(idle), "pong"));
    assert_non_null(strstr(told(asks), "pong"));
    assert_int_equal(send(asks, PING, sizeof PING - 1, 0), sizeof PING - 1); /* it is on its way */
    expect_sent(asks);
    server.draining = true;
    wyoming_drain(&server);
    assert_string_equal(told(idle), "end");
    assert_non_null(strstr(told(asks), "pong"));
    expect_silence(fresh);
    int late = come();
    expect_clients(3);
    say(fresh, PING);
    assert_non_null(strstr(told(fresh), "pong"));
    wait_for(LINGER_S + 0.25);
    assert_int_equal(server.n_wyoming, 0);
    assert_string_equal(told(late), "end");
    close(idle), close(fresh), close(asks), close(late);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_is_a_host_and_a_port),
        cmocka_unit_test(so_many_are_let_in),
        cmocka_unit_test(who_says_nothing_is_let_go),
        cmocka_unit_test(what_there_is_is_told_before_it_is_open),
        cmocka_unit_test(a_drain_leaves_those_who_have_not_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
