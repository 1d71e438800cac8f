/* SPDX-License-Identifier: Apache-2.0
 * What whoever looks after a server is told of it, in each state that its workers may be in, and what an operator's
 * words do to them. Nothing runs here: the workers are as the test sets them. */
#include <stdio.h>

#include "base/memory.h"
#include "server/front/watch.h"
#include "server/loop/account.h"
#include "server/loop/links.h"
#include "server/speech/speech_parts.h"
#include "tests/server/posed_conns.h"

enum { WORKERS = 2 };

/* A worker with so many lanes; 0: it has never been open. */
struct pose {
    int lanes, n_running;
    bool is_ready, is_leaving, is_silent, is_out, is_waking;
};

static struct link links[WORKERS], idle;
static struct serve_options options;
static int n_beats;

static void on_beat(struct link *l)
{
    (void)l;
    n_beats++;
}

static const struct link_owner link_owner = {.beat = on_beat};

static void pose(struct link *l, int number, const struct pose *p)
{
    *l = (struct link){.server = &s,
        .owner = &link_owner,
        .device = number == 0 ? "cuda:0" : "cpu:0-3",
        .number = number,
        .lanes = p->lanes,
        .n_running = p->n_running,
        .is_ready = p->is_ready,
        .is_leaving = p->is_leaving,
        .is_out = p->is_out,
        .is_waking = p->is_waking,
        .pid = 100 + number,
        .heard = p->is_silent ? 0 : clock_seconds(),
        .opened_on = "cuda",
        .kernels = "graph",
        .memory_bytes = 1000 + (uint64_t)number,
        .n_starts = 7 + (uint64_t)number,
        .n_deaths = 5 + (uint64_t)number,
        .audio_s = 0.5 + number,
        .beat = {.capacity = p->is_ready ? 9 + number : 0, .n_stepped = 3 + number}};
    TAILQ_INIT(&l->running);
}

static void build(const struct pose *first, const struct pose *second)
{
    begin();
    options = (struct serve_options){.quiet = true, .queue = 1, .patience_ms = 300};
    s.options = &options;
    s.links = links;
    s.n_links = WORKERS;
    s.was_ready = true;
    s.ready = (struct wire_ready){.weights = "q8", .device = "cuda"};
    snprintf(s.model_id, sizeof s.model_id, "posed");
    TAILQ_INIT(&s.queued);
    TAILQ_INIT(&s.background.queued);
    admission_begin(&s);
    pose(&links[0], 0, first);
    pose(&links[1], 1, second);
    s.n_running = first->n_running + second->n_running;
}

/* The body that the client is told, and *status. */
static const char *told(
    void (*answer)(struct conn *c), const char *path, struct account *account, int *status)
{
    static char text[1 << 16];
    char request_of[200];
    struct client c = come("10.0.0.1");
    snprintf(request_of, sizeof request_of, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path);
    say(&c, request_of, strlen(request_of));
    turn();
    assert_int_equal(c.conn->state, CONN_ANSWER);
    c.conn->account = account;
    answer(c.conn);
    c.conn->account = NULL;
    turn();
    ssize_t n = recv(c.socket, text, sizeof text - 1, 0);
    assert_true(n > 0);
    text[n] = 0;
    conn_drop(c.conn);
    close(c.socket);
    *status = atoi(text + 9);
    const char *body = strstr(text, "\r\n\r\n");
    assert_non_null(body);
    return body + 4;
}

static void expect(const char *what, const char *text, const char *expected)
{
    if (strcmp(text, expected) != 0) {
        fail_msg("%s: %s\ninstead of %s", what, text, expected);
    }
}

static const struct pose ready = {.lanes = 4, .is_ready = true},
                         leaving = {.lanes = 4, .is_ready = true, .is_leaving = true},
                         silent = {.lanes = 4, .is_ready = true, .is_silent = true},
                         out = {.lanes = 4, .is_out = true}, lost = {.lanes = 4}, fresh = {.lanes = 0},
                         waking = {.lanes = 4, .is_waking = true},
                         full = {.lanes = 4, .n_running = 4, .is_ready = true};

