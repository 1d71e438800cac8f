/* SPDX-License-Identifier: Apache-2.0
 * Speeches: admission, dispatch to lanes, the end. */
#include "base/minmax.h"
#include "server/speech/speech_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "server/loop/account.h"
#include "server/loop/jobs.h"
#include "server/loop/link.h"
#include "server/loop/log.h"
#include "server/speech/voices.h"

enum {
    MAX_TRIES = 2,
    AHEAD_S = 1, /* who has so much in hand needs no lane just now */
};

static const struct speech_sink no_sink;

static void release_account(struct speech *p)
{
    if (p->account) {
        p->account->n_speeches--;
        account_free(&p->account);
    }
}

static void speech_free(struct speech *p)
{
    encode_free(p->encoder);
    release_account(p);
    wire_fini(&p->opening);
    wire_fini(&p->text);
    wire_fini(&p->samples);
    wire_fini(&p->job_in);
    wire_fini(&p->job_out);
    memory_free(p);
}

static void leave_queue(struct speech *p)
{
    TAILQ_REMOVE(&p->server->queued, p, entry);
    p->server->n_queued--;
    p->queued = false;
}

static void leave_lane(struct speech *p)
{
    struct server *s = p->server;
    TAILQ_REMOVE(&s->running, p, entry);
    s->n_running--;
    p->started = 0;
}

/* Nothing refers to it any more: not the worker, not a thread, not who asked. */
void speech_free_if_done(struct speech *p)
{
    if (p->sink == &no_sink && !p->queued && p->started <= 0 && !p->job_runs) {
        struct server *s = p->server;
        speech_free(p);
        server_check_drained(s);
    }
}

const char *speech_finish_reason(enum utter_finish finish)
{
    return finish == UTTER_FINISH_EOS ? "stop" : "length";
}

static void count_end(struct server *s, const struct speech *p)
{
    const struct speech_end *e = &p->end;
    s->metrics.requests[p->endpoint][e->good ? METRICS_OK : METRICS_ERROR]++;
    if (e->good) {
        s->metrics.audio_s += e->audio_s;
        s->metrics.prefill_s += e->model.prefill_s;
        s->metrics.talker_s += e->model.talker_s;
        s->metrics.predictor_s += e->model.predictor_s;
        s->metrics.vocoder_s += e->model.vocoder_s;
        s->metrics.runaway += e->finish == UTTER_FINISH_CEILING || e->finish == UTTER_FINISH_LOOP ||
                              e->finish == UTTER_FINISH_SILENCE;
        histogram_add(&s->metrics.total, e->total_s);
        histogram_add(&s->metrics.underrun, e->worst_gap_s);
    }
    log_event(s, "speech",
        json_pack("{s:i,s:s,s:s,s:b,s:s,s:i,s:f,s:f,s:f,s:f,s:s?}", "id", (int)p->id, "request",
            p->request, "client", p->client, "good", e->good, "finish", utter_finish_text(e->finish),
            "tokens", e->n_text_tokens, "audio_s", e->audio_s, "queue_s", e->queue_s, "first_s",
            e->first_s, "total_s", e->total_s, "error", e->good ? NULL : e->refusal.message));
}

void speech_tell_end(struct speech *p)
{
    const struct speech_sink *sink = p->sink;
    p->end.total_s = clock_seconds() - p->read_at;
    p->sink = &no_sink;
    count_end(p->server, p);
    release_account(p); /* who asked may ask again at once */
    sink->end(p->user, &p->end);
    speech_free_if_done(p);
}

bool speech_is_wanted(const struct speech *p)
{
    return p->sink != &no_sink;
}

void speech_fail(struct speech *p, int status, const char *why)
{
    if (speech_is_wanted(p)) {
        p->end.good = false;
        refuse(&p->end.refusal, status, NULL, "%s", why);
        p->end.refusal.retry_ms = status == 503 ? RETRY_MS : 0;
        p->end.finish = UTTER_FINISH_ERROR;
        speech_tell_end(p);
    } else {
        speech_free_if_done(p);
    }
}

/* ---- Admission ---- */

/* Whether a running speech needs frames now: not while it has sound in hand, nor while its text or its client keep it
 * waiting. */
static bool is_needy(const struct speech *p, double now)
{
    bool in_hand = p->first_samples > 0 && p->heard_until - now >= AHEAD_S;
    bool has_text = p->text_ended || now - p->moved_at < AHEAD_S;
    return !p->paused && !p->ended && !in_hand && has_text;
}

/* Lanes that one more speech may take now, 0: none. More than the machine keeps up with would make all of them
 * stutter, unless they have sound in hand. */
