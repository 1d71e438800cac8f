/* SPDX-License-Identifier: Apache-2.0
 * What the programs beside this file share that drive a backend through its door: how a result is told, rows of every
 * kind, a frame. A program sets `folder` to its checkpoint. */
#ifndef TESTS_CUDA_DRIVE_BACKEND_H
#define TESTS_CUDA_DRIVE_BACKEND_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/device/pages.h"
#include "tests/backend_rows.h"

enum { N_LANES = 5, N_ROWS = 75, PIECE = 60, N_FRAMES = 8, POSITIONS = 800 };
/* So long that each block of a lane's attention has more than one page. */
enum { LONG_ROWS = CUDA_SPLITS * CUDA_PAGE + 22 };

static int n_passed, n_failed;
static const char *folder;

__attribute__((format(printf, 2, 3))) static void result(bool good, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    printf("%s %s: ", good ? "ok  " : "FAIL", strrchr(folder, '/') ? strrchr(folder, '/') + 1 : folder);
    vprintf(format, list);
    printf("\n");
    fflush(stdout);
    va_end(list);
    n_passed += good;
    n_failed += !good;
}

/* ---- Two backends ---- */

struct run {
    const struct backend_ops *ops;
    struct backend *b;
    const struct config *config;
};

static bool said(utter_status status, const utter_error *error, const char *what)
{
    if (status) {
        result(false, "%s: %s", what, error->text);
    }
    return status == UTTER_OK;
}

static inline bool open_run(
    struct run *r, const struct backend_ops *ops, const struct model *model, int n_lanes)
{
    utter_error error;
    struct backend_options options = {.n_lanes = n_lanes, .n_threads = 0, .lane_positions = POSITIONS};
    *r = (struct run){ops, NULL, model->config};
    return said(ops->open(&r->b, model, &options, &error), &error, "open");
}

static inline bool start(
    struct run *r, int lane, int kind, const struct lane_settings *settings, int n_rows)
{
    utter_error error;
    struct row rows[LONG_ROWS];
    make_rows(r->config, kind, rows, n_rows);
    bool good = said(r->ops->lane_reset(r->b, lane, settings, &error), &error, "reset");
    for (int i = 0; i < n_rows && good; i += PIECE) { /* backends cut longer pieces as they like */
        int n = n_rows - i < PIECE ? n_rows - i : PIECE;
        good = said(r->ops->prefill(r->b, lane, rows + i, n, &error), &error, "prefill");
    }
    return good;
}

/* One frame on one lane, with its sound or without; codes go to out. False at the end of the utterance or after a
 * failure. */
static inline bool one_frame_of(
    struct run *r, int lane, int32_t text, const int32_t *forced, bool sound, struct lane_out *out)
{
    utter_error error;
    struct frame_in in = {lane, text, forced};
    return said(r->ops->frame(r->b, &in, 1, &error), &error, "frame") &&
           (!sound || said(r->ops->vocode(r->b, &lane, 1, &error), &error, "vocode")) &&
           said(r->ops->collect(r->b, lane, out, &error), &error, "collect") && !out->end;
}

static inline bool one_frame(
    struct run *r, int lane, int32_t text, const int32_t *forced, struct lane_out *out)
{
    return one_frame_of(r, lane, text, forced, true, out);
}

static const struct lane_settings GREEDY = {{0, 50, 1, 1.05f}, {0, 50, 1, 1}, 7, 2};

#endif
