/* SPDX-License-Identifier: Apache-2.0
 * An engine on a device that computes nothing, counts its calls, and says what it is told to. */
#ifndef TESTS_TOLD_H
#define TESTS_TOLD_H

#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/engine.h"

enum { FRAME = 1920, N_LANES = 3, MOST_CALLS = 400, N_CODES = 16, NEVER = 1 << 20 };

static const char MODEL[] = "build/checkpoints/tiny17-custom_voice",
                  BASE[] = "build/checkpoints/tiny06-base",
                  TEXT[] = "Hello there, friend. How are you today? It rains.";

enum call {
    CALL_RESET,
    CALL_PREFILL,
    CALL_FRAME,
    CALL_FEED,
    CALL_VOCODE,
    CALL_COLLECT,
    CALL_ROOM,
    CALL_WEIGH,
    N_CALLS
};

static struct engine engine;

/* Frame f of a lane has code 0 f, and samples of (f + 1) / 1000. */
static struct {
    int sizes[N_CALLS][MOST_CALLS], n[N_CALLS]; /* of each call: rows, lanes or frames */
    int made[N_LANES], waiting[N_LANES], ready[N_LANES], sounded[N_LANES]; /* frames */
    bool chosen[N_LANES];                   /* a frame was not collected yet */
    int end_at, bad_codes_at, bad_sound_at; /* frames; NEVER */
    enum call fails;
    int fails_at; /* the call of that number */
    utter_status failure;
    struct lane_out out; /* times, scores and likelihoods of a frame */
    int place_of_frame;  /* frames at each token, where the lane looks at some; 0: it does not go on */
    float pcm[32 * FRAME], level; /* level: 0 as said above */
    int32_t codes[N_CODES];
    struct lane_settings settings;
    int look_begin, look_end, n_watched, n_primed;
    int32_t texts[MOST_CALLS]; /* that went in with the frames of the last lane of a call */
    /* Frames that surprise, and by how many nats; what is said of the end behind each text that is weighed, the first
     * of which is the whole one where `tells_late`. */
    int surprises_at[2];
    float surprises[2], weights[4];
    bool tells_late;
    int32_t weighed[4][MOST_CALLS]; /* codes */
    int n_weighed[4], n_passes;
} fake;

static inline void renew(void)
{
    memset(&fake, 0, sizeof fake);
    fake.surprises_at[0] = fake.surprises_at[1] = NEVER;
    fake.end_at = fake.bad_codes_at = fake.bad_sound_at = NEVER;
    fake.fails = N_CALLS;
}

static inline utter_status note(enum call call, int size, utter_error *error)
{
    assert_true(fake.n[call] < MOST_CALLS);
    fake.sizes[call][fake.n[call]++] = size;
    return call == fake.fails && fake.n[call] == fake.fails_at
               ? error_set(error, fake.failure, "call %d was told to fail", fake.n[call])
               : UTTER_OK;
}

static inline utter_status fake_open(struct backend **b, const struct model *model,
    const struct backend_options *options, utter_error *error)
{
    (void)model, (void)options, (void)error;
    *b = (struct backend *)&fake;
    return UTTER_OK;
}

static inline void fake_close(struct backend **b)
{
    *b = NULL;
}

static inline utter_status fake_reset(
    struct backend *b, int lane, const struct lane_settings *settings, utter_error *error)
{
    (void)b;
    fake.made[lane] = fake.waiting[lane] = fake.ready[lane] = fake.sounded[lane] = 0;
    fake.settings = *settings;
    return note(CALL_RESET, lane, error);
}

static inline utter_status fake_prefill(
    struct backend *b, int lane, const struct row *rows, int n, utter_error *error)
{
    (void)b, (void)lane, (void)rows;
    return note(CALL_PREFILL, n, error);
}

