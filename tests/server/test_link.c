/* SPDX-License-Identifier: Apache-2.0
 * Workers that are posed: one of two that never opens the model, one that opens another model; and what an operator
 * asks for. This program is the worker, too. */
#include "tests/support.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/threads.h"
#include "server/loop/links.h"
#include "server/protocol/devices.h"

/* ---- The worker ---- */

enum { OTHERS = 20, N_OTHERS = 9 };

static void answer(int socket, const struct wire_hello *hello)
{
    struct wire_out out = {0};
    if (strcmp(hello->device, "cuda:9") == 0) {
        wire_put_refused(&out, UTTER_E_DEVICE, "no such GPU");
    } else {
        /* What is another with the model of each of OTHERS. */
        const int other = atoi(hello->device + strlen("cuda:")) - OTHERS;
        const struct wire_beat beat = {.capacity = 1};
        const struct wire_ready ready = {.version = WIRE_VERSION,
            .kind_name = other == 0 ? "base" : "voice_design",
            .size_name = other == 1 ? "1.7b" : "",
            .takes_instructions = other == 2,
            .device = "cuda",
            .kernels = "frame",
            .weights = "",
            .sample_rate = other == 3 ? 48000 : 24000,
            .frame_samples = other == 4 ? 960 : 1920,
            .width = other == 5,
            .voices = {"ann", other == 8 ? "eve" : "bob"},
            .n_voices = other == 6 ? 1 : 2,
            .languages = {"english"},
            .n_languages = other != 7,
            .note = "the cpu speaks",
            .lanes = 2};
        wire_put_beat(&out, &beat);
        wire_put_ready(&out, &ready);
    }
    if (send(socket, out.bytes, out.n, MSG_NOSIGNAL) != (ssize_t)out.n) {
        exit(1);
    }
    wire_fini(&out);
}

static int worker(int socket)
{
    uint8_t in[4096];
    struct wire_message m;
    struct wire_hello hello;
    size_t used;
    ssize_t n = recv(socket, in, sizeof in, 0);
    if (n <= 0 || wire_read(&m, in, (size_t)n, &used) != WIRE_MESSAGE || !wire_get_hello(&hello, &m)) {
        return 1;
    }
    answer(socket, &hello);
    if (strcmp(hello.device, "cuda:9") != 0) {
        while (recv(socket, in, sizeof in, 0) > 0) {
        }
    }
    return 0;
}

/* ---- The front end ---- */

static void ignore(struct link *l)
{
    (void)l;
}

static void ignore_message(struct link *l, const struct wire_message *m)
{
    (void)l, (void)m;
}

static void ignore_end(struct link *l, const char *unopened)
{
    (void)l, (void)unopened;
}

static int n_given_up;

static void count_given_up(struct server *server)
{
    (void)server;
    n_given_up++;
}

static const struct link_owner owner = {ignore, ignore, ignore_message, ignore_end, count_given_up};

static void begin(struct server *s, struct serve_options *o, const char *const *devices, int n_devices)
{
    *o = (struct serve_options){
        .model = "", .devices = devices, .n_devices = n_devices, .no_cage = true, .quiet = true};
    *s = (struct server){.options = o, .base = event_base_new()};
    assert_int_equal(event_base_priority_init(s->base, SERVER_PRIORITIES), 0);
}

/* What the loop of the server does, once. */
static void turn(struct server *s)
{
    int status;
    pid_t pid = waitpid(-1, &status, WNOHANG);
    event_base_loop(s->base, EVLOOP_NONBLOCK);
    if (pid > 0) {
        links_reap(s, pid, status);
    }
    links_tick(s, clock_seconds());
    usleep(1000);
}

static void run_until_ready(struct server *s)
{
    for (int i = 0; i < 60000 && links_ready(s) == 0; i++) {
        turn(s);
    }
    assert_int_equal(links_ready(s), 1);
}

static void end(struct server *s)
{
    links_close(s);
    memory_free(s->ready_bytes);
    event_base_free(s->base);
}

