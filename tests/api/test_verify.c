/* SPDX-License-Identifier: Apache-2.0
 * Verification tells of a backend whose speech, frame by frame, is not what it makes of the same codes at once. */
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

#include "api/api.h"

enum { FRAME = 1920 };

static bool speaks, bends; /* the last frames were chosen, and their sound is wrong */

static utter_status frame(struct backend *b, const struct frame_in *in, int n, utter_error *error)
{
    speaks = true;
    return cpu_backend.frame(b, in, n, error);
}

static utter_status feed(
    struct backend *b, int lane, const int32_t *codes, int n_frames, utter_error *error)
{
    speaks = false;
    return cpu_backend.feed(b, lane, codes, n_frames, error);
}

static utter_status collect(struct backend *b, int lane, struct lane_out *out, utter_error *error)
{
    static float bent[FRAME];
    utter_status status = cpu_backend.collect(b, lane, out, error);
    if (status == UTTER_OK && speaks && bends && out->pcm) {
        memcpy(bent, out->pcm, sizeof bent);
        bent[FRAME / 2] += 1e-6f;
        out->pcm = bent;
    }
    return status;
}

/* Adds the stages that failed. */
static void note(void *user, const utter_check *check)
{
    char *failed = user; /* [256] */
    if (!check->passed) {
        snprintf(failed + strlen(failed), 256 - strlen(failed), "%s: %s;", check->stage, check->detail);
    }
}

static void streamed_is_whole(void **state)
{
    (void)state;
    utter_model *model;
    utter_error error = {0};
    assert_int_equal(utter_model_open(&model, "build/checkpoints/eos-first", NULL, &error), UTTER_OK);
    struct backend_ops ops = cpu_backend;
    ops.frame = frame;
    ops.feed = feed;
    ops.collect = collect;
    model->engine.context.ops = &ops;
    for (int i = 0; i < 2; i++) {
        char failed[256] = "";
        bends = i;
        assert_int_equal(
            utter_model_verify(model, "tests/golden/eos-first.safetensors", note, failed, &error),
            UTTER_OK);
        assert_string_equal(failed,
            i ? "streamed = whole: 0 of 2 cases, first in two-frames-full: other samples;" : "");
    }
    model->engine.context.ops = &cpu_backend;
    utter_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(streamed_is_whole)};
    return cmocka_run_group_tests_name("verify", tests, NULL, NULL);
}
