/* SPDX-License-Identifier: Apache-2.0
 * Speech in which a call of the CUDA runtime may fail, by tests/cuda/host/runtime/faults.h: what is said is what is
 * said without, or ends with the reason, and then only the lane that is concerned; what was refused once in prompts,
 * frames and their sound is tried again, so that no lane ends; behind it the same can be said. Each
 * time the model is opened anew, by the same kernels. Usage: check_faults [-k KERNELS] [-w WEIGHTS] [-g] [-n TIMES]
 * EXPECTED CHECKPOINT: the bits of what is said are written to the file EXPECTED, or compared with it where there is
 * one; -: no file; -w: q8, q4; -g: what fails once may fail for good; -n: in all, 2. Ends with `N passed, N failed`. */
#include <cuda_runtime_api.h>

#include "tests/cuda/bits.h"
#include "tests/cuda/drive_backend.h"

enum { LANES = 3, FRAMES = 2, PROMPT = 20, SNAPSHOT = 10, HEARD = 1920 * 2, MOST_CODES = 64 };

static const char *kernels;
static enum dtype packed = DTYPE_BF16; /* what weights are packed to; bf16: they are not */
static bool for_good;
static int n_times = 2;

/* What has been said, a sum of bits for each lane; of lane LANES: of the recording. */
struct said {
    uint64_t bits[LANES + 1];
    utter_status ended[LANES + 1]; /* not 0: with an error, that has been told */
    bool untold;                   /* one that has no reason, or another than before */
    bool refused;                  /* what should have been tried again was not */
    utter_error first;             /* that concerns all */
    char used[8];                  /* kernels */
};

/* True when the lane may go on. Lane -1: all. */
static bool goes(struct said *s, int lane, utter_status status, const utter_error *error)
{
    if (!status) {
        return true;
    }
    s->untold = s->untold || error->code != status || !error->text[0];
    for (int i = 0; i <= LANES; i++) {
        if (lane < 0 || i == lane || status == UTTER_E_DEVICE) {
            s->ended[i] = s->ended[i] ? s->ended[i] : status;
        }
    }
    if (status == UTTER_E_DEVICE) { /* the same again and again */
        s->untold = s->untold || (s->first.code && strcmp(s->first.text, error->text) != 0);
        s->first = *error;
    }
    return false;
}

/* The same for what is tried again where it was refused. */
static bool goes_again(struct said *s, int lane, utter_status status, const utter_error *error)
{
    s->refused = s->refused || (status == UTTER_E_MEMORY && !for_good);
    return goes(s, lane, status, error);
}

/* ---- Parts of it ---- */

static void begin(struct run *r, int lane, struct said *s)
{
    utter_error error = {0};
    struct row rows[PROMPT];
    const struct lane_settings settings = {{0.9f, 50, 1, 1.05f}, {0.9f, 50, 1, 1}, 5, 1 << 20};
    make_rows(r->config, lane, rows, PROMPT);
    if (goes(s, lane, r->ops->lane_reset(r->b, lane, &settings, &error), &error)) {
        goes_again(s, lane, r->ops->prefill(r->b, lane, rows, PROMPT - lane, &error), &error);
    }
}

/* The beginning of a lane, and the lane anew from there. */
static void keep(struct run *r, int lane, struct said *s)
{
    utter_error error = {0};
    struct row rows[PROMPT];
    struct backend_snapshot *snapshot = NULL;
    const struct lane_settings settings = {{0.9f, 50, 1, 1.05f}, {0.9f, 50, 1, 1}, 5, 1 << 20};
    make_rows(r->config, lane, rows, PROMPT);
    if (goes(s, lane, r->ops->lane_keep(r->b, lane, SNAPSHOT, true, &snapshot, &error), &error) &&
        goes(s, lane, r->ops->lane_reset(r->b, lane, &settings, &error), &error) &&
        goes(s, lane, r->ops->lane_resume(r->b, lane, snapshot, &error), &error)) {
        goes_again(s, lane,
            r->ops->prefill(r->b, lane, rows + SNAPSHOT, PROMPT - lane - SNAPSHOT, &error), &error);
    }
    r->ops->snapshot_free(r->b, &snapshot);
}