static inline utter_status fake_frame(
    struct backend *b, const struct frame_in *in, int n, utter_error *error)
{
    (void)b;
    for (int i = 0; i < n; i++) {
        fake.made[in[i].lane]++;
        fake.waiting[in[i].lane] = 1;
        fake.chosen[in[i].lane] = true;
    }
    fake.texts[fake.n[CALL_FRAME]] = in[n - 1].text;
    return note(CALL_FRAME, n, error);
}

static inline utter_status fake_feed(
    struct backend *b, int lane, const int32_t *codes, int n_frames, utter_error *error)
{
    (void)b, (void)codes;
    fake.waiting[lane] = n_frames;
    return note(CALL_FEED, n_frames, error);
}

static inline utter_status fake_vocode(struct backend *b, const int *lanes, int n, utter_error *error)
{
    (void)b;
    for (int i = 0; i < n; i++) {
        fake.ready[lanes[i]] = fake.waiting[lanes[i]];
        fake.waiting[lanes[i]] = 0;
    }
    return note(CALL_VOCODE, n, error);
}

static inline const float *scores_at(int frame)
{
    enum { MOST_HEADS = 8, MOST_SCORES = 64 };
    static float scores[MOST_HEADS * MOST_SCORES];
    const int place = fake.place_of_frame ? frame / fake.place_of_frame : 0;
    assert_true(fake.n_watched <= MOST_HEADS);
    for (int i = 0; i < fake.n_watched * fake.out.n_scores; i++) {
        scores[i] = i % fake.out.n_scores == (place < fake.out.n_scores ? place : fake.out.n_scores - 1)
                        ? 20
                        : 0;
    }
    return scores;
}

static inline utter_status fake_collect(
    struct backend *b, int lane, struct lane_out *out, utter_error *error)
{
    (void)b;
    const bool chosen = fake.chosen[lane];
    const int frame = fake.made[lane] - 1;
    fake.chosen[lane] = false;
    *out = fake.out;
    out->codes = fake.codes;
    fake.codes[0] = frame;
    out->end = chosen && frame == fake.end_at;
    out->not_a_number = chosen && frame == fake.bad_codes_at;
    for (int i = 0; i < 2; i++) {
        out->likelihood.log_p -=
            !fake.tells_late && frame == fake.surprises_at[i] ? fake.surprises[i] : 0;
    }
    out->scores = chosen && fake.out.n_scores ? scores_at(frame) : NULL;
    if (fake.ready[lane] > 0) {
        const int n = out->end ? 0 : fake.ready[lane];
        for (int i = 0; i < n * FRAME; i++) {
            fake.pcm[i] = fake.level ? fake.level : (float)(fake.sounded[lane] + i / FRAME + 1) / 1000;
        }
        out->not_a_number |=
            fake.bad_sound_at >= fake.sounded[lane] && fake.bad_sound_at < fake.sounded[lane] + n;
        fake.sounded[lane] += n;
        out->pcm = fake.pcm;
        out->n_samples = (size_t)n * FRAME;
        fake.ready[lane] = 0;
    }
    return note(CALL_COLLECT, lane, error);
}

static inline utter_status fake_room(struct backend *b, int lane, utter_error *error)
{
    (void)b;
    return note(CALL_ROOM, lane, error);
}

static inline utter_status fake_prime(
    struct backend *b, int lane, const int32_t *codes, int n_frames, utter_error *error)
{
    (void)b, (void)lane, (void)codes, (void)error;
    fake.n_primed += n_frames;
    return UTTER_OK;
}

static inline utter_status fake_watch(
    struct backend *b, const struct talker_head *heads, int n, utter_error *error)
{
    (void)b, (void)heads, (void)error;
    fake.n_watched = n;
    return UTTER_OK;
}

static inline utter_status fake_look(
    struct backend *b, int lane, int begin, int end, utter_error *error)
{
    (void)b, (void)lane, (void)error;
    fake.look_begin = begin;
    fake.look_end = end;
    return UTTER_OK;
}

