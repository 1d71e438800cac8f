/* SPDX-License-Identifier: Apache-2.0
 * What is counted, and how it is told: every line for Prometheus, and the table and the JSON of a load run. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "server/load/load_report.h"
#include "server/loop/metrics.h"
#include "server/speech/speech_parts.h"

static char *printed(const struct metrics *m, const struct metrics_now *now)
{
    struct wire_out out = {0};
    metrics_print(m, now, &out);
    assert_false(out.failed);
    wire_put(&out, "", 1);
    return (char *)out.bytes;
}

static void forget(char *text)
{
    struct wire_out out = {.bytes = (uint8_t *)text};
    wire_fini(&out);
}

/* Whether this is one of the lines, and the only one that begins with its name and labels. */
static void expect_line(const char *text, const char *line)
{
    const size_t n = strlen(line), name = (size_t)(strrchr(line, ' ') - line) + 1;
    int n_same = 0;
    bool found = false;
    for (const char *at = text; *at; at = strchr(at, '\n') + 1) {
        n_same += strncmp(at, line, name) == 0;
        found = found || (strncmp(at, line, n) == 0 && at[n] == '\n');
    }
    if (!found || n_same != 1) {
        fail_msg("'%s': %d", line, n_same);
    }
}

/* Each name is told of once, before its values, with the type that its name promises. */
static void every_value_has_its_head(void **state)
{
    static const struct metrics m;
    static const struct metrics_worker worker = {.device = "cpu"};
    const struct metrics_now now = {
        .version = "1", .model = "m", .device = "cpu", .workers = &worker, .n_workers = 1};
    char *text = printed(&m, &now), *rest = text, *line;
    char name[100] = "", type[100] = "", other[100], kind[20];
    int n_heads = 0, n_values = 0;
    (void)state;
    while ((line = strsep(&rest, "\n")) && *line) {
        if (sscanf(line, "# HELP %99s", other) == 1) {
            assert_string_not_equal(other, name);
            strcpy(name, other);
            n_heads++;
        } else if (sscanf(line, "# TYPE %99s %19s", other, kind) == 2) {
            assert_string_equal(other, name);
            strcpy(type, kind);
            const size_t n = strlen(name);
            bool counts = n > 6 && strcmp(name + n - 6, "_total") == 0;
            assert_int_equal(strcmp(type, "counter") == 0, counts);
            assert_true(counts || strcmp(type, "gauge") == 0 || strcmp(type, "histogram") == 0);
        } else {
            assert_memory_equal(line, name, strlen(name));
            assert_true(line[strlen(name)] == (strcmp(type, "histogram") == 0 ? '_' : ' ') ||
                        line[strlen(name)] == '{');
            n_values++;
        }
    }
    assert_int_equal(n_heads, 47);
    assert_int_equal(n_values, 180);
    forget(text);
}

static const char *const endpoints[] = {"speech", "stream", "batch", "background"},
                         *const outcomes[] = {"ok", "error", "cancelled", "given_back"},
                         *const reasons[] = {"queue_full", "not_ready", "draining", "key", "rate",
                             "invalid", "too_large", "background_full"},
                         *const stages[] = {"queued", "first_frame", "streaming", "paused"},
                         *const limits[] = {"sent", "asked", "held", "made_way"};
static struct metrics counted = {.runaway = 301,
    .said_again = 302,
    .not_whole = 303,
    .unknown_fields = 304,
    .worker_starts = 305,
    .worker_deaths = 306,
    .connections = 307,
    .dropped_stalled = 308,
    .crowded_out = 309,
    .audio_s = 310.5,
    .background_s = 311.25,
    .prefill_s = 1.5,
    .talker_s = 2.25,
    .predictor_s = 3.125,
    .vocoder_s = 4.0625};
static const struct metrics_now lately = {.running = 401,
    .queued = 402,
    .background_running = 403,
    .background_queued = 404,
    .lanes = 405,
    .capacity = 406,
    .connections = 407,
    .ready = 1,
    .batch = 408,
    .use = 0.75,
    .worker_memory_bytes = UINT64_C(123456789012),
    .version = "v",
    .model = "mm",
    .device = "dd"};