/* A frame of all lanes below n that have not ended, with its sound. */
static void speak(struct run *r, int n, int t, struct said *s)
{
    struct frame_in in[LANES];
    int lanes[LANES], m = 0;
    utter_error error = {0};
    for (int i = 0; i < n; i++) {
        if (!s->ended[i] && goes(s, i, r->ops->room(r->b, i, &error), &error)) {
            lanes[m] = i;
            in[m++] = (struct frame_in){i, text_of(r->config, i, t), NULL};
        }
    }
    utter_status status = m > 0 ? r->ops->frame(r->b, in, m, &error) : UTTER_OK;
    status = status || m == 0 ? status : r->ops->vocode(r->b, lanes, m, &error);
    for (int k = 0; k < m && !status; k++) {
        struct lane_out out;
        if (!(status = r->ops->collect(r->b, lanes[k], &out, &error))) {
            uint64_t *sum = &s->bits[lanes[k]];
            *sum = bits_of(*sum, out.codes, (size_t)r->config->n_codebooks * sizeof *out.codes);
            *sum = out.pcm ? bits_of(*sum, out.pcm, out.n_samples * sizeof *out.pcm) : *sum;
        }
    }
    for (int k = 0; k < m && status; k++) {
        goes_again(s, lanes[k], status, &error);
    }
}

/* A recording, where the checkpoint takes one. */
static void hear(struct run *r, struct said *s)
{
    static float pcm[HEARD];
    int32_t codes[MOST_CODES * MAX_CODEBOOKS];
    size_t n_frames = 0;
    utter_error error = {0};
    for (int i = 0; i < HEARD; i++) {
        pcm[i] = (float)(i % 97) / 97 - 0.5f;
    }
    const utter_status status =
        r->ops->encode(r->b, pcm, HEARD, codes, MOST_CODES, &n_frames, NULL, NULL, &error);
    if (status != UTTER_E_MODEL && goes(s, LANES, status, &error)) {
        s->bits[LANES] = bits_of(1, codes, n_frames * (size_t)r->config->n_codebooks * sizeof *codes);
    }
}

/* How likely what lane 0 has said is; it is good for nothing else then. */
static void weigh(struct run *r, struct said *s)
{
    utter_error error = {0};
    struct row rows[PROMPT];
    int32_t codes[PROMPT];
    struct likelihood likelihoods[PROMPT];
    const struct lane_settings settings = {{0.9f, 50, 1, 1.05f}, {0.9f, 50, 1, 1}, 5, 1 << 20};
    make_rows(r->config, 0, rows, PROMPT);
    for (int i = 0; i < PROMPT; i++) {
        codes[i] = i % 5 == 0 ? -1 : i;
        likelihoods[i] = (struct likelihood){0};
    }
    if (!s->ended[0] && goes(s, 0, r->ops->lane_reset(r->b, 0, &settings, &error), &error) &&
        goes(s, 0, r->ops->weigh(r->b, 0, rows, PROMPT, codes, likelihoods, &error), &error)) {
        s->bits[0] = bits_of(s->bits[0], likelihoods, sizeof likelihoods);
    }
}

static void say_all(const struct model *model, struct said *s)
{
    utter_error error = {0};
    struct run r = {&cuda_backend, NULL, model->config};
    const struct backend_options options = {
        .n_lanes = LANES, .lane_positions = 128, .cpu_kernels = kernels};
    *s = (struct said){0};
    if (!goes(s, -1, r.ops->open(&r.b, model, &options, &error), &error)) {
        return;
    }
    const char *used, *all;
    int n_threads;
    r.ops->kernels(r.b, &used, &all, &n_threads);
    snprintf(s->used, sizeof s->used, "%.5s", used);
    begin(&r, 0, s);
    begin(&r, 1, s);
    for (int t = 0; t < FRAMES; t++) {
        speak(&r, t == 0 ? 2 : LANES, t, s);
        if (t == 0) {
            begin(&r, 2, s);
            if (!s->ended[2]) {
                keep(&r, 2, s);
            }
            hear(&r, s);
        }
    }
    weigh(&r, s);
    r.ops->close(&r.b);
}

