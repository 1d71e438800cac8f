/* SPDX-License-Identifier: Apache-2.0
 * The persistent kernel in place of the graphs: the choice between them, made by measuring when a
 * model is opened; lanes through it, as many in a launch as it takes; and the way back to the graphs
 * when a frame was lost because its blocks did not reach a barrier in time. */
#include <stdatomic.h>
#include <string.h>

#include "base/minmax.h"
#include "cuda/device/wait.h"
#include "cuda/graph/frame_parts.h"

#ifndef CUDA_TRIAL_FRAMES /* at open, of each way; a build for a slow device sets less */
#define CUDA_TRIAL_FRAMES 5
#define CUDA_TRIAL_WAYS 6
#endif

enum {
    /* That are tried; more take several launches, and the graphs one pass. */
    KERNEL_MOST_LANES = FRAME_MOST_LANES,
    /* Of a model that gets the kernel unasked, where it is faster: launches of so many have been soaked. */
    KERNEL_OWN_LANES = 8,
    KERNEL_TIMED = CUDA_TRIAL_FRAMES,
    KERNEL_WARM = KERNEL_TIMED / 2, /* frames before those that are timed */
    KERNEL_ROWS = 2
};

/* The kernel is taken when it needs at most this part of the graphs' time. */
static const double KERNEL_GAIN = 0.87;

/* How weights are best brought depends on the memory and on the build: a few ways are tried. */
static const struct {
    int n_slots;     /* of the ring that are filled ahead */
    int copy_clocks; /* between two copies */
} WAYS[] = {{2, 0}, {2, 250}, {3, 0}, {3, 150}, {3, 200}, {4, 150}};
_Static_assert(CUDA_TRIAL_WAYS <= sizeof WAYS / sizeof *WAYS, "ways to bring weights");

/* Where in kernel_way that of launches of n lanes stands: for 1, 2, 4 and 8. */
static int way_at(int n)
{
    int at = 0;
    while (1 << at < n) {
        at++;
    }
    return at;
}

static utter_status check(
    struct cuda_frame *f, cudaError_t result, const char *what, utter_error *error)
{
    return cuda_device_check(f->device, result, what, error);
}

/* ---- Running ---- */

/* n lanes of one launch, from lane i of the order in orders[turn] on: all take a step, or none does. */
static utter_status run_group(
    struct cuda_frame *f, const struct cuda_frame_in *in, int n, int turn, int i, utter_error *error)
{
    const struct cuda_order *at = &f->orders_at[turn];
    const size_t width = (size_t)f->weights->talker.width_padded;
    struct frame_ask asks[FRAME_MOST_LANES];
    bool any_text = false;
    for (int l = 0; l < n; l++) {
        const int32_t id = in[l].in->text;
        const bool pads = id == f->model->config->tts_pad;
        any_text = any_text || (in[l].step && id >= 0 && !pads);
        asks[l] = (struct frame_ask){
            .lane = in[l].in->lane,
            .position = in[l].position,
            .text = id < 0 ? NULL
                    : pads ? f->b.pad
                           : f->b.text + (size_t)l * width,
            .forced = in[l].in->forced ? at->slots[i + l].codes : NULL,
            .out = f->out_at + in[l].in->lane,
            .look = in[l].look,
        };
    }
    utter_status status = UTTER_OK;
    if (any_text) {
        status = frame_queue_text(f, &at->slots[i].text, sizeof at->slots[0], n, f->b.text, error);
    }
    const int bringing = f->kernel_way[way_at(n)];
    frame_kernel_ahead(f->kernel, WAYS[bringing].n_slots, WAYS[bringing].copy_clocks);
    return status ? status
                  : frame_kernel_run(f->kernel, asks, n, in->step ? FRAME_STEP : 0, f->sequence, error);
}

/* True when the last frame of all n lanes has ended in `out`. */
static bool have_ended(const struct cuda_frame *f, const struct cuda_frame_in *in, int n)
{
    for (int i = 0; i < n; i++) {
        const volatile struct cuda_frame_out *out = &f->out[in[i].in->lane];
        if (out->sequence != f->sequence) {
            return false;
        }
    }
    atomic_thread_fence(memory_order_acquire); /* the sequence was written behind all else */
    return true;
}

