/* SPDX-License-Identifier: Apache-2.0
 * utter job work: a queue's lines, spoken. */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/interrupt.h"
#include "cli/job/job_lines.h"
#include "cli/model/checkpoint.h"
#include "cli/report.h"
#include "cli/speak/saying.h"
#include "cli/voice/voice_lookup.h"
#include "job/worker.h"

struct work {
    const struct settings *settings;
    utter_model *model;
    struct queue *queue;
    struct results *results;
    char model_name[MODEL_NAME];
    struct speaker *speaker;
    utter_stream_options voice;
    struct speaker_model_settings by_model;
    struct speaker_server_settings by_server;
    double begin_s, told_s;
    struct queue_counts first; /* as they were at the begin */
    pthread_mutex_t lock;      /* of what follows */
    utter_error away;          /* why the results, or the server, cannot be reached, until it is told */
};

static bool is_stopped(void)
{
    return interrupt_signal() != 0;
}

/* What was spoken before the signal may still get its result. */
static bool is_stopped_long(void)
{
    enum { PATIENCE_MS = 10000 };
    static atomic_llong first_ms;
    long long now_ms = (long long)(clock_seconds() * 1000), none = 0;
    if (!is_stopped()) {
        return false;
    }
    atomic_compare_exchange_strong(&first_ms, &none, now_ms);
    return now_ms - atomic_load(&first_ms) > PATIENCE_MS;
}

/* Of results, from any thread, and of a server; the worker's own tells it on. */
static void note_away(void *user, const utter_error *error)
{
    struct work *w = user;
    pthread_mutex_lock(&w->lock);
    w->away = *error;
    pthread_mutex_unlock(&w->lock);
}

static void tell_away(struct work *w)
{
    pthread_mutex_lock(&w->lock);
    const utter_error away = w->away;
    w->away.text[0] = 0;
    pthread_mutex_unlock(&w->lock);
    if (away.text[0] && !w->settings->quiet.given) {
        note("%s; it is waited for", away.text);
    }
}

static utter_status find_voice(
    void *user, const char *name, utter_voice **voice, char hash[IDENTITY_SIZE], utter_error *error)
{
    const struct work *w = user;
    return job_find_voice(w->model, w->settings, name, voice, hash, error);
}

/* A utter_find_voice_fn. */
static utter_status find_called(void *user, const char *name, utter_voice **voice, utter_error *error)
{
    const struct work *w = user;
    return voice_find(voice, w->model, w->settings, name, error);
}

static utter_status hash_called(
    void *user, const struct line *line, char hash[IDENTITY_SIZE], utter_error *error)
{
    const struct work *w = user;
    return job_hash_called(w->settings, line, hash, error);
}

/* All workers' lines, by what the queue knows; else this one's. */
static void tell(void *user, const struct worker_told *told)
{
    struct work *w = user;
    struct queue_counts now;
    double took = clock_seconds() - w->begin_s;
    tell_away(w);
    if (w->settings->quiet.given || !progress_shown() || clock_seconds() - w->told_s < 1 ||
        w->queue->calls->count(w->queue, &now, NULL) != UTTER_OK) {
        return;
    }
    w->told_s = clock_seconds();
    double left = (double)(now.waiting + now.claimed);
    double done = now.all ? (double)(now.done + now.failed) - (double)(w->first.done + w->first.failed)
                          : (double)(told->made + told->found + told->failed);
    long left_s = done > 0 ? lround(left / done * took) : 0;
    if (done > 0) {
        progress("%.0f lines done, %.0f left, %.1f x real time, %ld:%02ld:%02ld left", done, left,
            told->seconds / took, left_s / 3600, left_s / 60 % 60, left_s % 60);
    } else {
        progress("%.0f lines left", left);
    }
}

static void tell_try(void *user, const char *id, const char *reason, int tries)
{
    const struct work *w = user;
    if (w->settings->quiet.given) {
        return;
    }
    if (tries > 0) {
        note("\"%s\": try %d failed: %s", id, tries, reason);
    } else {
        note("\"%s\" has failed: %s", id, reason);
    }
}

static void rest(void *user)
{
    (void)user;
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL); /* a signal ends it */
}

