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
#include "server/loop/log.h"
#include "server/speech/admission.h"
#include "server/speech/voices.h"

enum { MAX_TRIES = 2 };
static const char all_out[] = "all workers have been taken out of service",
                  worker_ended[] = "the worker ended while it spoke (ask again)";

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
    wire_fini(&p->opening);
    wire_fini(&p->text);
    wire_fini(&p->samples);
    wire_fini(&p->job_in);
    wire_fini(&p->job_out);
    memory_free(p);
}

void speech_leave_queue(struct speech *p)
{
    struct server *s = p->server;
    TAILQ_REMOVE(p->background ? &s->background.queued : &s->queued, p, entry);
    *(p->background ? &s->background.n_queued : &s->n_queued) -= 1;
    p->queued = false;
}

static void count_lane(const struct speech *p, int change)
{
    struct server *s = p->server;
    *(p->background ? &p->link->n_background : &p->link->n_running) += change;
    *(p->background ? &s->background.n_running : &s->n_running) += change;
}

void speech_leave_lane(struct speech *p)
{
    TAILQ_REMOVE(&p->link->running, p, entry);
    count_lane(p, p->is_cut ? 0 : -1);
    p->link = NULL;
}

/* Nothing refers to it any more: not the worker, not a thread, not who asked. */
void speech_free_if_done(struct speech *p)
{
    if (p->sink == &no_sink && !p->queued && !p->link && !p->job_runs) {
        struct server *s = p->server;
        speech_free(p);
        server_check_drained(s);
    }
}

void speech_tell_end(struct speech *p)
{
    const struct speech_sink *sink = p->sink;
    p->end.total_s = clock_seconds() - p->read_at;
    p->end.n_samples = p->end.good ? encode_samples(p->encoder) : 0; /* else it may be at work */
    p->sink = &no_sink;
    speech_count_end(p);
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
    speech_fail_as(p, status, NULL, why);
}

void speech_fail_as(struct speech *p, int status, const char *code, const char *why)
{
    if (speech_is_wanted(p)) {
        p->end.good = false;
        refuse(&p->end.refusal, status, NULL, "%s", why);
        p->end.refusal.code = code;
        p->end.refusal.retry_ms = status == 503 ? RETRY_MS : 0;
        p->end.finish = UTTER_FINISH_ERROR;
        speech_tell_end(p);
    } else {
        speech_free_if_done(p);
    }
}

/* ---- Admission ---- */

bool speech_is_full(const struct server *s)
{
    const struct admission_now now = speech_look(s, false, clock_seconds());
    return admission_is_full(s, &now);
}

static bool admit(struct server *s, const struct speech_request *request, struct refusal *r)
{
    const struct admission_now now = speech_look(s, request->patient, clock_seconds());
    if (request->account && !account_admit(request->account, now.time, r)) {
        s->metrics.rejected[METRICS_RATE]++;
        return false;
    }
    if (s->draining) {
        s->metrics.rejected[METRICS_DRAINING]++;
        refuse(r, 503, NULL, "the server is about to stop");
    } else if (links_out(s)) {
        s->metrics.rejected[METRICS_NOT_READY]++;
        refuse(r, 503, NULL, "%s", all_out);
    } else if (request->fields->background && !speech_background_admit(s, r)) {
        s->metrics.rejected[METRICS_BACKGROUND_FULL]++;
    } else if (!request->fields->background && !admission_take(s, request->patient, &now, r)) {
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
    struct speech *other = p->background ? NULL : TAILQ_FIRST(&s->queued);
    while (other && (p->patient || !other->patient)) {
        other = TAILQ_NEXT(other, entry);
    }
    if (other) {
        TAILQ_INSERT_BEFORE(other, p, entry);
    } else {
        TAILQ_INSERT_TAIL(p->background ? &s->background.queued : &s->queued, p, entry);
    }
    *(p->background ? &s->background.n_queued : &s->n_queued) += 1;
    p->queued = true;
    p->queued_at = clock_seconds();
    links_want(s);
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
        .carry = f->carry,
        .plain = !options->control_tokens,
        .words = p->words,
        .background = p->background};
    memcpy(open.sampling, f->sampling, sizeof open.sampling);
    p->beginning = speech_beginning(&open);
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
        p->id = s->next_id + 1;
        p->background = fields->background;
        p->live =
            !p->background && fields->streaming != FIELDS_WHOLE && request->endpoint != METRICS_BATCH;
        p->words = fields->words && sink->words;
        write_opening(p, s->options, fields, &voice);
    }
    if (!p || !p->encoder || p->opening.failed) {
        p ? speech_free(p) : (void)0;
        refuse(refusal, 503, NULL, "out of memory");
        return NULL;
    }
    p->server = s;
    s->next_id = p->id;
    if (request->account) {
        p->account = account_share(request->account);
        account_count(request->account, clock_seconds());
    }
    snprintf(p->request, sizeof p->request, "%s", request->id);
    snprintf(p->client, sizeof p->client, "%s", request->client);
    p->sink = sink;
    p->user = user;
    p->endpoint = p->background ? METRICS_BACKGROUND : request->endpoint;
    p->read_at = request->read_at;
    p->speed = fields->sound.speed;
    p->patient = request->patient;
    p->trace = request->trace ? *request->trace : (struct trace){.trace_id = ""};
    s->metrics.unknown_fields += (uint64_t)fields->n_unknown;
    enter_queue(p);
    return p;
}