/* One of two devices is not there: the other serves, and where it is all there is the server ends. */
static void one_that_never_opens_leaves_the_others(void **state)
{
    static const char *const devices[] = {"cuda:0", "cuda:9"};
    struct serve_options options;
    struct server s;
    (void)state;
    begin(&s, &options, devices, 2);
    assert_true(links_open(&s, &owner));
    run_until_ready(&s);
    assert_string_equal(s.ready.note, "the cpu speaks");
    for (int i = 0; i < 60000 && s.links[1].n_deaths < 2; i++) {
        turn(&s);
    }
    assert_true(s.links[1].n_deaths >= 2 && s.links[1].start_fault != 0 && s.links[0].n_deaths == 0);
    assert_true(s.exit_code == 0 && n_given_up == 0);
    end(&s);
    begin(&s, &options, devices + 1, 1);
    assert_true(links_open(&s, &owner));
    for (int i = 0; i < 60000 && s.exit_code == 0; i++) {
        turn(&s);
    }
    assert_true(s.exit_code == 2 && n_given_up == 1);
    end(&s);
}

/* Where they share cores, each has the threads that are its part of them; who has none by name finds its own. */
static void workers_share_cores(void **state)
{
    static const char *const devices[] = {"cpu:0", "cpu:0-2", "cuda:0"};
    struct serve_options options;
    struct server s;
    (void)state;
    begin(&s, &options, devices, 3);
    assert_true(links_open(&s, &owner));
    for (int i = 0; i < 3; i++) {
        const int wanted = i < 2 ? devices_threads(devices[i], devices, 3, threads_available()) : 0;
        assert_int_equal(s.links[i].threads, wanted);
        assert_true(s.links[i].number == i && strcmp(s.links[i].device, devices[i]) == 0);
    }
    end(&s);
}

/* Whichever comes second: what is asked is read, and what is made is encoded, by one model. */
static void workers_of_two_models_do_not_mix(void **state)
{
    struct serve_options options;
    struct server s;
    (void)state;
    for (int other = 0; other < N_OTHERS; other++) {
        char second[sizeof "cuda:" + 11]; /* any int */
        snprintf(second, sizeof second, "cuda:%d", OTHERS + other);
        const char *const devices[] = {"cuda:0", second};
        begin(&s, &options, devices, 2);
        assert_true(links_open(&s, &owner));
        run_until_ready(&s);
        for (int i = 0; i < 60000 && s.metrics.worker_deaths == 0; i++) {
            turn(&s);
        }
        assert_int_equal(links_ready(&s), 1);
        assert_true(other != 0 ||
                    strcmp(s.ready.kind_name, s.links[0].is_ready ? "voice_design" : "base") == 0);
        assert_int_equal(s.links[s.links[0].is_ready].n_deaths, 1);
        end(&s);
    }
    static const char *const same[] = {"cuda:0", "cuda:1"};
    begin(&s, &options, same, 2);
    assert_true(links_open(&s, &owner));
    for (int i = 0; i < 60000 && links_ready(&s) < 2 && s.metrics.worker_deaths == 0; i++) {
        turn(&s);
    }
    assert_int_equal(links_ready(&s), 2);
    end(&s);
}

static void run_until_out(struct server *s)
{
    link_leave(s->links, true);
    for (int i = 0; i < 60000 && s->links->socket; i++) {
        turn(s);
    }
    assert_true(s->links->is_out && links_out(s) && !links_up(s));
    for (int i = 0; i < 50; i++) {
        turn(s);
    }
    assert_null(s->links->socket);
}

/* Whatever was asked for before, one that is not out comes back. */
static void who_is_out_comes_back(void **state)
{
    static const char *const devices[] = {"cuda:0"};
    struct serve_options options;
    struct server s;
    (void)state;
    begin(&s, &options, devices, 1);
    assert_true(links_open(&s, &owner));
    run_until_ready(&s);
    run_until_out(&s);
    link_return(s.links);
    run_until_ready(&s);
    run_until_out(&s);
    link_leave(s.links, false);
    run_until_ready(&s);
    run_until_out(&s);
    link_leave(s.links, false);
    link_leave(s.links, true); /* before anyone was started */
    link_return(s.links);
    run_until_ready(&s);
    assert_true(s.links->n_starts == 4 && s.metrics.worker_deaths == 0);
    end(&s);
}

/* Who was opening the model for those who wait does so no more: they must not wait for it. */
static void who_is_sent_away_wakes_nobody(void **state)
{
    static const char *const devices[] = {"cuda:0"};
    struct serve_options options;
    struct server s;
    (void)state;
    begin(&s, &options, devices, 1);
    assert_true(links_open(&s, &owner));
    run_until_ready(&s);
    link_leave(s.links, false);
    while (!s.links->is_waking) {
        turn(&s);
    }
    assert_true(links_up(&s));
    run_until_out(&s);
    end(&s);
}

