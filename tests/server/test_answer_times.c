/* SPDX-License-Identifier: Apache-2.0
 * Times that an answer tells of: milliseconds in which it waited for a lane, had its first sound and was through, none
 * longer than the client has waited; and those of the model as the worker has them. */
#include "tests/server/posed_front.h"

enum { LONG_S = 20, MOST = 1 << 16 };

static char told[MOST];

/* What is answered to a request for speech, and how long that took. */
static double ask(const char *body)
{
    static const struct sockaddr from = {.sa_family = AF_UNIX};
    char text[1000];
    int pair[2];
    size_t got = 0;
    int n = snprintf(text, sizeof text,
        "POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        "Content-Length: %zu\r\n\r\n%s",
        strlen(body), body);
    const double began = clock_seconds();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    assert_non_null(conn_new(&posed, &route_service, pair[0], &from));
    assert_int_equal(send(pair[1], text, (size_t)n, 0), n);
    ssize_t more = -1;
    for (double until = began + LONG_S; more != 0 && clock_seconds() < until;) {
        posed_turn();
        more = recv(pair[1], told + got, sizeof told - 1 - got, 0);
        got += more > 0 ? (size_t)more : 0;
    }
    told[got] = 0;
    for (size_t i = 0; i < got; i++) { /* sound has zeroes */
        told[i] = told[i] ? told[i] : ' ';
    }
    close(pair[1]);
    return clock_seconds() - began;
}

static void times_of_an_answer_are_milliseconds(void **state)
{
    static const char *const bodies[] = {"{\"input\":\"Hi\"}", "{\"input\":\"Hi\",\"stream\":false}"};
    (void)state;
    posed_begin();
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        double queue, first, prefill, talker, predictor, codec, total;
        const double most = 1e3 * ask(bodies[i]) + 0.1;
        const char *at = strstr(told, "Server-Timing: queue;");
        assert_non_null(at);
        assert_int_equal(sscanf(at,
                             "Server-Timing: queue;dur=%lf, first;dur=%lf, prefill;dur=%lf, "
                             "talker;dur=%lf, predictor;dur=%lf, codec;dur=%lf, total;dur=%lf",
                             &queue, &first, &prefill, &talker, &predictor, &codec, &total),
            7);
        assert_true(0 <= queue && queue <= first && first <= total && total <= most);
        assert_true(prefill == 1000 && talker == 2000 && predictor == 3000 && codec == 4000);
        assert_non_null(strstr(told, "\r\nX-Audio-Seconds: 0.16\r\n"));
    }
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(times_of_an_answer_are_milliseconds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
