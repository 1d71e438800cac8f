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
#include "server/speech/admission.h"
#include "server/speech/voices.h"

enum { MAX_TRIES = 2 };

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
    return finish == UTTER_FINISH_EOS                                            ? "stop"
           : finish == UTTER_FINISH_MAX_FRAMES || finish == UTTER_FINISH_CONTEXT ? "length"
                                                                                 : "incomplete";
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
                              e->finish == UTTER_FINISH_SILENCE || e->finish == UTTER_FINISH_SAID ||
                              e->finish == UTTER_FINISH_STUCK;
        s->metrics.said_again += (uint64_t)e->model.n_retries;
        s->metrics.not_whole += (uint64_t)e->model.n_broken;
        histogram_add(&s->metrics.total, e->total_s);
        histogram_add(&s->metrics.underrun, e->worst_gap_s);
    }
    log_event(s, "speech",
        json_pack("{s:i,s:s,s:s,s:b,s:s,s:i,s:f,s:f,s:f,s:f,s:i,s:i,s:i,s:o?,s:s?}", "id", (int)p->id,
            "request", p->request, "client", p->client, "good", e->good, "finish",
            utter_finish_text(e->finish), "tokens", e->n_text_tokens, "audio_s", e->audio_s, "queue_s",
            e->queue_s, "first_s", e->first_s, "total_s", e->total_s, "pieces", e->model.n_pieces,
            "said_again", e->model.n_retries, "not_whole", e->model.n_broken, "not_whole_at",
            e->model.n_broken > 0 ? json_integer((json_int_t)e->model.broken_at) : NULL, "error",
            e->good ? NULL : e->refusal.message));
}