/* ---- To the worker ---- */

void speech_send(struct speech *p, struct link *l)
{
    if (!p->background) {
        speech_background_yield(l);
    }
    struct wire_out *out = link_out(l);
    if (!out) { /* there was no memory to tell the worker of the lane that is given back */
        return;
    }
    speech_leave_queue(p);
    TAILQ_INSERT_TAIL(&l->running, p, entry);
    p->link = l;
    speech_begins(p);
    count_lane(p, 1);
    p->tries++;
    p->moved_at = clock_seconds(); /* its text, however old, has only now come to a lane */
    p->end.queue_s = p->moved_at - p->read_at;
    if (!p->background) {
        histogram_add(&p->server->metrics.queue_wait, p->end.queue_s);
    }
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
    link_send(l);
}

void speech_dispatch(struct server *s)
{
    struct link *l;
    for (struct speech *p = TAILQ_FIRST(&s->queued), *after;
         p && (l = speech_place(p, clock_seconds())); p = after) {
        after = TAILQ_NEXT(p, entry);
        if (!p->text.failed) { /* half of a text is not spoken */
            speech_send(p, l);
        }
    }
    speech_background_dispatch(s);
}

/* Where messages about it go; NULL: nobody there has use for one. */
static struct wire_out *out_of(const struct speech *p)
{
    return p->link && !p->ended ? link_out(p->link) : NULL;
}

/* Sends a message about a speech that has a lane. */
void speech_send_one(struct speech *p, enum wire_kind kind, const void *body, size_t n)
{
    struct wire_out *out = out_of(p);
    if (out) {
        wire_message(out, kind, p->id, body, n);
        link_send(p->link);
    }
}

/* To its lane, or to one if it has none. */
static void pass_on(struct speech *p, enum wire_kind kind, const void *body, size_t n)
{
    speech_background_still(p->server); /* before the listeners' worker moves */
    p->queued ? speech_dispatch(p->server) : speech_send_one(p, kind, body, n);
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
        speech_send_one(p, paused ? WIRE_PAUSE : WIRE_RESUME, NULL, 0);
    }
}

void speech_hold(struct speech *p, bool held)
{
    if (p) {
        p->held = held;
        speech_steer(p);
    }
}

void speech_cancel(struct speech *p)
{
    if (!p) {
        return;
    }
    p->stage = p->queued               ? METRICS_QUEUED
               : p->first_samples <= 0 ? METRICS_FIRST
               : p->held               ? METRICS_PAUSED
                                       : METRICS_STREAMING;
    p->sink = &no_sink;
    release_account(p); /* who cancels may ask again at once */
    p->cancelled_at = clock_seconds();
    speech_count_cancelled(p);
    if (p->queued) {
        speech_leave_queue(p);
        speech_count_freed(p, 0);
    }
    if (p->link) { /* its lane keeps it */
        speech_send_one(p, WIRE_CANCEL, NULL, 0);
    } else {
        speech_free_if_done(p);
    }
}