static int free_lanes(const struct server *s)
{
    double now = clock_seconds();
    const struct speech *p;
    int n_free = s->ready.lanes - s->n_running, n_needy = 0;
    if (s->capacity > 0 && s->options->paced) {
        TAILQ_FOREACH(p, &s->running, entry)
        {
            n_needy += is_needy(p, now);
        }
        n_free = min(s->capacity - n_needy, n_free);
    }
    return max(n_free, 0);
}

/* How long the last of the queue would wait: lanes are given back at the pace of the past. */
static double estimated_wait(const struct server *s)
{
    int lanes = s->capacity > 0 && s->options->paced && s->capacity < s->ready.lanes ? s->capacity
                                                                                     : s->ready.lanes;
    int ahead = s->n_queued + 1 - free_lanes(s);
    return ahead > 0 && lanes > 0 ? s->hold_s * ahead / lanes : 0;
}

bool speech_queue_is_full(const struct server *s)
{
    int n_free = s->is_ready ? free_lanes(s) : 0;
    return s->n_queued + 1 - n_free > s->options->queue;
}

static bool admit(struct server *s, struct account *account, struct refusal *r)
{
    double wait = estimated_wait(s);
    if (account && !account_admit(account, clock_seconds(), r)) {
        s->metrics.rejected[METRICS_RATE]++;
        return false;
    }
    if (s->draining) {
        s->metrics.rejected[METRICS_DRAINING]++;
        refuse(r, 503, NULL, "the server is about to stop");
    } else if (speech_queue_is_full(s) || wait > QUEUE_S) {
        s->metrics.rejected[METRICS_QUEUE_FULL]++;
        refuse(r, 503, NULL, "the request queue is full (%d wait, about %.1f s)", s->n_queued, wait);
    } else if (s->unsent_bytes > LIMIT_UNSENT_ALL) {
        s->metrics.rejected[METRICS_QUEUE_FULL]++;
        refuse(r, 503, NULL, "too much sound waits for clients that do not read");
    } else {
        return true;
    }
    r->retry_ms = wait > 1 ? (int)(wait * 1000) : RETRY_MS;
    return false;
}

struct fields_model speech_fields_model(const struct server *s)
{
    struct fields_model m = {.id = s->model_id,
        .kind = s->ready.kind_name,
        .languages = s->ready.languages,
        .n_languages = s->ready.n_languages,
        .takes_instructions = s->ready.takes_instructions,
        .default_format = ENCODE_MP3};
    for (int i = ENCODE_WAV; i <= ENCODE_AAC; i++) {
        if (strcmp(encode_format_name((enum encode_format)i), s->options->format) == 0) {
            m.default_format = (enum encode_format)i;
        }
    }
    return m;
}

static void write_opening(struct speech *p, const struct fields *f, const struct voices_found *voice)
{
    struct wire_open open = {.voice_name = voice->preset,
        .voice_file = voice->file[0] ? voice->file : NULL,
        .language = f->language,
        .instruct = f->instructions,
        .layout = f->layout,
        .seed = f->seed,
        .max_frames = f->max_frames};
    memcpy(open.sampling, f->sampling, sizeof open.sampling);
    wire_put_open(&p->opening, p->id, &open);
}

struct speech *speech_start(struct server *s, const struct speech_request *request,
    const struct speech_sink *sink, void *user, struct refusal *refusal)
{
    struct voices_found voice;
    const struct fields *fields = request->fields;
    if (!voices_find(s, fields, &voice, refusal) || !admit(s, request->account, refusal)) {
        return NULL;
    }
    struct speech *p = memory_new(1, sizeof *p);
    if (p) {
        p->encoder = encode_new(&fields->sound, s->ready.sample_rate);
        p->id = ++s->next_id;
        write_opening(p, fields, &voice);
    }
    if (!p || !p->encoder || p->opening.failed) {
        if (p) {
            speech_free(p);
        }
        refuse(refusal, 503, NULL, "out of memory");
        return NULL;
    }
    p->server = s;
    if (request->account) {
        p->account = account_share(request->account);
        account_count(request->account, clock_seconds());
    }
    snprintf(p->request, sizeof p->request, "%s", request->id);
    snprintf(p->client, sizeof p->client, "%s", request->client);
    p->sink = sink;
    p->user = user;
    p->endpoint = request->endpoint;
    p->read_at = request->read_at;
    p->speed = fields->sound.speed;
    p->queued = true;
    p->queued_at = clock_seconds();
    s->metrics.unknown_fields += (uint64_t)fields->n_unknown;
    TAILQ_INSERT_TAIL(&s->queued, p, entry);
    s->n_queued++;
    return p;
}

/* ---- To the worker ---- */