static const char *const lines[] = {"tts_requests_running 401", "tts_requests_queued 402",
    "tts_background_running 403", "tts_background_queued 404", "tts_lanes 405", "tts_capacity 406",
    "tts_use_ratio 0.75", "tts_connections 407", "tts_connections_accepted_total 307",
    "tts_connections_crowded_total 309", "tts_ready 1", "tts_batch_size 408",
    "tts_audio_seconds_total 310.5", "tts_background_seconds_total 311.25", "tts_said_again_total 302",
    "tts_not_whole_total 303", "tts_runaway_total 301", "tts_unknown_fields_total 304",
    "tts_stalled_total 308", "tts_worker_starts_total 305", "tts_worker_deaths_total 306",
    "tts_worker_memory_bytes 123456789012", "tts_stage_seconds_total{stage=\"prefill\"} 1.500000",
    "tts_stage_seconds_total{stage=\"talker\"} 2.250000",
    "tts_stage_seconds_total{stage=\"predictor\"} 3.125000",
    "tts_stage_seconds_total{stage=\"codec\"} 4.062500",
    "tts_build_info{version=\"v\",model=\"mm\",device=\"dd\"} 1",
    "vllm:num_requests_running{model_name=\"mm\"} 401",
    "vllm:num_requests_waiting{model_name=\"mm\"} 402",
    "vllm:kv_cache_usage_perc{model_name=\"mm\"} 0.75",
    "vllm:gpu_cache_usage_perc{model_name=\"mm\"} 0.75"};

static void each_counter_stands_in_its_line(void **state)
{
    char line[200];
    (void)state;
    for (int i = 0; i < 16; i++) {
        counted.requests[i / 4][i % 4] = (uint64_t)(100 + i);
        counted.rejected[i / 2] = (uint64_t)(130 + i / 2);
        counted.cancelled[i / 4] = (uint64_t)(140 + i / 4);
        counted.limited[i / 4] = (uint64_t)(150 + i / 4);
    }
    char *text = printed(&counted, &lately);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        expect_line(text, lines[i]);
    }
    for (int i = 0; i < 16; i++) {
        snprintf(line, sizeof line, "tts_requests_total{endpoint=\"%s\",outcome=\"%s\"} %d",
            endpoints[i / 4], outcomes[i % 4], 100 + i);
        expect_line(text, line);
    }
    for (int i = 0; i < 8; i++) {
        snprintf(line, sizeof line, "tts_rejected_total{reason=\"%s\"} %d", reasons[i], 130 + i);
        expect_line(text, line);
    }
    for (int i = 0; i < 4; i++) {
        snprintf(line, sizeof line, "tts_cancelled_total{stage=\"%s\"} %d", stages[i], 140 + i);
        expect_line(text, line);
        snprintf(line, sizeof line, "tts_limited_total{how=\"%s\"} %d", limits[i], 150 + i);
        expect_line(text, line);
        assert_string_equal(metrics_stage_name((enum metrics_stage)i), stages[i]);
        assert_string_equal(metrics_limit_name((enum metrics_limit)i), limits[i]);
    }
    assert_null(strstr(text, "tts_device_ready{")); /* there is no worker */
    forget(text);
}

static void times_are_counted_up_to_their_bounds(void **state)
{
    static const double bounds[] = {
        0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2, 10};
    static const char *const names[] = {
        "ttfa", "queue_wait", "cancel_to_free", "request", "underrun", "step"};
    static struct metrics m;
    struct histogram *const all[] = {
        &m.ttfa, &m.queue_wait, &m.cancel_to_free, &m.total, &m.underrun, &m.step};
    const struct metrics_now now = {.version = "", .model = "", .device = ""};
    char line[200];
    (void)state;
    for (int i = 0; i < 15; i++) { /* a bound belongs to what is below it */
        struct histogram h = {.sum = 0};
        histogram_add(&h, bounds[i]);
        histogram_add(&h, bounds[i] + 1e-9);
        assert_true(h.counts[i] == 1 && h.counts[i + 1] == 1);
        assert_true(fabs(h.sum - 2 * bounds[i]) < 1e-8);
    }
    for (int k = 0; k < 6; k++) {
        for (int i = 0; i <= k; i++) {
            histogram_add(all[k], 0.025); /* each another number of times */
        }
        histogram_add(all[k], 11);
        histogram_add(all[k], 0);
    }
    char *text = printed(&m, &now);
    for (int k = 0; k < 6; k++) {
        for (int i = 0; i < 15; i++) {
            snprintf(line, sizeof line, "tts_%s_seconds_bucket{le=\"%g\"} %d", names[k], bounds[i],
                i < 3 ? 1 : k + 2);
            expect_line(text, line);
        }
        snprintf(line, sizeof line, "tts_%s_seconds_bucket{le=\"+Inf\"} %d", names[k], k + 3);
        expect_line(text, line);
        snprintf(line, sizeof line, "tts_%s_seconds_sum %.6f", names[k], 11 + 0.025 * (k + 1));
        expect_line(text, line);
        snprintf(line, sizeof line, "tts_%s_seconds_count %d", names[k], k + 3);
        expect_line(text, line);
    }
    forget(text);
}