/* Of rows that no code is asked of it says what must not count. */
static inline utter_status fake_weigh(struct backend *b, int lane, const struct row *rows, int n,
    const int32_t *codes, struct likelihood *likelihoods, utter_error *error)
{
    (void)b, (void)lane, (void)rows;
    const int pass = fake.n_passes;
    const int32_t eos = engine.context.model->config->codec_eos;
    for (int i = 0; i < n; i++) {
        float log_p = codes[i] < 0 ? 1000 : codes[i] == eos ? fake.weights[pass] : 0;
        if (fake.tells_late && pass == 0 && codes[i] >= 0) {
            log_p = codes[i] == fake.surprises_at[0] ? -1 - fake.surprises[0] : -1;
        }
        likelihoods[i] = (struct likelihood){log_p, codes[i] < 0 ? 0 : -1};
        fake.weighed[pass][fake.n_weighed[pass]++] = codes[i];
        fake.n_passes += codes[i] == eos;
    }
    return note(CALL_WEIGH, n, error);
}

static inline void fake_memory(const struct backend *b, struct backend_memory *memory)
{
    (void)b;
    *memory = (struct backend_memory){0};
}

static const struct backend_ops silent_ops = {.name = "fake",
    .gathers = 4,
    .open = fake_open,
    .close = fake_close,
    .lane_reset = fake_reset,
    .prefill = fake_prefill,
    .room = fake_room,
    .frame = fake_frame,
    .feed = fake_feed,
    .vocode = fake_vocode,
    .collect = fake_collect,
    .prime = fake_prime,
    .watch = fake_watch,
    .look = fake_look,
    .memory = fake_memory};

/* ---- An engine on it ---- */

static struct backend_ops ops;
static char said[4096]; /* notes, a line each */

static inline void keep_line(void *user, const char *line)
{
    (void)user;
    strncat(said, line, sizeof said - strlen(said) - 2);
    strcat(said, "\n");
}

static inline void open_engine(const char *folder)
{
    renew();
    engine = (struct engine){.n_lanes = 0};
    ops = silent_ops;
    const struct engine_options o = {.ops = &ops, .backend = {.n_lanes = N_LANES, .n_threads = 1}};
    utter_error error = {.text = ""};
    engine_open(&engine, folder, &o, &error);
    assert_string_equal(error.text, "");
    engine.log = keep_line;
    said[0] = 0;
}

static inline utter_stream_options options_of(int max_frames)
{
    const struct config *c = engine.context.model->config;
    return (utter_stream_options){.layout = UTTER_LAYOUT_FULL,
        .talker = c->talker_sampling,
        .predictor = c->predictor_sampling,
        .max_frames = max_frames,
        .guard = true};
}

static inline utter_stream *open_stream(const utter_stream_options *o)
{
    utter_stream *s;
    utter_error error = {.text = ""};
    engine_open_stream(&s, &engine, o, &error);
    assert_string_equal(error.text, "");
    assert_int_equal(stream_text(s, TEXT, strlen(TEXT), NULL), UTTER_OK);
    assert_int_equal(stream_finish(s, NULL), UTTER_OK);
    return s;
}

static inline utter_stream *open_plain(int max_frames)
{
    const utter_stream_options o = options_of(max_frames);
    return open_stream(&o);
}

static inline int rows_of(const utter_stream *s)
{
    int n;
    assert_non_null(prompt_rows(s->prompt, &n));
    return n;
}

/* Steps until nothing moves; what is made is taken. */
static inline void run(utter_stream *s, bool together)
{
    float pcm[FRAME];
    while (engine_step(&engine, together, NULL) == UTTER_OK) {
        while (stream_drain(s, pcm, FRAME) > 0) {
        }
        s->heard_since =
            clock_seconds() + 1000; /* the listener has enough, however slow this machine is */
    }
}

static inline void check_calls(enum call call, const int *sizes, int n)
{
    assert_int_equal(fake.n[call], n);
    assert_memory_equal(fake.sizes[call], sizes, (size_t)n * sizeof *sizes);
}

#define CHECK_CALLS(call, ...)                                                                         \
    check_calls(call, (const int[]){__VA_ARGS__}, sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

#endif