static void send_to_lane(struct speech *p)
{
    struct server *s = p->server;
    struct wire_out *out = link_out(s);
    leave_queue(p);
    TAILQ_INSERT_TAIL(&s->running, p, entry);
    s->n_running++;
    p->tries++;
    p->started = clock_seconds();
    p->moved_at = p->started; /* its text, however old, has only now come to a lane */
    p->end.queue_s = p->started - p->read_at;
    histogram_add(&s->metrics.queue_wait, p->end.queue_s);
    wire_put(out, p->opening.bytes, p->opening.n);
    if (p->text.n) {
        wire_message(out, WIRE_TEXT, p->id, p->text.bytes, p->text.n);
    }
    if (p->text_ended) {
        wire_message(out, WIRE_FINISH, p->id, NULL, 0);
    }
    p->paused = p->held;
    if (p->paused) {
        wire_message(out, WIRE_PAUSE, p->id, NULL, 0);
    }
    link_send(s);
}

void speech_dispatch(struct server *s)
{
    for (struct speech *p = TAILQ_FIRST(&s->queued), *after; p && link_out(s) && free_lanes(s) > 0;
         p = after) {
        after = TAILQ_NEXT(p, entry);
        if (!p->text.failed) { /* half of a text is not spoken */
            send_to_lane(p);
        }
    }
}

/* Sends a message about a speech that has a lane. */
static void send_one(struct speech *p, enum wire_kind kind, const void *body, size_t n)
{
    struct wire_out *out = p->started > 0 && !p->ended ? link_out(p->server) : NULL;
    if (out) {
        wire_message(out, kind, p->id, body, n);
        link_send(p->server);
    }
}

/* To its lane, or to one if it has none. */
static void pass_on(struct speech *p, enum wire_kind kind, const void *body, size_t n)
{
    p->queued ? speech_dispatch(p->server) : send_one(p, kind, body, n);
}

void speech_text(struct speech *p, const char *text, size_t n)
{
    if (p->first_samples <= 0) {
        wire_put(&p->text, text, n);
    }
    p->moved_at = clock_seconds();
    pass_on(p, WIRE_TEXT, text, n);
}

void speech_finish(struct speech *p)
{
    p->text_ended = true;
    pass_on(p, WIRE_FINISH, NULL, 0);
}

void speech_steer(struct speech *p)
{
    bool paused = p->held || p->behind;
    if (p->paused != paused) {
        p->paused = paused;
        send_one(p, paused ? WIRE_PAUSE : WIRE_RESUME, NULL, 0);
    }
}

void speech_hold(struct speech *p, bool held)
{
    p->held = held;
    speech_steer(p);
}

/* What a cancelled speech had is free for others. */
static void note_freed(struct speech *p, double seconds)
{
    histogram_add(&p->server->metrics.cancel_to_free, seconds);
    log_event(p->server, "freed",
        json_pack("{s:i,s:s,s:f}", "id", (int)p->id, "stage", metrics_stage_name(p->stage), "seconds",
            seconds));
}

void speech_cancel(struct speech *p)
{
    struct server *s = p->server;
    enum metrics_stage stage = p->stage = p->queued               ? METRICS_QUEUED
                                          : p->first_samples <= 0 ? METRICS_FIRST
                                          : p->held               ? METRICS_PAUSED
                                                                  : METRICS_STREAMING;
    s->metrics.cancelled[stage]++;
    s->metrics.requests[p->endpoint][METRICS_CANCELLED]++;
    p->sink = &no_sink;
    release_account(p); /* who cancels may ask again at once */
    p->cancelled_at = clock_seconds();
    log_event(s, "cancelled",
        json_pack("{s:i,s:s,s:s,s:s}", "id", (int)p->id, "request", p->request, "client", p->client,
            "stage", metrics_stage_name(stage)));
    if (p->queued) {
        leave_queue(p);
        note_freed(p, 0);
    }
    if (p->started > 0) { /* its lane keeps it */
        send_one(p, WIRE_CANCEL, NULL, 0);
    } else {
        speech_free_if_done(p);
    }
}

/* What the worker still makes of it is not wanted. */
void speech_fail_running(struct speech *p, int status, const char *why)
{
    struct server *s = p->server;
    struct wire_out *out = p->started > 0 && !p->ended ? link_out(s) : NULL;
    uint32_t id = p->id;
    speech_fail(p, status, why); /* and may be freed */
    if (out && out == link_out(s)) {
        wire_message(out, WIRE_CANCEL, id, NULL, 0);
        link_send(s);
    }
}

int speech_rate(const struct speech *p)
{
    return encode_rate(p->encoder);
}

/* ---- From the worker ---- */

