/* SPDX-License-Identifier: Apache-2.0
 * `utter load` against a whole front end, on a port of the loopback: what listeners say they heard is what was made. */
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>

#include "server/load/load.h"
#include "server/loop/conn/port.h"
#include "tests/server/posed_front.h"

static void let_in(void *user, evutil_socket_t socket, const struct sockaddr *from)
{
    (void)user;
    conn_new(&posed, &route_service, socket, from);
}

/* Opens a port for the front end; returns its number. */
static int open_port(struct port **port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct addrinfo info = {.ai_family = AF_INET,
        .ai_socktype = SOCK_STREAM,
        .ai_addr = (struct sockaddr *)&at,
        .ai_addrlen = sizeof at};
    socklen_t bytes = sizeof at;
    *port = port_open(posed.base, &info, let_in, NULL);
    assert_non_null(*port);
    assert_int_equal(getsockname(port_socket(*port), (struct sockaddr *)&at, &bytes), 0);
    return ntohs(at.sin_port);
}

/* What it prints, up to 64 KB, behind the code that it ends with; both of another process, beside which we serve. */
static const char *run(const struct load_options *o, int *code)
{
    static char text[1 << 16];
    FILE *file = tmpfile();
    int ends[2];
    assert_true(file && pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(fileno(file), STDOUT_FILENO);
        dup2(fileno(file), STDERR_FILENO);
        char result = (char)load_run(o);
        fflush(stdout);
        _exit(write(ends[1], &result, 1) != 1);
    }
    close(ends[1]);
    for (double until = clock_seconds() + 60; clock_seconds() < until && kill(child, 0) == 0;) {
        posed_turn();
    }
    char result = -1;
    assert_int_equal(read(ends[0], &result, 1), 1);
    close(ends[0]);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    *code = result;
    return text;
}

static double number(const json_t *j, const char *name, const char *inner)
{
    const json_t *value = json_object_get(j, name);
    value = inner ? json_object_get(value, inner) : value;
    assert_true(json_is_number(value));
    return json_number_value(value);
}

/* A frame for each letter, the 105th of which is the first that can be heard: that is after 104 frames. */
static void listeners_hear_what_was_made(void **state)
{
    struct port *port;
    int code;
    (void)state;
    posed_begin();
    struct load_options o = {.host = "127.0.0.1",
        .port = open_port(&port),
        .seconds = 0.2,
        .listeners = 1,
        .eager = true,
        .least_words = 40,
        .most_words = 50,
        .seed = 7,
        .limit_ms = 60000,
        .json = true};
    for (int i = 0; i < 2; i++) { /* one after the other, and as they arrive */
        const uint64_t before = posed.metrics.requests[METRICS_SPEECH][METRICS_OK];
        const double before_s = posed.metrics.audio_s;
        json_t *j = json_loads(run(&o, &code), 0, NULL);
        assert_non_null(j);
        assert_int_equal(code, 0);
        const double n = number(j, "requests", NULL);
        assert_true(n >= 1 && number(j, "good", NULL) == n);
        const double late_ms = 1e3 * number(j, "pauses_seconds", NULL); /* the machine may be busy */
        assert_true(fabs(number(j, "goodput", NULL) - (n - number(j, "underruns", NULL)) / n) < 1e-5);
        assert_true(number(j, "refused", NULL) == 0 && number(j, "broken", NULL) == 0);
        assert_true(n == (double)(posed.metrics.requests[METRICS_SPEECH][METRICS_OK] - before));
        assert_true(fabs(number(j, "audio_seconds", NULL) - (posed.metrics.audio_s - before_s)) < 0.01);
        assert_true(number(j, "audio_seconds", NULL) > n * 40 * 2 * 0.08);
        assert_true(i == 1 || number(j, "most_at_once", NULL) == 1);
        assert_true(i == 1 || number(j, "wall_seconds", NULL) > 0.1);
        for (int k = 0; k < 2; k++) {
            const char *which = k ? "max" : "p50";
            double first = number(j, "first_ms", which), audible = number(j, "audible_ms", which);
            const double silent_ms = audible - first - 104 * 80;
            assert_true(first > 0 && silent_ms > -1 && silent_ms < late_ms + 1);
            assert_true(number(j, "total_ms", which) >= first);
        }
        json_decref(j);
        o.listeners = 0;
        o.rate = 20;
    }
    port_close(port);
    posed_end();
}

static void who_is_refused_is_counted(void **state)
{
    struct port *port;
    int code;
    (void)state;
    posed_begin();
    struct load_options o = {.host = "127.0.0.1",
        .port = open_port(&port),
        .seconds = 0.05,
        .listeners = 1,
        .least_words = 1,
        .most_words = 1,
        .voice = "nobody",
        .json = true};
    json_t *j = json_loads(run(&o, &code), 0, NULL);
    assert_non_null(j);
    assert_int_equal(code, 0);
    assert_true(number(j, "requests", NULL) == 1 && number(j, "refused", NULL) == 1);
    assert_true(number(j, "refused_ms", "max") > 0 && number(j, "first_ms", "max") == 0);
    json_decref(j);
    o.voice = "\xFF";
    assert_string_equal(run(&o, &code), "utter: --voice: the name is not UTF-8\n");
    assert_int_equal(code, 1);
    port_close(port);
    o.voice = NULL;
    char told[200];
    snprintf(told, sizeof told,
        "utter: nobody answers at 127.0.0.1 port %d (start utter serve first)\n", o.port);
    assert_string_equal(run(&o, &code), told);
    assert_int_equal(code, 2);
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
        cmocka_unit_test(listeners_hear_what_was_made),
        cmocka_unit_test(who_is_refused_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
