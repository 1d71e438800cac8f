/* SPDX-License-Identifier: Apache-2.0
 * The text format of Prometheus. */
#include "server/loop/metrics.h"

#include <stdarg.h>
#include <stdio.h>

static const double bounds[METRICS_BUCKETS] = {
    0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2, 10};

static const char *const stages[METRICS_N_STAGES] = {"queued", "first_frame", "streaming", "paused"};

const char *metrics_stage_name(enum metrics_stage stage)
{
    return stages[stage];
}

static const char *const limits[METRICS_N_LIMITS] = {"sent", "asked", "held", "made_way"};

const char *metrics_limit_name(enum metrics_limit limit)
{
    return limits[limit];
}

void histogram_add(struct histogram *h, double seconds)
{
    int i = 0;
    while (i < METRICS_BUCKETS && seconds > bounds[i]) {
        i++;
    }
    h->counts[i]++;
    h->sum += seconds;
}

__attribute__((format(printf, 2, 3))) static void print(struct wire_out *out, const char *format, ...)
{
    char line[1024];
    va_list list;
    va_start(list, format);
    int n = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    out->failed = out->failed || n < 0 || (size_t)n >= sizeof line;
    wire_put(out, line, out->failed ? 0 : (size_t)n);
}

static void head(struct wire_out *out, const char *name, const char *type, const char *help)
{
    print(out, "# HELP tts_%s %s\n# TYPE tts_%s %s\n", name, help, name, type);
}

static void print_histogram(
    struct wire_out *out, const char *name, const char *help, const struct histogram *h)
{
    uint64_t n = 0;
    head(out, name, "histogram", help);
    for (int i = 0; i <= METRICS_BUCKETS; i++) {
        n += h->counts[i];
        if (i < METRICS_BUCKETS) {
            print(out, "tts_%s_bucket{le=\"%g\"} %llu\n", name, bounds[i], (unsigned long long)n);
        } else {
            print(out, "tts_%s_bucket{le=\"+Inf\"} %llu\n", name, (unsigned long long)n);
        }
    }
    print(out, "tts_%s_sum %.6f\ntts_%s_count %llu\n", name, h->sum, name, (unsigned long long)n);
}

static void print_value(
    struct wire_out *out, const char *name, const char *type, const char *help, double value)
{
    head(out, name, type, help);
    print(out, "tts_%s %.15g\n", name, value);
}

static void print_labelled(struct wire_out *out, const char *name, const char *help, const char *label,
    const char *const *words, const uint64_t *counts, int n)
{
    head(out, name, "counter", help);
    for (int i = 0; i < n; i++) {
        print(out, "tts_%s{%s=\"%s\"} %llu\n", name, label, words[i], (unsigned long long)counts[i]);
    }
}

static void print_requests(struct wire_out *out, const struct metrics *m)
{
    static const char *const endpoints[] = {"speech", "stream", "batch", "background"};
    static const char *const outcomes[] = {"ok", "error", "cancelled", "given_back"};
    head(out, "requests_total", "counter", "speeches by endpoint and outcome");
    for (int i = 0; i < METRICS_N_ENDPOINTS; i++) {
        for (int k = 0; k < METRICS_N_OUTCOMES; k++) {
            print(out, "tts_requests_total{endpoint=\"%s\",outcome=\"%s\"} %llu\n", endpoints[i],
                outcomes[k], (unsigned long long)m->requests[i][k]);
        }
    }
}

static void print_stages(struct wire_out *out, const struct metrics *m)
{
    head(out, "stage_seconds_total", "counter", "time of the model by stage");
    const struct {
        const char *name;
        double seconds;
    } parts[] = {{"prefill", m->prefill_s}, {"talker", m->talker_s}, {"predictor", m->predictor_s},
        {"codec", m->vocoder_s}};
    for (int i = 0; i < 4; i++) {
        print(out, "tts_stage_seconds_total{stage=\"%s\"} %.6f\n", parts[i].name, parts[i].seconds);
    }
}

static void print_workers(struct wire_out *out, const struct metrics_now *now)
{
    static const struct {
        const char *name, *type, *help;
    } columns[METRICS_OF_WORKER] = {
        {"device_ready", "gauge", "1 when the worker of this device is open and warm"},
        {"device_running", "gauge", "speeches on its lanes"},
        {"device_lanes", "gauge", "speeches that may run on it at once"},
        {"device_capacity", "gauge",
            "speeches that it can make as fast as they are heard, 0: not known"},
        {"device_batch_size", "gauge", "lanes of its last step"},
        {"device_memory_bytes", "gauge", "memory of its model beside the files"},
        {"device_starts_total", "counter", "its workers started"},
        {"device_deaths_total", "counter", "its workers that ended unasked"},
        {"device_audio_seconds_total", "counter", "speech made on it"},
    };
    for (int i = 0; i < METRICS_OF_WORKER; i++) {
        head(out, columns[i].name, columns[i].type, columns[i].help);
        for (const struct metrics_worker *w = now->workers; w < now->workers + now->n_workers; w++) {
            print(out, "tts_%s{worker=\"%d\",device=\"%s\"} %.15g\n", columns[i].name, w->number,
                w->device, w->values[i]);
        }
    }
}