static void each_worker_has_its_lines(void **state)
{
    static const char *const columns[] = {"ready", "running", "lanes", "capacity", "batch_size",
        "memory_bytes", "starts_total", "deaths_total", "audio_seconds_total"};
    static const struct metrics m;
    struct metrics_worker workers[2] = {
        {.number = 3, .device = "cpu"}, {.number = 7, .device = "cuda:1"}};
    const struct metrics_now now = {
        .version = "", .model = "", .device = "", .workers = workers, .n_workers = 2};
    char line[200];
    (void)state;
    for (int i = 0; i < METRICS_OF_WORKER; i++) {
        workers[0].values[i] = 10.5 + i;
        workers[1].values[i] = 1e12 + i;
    }
    char *text = printed(&m, &now);
    for (int i = 0; i < METRICS_OF_WORKER; i++) {
        snprintf(
            line, sizeof line, "tts_device_%s{worker=\"3\",device=\"cpu\"} %d.5", columns[i], 10 + i);
        expect_line(text, line);
        snprintf(line, sizeof line, "tts_device_%s{worker=\"7\",device=\"cuda:1\"} 100000000000%d",
            columns[i], i);
        expect_line(text, line);
    }
    forget(text);
}

/* A line that is too long for its buffer is no line: the whole is not sent. */
static void ends_of_speeches_are_counted(void **state)
{
    static const struct {
        enum utter_finish finish;
        const char *reason;
        int runaway;
    } cases[] = {{UTTER_FINISH_EOS, "stop", 0}, {UTTER_FINISH_MAX_FRAMES, "length", 0},
        {UTTER_FINISH_CONTEXT, "length", 0}, {UTTER_FINISH_CEILING, "incomplete", 1},
        {UTTER_FINISH_LOOP, "incomplete", 1}, {UTTER_FINISH_SILENCE, "incomplete", 1},
        {UTTER_FINISH_SAID, "incomplete", 1}, {UTTER_FINISH_STUCK, "incomplete", 1}};
    static const struct serve_options options = {.quiet = true};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct server s = {.options = &options};
        struct speech p = {.server = &s,
            .endpoint = METRICS_STREAM,
            .end = {.good = true,
                .finish = cases[i].finish,
                .audio_s = 2,
                .total_s = 3,
                .worst_gap_s = 4,
                .model = {.n_retries = 5,
                    .n_broken = 6,
                    .prefill_s = 7,
                    .talker_s = 8,
                    .predictor_s = 9,
                    .vocoder_s = 10}}};
        assert_string_equal(speech_finish_reason(cases[i].finish), cases[i].reason);
        speech_count_end(&p);
        assert_int_equal(s.metrics.runaway, cases[i].runaway);
        assert_true(s.metrics.said_again == 5 && s.metrics.not_whole == 6);
        assert_true(s.metrics.audio_s == 2 && s.metrics.background_s == 0);
        assert_true(s.metrics.prefill_s == 7 && s.metrics.talker_s == 8 && s.metrics.predictor_s == 9 &&
                    s.metrics.vocoder_s == 10);
        assert_true(s.metrics.total.sum == 3 && s.metrics.underrun.sum == 4);
        p.background = true;
        p.endpoint = METRICS_BACKGROUND;
        speech_count_end(&p);
        assert_true(s.metrics.audio_s == 4 && s.metrics.background_s == 2);
        assert_true(s.metrics.total.sum == 3 && s.metrics.underrun.sum == 4);
        p.end.good = false;
        p.end.refusal.code = "given_back";
        speech_count_end(&p);
        p.end.refusal.code = "other";
        speech_count_end(&p);
        p.end.refusal.code = NULL;
        speech_count_end(&p);
        assert_int_equal(s.metrics.requests[METRICS_STREAM][METRICS_OK], 1);
        assert_int_equal(s.metrics.requests[METRICS_BACKGROUND][METRICS_OK], 1);
        assert_int_equal(s.metrics.requests[METRICS_BACKGROUND][METRICS_GIVEN_BACK], 1);
        assert_int_equal(s.metrics.requests[METRICS_BACKGROUND][METRICS_ERROR], 2);
        assert_true(s.metrics.audio_s == 4 && s.metrics.said_again == 10); /* of the good ones */
    }
}

