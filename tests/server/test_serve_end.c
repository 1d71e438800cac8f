/* SPDX-License-Identifier: Apache-2.0
 * How a front end ends: without a model, or told to by signals, and who is told of it. */
#include "tests/server/posed_serve.h"

static int free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    int taken = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(taken, (struct sockaddr *)&at, n), 0);
    assert_int_equal(getsockname(taken, (struct sockaddr *)&at, &n), 0);
    close(taken);
    return ntohs(at.sin_port);
}

/* Who comes as the server is about to know that it has no model. */
static void who_comes_to_no_model_is_told(void **state)
{
    static const char *const devices[] = {"cuda:7"};
    char ends[200];
    int client = -1;
    (void)state;
    usual();
    snprintf(ends, sizeof ends, "%s", support_path("never"));
    setenv(ENDS, ends, 1);
    options.devices = devices;
    options.port = served.port = free_port();
    begin(NULL);
    for (const double until = clock_seconds() + LONG_S; client < 0 && clock_seconds() < until;) {
        client = try_to_come();
    }
    assert_true(client >= 0);
    status_of("/healthz", NULL, ""); /* who came before is known, too */
    assert_int_equal(kill(served.pid, SIGSTOP), 0);
    support_write_file(ends, "", 0);
    usleep(50000); /* the worker's word is there before the client's */
    ask(client, SPEECH, NULL, SAYS);
    assert_int_equal(kill(served.pid, SIGCONT), 0);
    const char *answer = heard(client);
    if (strncmp(answer, "HTTP/1.1 503 ", 13) != 0) {
        fail_msg("%s", answer);
    }
    assert_string_equal(announced(), "");
    assert_int_equal(end_of(), 2);
}

/* Somebody listens, though nobody may answer. */
static bool may_come(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
        .sin_port = htons((uint16_t)served.port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(client >= 0);
    int fault = connect(client, (struct sockaddr *)&at, sizeof at) == 0 ? 0 : errno;
    socklen_t bytes = sizeof fault;
    if (fault == EINPROGRESS && poll(&(struct pollfd){client, POLLOUT, 0}, 1, 30) == 1) {
        getsockopt(client, SOL_SOCKET, SO_ERROR, &fault, &bytes);
    }
    close(client);
    return fault != ECONNREFUSED;
}

/* Whether the client has seen the end of what it is sent. */
static bool has_heard_all(int client)
{
    char bytes[4096];
    ssize_t n;
    while ((n = recv(client, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
    }
    return n == 0;
}

/* The first signal has it wait for who is served, the second for their being told, the third for nothing. */
static void three_signals_end_it(void **state)
{
    (void)state;
    for (int n = 2; n <= 3; n++) {
        usual();
        begin(NULL);
        announced();
        const int hearing = come_and_wait(), silent = come();
        counts("\ntts_connections 3\n");
        step(0);
        kill(served.pid, SIGTERM);
        logs("\"event\":\"draining\",\"running\":1,\"queued\":0}\n", 1);
        assert_true(is_there() && !has_heard_all(hearing));
        kill(served.pid, SIGTERM);
        assert_null(strstr(heard(hearing), "X-Finish-Reason: ")); /* the head names it, too */
        assert_true(is_there());
        if (n == 3) {
            assert_int_equal(stopped(SIGTERM), 0);
        } else {
            step(0.09);
            assert_true(is_there());
            step(0.2);
            assert_int_equal(end_of(), 0);
        }
        logs("\"event\":\"draining\"", 1);
        close(silent);
    }
}

/* Who is served has so long. */
static void a_drain_has_an_end(void **state)
{
    (void)state;
    usual();
    options.drain_s = 5;
    begin(NULL);
    announced();
    const int hearing = come_and_wait();
    step(0);
    kill(served.pid, SIGTERM);
    logs("\"event\":\"draining\",\"running\":1,\"queued\":0}\n", 1);
    step(4.8);
    assert_true(is_there() && !has_heard_all(hearing));
    step(0.4);
    heard(hearing);
    step(0.2);
    assert_int_equal(end_of(), 0);
}

/* Whoever is about to connect as it begins to drain has half a second; then nobody listens. */
static void ports_are_closed_in_a_drain(void **state)
{
    (void)state;
    usual();
    begin(NULL);
    announced();
    const int hearing = come_and_wait();
    step(0);
    kill(served.pid, SIGTERM);
    logs("\"event\":\"draining\"", 1);
    step(0.4);
    assert_true(is_there());
    assert_true(may_come());
    step(0.2);
    const double until = clock_seconds() + LONG_S;
    while (may_come() && clock_seconds() < until) {
    }
    assert_false(may_come());
    close(hearing);
    assert_int_equal(end_of(), 0);
}

int main(int n, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_comes_to_no_model_is_told),
        cmocka_unit_test(three_signals_end_it),
        cmocka_unit_test(a_drain_has_an_end),
        cmocka_unit_test(ports_are_closed_in_a_drain),
    };
    const int code = posed_begins(n, arguments);
    return code >= 0 ? code : cmocka_run_group_tests(tests, NULL, NULL);
}