/* What the worker still makes of it is not wanted. */
void speech_fail_running(struct speech *p, int status, const char *why)
{
    struct link *l = p->link;
    struct wire_out *out = out_of(p);
    uint32_t id = p->id;
    speech_fail(p, status, why); /* and may be freed */
    if (out && out == link_out(l)) {
        wire_message(out, WIRE_CANCEL, id, NULL, 0);
        link_send(l);
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

static struct speech *find_running(const struct link *l, uint32_t id)
{
    struct speech *p = TAILQ_FIRST(&l->running);
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
    speech_began(p);
    if (p->end.finish == UTTER_FINISH_EOS && !p->background) {
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

void speech_message(struct link *l, const struct wire_message *m)
{
    struct server *s = l->server;
    struct speech *p = find_running(l, m->id);
    if (!p) {
        return;
    }
    if (m->kind == WIRE_PCM || m->kind == WIRE_WORDS) {
        m->kind == WIRE_PCM ? speech_samples(p, m) : speech_take_words(p, m);
        return;
    }
    if (p->cancelled_at > 0) {
        speech_count_freed(p, clock_seconds() - p->cancelled_at);
    }
    speech_leave_lane(p);
    if (m->kind == WIRE_DONE && speech_is_wanted(p)) {
        take_done(p, m); /* also when it was to be cut: it was quicker */
    } else if (p->is_cut && speech_is_wanted(p)) {
        speech_background_end(p);
    } else if (m->kind == WIRE_FAILED) {
        take_failed(p, m);
    } else {
        speech_free_if_done(p);
    }
    speech_dispatch(s);
    server_check_drained(s);
}

static struct speech *find_queued(const struct speech_list *queued, uint32_t last)
{
    struct speech *p = TAILQ_FIRST(queued);
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
    while ((p = find_queued(&s->queued, last)) || (p = find_queued(&s->background.queued, last))) {
        s->metrics.rejected[METRICS_NOT_READY]++;
        speech_leave_queue(p);
        speech_fail(p, 503, why);
    }
}

void speech_worker_lost(struct link *l, const char *unopened)
{
    struct server *s = l->server;
    struct speech *p, *after;
    struct speech_list lost = TAILQ_HEAD_INITIALIZER(lost);
    TAILQ_CONCAT(&lost, &l->running, entry);
    s->n_running -= l->n_running;
    s->background.n_running -= l->n_background;
    l->n_running = l->n_background = 0;
    for (p = TAILQ_LAST(&lost, speech_list); p; p = after) {
        after = TAILQ_PREV(p, speech_list, entry);
        TAILQ_REMOVE(&lost, p, entry);
        p->link = NULL;
        p->paused = false;
        if (p->is_cut) {
            speech_background_end(p);
        } else if (p->background) { /* it may be what the worker died of: who asked decides */
            speech_fail_as(p, 503, "worker_ended", worker_ended);
        } else if (speech_is_wanted(p) && p->first_samples <= 0 && p->tries < MAX_TRIES) {
            /* Nobody has heard anything yet: the next worker begins again, and it waits anew. */
            p->queued_at = clock_seconds();
            TAILQ_INSERT_HEAD(&s->queued, p, entry);
            s->n_queued++;
            p->queued = true;
        } else {
            speech_fail(p, 503, worker_ended);
        }
    }
    if (unopened && !links_up(s)) { /* no other one opens it */
        fail_queued(s, unopened);
    }
    speech_dispatch(s);
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

static struct speech *find_slow_on(const struct link *l, double now)
{
    struct speech *p;
    TAILQ_FOREACH(p, &l->running, entry)
    {
        if (speech_is_wanted(p) && p->held && p->first_samples > 0 &&
            now - p->first_samples > SLOW_S + 2 * p->made_s) {
            return p;
        }
    }
    return NULL;
}

/* A running speech whose client reads its sound so slowly that the lane would be kept for hours. */
static struct speech *find_slow(const struct server *s, double now)
{
    struct speech *p = s->background.link ? find_slow_on(s->background.link, now) : NULL;
    LINKS_FOREACH(l, s)
    {
        p = p ? p : find_slow_on(l, now);
    }
    return p;
}

void speech_tick(struct server *s, double now)
{
    struct speech *p;
    const struct admission_now as_it_is = speech_look(s, true, now);
    admission_tick(s, &as_it_is);
    bool is_ready = links_ready(s) > 0;
    if (links_out(s)) {
        fail_queued(s, all_out);
    }
    bool is_opening = !is_ready && links_up(s);
    TAILQ_FOREACH(p, &s->queued, entry)
    {
        if (is_opening || speech_waits_for_its_own(p)) {
            p->queued_at = now; /* and not for others who have the lanes */
        }
    }
    /* Telling a client that its speech has failed may start another speech, which changes the lists: each search
     * begins anew. */
    while ((p = find_hopeless(s, now))) {
        bool cut = p->text.failed;
        s->metrics.rejected[METRICS_QUEUE_FULL] += !cut;
        speech_leave_queue(p);
        speech_fail(p, 503,
            cut         ? "out of memory"
            : !is_ready ? "the model is being opened"
                        : "no lane became free in time");
    }
    speech_background_tick(s, now);
    speech_dispatch(s); /* who did not answer may be all that is left */
    while ((p = find_slow(s, now))) {
        s->metrics.dropped_stalled++;
        speech_fail_running(p, 408, "the sound is taken at less than half of the pace of hearing");
    }
}
