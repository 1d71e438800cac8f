/* SPDX-License-Identifier: Apache-2.0
 * By which names a server without keys is spoken to: its own, as it was told, and those of this machine; a part of them
 * is none. */
#include "tests/server/posed_front.h"

enum { LONG_S = 20 };

/* The status of the answer to a request with this Host, or without one. */
static int status_of(const char *host)
{
    static const struct sockaddr from = {.sa_family = AF_UNIX};
    char text[1000];
    int pair[2];
    size_t got = 0;
    int n = snprintf(text, sizeof text, "GET /v1/models HTTP/1.%d\r\n%s%s%sConnection: close\r\n\r\n",
        host != NULL, host ? "Host: " : "", host ? host : "", host ? "\r\n" : "");
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    assert_non_null(conn_new(&posed, &route_service, pair[0], &from));
    assert_int_equal(send(pair[1], text, (size_t)n, 0), n);
    ssize_t more = -1;
    for (double until = clock_seconds() + LONG_S; more != 0 && clock_seconds() < until;) {
        posed_turn();
        more = recv(pair[1], text + got, got < sizeof text - 1 ? sizeof text - 1 - got : 0, 0);
        got += more > 0 ? (size_t)more : 0;
    }
    text[got] = 0;
    close(pair[1]);
    return atoi(text + strlen("HTTP/1.1 "));
}

static void a_server_has_its_name_and_those_of_the_machine(void **state)
{
    static const struct {
        const char *name, *host;
        int status;
    } rows[] = {{"here", "here", 200}, {"here", "HERE:80", 200}, {"here", "her", 403},
        {"here", "heres", 403}, {"here", "there", 403}, {"here", "here:", 200},
        {"here", "here:8x", 403}, {"here", "localhost", 200}, {"here", "LOCALHOST:1", 200},
        {"here", "localhos", 403}, {"here", "127.0.0.1", 200}, {"here", "127.0.0.11", 403},
        {"here", "[::1]", 200}, {"here", "[::1]:80", 200}, {"here", "[::1]8", 403},
        {"here", "[::2]", 403}, {"here", NULL, 200}, {"localhost", "localhost", 200},
        {"localhost", "here", 403}};
    (void)state;
    posed_begin();
    struct serve_options options = *posed.options;
    const struct serve_options *kept = posed.options;
    posed.options = &options;
    for (int insecure = 0; insecure < 2; insecure++) {
        options.insecure = insecure;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            options.host = rows[i].name;
            const int status = status_of(rows[i].host);
            if (status != (insecure ? 200 : rows[i].status)) {
                fail_msg("row %zu: %d", i, status);
            }
        }
    }
    posed.options = kept;
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
        cmocka_unit_test(a_server_has_its_name_and_those_of_the_machine)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