/* What endpoint pickers look at (the Gateway API inference extension, llm-d), under the names that they look for
 * unless they are told others. What they take for the use of a cache is how much of what can be promised is. */
static void print_for_pickers(struct wire_out *out, const struct metrics_now *now)
{
    const struct {
        const char *name, *help;
        double value;
    } gauges[] = {{"num_requests_running", "as tts_requests_running", now->running},
        {"num_requests_waiting", "as tts_requests_queued", now->queued},
        {"kv_cache_usage_perc", "as tts_use_ratio", now->use},
        {"gpu_cache_usage_perc", "as tts_use_ratio, for older pickers", now->use}};
    for (size_t i = 0; i < sizeof gauges / sizeof *gauges; i++) {
        print(out, "# HELP vllm:%s %s\n# TYPE vllm:%s gauge\nvllm:%s{model_name=\"%s\"} %.15g\n",
            gauges[i].name, gauges[i].help, gauges[i].name, gauges[i].name, now->model,
            gauges[i].value);
    }
}

void metrics_print(const struct metrics *m, const struct metrics_now *now, struct wire_out *out)
{
    static const char *const reasons[] = {"queue_full", "not_ready", "draining", "key", "rate",
        "invalid", "too_large", "background_full"};
    print_requests(out, m);
    print_labelled(out, "rejected_total", "requests refused before they took a lane", "reason", reasons,
        m->rejected, METRICS_N_REJECTIONS);
    print_labelled(out, "cancelled_total", "speeches whose client left, by what they were doing",
        "stage", stages, m->cancelled, METRICS_N_STAGES);
    print_value(out, "requests_running", "gauge", "speeches on a lane", now->running);
    print_value(out, "requests_queued", "gauge", "speeches that wait for a lane", now->queued);
    print_value(out, "background_running", "gauge", "speeches on lanes that listeners leave idle",
        now->background_running);
    print_value(out, "background_queued", "gauge", "speeches that wait for such a lane",
        now->background_queued);
    print_value(out, "lanes", "gauge", "speeches that may run at once", now->lanes);
    print_value(out, "capacity", "gauge",
        "speeches that can be made as fast as they are heard, 0: not known", now->capacity);
    print_value(out, "use_ratio", "gauge", "how much of what can be promised is, 0 to 1", now->use);
    print_value(out, "connections", "gauge", "open connections", now->connections);
    print_value(
        out, "connections_accepted_total", "counter", "connections accepted", (double)m->connections);
    print_value(out, "connections_crowded_total", "counter",
        "connections that came when all places were taken", (double)m->crowded_out);
    print_labelled(out, "limited_total",
        "times that a connection was not read for a while or ended, by what it or its address had done",
        "how", limits, m->limited, METRICS_N_LIMITS);
    print_value(out, "ready", "gauge", "1 when the model is open and warm", now->ready);
    print_value(out, "batch_size", "gauge", "lanes of the last step", now->batch);
    print_value(out, "audio_seconds_total", "counter", "speech made", m->audio_s);
    print_value(out, "background_seconds_total", "counter", "of it, on lanes that listeners left idle",
        m->background_s);
    print_value(out, "said_again_total", "counter", "pieces of texts that were not whole at first",
        (double)m->said_again);
    print_value(out, "not_whole_total", "counter", "pieces that stayed so", (double)m->not_whole);
    print_value(out, "runaway_total", "counter", "speeches that the guard ended", (double)m->runaway);
    print_value(out, "unknown_fields_total", "counter", "request fields that were ignored",
        (double)m->unknown_fields);
    print_value(out, "stalled_total", "counter", "clients dropped because they did not read",
        (double)m->dropped_stalled);
    print_value(out, "worker_starts_total", "counter", "workers started", (double)m->worker_starts);
    print_value(
        out, "worker_deaths_total", "counter", "workers that ended unasked", (double)m->worker_deaths);
    print_value(out, "worker_memory_bytes", "gauge", "memory of the model beside its files",
        (double)now->worker_memory_bytes);
    print_histogram(out, "ttfa_seconds", "request read to first audio byte written", &m->ttfa);
    print_histogram(out, "queue_wait_seconds", "wait for a lane", &m->queue_wait);
    print_histogram(out, "cancel_to_free_seconds", "client gone to lane free", &m->cancel_to_free);
    print_histogram(out, "request_seconds", "request read to last byte made", &m->total);
    print_histogram(
        out, "underrun_seconds", "longest time that a listener had nothing to hear", &m->underrun);
    print_histogram(out, "step_seconds", "one frame of the chosen lanes", &m->step);
    print_stages(out, m);
    print_workers(out, now);
    head(out, "build_info", "gauge", "what runs here");
    print(out, "tts_build_info{version=\"%s\",model=\"%s\",device=\"%s\"} 1\n", now->version,
        now->model, now->device);
    print_for_pickers(out, now);
}