static utter_status open_server(struct work *w, utter_error *error)
{
    enum { LANES = 16 };
    const struct settings *s = w->settings;
    /* Its coding and hashing take nothing from the server's listeners, where that is on this machine. */
    sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0});
    const char *key =
        s->key.given ? s->key.text : getenv("UTTER_API_KEY"); /* which no list of processes shows */
    w->by_server = (struct speaker_server_settings){.url = s->server.text,
        .key = key && *key ? key : NULL,
        .lanes = s->reading_lanes.given ? (int)s->reading_lanes.integer : LANES,
        .away = note_away,
        .user = w};
    return speaker_server_open(&w->speaker, &w->by_server, error);
}

/* 0, or an exit code after a message. */
static int open_model(struct work *w, utter_error *error)
{
    const struct settings *s = w->settings;
    utter_status status = job_model_name(w->model_name, s, error);
    int code = status ? fail_status(status, error)
                      : checkpoint_open(&w->model, s, (int)s->reading_lanes.integer);
    status = code ? UTTER_OK : utter_stream_options_init(&w->voice, w->model);
    if (code || status) {
        return code ? code : fail_status(status, error);
    }
    w->by_model = (struct speaker_model_settings){.model = w->model,
        .voice = &w->voice,
        .model_name = w->model_name,
        .lanes = checkpoint_lanes(w->model, (int)s->reading_lanes.integer),
        .find_voice = find_voice,
        .find_called = find_called,
        .hash_called = hash_called,
        .user = w};
    status = speaker_model_open(&w->speaker, &w->by_model, error);
    return status ? fail_status(status, error) : 0;
}

static int open_work(struct work *w)
{
    const struct settings *s = w->settings;
    utter_error error = {0};
    if (!s->queue.given || !s->results.given) {
        return fail(1, "job work: --%s is missing (utter job work --help)",
            s->queue.given ? "results" : "queue");
    }
    memory_keep_little();
    if (!interrupt_watch(NULL)) {
        return fail(2, "the system refuses a signal handler");
    }
    utter_status status = s->server.given ? open_server(w, &error) : UTTER_OK;
    status = status ? status : queue_open(&w->queue, s->queue.text, false, &error);
    status = status ? status : results_open(&w->results, s->results.text, true, &error);
    if (status) {
        return fail_status(status, &error);
    }
    w->results->stop = is_stopped;
    w->results->stop_keep = is_stopped_long;
    w->results->away = note_away;
    w->results->user = w;
    return s->server.given ? 0 : open_model(w, &error);
}

static int tell_end(const struct work *w, const struct worker_told *t)
{
    const struct settings *s = w->settings;
    double took = clock_seconds() - w->begin_s;
    int code = 0;
    if (s->json.given) {
        code = report_json(json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:f,s:f}", "made", (json_int_t)t->made,
            "found", (json_int_t)t->found, "failed", (json_int_t)t->failed, "again",
            (json_int_t)t->again, "given_back", (json_int_t)t->given_back, "not_whole",
            (json_int_t)t->not_whole, "seconds", t->seconds, "took_s", took));
    } else if (!s->quiet.given) {
        note("%llu lines were made, %.1f s of speech, %.2f x real time; %llu had a result, %llu failed",
            (unsigned long long)t->made, t->seconds, t->seconds / took, (unsigned long long)t->found,
            (unsigned long long)t->failed);
    }
    return code                                ? code
           : interrupt_signal()                ? 128 + interrupt_signal()
           : t->failed > 0 || t->not_whole > 0 ? EXIT_NOT_WHOLE
                                               : 0;
}

int command_job_work(const struct invocation *invocation)
{
    struct work w = {.settings = &invocation->settings,
        .begin_s = clock_seconds(),
        .lock = PTHREAD_MUTEX_INITIALIZER};
    const struct settings *s = w.settings;
    struct worker_told told = {0};
    utter_error error = {0};
    int code = open_work(&w);
    if (code == 0) {
        utter_status status = w.queue->calls->count(w.queue, &w.first, &error);
        status = status < 0 ? status : UTTER_OK; /* it may answer later */
        struct worker_settings settings = {.speaker = w.speaker,
            .queue = w.queue,
            .results = w.results,
            .most_tries = (int)s->tries.integer,
            .until_empty = s->until_empty.given,
            .stop = is_stopped,
            .told = tell,
            .note = tell_try,
            .rest = rest,
            .user = &w};
        w.begin_s = clock_seconds();
        status = status ? status : worker_run(&settings, &told, &error);
        progress_clear();
        code = status && !interrupt_signal() ? fail_status(status, &error) : tell_end(&w, &told);
    }
    speaker_close(&w.speaker);
    queue_close(&w.queue);
    results_close(&w.results);
    utter_model_close(&w.model);
    return code;
}