/* Until the frame of these lanes has ended, or the stream has done all that was queued. */
static utter_status wait_for(
    struct cuda_frame *f, const struct cuda_frame_in *in, int n, utter_error *error)
{
    struct cuda_wait wait = cuda_wait_begin(f->kernel_s[n]);
    cudaError_t result = cudaErrorNotReady;
    while (result == cudaErrorNotReady && !have_ended(f, in, n)) {
        cuda_wait_nap(&wait);
        result = cudaStreamQuery(f->queue.stream);
        if (result == cudaErrorNotReady && cuda_waited(&wait) > f->device->patience_s) {
            return cuda_device_give_up(f->device, error);
        }
    }
    f->waited_s += cuda_waited(&wait);
    cuda_wait_note(&f->kernel_s[n], &wait);
    return result == cudaErrorNotReady ? UTTER_OK : check(f, result, "a frame", error);
}

double cuda_frame_waited(struct cuda_frame *f)
{
    const double waited_s = f->waited_s;
    f->waited_s = 0;
    return waited_s;
}

/* The lanes from `in` on that fit a launch together. */
static int group_of(const struct cuda_frame *f, const struct cuda_frame_in *in, int n)
{
    const int most = frame_kernel_lanes(f->kernel);
    int group = 1;
    while (group < n && group < most && in[group].step == in[0].step) {
        group++;
    }
    return group;
}

/* The graphs from now on. They read the weights as they are stored: who asked for 8 bits would get other codes than
 * before, without a word. */
static utter_status leave_kernel(struct cuda_frame *f, utter_error *error)
{
    if (f->packed != FRAME_PACKED_NONE) {
        return cuda_device_fail(f->device,
            "a frame was lost: blocks of the kernel did not reach a barrier in time, and no other has "
            "weights in 8 bits",
            error);
    }
    utter_status status = cuda_wait_stream(f->device, f->queue.stream, "a frame", error);
    if (!status) {
        frame_kernel_close(&f->kernel);
    }
    return status;
}

/* The vocoder may not go on with codes of a lost frame, so the host looks at each end before it queues more. */
utter_status frame_run_kernel(struct cuda_frame *f, const struct cuda_frame_in *in, int n, int turn,
    struct cuda_frame_in *left, int *n_left, utter_error *error)
{
    utter_status status = check(f, cudaEventRecord(f->times[1], f->queue.stream), "a frame", error);
    *n_left = 0;
    for (int done = 0, group; done < n && *n_left == 0 && !status; done += group) {
        group = group_of(f, in + done, n - done);
        if ((status = run_group(f, in + done, group, turn, done, error)) ||
            (status = wait_for(f, in + done, group, error))) {
            return status;
        }
        for (int i = done; i < done + group; i++) { /* a lane that is lost is as before this frame */
            const volatile struct cuda_frame_out *out = &f->out[in[i].in->lane];
            if (out->sequence != f->sequence || out->failed) {
                left[(*n_left)++] = in[i];
            }
        }
        for (int i = done + group; *n_left > 0 && i < n; i++) { /* those behind it have not begun */
            left[(*n_left)++] = in[i];
        }
    }
    return status || *n_left == 0 ? status : leave_kernel(f, error);
}

bool cuda_frame_persistent(const struct cuda_frame *f)
{
    return f->kernel != NULL;
}

/* ---- Choosing ---- */

/* What a few frames of n lanes have shown. */
struct trial {
    double seconds;                         /* of the shortest */
    int32_t codes[2][CONFIG_MAX_CODEBOOKS]; /* of lane 0's first and second */
};

/* Runs frames of n lanes with the settings as they are now, behind a prompt of two rows, and times
 * them. No lane has pages of the cache yet, so the page tables of all lanes point to page 0, and
 * lanes overwrite each other's keys there. With several lanes only a lane's first frame therefore
 * depends on nothing but itself, and is compared. */
