/* SPDX-License-Identifier: Apache-2.0
 * A small checkpoint behind the CPU backend's door, and prompts for it: shared by the tests of the door. */
#ifndef TESTS_CPU_BACKEND_RUN_H
#define TESTS_CPU_BACKEND_RUN_H

#include "tests/support.h"

#include "tests/backend_rows.h"

#define MODEL "build/checkpoints/tiny17-custom_voice"

enum { N_ROWS = 150, N_FRAMES = 6 };

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

static inline void start(struct backend *b, const struct config *c, int lane, int kind)
{
    struct row rows[N_ROWS];
    make_rows(c, kind, rows, N_ROWS);
    assert_int_equal(cpu->lane_reset(b, lane, &SETTINGS, NULL), UTTER_OK);
    assert_int_equal(cpu->prefill(b, lane, rows, N_ROWS - kind * 3, NULL), UTTER_OK);
}

#endif