/* ---- What was expected ---- */

static bool read_expected(const char *path, uint64_t *bits)
{
    FILE *f = fopen(path, "rb");
    const bool good = f && fread(bits, sizeof *bits, LANES + 1, f) == LANES + 1;
    if (f) {
        fclose(f);
    }
    return good;
}

static bool write_expected(const char *path, const uint64_t *bits)
{
    FILE *f = fopen(path, "wb");
    const bool good = f && fwrite(bits, sizeof *bits, LANES + 1, f) == LANES + 1;
    return f && fclose(f) == 0 && good;
}

/* Each lane is as expected, or has ended with a reason; *whole: none has ended. */
static bool is_right(const struct said *s, const uint64_t *want, bool *whole)
{
    bool right = !s->untold && !s->refused;
    *whole = true;
    for (int i = 0; i <= LANES; i++) {
        right = right && (s->ended[i] || s->bits[i] == want[i]);
        *whole = *whole && !s->ended[i];
    }
    return right;
}

/* An error that stays however often it is read: the device is gone for this process. */
static bool is_lost(void)
{
    cudaGetLastError();
    return cudaGetLastError() != cudaSuccess;
}

static void check(const char *expected)
{
    struct model *model;
    struct said first, later = {0};
    uint64_t want[LANES + 1];
    utter_error error;
    bool whole, again, back = true;
    int n = 1;
    if (!said(model_open(&model, folder, &error), &error, "model") ||
        (packed != DTYPE_BF16 && !said(model_pack(model, packed, 0, &error), &error, "pack"))) {
        return;
    }
    say_all(model, &first);
    if (!read_expected(expected, want)) {
        memcpy(want, first.bits, sizeof want);
        if (strcmp(expected, "-") != 0) {
            result(write_expected(expected, want), "%s is written", expected);
        }
    }
    const bool right = is_right(&first, want, &whole);
    for (; n < n_times && back; n++) { /* what fails once does not any more */
        say_all(model, &later);
        back = is_right(&later, want, &again) && (again || for_good || later.first.code) &&
               (!whole || is_lost() || strcmp(first.used, later.used) == 0);
    }
    result(right && back,
        "%s (%s): lanes ended with %d %d %d, the recording with %d%s%s; at last, %d times: %d %d %d, "
        "%d%s; %s; %s",
        kernels ? kernels : "unasked", first.used, first.ended[0], first.ended[1], first.ended[2],
        first.ended[LANES],
        first.untold    ? ", untold"
        : first.refused ? ", not tried again"
                        : "",
        right ? "" : ", not as expected", n, later.ended[0], later.ended[1], later.ended[2],
        later.ended[LANES], back ? "" : ", not as expected", first.first.text, later.first.text);
    model_close(&model);
}

int main(int argc, char **argv)
{
    const char *expected = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-k") == 0 && i + 1 < argc) {
            kernels = argv[++i];
        } else if (strcmp(argv[i], "-w") == 0 && i + 1 < argc) {
            packed = strcmp(argv[++i], "q8") == 0 ? DTYPE_Q8 : DTYPE_Q4;
        } else if (strcmp(argv[i], "-n") == 0 && i + 1 < argc) {
            n_times = atoi(argv[++i]);
        } else if (strcmp(argv[i], "-g") == 0) {
            for_good = true;
        } else if (!expected) {
            expected = argv[i];
        } else {
            folder = argv[i];
            check(expected);
        }
    }
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed > 0 || n_passed == 0;
}