static void what_does_not_fit_fails(void **state)
{
    static const struct metrics m;
    char name[1100];
    struct metrics_now now = {.version = "", .model = name, .device = ""};
    struct wire_out out = {0};
    (void)state;
    memset(name, 'm', sizeof name - 1);
    name[sizeof name - 1] = 0;
    metrics_print(&m, &now, &out);
    assert_true(out.failed);
    wire_fini(&out);
    static const char around[] = "tts_build_info{version=\"\",model=\"\",device=\"\"} 1\n";
    now = (struct metrics_now){.version = "", .model = "", .device = name};
    for (size_t room = 1024; room >= 1023; room--) { /* the last that fits, beside its zero */
        out = (struct wire_out){0};
        name[room - strlen(around)] = 0;
        metrics_print(&m, &now, &out);
        assert_int_equal(out.failed, room == 1024);
        wire_fini(&out);
    }
}

/* ---- A load run ---- */

/* What is printed of it, up to 4 KB. */
static const char *reported(const struct load_options *o, const struct load_seen *seen)
{
    static char text[4096];
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stdout);
    int kept = dup(STDOUT_FILENO);
    assert_true(kept >= 0 && dup2(fileno(file), STDOUT_FILENO) >= 0);
    load_print(o, seen);
    fflush(stdout);
    assert_true(dup2(kept, STDOUT_FILENO) >= 0);
    close(kept);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}

static struct load_seen *seen_of(struct load_sample *samples, int n)
{
    static struct load_seen seen;
    memset(&seen, 0, sizeof seen);
    seen.samples = samples;
    seen.n = n;
    seen.wall_s = 8;
    seen.most_at_once = 5;
    return &seen;
}

enum { GOOD = 200, REFUSED = 3, BROKEN = 2, SAMPLES = GOOD + REFUSED + BROKEN };

/* Good ones with 1 .. 200 ms, in a mixed order; some that were refused after 1, 2 and 3 s, or broke. */
static struct load_seen *mixed(void)
{
    static struct load_sample samples[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) {
        double ms = i * 77 % GOOD + 1;
        samples[i] = (struct load_sample){.outcome = LOAD_GOOD,
            .first_s = 1e-3 * ms,
            .audible_s = 2e-3 * ms,
            .gap_s = 3e-3 * ms,
            .total_s = 4e-3 * ms,
            .audio_s = 0.5,
            .starved_s = ms > 190 ? 1e-3 * ms : 0,
            .n_starved = ms > 190 ? 2 : 0,
            .starved_all_s = ms > 190 ? 0.25 : 0};
    }
    for (int i = 0; i < REFUSED + BROKEN; i++) { /* what they say beside it is not counted */
        samples[GOOD + i] = (struct load_sample){.outcome = i < REFUSED ? LOAD_REFUSED : LOAD_BROKEN,
            .first_s = 99,
            .audible_s = 0,
            .gap_s = 99,
            .total_s = i + 1,
            .audio_s = 99,
            .starved_s = 99,
            .n_starved = 99,
            .starved_all_s = 99};
    }
    struct load_seen *seen = seen_of(samples, SAMPLES);
    seen->gaps[0] = 50;  /* up to 0.1 ms */
    seen->gaps[99] = 45; /* up to 10 ms */
    seen->gaps[999] = 4;
    seen->gaps[LOAD_BINS - 1] = 1;
    return seen;
}

