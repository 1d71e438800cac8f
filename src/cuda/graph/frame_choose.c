/* SPDX-License-Identifier: Apache-2.0
 * Which kernel makes frames: by the rule, or as asked. Comes in: a frame that has just been opened, and lanes with a
 * page of the cache each. Goes out: the persistent kernel, with those of its builds that give the graphs' scores on
 * this GPU, each with the way to bring weights that took least time, which changes no bit; or none, and why. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "cuda/device/wait.h"
#include "cuda/graph/frame_parts.h"
#include "cuda/graph/frame_rule.h"

#ifndef CUDA_TRIAL_FRAMES /* of each way to bring weights; a build for a slow device sets less */
#define CUDA_TRIAL_FRAMES 5
#define CUDA_TRIAL_WAYS FRAME_WAYS
#endif

enum {
    MOST_LANES = FRAME_MOST_LANES,
    ROWS = CUDA_FRAME_TRIAL_POSITIONS - 1, /* of a lane's prompt; a position is the frame's */
    N_TIMED = CUDA_TRIAL_FRAMES,
    N_WARM = N_TIMED / 2, /* frames before those that are timed */
    PATIENCE_PART =
        4 /* of the device's patience: nobody waits longer for a GPU on which a build hangs */
};

/* |a - b| / |b| over the scores of a head. Sums in another order differ by 1e-4 at most in what was measured, so that
 * only what has gone wrong is beyond. */
static const double MOST_APART = 1e-2;

/* Of each lane behind a frame: the talker's, and those of the last code. */
struct scores {
    float *talker, *last; /* [lanes][codec_vocabulary], [lanes][predictor_vocabulary] */
};

/* ---- Frames ---- */

static utter_status read_floats(
    struct cuda_frame *f, float *to, const float *from, int n, utter_error *error)
{
    return cuda_device_check(f->device,
        cudaMemcpy(to, from, (size_t)n * sizeof *to, cudaMemcpyDeviceToHost), "scores of a frame",
        error);
}

/* last: where those of the last code of lane 0 are, and how far the next lane's are from there. */
static utter_status read_scores(struct cuda_frame *f, int n, const float *last, int stride,
    const struct scores *to, utter_error *error)
{
    const int codec = f->weights->codec_vocabulary, predictor = f->weights->predictor_vocabulary;
    utter_status status = cuda_wait_stream(f->device, f->queue.stream, "a frame", error);
    status = status ? status : read_floats(f, to->talker, f->lanes.logits, n * codec, error);
    for (int i = 0; i < n && !status; i++) {
        status = read_floats(
            f, to->last + (ptrdiff_t)i * predictor, last + (ptrdiff_t)i * stride, predictor, error);
    }
    return status;
}

/* The first frame of n lanes, or, with a step, the one behind it. Both have the same codes given, so that the second
 * can be made again and again. */
static utter_status make_frame(struct cuda_frame *f, int n, bool step, utter_error *error)
{
    int32_t codes[MOST_LANES][CONFIG_MAX_CODEBOOKS];
    struct frame_in of[MOST_LANES];
    struct cuda_frame_in in[MOST_LANES];
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < f->weights->n_codebooks; j++) {
            codes[i][j] = (i * 31 + j * 17 + 3) % f->weights->predictor_vocabulary;
        }
        codes[i][0] %= config_suppress_from(f->model->config);
        of[i] = (struct frame_in){i, f->model->config->tts_pad, codes[i]};
        in[i] = (struct cuda_frame_in){.in = &of[i], .step = step, .position = ROWS};
    }
    return cuda_frame_run(f, in, n, false, error);
}

/* Lanes with a prompt of their own each, and what the graphs give. */
static utter_status make_reference(
    struct cuda_frame *f, int n, const struct scores *want, utter_error *error)
{
    const utter_sampling greedy = {.top_k = 1, .top_p = 1, .repetition_penalty = 1};
    const struct lane_settings settings = {.talker = greedy, .predictor = greedy};
    struct frame_kernel *kernel = f->kernel;
    utter_status status = UTTER_OK;
    f->kernel = NULL;
    for (int i = 0; i < n && !status; i++) {
        const struct row row = {.text = min(i, f->weights->text_vocabulary - 1), .codec = ROW_NONE};
        struct row rows[ROWS];
        for (int k = 0; k < ROWS; k++) {
            rows[k] = row;
        }
        status = cuda_frame_renew(f, i, &settings, error);
        status = status ? status : cuda_frame_prefill(f, i, 0, rows, ROWS, error);
    }
    for (int step = 0; step < 2 && !status; step++) {
        status = make_frame(f, n, step, error);
    }
    f->kernel = kernel;
    return status ? status
                  : read_scores(f, n, f->b.logits, f->weights->predictor_vocabulary, want, error);
}

/* ---- Scores ---- */

static bool scores_new(struct scores *s, const struct cuda_weights *w)
{
    s->talker = memory_new(MOST_LANES * (size_t)w->codec_vocabulary, sizeof *s->talker);
    s->last = memory_new(MOST_LANES * (size_t)w->predictor_vocabulary, sizeof *s->last);
    return s->talker && s->last;
}

static void scores_free(struct scores *s)
{
    memory_free(s->talker);
    memory_free(s->last);
}

static double distance(const float *a, const float *b, int n)
{
    double apart = 0, size = 1e-30;
    for (int i = 0; i < n; i++) {
        if (!(isnan(a[i]) && isnan(b[i]))) { /* of a checkpoint that has them */
            apart += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
            size += (double)b[i] * (double)b[i];
        }
    }
    return sqrt(apart / size);
}