static struct speech *find_running(struct server *s, uint32_t id)
{
    struct speech *p = TAILQ_FIRST(&s->running);
    while (p && p->id != id) {
        p = TAILQ_NEXT(p, entry);
    }
    return p;
}

static void take_done(struct speech *p, const struct wire_message *m)
{
    struct wire_done *done = &p->end.model;
    p->ended = true;
    if (!wire_get_done(done, m)) {
        speech_fail(p, 500, "the worker sent what is no message");
        return;
    }
    p->end.finish = (enum utter_finish)done->finish;
    p->end.n_frames = done->n_frames;
    p->end.n_text_tokens = done->n_text_tokens;
    p->end.audio_s = (double)done->n_frames * p->server->ready.frame_samples /
                     p->server->ready.sample_rate / p->speed;
    if (done->n_frames == 0) {
        speech_fail(
            p, 500, "the model ended the speech before its first sound (another seed may help)");
        return;
    }
    speech_pump(p);
}

static void take_failed(struct speech *p, const struct wire_message *m)
{
    struct wire_failed failed;
    p->ended = true;
    if (!wire_get_failed(&failed, m)) {
        failed = (struct wire_failed){UTTER_E_INTERNAL, "the worker failed"};
    }
    bool asked_wrong = failed.status == UTTER_E_ARGUMENT || failed.status == UTTER_E_MODEL;
    speech_fail(p, asked_wrong ? 400 : failed.status == UTTER_E_MEMORY ? 503 : 500, failed.text);
}

void speech_message(struct server *s, const struct wire_message *m)
{
    struct speech *p = find_running(s, m->id);
    if (!p) {
        return;
    }
    if (m->kind == WIRE_PCM) {
        speech_samples(p, m);
        return;
    }
    double held = clock_seconds() - p->started;
    s->hold_s += (s->hold_s > 0 ? 0.1 : 1) * (held - s->hold_s);
    if (p->cancelled_at > 0) {
        note_freed(p, clock_seconds() - p->cancelled_at);
    }
    leave_lane(p);
    if (m->kind == WIRE_DONE && speech_is_wanted(p)) {
        take_done(p, m);
    } else if (m->kind == WIRE_FAILED) {
        take_failed(p, m);
    } else {
        speech_free_if_done(p);
    }
    speech_dispatch(s);
    server_check_drained(s);
}

void speech_worker_lost(struct server *s)
{
    struct speech *p, *after;
    struct speech_list lost = TAILQ_HEAD_INITIALIZER(lost);
    TAILQ_CONCAT(&lost, &s->running, entry);
    s->n_running = 0;
    for (p = TAILQ_LAST(&lost, speech_list); p; p = after) {
        after = TAILQ_PREV(p, speech_list, entry);
        TAILQ_REMOVE(&lost, p, entry);
        p->started = 0;
        p->paused = false;
        if (speech_is_wanted(p) && p->first_samples <= 0 && p->tries < MAX_TRIES) {
            /* Nobody has heard anything yet: the next worker begins again, and it waits anew. */
            p->queued_at = clock_seconds();
            TAILQ_INSERT_HEAD(&s->queued, p, entry);
            s->n_queued++;
            p->queued = true;
        } else {
            speech_fail(p, 503, "the worker ended while it spoke (ask again)");
        }
    }
}

/* One that has waited too long, or lacks a piece of its text. */
static struct speech *find_hopeless(const struct server *s, double now)
{
    struct speech *p = TAILQ_FIRST(&s->queued);
    while (p && !p->text.failed && now - p->queued_at <= QUEUE_S) {
        p = TAILQ_NEXT(p, entry);
    }
    return p;
}

/* One whose client takes its sound, but so slowly that it would keep a lane for hours. */
static struct speech *find_slow(const struct server *s, double now)
{
    struct speech *p = TAILQ_FIRST(&s->running);
    while (p && !(speech_is_wanted(p) && p->held && now - p->first_samples > SLOW_S + 2 * p->made_s)) {
        p = TAILQ_NEXT(p, entry);
    }
    return p;
}

void speech_tick(struct server *s, double now)
{
    struct speech *p;
    /* Whoever is told may start others: after each, the lists are others. */
    while ((p = find_hopeless(s, now))) {
        bool cut = p->text.failed;
        s->metrics.rejected[METRICS_QUEUE_FULL] += !cut;
        leave_queue(p);
        speech_fail(p, 503, cut ? "out of memory" : "no lane became free in time");
    }
    while ((p = find_slow(s, now))) {
        s->metrics.dropped_stalled++;
        speech_fail_running(p, 408, "the sound is taken at less than half of the pace of hearing");
    }
}
