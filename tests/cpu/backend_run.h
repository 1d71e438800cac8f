/* SPDX-License-Identifier: Apache-2.0
 * A small checkpoint behind the CPU backend's door, and prompts for it: shared by the tests of the door. */
#ifndef TESTS_CPU_BACKEND_RUN_H
#define TESTS_CPU_BACKEND_RUN_H

#include "tests/support.h"

#include "model/backend.h"

#define MODEL "build/checkpoints/tiny17-custom_voice"

enum { N_ROWS = 150, N_FRAMES = 6, MAX_CODEBOOKS = 16 };

static const struct backend_ops *const cpu = &cpu_backend;

/* Sampling at every head, so that the generator counts too. */
static const struct lane_settings SETTINGS = {
    .talker = {0.9f, 20, 0.95f, 1.05f}, .predictor = {0.9f, 20, 1, 1}, .seed = 5, .min_frames = 2};

static inline struct model *open_model(const char *folder)
{
    struct model *model;
    utter_error error;
    if (model_open(&model, folder, &error)) {
        fail_msg("%s", error.text);
    }
    return model;
}

static inline struct backend *open_backend(const struct model *model, int n_lanes, int n_threads)
{
    struct backend *b;
    utter_error error;
    struct backend_options options = {
        .n_lanes = n_lanes, .n_threads = n_threads, .lane_positions = N_ROWS + 2 * N_FRAMES};
    if (cpu->open(&b, model, &options, &error)) {
        fail_msg("%s", error.text);
    }
    return b;
}

/* Rows of every kind. `kind` makes one prompt differ from another. */
static inline void make_rows(const struct config *c, int kind, struct row *rows, int n)
{
    static float vector[4096];
    static int32_t codes[MAX_CODEBOOKS];
    for (int i = 0; i < c->talker.width; i++) {
        vector[i] = (float)(i % 7) * 0.1f - 0.3f;
    }
    for (int i = 0; i < c->n_codebooks; i++) {
        codes[i] = (i * 5 + 1) % c->predictor_vocabulary;
    }
    for (int i = 0; i < n; i++) {
        int text = (i * 37 + kind * 11) % c->text_vocabulary;
        rows[i] = (struct row){.text = i % 5 == 0 ? c->tts_pad : text};
        rows[i].codec = (enum row_codec)(i % 4);
        rows[i].id = (i * 13 + kind) % c->codec_vocabulary;
        rows[i].vector = vector;
        rows[i].codes = codes;
        if (i % 11 == 10 && rows[i].codec != ROW_NONE) {
            rows[i].text = -1;
        }
    }
}

static inline void start(struct backend *b, const struct config *c, int lane, int kind)
{
    struct row rows[N_ROWS];
    make_rows(c, kind, rows, N_ROWS);
    assert_int_equal(cpu->lane_reset(b, lane, &SETTINGS, NULL), UTTER_OK);
    assert_int_equal(cpu->prefill(b, lane, rows, N_ROWS - kind * 3, NULL), UTTER_OK);
}

/* The text that joins frame t: real text, then padding. */
static inline int32_t text_of(const struct config *c, int kind, int t)
{
    return t < 4 ? (t * 91 + kind) % c->text_vocabulary : c->tts_pad;
}

#endif
