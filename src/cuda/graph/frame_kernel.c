/* SPDX-License-Identifier: Apache-2.0
 * The persistent kernel in place of the graphs: lanes through it, as many in a launch as it takes, and which of them
 * were lost because its blocks did not reach a barrier in time. */
#include <stdatomic.h>

#include "cuda/device/wait.h"
#include "cuda/graph/frame_parts.h"

/* How weights are best brought depends on the memory and on the build: a few ways are tried (frame_choose.c). */
static const struct {
    int n_slots;     /* of the ring that are filled ahead */
    int copy_clocks; /* between two copies */
} WAYS[FRAME_WAYS] = {{2, 0}, {2, 250}, {3, 0}, {3, 150}, {3, 200}, {4, 150}};

int frame_way_at(int n)
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
    const int bringing = f->kernel_way[frame_way_at(n)];
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
    double *usual_s = &f->kernel_s[in->step][n];
    struct cuda_wait wait = cuda_wait_begin(*usual_s);
    const double patience_s = f->alone ? cuda_wait_patience(&wait, f->device) : f->device->patience_s;
    cudaError_t result = cudaErrorNotReady;
    while (result == cudaErrorNotReady && !have_ended(f, in, n)) {
        cuda_wait_nap(&wait);
        const bool late = cuda_waited(&wait) > patience_s; /* before the GPU is asked, as in wait.c */
        result = cudaStreamQuery(f->queue.stream);
        if (result == cudaErrorNotReady && late && !have_ended(f, in, n)) {
            return cuda_device_give_up(f->device, error);
        }
    }
    f->waited_s += cuda_waited(&wait);
    cuda_wait_note(usual_s, &wait);
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

/* The graphs from now on. */
utter_status frame_leave_kernel(struct cuda_frame *f, utter_error *error)
{
    utter_status status = cuda_wait_stream(f->device, f->queue.stream, "a frame", error);
    if (!status) {
        frame_kernel_close(&f->kernel);
    }
    return status;
}

/* The vocoder may not go on with codes of a lost frame, so the host looks at each end before it queues more. A launch
 * that was refused has lost its lanes too: others hold a part of the GPU. */
utter_status frame_run_kernel(struct cuda_frame *f, const struct cuda_frame_in *in, int n, int turn,
    struct cuda_frame_in *left, int *n_left, utter_error *error)
{
    utter_status status = check(f, cudaEventRecord(f->times[1], f->queue.stream), "a frame", error);
    *n_left = 0;
    for (int done = 0, group; done < n && *n_left == 0 && !status; done += group) {
        group = group_of(f, in + done, n - done);
        status = run_group(f, in + done, group, turn, done, error);
        status = status && status != UTTER_E_MEMORY ? status : frame_see_prompts(f, error);
        status = status ? status : wait_for(f, in + done, group, error);
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
    return status;
}

bool cuda_frame_persistent(const struct cuda_frame *f)
{
    return f->kernel != NULL;
}