/* A worker dies, and before another one is started nobody wants any. */
static void who_rests_is_not_started(void **state)
{
    static const char *const devices[] = {"cuda:0"};
    struct serve_options options;
    struct server s;
    (void)state;
    begin(&s, &options, devices, 1);
    assert_true(links_open(&s, &owner));
    run_until_ready(&s);
    kill(s.links->pid, SIGKILL);
    while (s.links->socket) {
        event_base_loop(s.base, EVLOOP_NONBLOCK);
        usleep(1000);
    }
    assert_true(s.links->restart_at > 0);
    link_rest(s.links);
    assert_true(s.links->restart_at <= 0);
    while (s.links->pid > 0) {
        turn(&s);
    }
    turn(&s);
    assert_int_equal(s.links->n_starts, 1);
    end(&s);
}

static int n_lost;

static void count_lost(struct link *l, const char *unopened)
{
    (void)l;
    n_lost += unopened != NULL;
}

/* The speech that wakes it is only about to wait: it is told by the loop, also where a start had failed before. */
static void who_wakes_it_is_told_by_the_loop(void **state)
{
    static const char *const devices[] = {"cuda:0"};
    static const struct link_owner counting = {
        ignore, ignore, ignore_message, count_lost, count_given_up};
    struct serve_options options;
    struct server s;
    struct rlimit files;
    (void)state;
    begin(&s, &options, devices, 1);
    assert_true(links_open(&s, &counting));
    run_until_ready(&s);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    const struct rlimit none = {0, files.rlim_max};
    bool untold = true;
    assert_int_equal(
        setrlimit(RLIMIT_NOFILE, &none), 0); /* no assertion until it is lifted: it would stay */
    for (int i = 0; i < 2; i++) {
        link_rest(s.links);
        while (s.links->pid > 0) {
            turn(&s);
        }
        s.is_resting = true;
        links_want(&s);
        untold = untold && !s.links->socket && s.links->n_unborn == 1 && n_lost == 0;
    }
    for (int i = 0; i < 60000 && n_lost == 0; i++) {
        turn(&s);
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_true(untold);
    assert_int_equal(n_lost, 1);
    run_until_ready(&s);
    end(&s);
}

static size_t resident_bytes(void)
{
    size_t all = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%zu %zu", &all, &resident), 2);
    fclose(f);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* Many small blocks at once, all given back but the last: the heap cannot end before that one. */
static void holes_of_the_heap_go_back_in_a_pause(void **state)
{
    enum { N = 40000, BYTES = 1000, MOST_LEFT = N * BYTES / 4 };
    static void *blocks[N];
    static const char *const devices[] = {"cuda:0"};
    struct serve_options options;
    struct server s;
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* their heap is another one */
#endif
    begin(&s, &options, devices, 1);
    assert_true(links_open(&s, &owner));
    run_until_ready(&s);
    for (int i = 0; i < N; i++) {
        assert_non_null(blocks[i] = memory_plain_new(BYTES));
        memset(blocks[i], 1, BYTES);
    }
    for (int i = 0; i < N - 1; i++) {
        memory_plain_free(blocks[i]);
    }
    const size_t before = resident_bytes();
    s.worked_at = clock_seconds();
    links_tick(&s, s.worked_at + 0.5); /* somebody may go on in a moment */
    assert_true(resident_bytes() > before - MOST_LEFT);
    links_tick(&s, s.worked_at + 1.5);
    assert_true(resident_bytes() < before - N * BYTES + MOST_LEFT);
    memory_plain_free(blocks[N - 1]);
    end(&s);
}

int main(int n, char **arguments)
{
    if (n == 3 && strcmp(arguments[1], "serve-worker") == 0) {
        return worker(atoi(arguments[2]));
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_never_opens_leaves_the_others),
        cmocka_unit_test(workers_share_cores),
        cmocka_unit_test(workers_of_two_models_do_not_mix),
        cmocka_unit_test(who_is_out_comes_back),
        cmocka_unit_test(who_is_sent_away_wakes_nobody),
        cmocka_unit_test(who_rests_is_not_started),
        cmocka_unit_test(who_wakes_it_is_told_by_the_loop),
        cmocka_unit_test(holes_of_the_heap_go_back_in_a_pause),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
