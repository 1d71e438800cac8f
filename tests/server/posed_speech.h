/* SPDX-License-Identifier: Apache-2.0
 * Speeches on two workers that are only posed, each a socket: what the test says for a worker comes to the speeches at
 * once, and what a worker is told is read at the other end. The clock is the test's own. */
#ifndef TESTS_SERVER_POSED_SPEECH_H
#define TESTS_SERVER_POSED_SPEECH_H

#include "tests/server/happened.h"
#include "tests/server/posed_clock.h"
#include "tests/server/posed_link.h"

#include "server/loop/account.h"
#include "server/speech/admission.h"
#include "server/speech/speech_parts.h"
#include "server/speech/words.h"

/* BEGAN: from there on the clock tells eighths of a second exactly. */
enum { RATE = 8000, LANES = 4, BEGAN = 1024 };

/* Who asks for a speech, and what of it was told last. */
struct asker {
    const char *name;
    struct speech *speech;
    struct speech_end end;
    void (*does)(void); /* when it has heard of the end; NULL: nothing */
};

static struct refusal refusal;

static inline void on_bytes(void *user, const void *bytes, size_t n)
{
    (void)bytes;
    note("%s: %zu bytes|", ((struct asker *)user)->name, n);
}

/* "name: good" with the seconds of its sound, or the status, the code and the sentence. */
static inline void on_end(void *user, const struct speech_end *e)
{
    struct asker *a = user;
    if (e->good) {
        note("%s: good %g s|", a->name, e->audio_s);
    } else {
        note("%s: %d%s%s %s|", a->name, e->refusal.status, e->refusal.code ? " " : "",
            e->refusal.code ? e->refusal.code : "", e->refusal.message);
        assert_int_equal(e->finish, UTTER_FINISH_ERROR);
        assert_int_equal(e->refusal.retry_ms, e->refusal.status == 503 ? 1000 : 0);
    }
    a->end = *e;
    a->speech = NULL;
    if (a->does) {
        a->does();
    }
}

static inline void on_words(void *user, const struct speech_words *words)
{
    note("%s: words", ((struct asker *)user)->name);
    for (size_t i = 0; i < words->n; i++) {
        note(" %zu+%zu %g-%g", words->at[i].at, words->at[i].bytes, words->at[i].start_s,
            words->at[i].end_s);
    }
    note("|");
}

static const struct speech_sink sink = {on_bytes, on_end, on_words};

/* The first so many workers are ready. */
static inline void begin_speeches(int n_ready)
{
    begin();
    now_s = BEGAN;
    happened[0] = 0;
    options.queue = 8;
    options.patience_ms = 500;
    options.paced = true;
    options.format = "pcm";
    s.ready = (struct wire_ready){
        .kind_name = "voice_design", .sample_rate = RATE, .frame_samples = RATE / 10};
    s.was_ready = true;
    TAILQ_INIT(&s.queued);
    TAILQ_INIT(&s.background.queued);
    admission_begin(&s);
    for (int i = 0; i < n_ready; i++) {
        pose(&links[i]);
        links[i].is_ready = true;
        links[i].heard = BEGAN;
        links[i].lanes = links[i].beat.capacity = LANES;
    }
}

static inline void end_speeches(struct asker *askers, int n)
{
    for (int i = 0; i < n; i++) {
        speech_cancel(askers[i].speech);
    }
    for (int i = 0; i < LINKS; i++) {
        link_close(&links[i]);
        speech_worker_lost(&links[i], NULL);
    }
    assert_true(s.n_running == 0 && s.n_queued == 0);
    assert_true(s.background.n_running == 0 && s.background.n_queued == 0);
    end();
}

/* ---- What is asked ---- */

static const struct fields plain = {.sound = {ENCODE_PCM, 1, 1, 0}};

/* False: it is refused. */
static inline bool ask_as(struct asker *a, const char *name, const struct fields *fields, bool patient,
    struct account *account)
{
    const struct speech_request request = {
        fields, METRICS_SPEECH, clock_seconds(), account, name, "", patient, NULL};
    *a = (struct asker){.name = name};
    refusal = (struct refusal){0};
    a->speech = speech_start(&s, &request, &sink, a, &refusal);
    return a->speech != NULL;
}

static inline bool ask(struct asker *a, const char *name)
{
    return ask_as(a, name, &plain, false, NULL);
}

static inline void say(const struct asker *a, const char *text)
{
    speech_text(a->speech, text, strlen(text));
}

/* It asks, and gives all of its text. */
static inline void ask_for(struct asker *a, const char *name, const char *text)
{
    assert_true(ask(a, name));
    say(a, text);
    speech_finish(a->speech);
}

/* ---- What workers are told, and say ---- */

/* "open 1|text 1 abc|...", of this worker, since it was asked last. */
static inline const char *told(struct link *l)
{
    static const char *const kinds[] = {
        "", "hello", "open", "text", "finish", "cancel", "pause", "resume"};
    static char all[1000];
    static uint8_t bytes[1 << 16];
    struct wire_message m;
    size_t used, at = 0;
    for (int i = 0; i < 4; i++) {
        event_base_loop(s.base, EVLOOP_NONBLOCK);
    }
    const ssize_t n = recv(far[l->number], bytes, sizeof bytes, MSG_DONTWAIT);
    all[0] = 0;
    while (n > 0 && wire_read(&m, bytes + at, (size_t)n - at, &used) == WIRE_MESSAGE) {
        assert_true(m.kind <= WIRE_RESUME && strlen(all) < 900);
        sprintf(all + strlen(all), "%s %u%s%.*s|", kinds[m.kind], m.id, m.kind == WIRE_TEXT ? " " : "",
            m.kind == WIRE_TEXT ? (int)m.bytes : 0, (const char *)m.body);
        at += used;
    }
    return all;
}

/* All that `out` holds comes from this worker. */
static inline void hear(struct link *l, struct wire_out *out)
{
    struct wire_message m;
    size_t used;
    assert_false(out->failed);
    for (size_t at = 0; at < out->n; at += used) {
        assert_int_equal(wire_read(&m, out->bytes + at, out->n - at, &used), WIRE_MESSAGE);
        speech_message(l, &m);
    }
    wire_fini(out);
}

static inline void hear_sound(struct link *l, uint32_t id, double seconds)
{
    static float pcm[4 * RATE];
    struct wire_out out = {0};
    assert_true(seconds <= 4);
    wire_message(&out, WIRE_PCM, id, pcm, (size_t)(seconds * RATE) * sizeof *pcm);
    hear(l, &out);
}

static inline void hear_done(struct link *l, uint32_t id, enum utter_finish finish, int n_frames)
{
    const struct wire_done done = {
        .finish = (int)finish, .n_frames = n_frames, .n_text_tokens = 7, .n_pieces = 1};
    struct wire_out out = {0};
    wire_put_done(&out, id, &done);
    hear(l, &out);
}

static inline void hear_failed(struct link *l, uint32_t id, utter_status status, const char *why)
{
    struct wire_out out = {0};
    wire_put_failed(&out, id, status, why);
    hear(l, &out);
}

/* A message that has a body of three bytes, or none. */
static inline void hear_odd(struct link *l, uint32_t id, enum wire_kind kind, bool has_body)
{
    struct wire_out out = {0};
    wire_message(&out, kind, id, "odd", has_body ? 3 : 0);
    hear(l, &out);
}

#endif