static utter_status try_frames(struct cuda_frame *f, int n, struct trial *trial, utter_error *error)
{
    const utter_sampling usual = {
        .temperature = 0.9f, .top_k = 50, .top_p = 1, .repetition_penalty = 1};
    struct lane_settings settings = {.talker = usual, .predictor = usual, .seed = 1, .min_frames = 2};
    settings.talker.repetition_penalty = 1.05f;
    const struct row row = {.text = f->model->config->tts_pad, .codec = ROW_NONE},
                     rows[KERNEL_ROWS] = {row, row};
    struct frame_in of[KERNEL_MOST_LANES];
    struct cuda_frame_in in[KERNEL_MOST_LANES];
    utter_status status = UTTER_OK;
    *trial = (struct trial){0};
    for (int i = 0; i < n && !status; i++) {
        of[i] = (struct frame_in){.lane = i, .text = f->model->config->tts_pad};
        if (!(status = cuda_frame_renew(f, i, &settings, error))) {
            status = cuda_frame_prefill(f, i, 0, rows, KERNEL_ROWS, error);
        }
    }
    for (int t = 0; t < KERNEL_WARM + KERNEL_TIMED && !status; t++) {
        double talker, predictor;
        for (int i = 0; i < n; i++) {
            in[i] = (struct cuda_frame_in){
                .in = &of[i], .step = t > 0, .position = KERNEL_ROWS + t - (t > 0)};
        }
        if ((status = cuda_frame_run(f, in, n, error)) ||
            (status = cuda_wait_stream(f->device, f->queue.stream, "a frame", error))) {
            break;
        }
        cuda_frame_times(f, &talker, &predictor);
        if (t == 0 || (t == 1 && n == 1)) {
            memcpy(trial->codes[t], f->out[0].codes, (size_t)f->weights->n_codebooks * sizeof(int32_t));
        }
        if (t >= KERNEL_WARM && (trial->seconds == 0 || talker + predictor < trial->seconds)) {
            trial->seconds = talker + predictor;
        }
    }
    return status;
}

/* The best way for launches of n lanes, and what it gives. */
static utter_status tune(struct cuda_frame *f, int n, struct trial *best, utter_error *error)
{
    const int at = way_at(n);
    int chosen = 0;
    utter_status status = UTTER_OK;
    *best = (struct trial){0};
    for (int i = 0; i < CUDA_TRIAL_WAYS && f->kernel && !status; i++) {
        struct trial trial;
        f->kernel_way[at] = i;
        status = try_frames(f, n, &trial, error);
        if (!status && (best->seconds == 0 || trial.seconds < best->seconds)) {
            *best = trial;
            chosen = i;
        }
    }
    f->kernel_way[at] = chosen;
    return status;
}

/* The ways for launches of 1, 2, 4 .. lanes; *kernel: what n lanes get, in one launch or several. */
static utter_status tune_all(struct cuda_frame *f, int n, struct trial *kernel, utter_error *error)
{
    const int together = frame_kernel_lanes(f->kernel), most = min(n, together);
    utter_status status = UTTER_OK;
    for (int i = 0, lanes = 0; lanes < most && f->kernel && !status; i++) {
        lanes = min(1 << i, most);
        status = tune(f, lanes, kernel, error);
    }
    return status || most == n || !f->kernel ? status : try_frames(f, n, kernel, error);
}

utter_status cuda_frame_choose(struct cuda_frame *f, enum cuda_frame_way way, enum frame_packed packed,
    bool *persistent, utter_error *error)
{
    const int n = min(f->lanes.n, KERNEL_MOST_LANES);
    const char *why;
    struct trial graphs = {0}, kernel = {0};
    *persistent = false;
    if (way == CUDA_FRAME_GRAPHS ||
        (way == CUDA_FRAME_FASTER &&
            (f->lanes.n > KERNEL_OWN_LANES || !frame_kernel_fits(f->weights, f->device, &why)))) {
        return UTTER_OK;
    }
    utter_status status = way == CUDA_FRAME_FASTER ? try_frames(f, n, &graphs, error) : UTTER_OK;
    if (status) {
        return status;
    }
    f->packed = packed;
    status = frame_kernel_open(
        &f->kernel, f->weights, f->device, &f->lanes, f->model->config, packed, f->queue.stream, error);
    if (status) { /* no room for it: the graphs do; a device that has failed does not */
        return way == CUDA_FRAME_FASTER && !f->device->broken.code ? UTTER_OK : status;
    }
    status = tune_all(f, n, &kernel, error);
    if (!status && way == CUDA_FRAME_FASTER && f->kernel &&
        (kernel.seconds > KERNEL_GAIN * graphs.seconds ||
            memcmp(graphs.codes, kernel.codes, sizeof kernel.codes) != 0)) {
        frame_kernel_close(&f->kernel); /* slower; or a GPU on which it does not work */
    }
    *persistent = f->kernel != NULL;
    if (!status && way == CUDA_FRAME_KERNEL && !f->kernel) {
        return error_set(error, UTTER_E_DEVICE,
            "kernels \"frame\": its blocks did not reach a barrier in time on %s "
            "(choose kernels graph)",
            f->device->name);
    }
    return status;
}