static const struct {
    const char *name;
    const struct pose *first, *second;
    bool never_ready, is_resting, draining;
    int health, ready_status;
    const char *health_text, *ready_text, *of_workers[2];
} states[] = {{"both", &ready, &ready, .health = 200, .ready_status = 200, .ready_text = "ready",
                  .of_workers = {"ready", "ready"}},
    {"one leaves", &leaving, &ready, .health = 200, .ready_status = 200, .ready_text = "ready",
        .of_workers = {"leaving", "ready"}},
    {"both leave", &leaving, &leaving, .health = 200, .ready_status = 503,
        .ready_text = "opening the model", .of_workers = {"leaving", "leaving"}},
    {"one hangs", &ready, &silent, .health = 200, .ready_status = 200, .ready_text = "ready",
        .of_workers = {"ready", "silent"}},
    {"both hang", &silent, &silent, .health = 200, .ready_status = 503,
        .ready_text = "the worker does not answer", .of_workers = {"silent", "silent"}},
    {"one is out", &out, &ready, .health = 200, .ready_status = 200, .ready_text = "ready",
        .of_workers = {"out", "ready"}},
    {"both are out", &out, &out, .health = 200, .ready_status = 503, .ready_text = "out of service",
        .of_workers = {"out", "out"}},
    {"both are lost", &lost, &lost, .health = 503, .ready_status = 503,
        .ready_text = "opening the model", .health_text = "the worker is being replaced",
        .of_workers = {"being replaced", "being replaced"}},
    {"none was ever open", &fresh, &fresh, .never_ready = true, .health = 200, .ready_status = 503,
        .ready_text = "opening the model", .of_workers = {"opening", "opening"}},
    {"they rest", &lost, &lost, .is_resting = true, .health = 200, .ready_status = 200,
        .ready_text = "resting", .of_workers = {"resting", "resting"}},
    {"one wakes", &lost, &waking, .health = 200, .ready_status = 200, .ready_text = "waking",
        .of_workers = {"being replaced", "waking"}},
    {"it stops", &ready, &ready, .draining = true, .health = 200, .ready_status = 503,
        .ready_text = "stopping", .of_workers = {"ready", "ready"}},
    {"all lanes are taken", &full, &full, .health = 200, .ready_status = 503, .ready_text = "full",
        .of_workers = {"ready", "ready"}},
    {"a lane is free", &full, &ready, .health = 200, .ready_status = 200, .ready_text = "ready",
        .of_workers = {"ready", "ready"}}};

/* To a client that has shown no key, where there are some. */
static void each_state_has_its_words(void **state)
{
    char expected[600];
    int status;
    (void)state;
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        build(states[i].first, states[i].second);
        s.was_ready = !states[i].never_ready;
        s.is_resting = states[i].is_resting;
        s.draining = states[i].draining;
        s.keys = (struct keys *)&s; /* there are some, and the client has shown none */
        const char *text = told(watch_health, "/health", NULL, &status);
        if (status != states[i].health) {
            fail_msg("%s: %d %s", states[i].name, status, text);
        }
        snprintf(expected, sizeof expected, "{\"status\":\"%s\"}",
            states[i].health_text ? states[i].health_text : "ok");
        expect(states[i].name, text, expected);
        text = told(watch_ready, "/ready", NULL, &status);
        if (status != states[i].ready_status) {
            fail_msg("%s: %d %s", states[i].name, status, text);
        }
        snprintf(expected, sizeof expected, "{\"status\":\"%s\"}", states[i].ready_text);
        expect(states[i].name, text, expected);
        text = told(watch_workers, "/v1/workers", NULL, &status);
        for (int k = 0; k < WORKERS; k++) {
            snprintf(expected, sizeof expected, "\"state\":\"%s\",\"pid\":%d", states[i].of_workers[k],
                100 + k);
            assert_non_null(strstr(text, expected));
        }
        end();
    }
}

