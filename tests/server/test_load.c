/* SPDX-License-Identifier: Apache-2.0
 * `utter load` against a whole front end, on a port of the loopback: what listeners say they heard is what was made. */
#include <math.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>

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

/* Half a second of sound: who hears it out asks no more. */
static void who_is_not_eager_hears_it_out(void **state)
{
    struct port *port;
    int code;
    (void)state;
    posed_begin();
    const struct load_options o = {.host = "127.0.0.1",
        .port = open_port(&port),
        .seconds = 0.25,
        .listeners = 1,
        .least_words = 1,
        .most_words = 1,
        .seed = 7,
        .json = true};
    json_t *j = json_loads(run(&o, &code), 0, NULL);
    assert_true(j && code == 0);
    assert_true(number(j, "requests", NULL) == 1 && number(j, "good", NULL) == 1);
    assert_true(number(j, "audio_seconds", NULL) > 0.4 && number(j, "wall_seconds", NULL) > 0.4);
    json_decref(j);
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

/* ---- A server by hand ---- */

static int listening;

/* Opens a port on which nobody but the test answers; returns its number. */
static int listen_by_hand(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listening, (struct sockaddr *)&at, bytes), 0);
    assert_int_equal(listen(listening, 4), 0);
    assert_int_equal(getsockname(listening, (struct sockaddr *)&at, &bytes), 0);
    return ntohs(at.sin_port);
}

static char asked[2000];          /* the request that came last */
static const char *const *pieces; /* of what is answered, 30 ms one after the other */

static void *answer_by_hand(void *unused)
{
    int client = accept(listening, NULL, NULL);
    size_t n = 0;
    const char *body;
    do {
        ssize_t got = recv(client, asked + n, sizeof asked - 1 - n, 0);
        n += got > 0 ? (size_t)got : 0;
        asked[n] = 0;
        body = got > 0 ? strstr(asked, "\r\n\r\n") : "\r\n\r\n}";
    } while (!body || !strchr(body, '}'));
    for (const char *const *piece = pieces; *piece; piece++) {
        usleep(30000);
        (void)!send(client, *piece, strlen(*piece), MSG_NOSIGNAL);
    }
    close(client);
    return unused;
}

/* What is told of one request that is answered so. */
static json_t *answered_with(const char *const *answer)
{
    pthread_t thread;
    int code;
    const struct load_options o = {.host = "127.0.0.1",
        .port = listen_by_hand(),
        .seconds = 0.01,
        .listeners = 1,
        .eager = true,
        .least_words = 13,
        .most_words = 15,
        .word_frames = 3,
        .voice = "clara",
        .key = "sesame",
        .seed = 7,
        .limit_ms = 60000,
        .json = true};
    pieces = answer;
    assert_int_equal(pthread_create(&thread, NULL, answer_by_hand, NULL), 0);
    json_t *j = json_loads(run(&o, &code), 0, NULL);
    assert_int_equal(pthread_join(thread, NULL), 0);
    close(listening);
    assert_true(j && code == 0 && number(j, "requests", NULL) == 1);
    return j;
}

#define SOUND "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

static void a_request_follows_from_the_seed(void **state)
{
    static const char *const none[] = {"HTTP/1.1 503 Full\r\n", "\r\n", NULL},
                             wanted[] =
                                 "\r\nContent-Type: application/json\r\nAuthorization: Bearer "
                                 "sesame\r\nContent-Length: 169\r\n\r\n"
                                 "{\"input\":\"found people we north a slowly evenings when before "
                                 "nobody quiet music. market.\",\"response_format\":\"pcm\","
                                 "\"seed\":1855442326,\"voice\":\"clara\",\"max_new_tokens\":39}";
    static const char begins[] = "POST /v1/audio/speech HTTP/1.1\r\nHost: 127.0.0.1:";
    (void)state;
    posed_begin();
    json_t *j = answered_with(none);
    assert_true(number(j, "refused", NULL) == 1);
    assert_true(number(j, "refused_ms", "max") >= 30 && number(j, "wall_seconds", NULL) >= 0.03);
    json_decref(j);
    assert_memory_equal(asked, begins, sizeof begins - 1);
    char *port = asked + sizeof begins - 1;
    assert_string_equal(port + strspn(port, "0123456789"), wanted);
    posed_end();
}

/* An answer is good when it has come to its end and holds sound. */
static void answers_are_told_apart(void **state)
{
    static const struct {
        const char *pieces[5], *how;
    } cases[] = {{{SOUND, "4\r\n\1\1\1\1\r\n0\r\n\r\n"}, "good"},
        {{"HTTP/1.1 2", "00 OK\r\n\r", "\n1\r\n", "\1\r\n0\r\n\r\n"}, "good"},
        {{SOUND "0\r\n\r\n"}, "broken"}, {{SOUND "4\r\n\1\1\1\1\r\n"}, "broken"},
        {{SOUND "x\r\n"}, "broken"}, {{"HTTP/1.1 404 No\r\n\r\n"}, "refused"},
        {{"HTTP/1.1 201 OK\r\n\r\n4\r\n\1\1\1\1\r\n0\r\n\r\n"}, "refused"}};
    (void)state;
    posed_begin();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *j = answered_with(cases[i].pieces);
        if (number(j, cases[i].how, NULL) != 1) {
            fail_msg("case %zu is not %s", i, cases[i].how);
        }
        json_decref(j);
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listeners_hear_what_was_made),
        cmocka_unit_test(who_is_not_eager_hears_it_out),
        cmocka_unit_test(who_is_refused_is_counted),
        cmocka_unit_test(a_request_follows_from_the_seed),
        cmocka_unit_test(answers_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