static double number(const json_t *j, const char *name, const char *inner)
{
    const json_t *value = json_object_get(j, name);
    value = inner ? json_object_get(value, inner) : value;
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static void expect_percentiles(
    const json_t *j, const char *name, double p50, double p95, double p99, double most)
{
    const double got[] = {number(j, name, "p50"), number(j, name, "p95"), number(j, name, "p99"),
        number(j, name, "max")},
                 want[] = {p50, p95, p99, most};
    for (int i = 0; i < 4; i++) {
        if (fabs(got[i] - want[i]) > 1e-3) {
            fail_msg("%s: %g, not %g", name, got[i], want[i]);
        }
    }
}

static void a_load_run_is_told_as_json(void **state)
{
    const struct load_options o = {.json = true, .limit_ms = 300, .rate = 2.5};
    json_error_t error;
    (void)state;
    const char *text = reported(&o, mixed());
    json_t *j = json_loads(text, 0, &error);
    assert_non_null(j);
    assert_int_equal(text[strlen(text) - 1], '\n');
    static const struct {
        const char *name;
        double value;
    } totals[] = {{"requests", SAMPLES}, {"good", GOOD}, {"refused", REFUSED}, {"broken", BROKEN},
        {"underruns", 10}, {"pauses", 20}, {"pauses_seconds", 2.5}, {"goodput", 150.0 / SAMPLES},
        {"limit_ms", 300}, {"audio_seconds", 100}, {"wall_seconds", 8}, {"most_at_once", 5},
        {"rate", 2.5}, {"audio_per_second", 12.5}};
    for (size_t i = 0; i < sizeof totals / sizeof *totals; i++) {
        if (fabs(number(j, totals[i].name, NULL) - totals[i].value) > 1e-4) {
            fail_msg("%s: %g", totals[i].name, number(j, totals[i].name, NULL));
        }
    }
    expect_percentiles(j, "first_ms", 100, 190, 198, 200);
    expect_percentiles(j, "audible_ms", 200, 380, 396, 400);
    expect_percentiles(j, "worst_gap_ms", 300, 570, 594, 600);
    expect_percentiles(j, "total_ms", 400, 760, 792, 800);
    expect_percentiles(j, "underrun_ms", 0, 0, 198, 200);
    expect_percentiles(j, "refused_ms", 2000, 3000, 3000, 3000);
    expect_percentiles(j, "gap_ms", 0.1, 10, 100, 2000.1);
    const json_t *each = json_object_get(j, "audible_each_ms");
    assert_int_equal(json_array_size(each), GOOD);
    assert_true(fabs(json_number_value(json_array_get(each, 1)) - 2 * 78) < 1e-3); /* in their order */
    assert_int_equal(json_object_size(j), 14 + 7 + 1);
    json_decref(j);
}

static void a_load_run_is_told_as_a_table(void **state)
{
    const struct load_options o = {.limit_ms = 300};
    (void)state;
    assert_string_equal(reported(&o, mixed()),
        "requests 205: 200 good, 3 refused, 2 broken; at most 5 at once\n"
        "10 with an underrun: 20 pauses, 2.5 s in all\n"
        "goodput 73.2% (audible within 300 ms, no underrun); 100.0 s of sound in 8.0 s\n\n"
        "ms                                p50        p95        p99       most\n"
        "first sound                     100.0      190.0      198.0      200.0\n"
        "first audible sample            200.0      380.0      396.0      400.0\n"
        "longest gap of a stream         300.0      570.0      594.0      600.0\n"
        "longest underrun                  0.0        0.0      198.0      200.0\n"
        "whole answer                    400.0      760.0      792.0      800.0\n"
        "refusal                        2000.0     3000.0     3000.0     3000.0\n"
        "gaps between pieces               0.1       10.0      100.0     2000.1\n");
}

static void few_requests_or_none_have_percentiles(void **state)
{
    static const double first_s[] = {0.003, 0.001, 0.002};
    struct load_options o = {.json = true, .limit_ms = 2};
    struct load_sample samples[3];
    (void)state;
    for (int i = 0; i < 3; i++) {
        samples[i] = (struct load_sample){.first_s = first_s[i], .audible_s = first_s[i], .audio_s = 2};
    }
    for (int n = 0; n <= 3; n++) {
        struct load_seen *seen = seen_of(samples, n);
        seen->wall_s = n == 3 ? 0.5 : 0; /* nothing is divided by none */
        json_t *j = json_loads(reported(&o, seen), 0, NULL);
        assert_non_null(j);
        const double half = n == 0 ? 0 : n == 1 ? 3 : n == 2 ? 1 : 2, most = n ? 3 : 0;
        expect_percentiles(j, "first_ms", half, most, most, most);
        expect_percentiles(j, "gap_ms", 0, 0, 0, 0);
        assert_true(fabs(number(j, "goodput", NULL) - (n < 2 ? 0 : n == 2 ? 0.5 : 2 / 3.0)) < 1e-5);
        assert_true(number(j, "audio_per_second", NULL) == (n == 3 ? 3 * 2 / 0.5 : 0));
        json_decref(j);
    }
    o.json = false;
    assert_non_null(strstr(reported(&o, seen_of(samples, 0)), "goodput 0.0% (audible within 2 ms"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_has_its_head),
        cmocka_unit_test(each_counter_stands_in_its_line),
        cmocka_unit_test(times_are_counted_up_to_their_bounds),
        cmocka_unit_test(each_worker_has_its_lines),
        cmocka_unit_test(ends_of_speeches_are_counted),
        cmocka_unit_test(what_does_not_fit_fails),
        cmocka_unit_test(a_load_run_is_told_as_json),
        cmocka_unit_test(a_load_run_is_told_as_a_table),
        cmocka_unit_test(few_requests_or_none_have_percentiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