/* With a key, and where there are none. */
static void who_may_know_is_told_more(void **state)
{
    static const char workers[] =
        "\"workers\":[{\"worker\":0,\"device\":\"cuda:0\",\"state\":\"ready\",\"pid\":100,\"lanes\":4,"
        "\"running\":3,\"capacity\":9},{\"worker\":1,\"device\":\"cpu:0-3\",\"state\":\"ready\","
        "\"pid\":101,"
        "\"lanes\":5,\"running\":0,\"capacity\":10}]",
                      by_itself[] =
                          ",\"idle_worker\":{\"device\":\"cpu\",\"state\":\"ready\",\"pid\":102,"
                          "\"lanes\":8,\"running\":6}";
    static const struct pose first = {.lanes = 4, .n_running = 3, .is_ready = true},
                             second = {.lanes = 5, .is_ready = true};
    static struct account key;
    char expected[1000];
    int status;
    (void)state;
    for (int i = 0; i < 4; i++) {
        build(&first, &second);
        s.keys = i % 2 ? (struct keys *)&s : NULL;
        s.n_running = 3;
        s.n_queued = 2;
        if (i >= 2) {
            pose(&idle, 2, &(struct pose){.lanes = 8, .is_ready = true});
            idle.device = "cpu";
            idle.n_background = 6;
            s.background.link = &idle;
        }
        const char *text = told(watch_health, "/health", i % 2 ? &key : NULL, &status);
        snprintf(expected, sizeof expected,
            "{\"status\":\"ok\",\"device\":\"cuda\",\"kernels\":\"graph\",\"weights\":\"q8\",\"lanes\":"
            "9,%s%s}",
            workers, i >= 2 ? by_itself : "");
        expect("health", text, expected);
        text = told(watch_ready, "/ready", i % 2 ? &key : NULL, &status);
        expect("ready", text, "{\"status\":\"ready\",\"lanes\":9,\"running\":3,\"queued\":2}");
        snprintf(expected, sizeof expected, "{%s}", workers);
        expect("workers", told(watch_workers, "/v1/workers", NULL, &status), expected);
        s.background.link = NULL;
        end();
    }
}

static void has_line(const char *text, const char *line)
{
    char all[200];
    snprintf(all, sizeof all, "\n%s\n", line);
    if (!strstr(text, all)) {
        fail_msg("no line '%s'", line);
    }
}

static void what_is_so_now_is_in_the_metrics(void **state)
{
    static const char *const lines[] = {"tts_requests_running 3", "tts_requests_queued 2",
        "tts_background_running 6", "tts_background_queued 4", "tts_lanes 9", "tts_capacity 19",
        "tts_use_ratio 0.375", "tts_connections 1", "tts_ready 1", "tts_batch_size 7",
        "tts_worker_memory_bytes 3003", "tts_device_ready{worker=\"0\",device=\"cuda:0\"} 1",
        "tts_device_running{worker=\"0\",device=\"cuda:0\"} 3",
        "tts_device_lanes{worker=\"1\",device=\"cpu:0-3\"} 5",
        "tts_device_capacity{worker=\"1\",device=\"cpu:0-3\"} 10",
        "tts_device_batch_size{worker=\"1\",device=\"cpu:0-3\"} 4",
        "tts_device_memory_bytes{worker=\"1\",device=\"cpu:0-3\"} 1001",
        "tts_device_starts_total{worker=\"1\",device=\"cpu:0-3\"} 8",
        "tts_device_deaths_total{worker=\"1\",device=\"cpu:0-3\"} 6",
        "tts_device_audio_seconds_total{worker=\"1\",device=\"cpu:0-3\"} 1.5",
        "vllm:num_requests_waiting{model_name=\"posed\"} 2", "tts_runaway_total 11"},
                             *const later[] = {"tts_ready 0", "tts_use_ratio 1", "tts_capacity 0",
                                 "tts_worker_memory_bytes 0",
                                 "tts_device_memory_bytes{worker=\"0\",device=\"cuda:0\"} 0",
                                 "tts_device_ready{worker=\"0\",device=\"cuda:0\"} 0"};
    static const struct pose first = {.lanes = 4, .n_running = 3, .is_ready = true},
                             second = {.lanes = 5, .n_running = 1, .is_ready = true};
    int status;
    (void)state;
    build(&first, &second);
    pose(&idle, 2, &ready);
    s.background.link = &idle;
    s.n_running = 3;
    s.n_queued = 2;
    s.background.n_running = 6;
    s.background.n_queued = 4;
    s.metrics.runaway = 11;
    const char *text = told(watch_metrics, "/metrics", NULL, &status);
    assert_int_equal(status, 200);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        has_line(text, lines[i]);
    }
    for (int resting = 0; resting < 2; resting++) {
        pose(&links[0], 0, &lost), pose(&links[1], 1, &lost), pose(&idle, 2, &lost);
        s.n_running = 0;
        s.is_resting = resting;
        text = told(watch_metrics, "/metrics", NULL, &status);
        for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
            has_line(text, i == 1 && resting ? "tts_use_ratio 0" : later[i]);
        }
    }
    s.background.link = NULL;
    end();
}