static bool agree(
    const struct cuda_frame *f, int n, const struct scores *got, const struct scores *want)
{
    const int codec = f->weights->codec_vocabulary, predictor = f->weights->predictor_vocabulary;
    bool all = true;
    for (int i = 0; i < n && all; i++) {
        const ptrdiff_t at = (ptrdiff_t)i * codec, last = (ptrdiff_t)i * predictor;
        all = distance(got->talker + at, want->talker + at, codec) < MOST_APART &&
              distance(got->last + last, want->last + last, predictor) < MOST_APART;
    }
    return all;
}

/* ---- Trials ---- */

/* The frame of n lanes in one launch. Whether it agrees: not where the kernel is gone, as its blocks did not reach a
 * barrier in time. */
static utter_status try_build(struct cuda_frame *f, int n, const struct scores *got,
    const struct scores *want, bool *agrees, utter_error *error)
{
    const int each = f->weights->n_codebooks * f->weights->predictor_vocabulary;
    const float *last = f->b.logits + each - f->weights->predictor_vocabulary;
    frame_kernel_tap(f->kernel, f->b.logits);
    utter_status status = make_frame(f, n, true, error);
    *agrees = false;
    if (!status && f->kernel) {
        frame_kernel_tap(f->kernel, NULL);
        status = read_scores(f, n, last, each, got, error);
        *agrees = !status && agree(f, n, got, want);
    }
    return status;
}

/* The way to bring weights for launches of n lanes that takes least time. */
static utter_status choose_way(struct cuda_frame *f, int n, utter_error *error)
{
    const int at = frame_way_at(n);
    int chosen = 0;
    double least = 0;
    utter_status status = UTTER_OK;
    for (int i = 0; i < CUDA_TRIAL_WAYS && CUDA_TRIAL_WAYS > 1 && !status; i++) {
        f->kernel_way[at] = i;
        for (int t = 0; t < N_WARM + N_TIMED && f->kernel && !status; t++) {
            double talker, predictor;
            status = make_frame(f, n, true, error);
            status = status ? status : cuda_wait_stream(f->device, f->queue.stream, "a frame", error);
            cuda_frame_times(f, &talker, &predictor);
            if (t >= N_WARM && (least == 0 || talker + predictor < least)) {
                least = talker + predictor;
                chosen = i;
            }
        }
    }
    f->kernel_way[at] = chosen;
    return status;
}

/* Launches of 1, 2, 4 .. n lanes, up to those of a build that does not work here. */
static utter_status try_all(struct cuda_frame *f, int n, const char **note, utter_error *error)
{
    struct scores want = {0}, got = {0};
    bool agrees = true;
    utter_status status = scores_new(&want, f->weights) && scores_new(&got, f->weights)
                              ? make_reference(f, n, &want, error)
                              : error_memory(error, "scores of frames");
    for (int i = 0, lanes = 0; lanes < n && agrees && !status; i++) {
        lanes = min(1 << i, n);
        status = try_build(f, lanes, &got, &want, &agrees, error);
        if (!status && agrees) {
            status = choose_way(f, lanes, error);
            agrees = f->kernel; /* frames that are timed may be lost too */
        }
        if (!status && !agrees) {
            *note = f->kernel ? "the frame kernel gives other scores than the graphs"
                              : "the frame kernel's launches are refused, or its blocks do not reach a "
                                "barrier in time";
            frame_kernel_limit(&f->kernel, lanes);
        }
    }
    scores_free(&want);
    scores_free(&got);
    return status;
}

/* ---- The choice ---- */

bool cuda_frame_ruled(const struct cuda_weights *weights, const struct cuda_device *device, int n_lanes)
{
    return frame_rule(&device->arch, frame_kernel_most(weights, device), n_lanes);
}

utter_status cuda_frame_choose(
    struct cuda_frame *f, enum cuda_frame_way way, const char **note, utter_error *error)
{
    *note = NULL;
    if (way == CUDA_FRAME_GRAPHS ||
        (way == CUDA_FRAME_RULE && !cuda_frame_ruled(f->weights, f->device, f->lanes.n))) {
        return UTTER_OK;
    }
    utter_status status = frame_kernel_open(
        &f->kernel, f->weights, f->device, &f->lanes, f->model->config, f->queue.stream, error);
    if (status) { /* no room for it: the graphs do; a device that has failed does not */
        *note = status == UTTER_E_MEMORY ? "no room for the frame kernel"
                                         : "the frame kernel's blocks do not fit the GPU all at once";
        return way == CUDA_FRAME_RULE && !f->device->broken.code ? UTTER_OK : status;
    }
    frame_kernel_heed(f->kernel, f->b.lost);
    const double patience_s = f->device->patience_s;
    f->device->patience_s = patience_s / PATIENCE_PART;
    status = try_all(f, min(f->lanes.n, frame_kernel_lanes(f->kernel)), note, error);
    f->device->patience_s = patience_s;
    if (status) {
        return status;
    }
    if (way == CUDA_FRAME_RULE && f->kernel && frame_kernel_lanes(f->kernel) < f->lanes.n) {
        frame_kernel_close(&f->kernel);
    }
    if (way == CUDA_FRAME_KERNEL && !f->kernel) {
        return error_set(error, UTTER_E_DEVICE, "kernels \"frame\": %s on %s (choose kernels graph)",
            *note, f->device->name);
    }
    return UTTER_OK;
}