void speech_tell_end(struct speech *p)
{
    const struct speech_sink *sink = p->sink;
    p->end.total_s = clock_seconds() - p->read_at;
    p->end.n_samples = p->end.good ? encode_samples(p->encoder) : 0; /* else it may be at work */
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

/* Whose text has not come for so long waits for its text, not for us. */
static const double text_gap_s = 1;

static double need(const struct speech *p, double now)
{
    bool has_text = p->text_ended || now - p->moved_at < text_gap_s;
    if (p->paused || p->ended || !has_text || !speech_is_wanted(p)) {
        return 0;
    }
    const struct admission_speech about = {
        p->text_bytes, p->speed, p->made_s, p->first_samples > 0 ? p->heard_until - now : 0};
    return admission_need(p->server, &about);
}

static struct admission_now look(const struct server *s, bool patient, double time)
{
    struct admission_now now = {.time = time};
    const struct speech *p;
    TAILQ_FOREACH(p, &s->running, entry)
    {
        now.promised += need(p, time);
    }
    TAILQ_FOREACH(p, &s->queued, entry)
    {
        now.n_before += patient || !p->patient;
    }
    return now;
}

bool speech_is_full(const struct server *s)
{
    const struct admission_now now = look(s, false, clock_seconds());
    return admission_is_full(s, &now);
}

static bool admit(struct server *s, const struct speech_request *request, struct refusal *r)
{
    const struct admission_now now = look(s, request->patient, clock_seconds());
    if (request->account && !account_admit(request->account, now.time, r)) {
        s->metrics.rejected[METRICS_RATE]++;
        return false;
    }
    if (s->draining) {
        s->metrics.rejected[METRICS_DRAINING]++;
        refuse(r, 503, NULL, "the server is about to stop");
    } else if (!admission_take(s, request->patient, &now, r)) {
        s->metrics.rejected[METRICS_QUEUE_FULL]++;
    } else if (s->unsent_bytes > LIMIT_UNSENT_ALL) {
        s->metrics.rejected[METRICS_QUEUE_FULL]++;
        refuse(r, 503, NULL, "too much sound waits for clients that do not read");
    } else {
        return true;
    }
    r->retry_ms = max(r->retry_ms, RETRY_MS);
    return false;
}

/* Who is patient stands behind all others. */
static void enter_queue(struct speech *p)
{
    struct server *s = p->server;
    struct speech *other = TAILQ_FIRST(&s->queued);
    while (other && (p->patient || !other->patient)) {
        other = TAILQ_NEXT(other, entry);
    }
    if (other) {
        TAILQ_INSERT_BEFORE(other, p, entry);
    } else {
        TAILQ_INSERT_TAIL(&s->queued, p, entry);
    }
    s->n_queued++;
    p->queued = true;
    p->queued_at = clock_seconds();
    link_want(s);
}

struct fields_model speech_fields_model(const struct server *s)
{
    struct fields_model m = {.id = s->model_id,
        .kind = s->ready.kind_name,
        .languages = s->ready.languages,
        .n_languages = s->ready.n_languages,
        .takes_instructions = s->ready.takes_instructions,
        .default_format = ENCODE_MP3};
    for (int i = 0; i < ENCODE_FORMATS; i++) {
        if (strcmp(encode_format_name((enum encode_format)i), s->options->format) == 0) {
            m.default_format = (enum encode_format)i;
        }
    }
    return m;
}

static void write_opening(struct speech *p, const struct serve_options *options, const struct fields *f,
    const struct voices_found *voice)
{
    struct wire_open open = {.voice_name = voice->preset,
        .voice_file = voice->file[0] ? voice->file : NULL,
        .language = f->language,
        .instruct = f->instructions,
        .layout = f->layout,
        .seed = f->seed,
        .max_frames = f->max_frames,
        .live = p->live,
        .markup = f->markup,
        .spell_out = f->spell_out,
        .plain = !options->control_tokens,
        .words = p->words};
    memcpy(open.sampling, f->sampling, sizeof open.sampling);
    wire_put_open(&p->opening, p->id, &open);
}

struct speech *speech_start(struct server *s, const struct speech_request *request,
    const struct speech_sink *sink, void *user, struct refusal *refusal)
{
    struct voices_found voice;
    const struct fields *fields = request->fields;
    if (!voices_find(s, fields, &voice, refusal) || !admit(s, request, refusal)) {
        return NULL;
    }
    struct speech *p = memory_new(1, sizeof *p);
    if (p) {
        p->encoder = encode_new(&fields->sound, s->ready.sample_rate);
        p->id = ++s->next_id;
        p->live = fields->streaming != FIELDS_WHOLE && request->endpoint != METRICS_BATCH;
        p->words = fields->words && sink->words;
        write_opening(p, s->options, fields, &voice);
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
    p->patient = request->patient;
    s->metrics.unknown_fields += (uint64_t)fields->n_unknown;
    enter_queue(p);
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
    for (struct speech *p = TAILQ_FIRST(&s->queued), *after;
         p && link_out(s) && admission_free(s, look(s, true, clock_seconds()).promised) > 0;
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
    p->text_bytes += n;
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
    if (p) {
        p->held = held;
        speech_steer(p);
    }
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
    if (!p) {
        return;
    }
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

double speech_seconds(const struct speech *p)
{
    return p->made_s;
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
    p->end.audio_s = p->made_s;
    if (done->n_frames == 0) {
        speech_fail(
            p, 500, "the model ended the speech before its first sound (another seed may help)");
        return;
    }
    if (p->end.finish == UTTER_FINISH_EOS) {
        admission_learn(p->server, p->text_bytes, p->made_s);
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
    if (m->kind == WIRE_PCM || m->kind == WIRE_WORDS) {
        m->kind == WIRE_PCM ? speech_samples(p, m) : speech_take_words(p, m);
        return;
    }
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

static struct speech *find_queued(const struct server *s, uint32_t last)
{
    struct speech *p = TAILQ_FIRST(&s->queued);
    while (p && (int32_t)(p->id - last) > 0) {
        p = TAILQ_NEXT(p, entry);
    }
    return p;
}

/* Those that wait now, not what their ends may start. */
static void fail_queued(struct server *s, const char *why)
{
    struct speech *p;
    const uint32_t last = s->next_id;
    while ((p = find_queued(s, last))) {
        s->metrics.rejected[METRICS_NOT_READY]++;
        leave_queue(p);
        speech_fail(p, 503, why);
    }
}

void speech_worker_lost(struct server *s, const char *unopened)
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
    if (unopened) {
        fail_queued(s, unopened);
    }
}

/* A queued speech that will not be made: it has waited too long, or memory ran out for a piece of its text. */
static struct speech *find_hopeless(const struct server *s, double now)
{
    struct speech *p = TAILQ_FIRST(&s->queued);
    while (p && !p->text.failed && now - p->queued_at <= admission_most_wait(s, p->patient)) {
        p = TAILQ_NEXT(p, entry);
    }
    return p;
}

/* A running speech whose client reads its sound so slowly that the lane would be kept for hours. */
static struct speech *find_slow(const struct server *s, double now)
{
    struct speech *p = TAILQ_FIRST(&s->running);
    while (p && !(speech_is_wanted(p) && p->held && p->first_samples > 0 &&
                    now - p->first_samples > SLOW_S + 2 * p->made_s)) {
        p = TAILQ_NEXT(p, entry);
    }
    return p;
}

void speech_tick(struct server *s, double now)
{
    struct speech *p;
    const struct admission_now as_it_is = look(s, true, now);
    admission_tick(s, &as_it_is);
    if (s->is_waking) {
        TAILQ_FOREACH(p, &s->queued, entry)
        {
            p->queued_at = now; /* it waits for a model, not for those who have the lanes */
        }
    }
    /* Telling a client that its speech has failed may start another speech, which changes the lists: each search
     * begins anew. */
    while ((p = find_hopeless(s, now))) {
        bool cut = p->text.failed;
        s->metrics.rejected[METRICS_QUEUE_FULL] += !cut;
        leave_queue(p);
        speech_fail(p, 503,
            cut            ? "out of memory"
            : !s->is_ready ? "the model is being opened"
                           : "no lane became free in time");
    }
    while ((p = find_slow(s, now))) {
        s->metrics.dropped_stalled++;
        speech_fail_running(p, 408, "the sound is taken at less than half of the pace of hearing");
    }
}