/* ---- What an operator does ---- */

static void who_is_no_operator_changes_nothing(void **state)
{
    static struct account plain = {.is_operator = false}, an_operator = {.is_operator = true};
    static const struct {
        const char *path;
        struct account *account;
        bool has_keys;
        int status;
        const char *said;
    } cases[] = {{"/v1/workers/0/drain", NULL, false, 403, "start the server with --api-key-file"},
        {"/v1/workers/0/drain", NULL, true, 403, "its line says no"},
        {"/v1/workers/0/drain", &plain, true, 403, "its line says no"},
        {"/v1/workers/2/drain", &an_operator, true, 404, "there are 2, from 0 on"},
        {"/v1/workers/-1/drain", &an_operator, true, 404, "no such worker"},
        {"/v1/workers/ 1/drain", &an_operator, true, 404, "no such worker"},
        {"/v1/workers/1x/drain", &an_operator, true, 404, "no such worker"},
        {"/v1/workers/:/drain", &an_operator, true, 404, "no such worker"},
        {"/v1/workers/18446744073709551616/drain", &an_operator, true, 404, "no such worker"}};
    int status;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        build(&ready, &ready);
        s.keys = cases[i].has_keys ? (struct keys *)&s : NULL;
        struct client c = come("10.0.0.1");
        SAY(&c, ASKS), turn();
        char path[100];
        snprintf(path, sizeof path, "%s", cases[i].path);
        c.conn->head.path = path;
        c.conn->account = cases[i].account;
        watch_drain(c.conn);
        c.conn->account = NULL;
        turn();
        char text[2000] = "";
        assert_true(recv(c.socket, text, sizeof text - 1, 0) > 0);
        status = atoi(text + 9);
        if (status != cases[i].status || !strstr(text, cases[i].said)) {
            fail_msg("%s: %s", cases[i].path, text);
        }
        assert_true(!links[0].is_out && !links[1].is_out && n_beats == 0);
        close(c.socket);
        end();
    }
}

static void workers_leave_and_come_back(void **state)
{
    static struct account an_operator = {.is_operator = true};
    int status;
    (void)state;
    build(&ready, &ready);
    s.is_resting = true; /* so that nobody is started */
    links[1].socket = (struct bufferevent *)&s;
    n_beats = 0;
    const char *text = told(watch_drain, "/v1/workers/1/drain", &an_operator, &status);
    assert_true(status == 200 && strstr(text, "\"worker\":1") && strstr(text, "\"state\":\"leaving\""));
    assert_true(links[1].is_out && links[1].is_leaving && !links[0].is_out && n_beats == 1);
    told(watch_start, "/v1/workers/1/start", &an_operator, &status);
    assert_true(status == 200 && !links[1].is_out && !links[1].is_leaving && n_beats == 2);
    text = told(watch_replace, "/v1/workers/1/replace", &an_operator, &status);
    assert_true(status == 200 && strstr(text, "\"state\":\"leaving\""));
    assert_true(!links[1].is_out && links[1].is_leaving && !links[0].is_leaving);
    told(watch_drain, "/v1/workers/0/drain", &an_operator, &status); /* which has no process */
    assert_true(links[0].is_out && !links[0].is_leaving && links[0].restart_at <= 0);
    links[1].socket = NULL;
    n_beats = 0;
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_state_has_its_words),
        cmocka_unit_test(who_may_know_is_told_more),
        cmocka_unit_test(what_is_so_now_is_in_the_metrics),
        cmocka_unit_test(who_is_no_operator_changes_nothing),
        cmocka_unit_test(workers_leave_and_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
