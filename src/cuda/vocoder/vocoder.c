/* SPDX-License-Identifier: Apache-2.0
 * The vocoder on the GPU: memory, graphs, calls. A graph holds all kernels of one run for up to 1, 2, 4 .. 64 lanes
 * and 1, 2, 4 or 8 frames of each; a call is cut into such runs. Which lanes, codes and samples is said by a small
 * kernel in front of each graph. */
#include "base/memory.h"
#include "base/minmax.h"
#include "cuda/device/wait.h"
#include "cuda/vocoder/vocoder_parts.h"

static int clamp(int n, int low, int high)
{
    return max(low, min(n, high));
}

/* Frames in all that one run can hold: 8 of one lane, or one more for each further lane. */
static int slots_of(int n_lanes)
{
    return VOCODER_MAX_FRAMES + clamp(n_lanes, 1, CONV_CALL_LANES);
}

static utter_status set_up(
    struct cuda_vocoder *v, const struct model *model, int n_lanes, utter_error *error)
{
    v->model = model;
    v->config = &model->config->codec;
    v->n_lanes = n_lanes;
    v->n_slots = slots_of(n_lanes);
    return vocoder_describe(v, error);
}

static uint64_t planned_bytes(const struct model *model, int n_lanes)
{
    struct cuda_vocoder *v = memory_new(1, sizeof *v);
    struct cuda_arena arena = {0};
    if (v && !set_up(v, model, n_lanes, NULL)) {
        vocoder_lay_out(v, &arena);
    }
    memory_free(v);
    return arena.used;
}

void cuda_vocoder_plan(const struct model *model, uint64_t *shared_bytes, uint64_t *lane_bytes)
{
    uint64_t one = planned_bytes(model, 1);
    *lane_bytes = planned_bytes(model, 2) - one;
    *shared_bytes = one - *lane_bytes;
}

void cuda_vocoder_memory(const struct cuda_vocoder *v, uint64_t *shared_bytes, uint64_t *lane_bytes)
{
    cuda_vocoder_plan(v->model, shared_bytes, lane_bytes);
}

void cuda_vocoder_tap(struct cuda_vocoder *v, backend_tap_fn *fn, void *user)
{
    v->tap_fn = fn;
    v->tap_user = user;
}

/* ---- Graphs ---- */

/* Makes a graph and runs it once. */
static utter_status capture(struct cuda_vocoder *v, int items_step, int frames_step,
    enum vocoder_reach reach, cudaGraphExec_t *exec, utter_error *error)
{
    cudaGraph_t graph = NULL;
    cudaError_t result = cudaStreamBeginCapture(v->stream, cudaStreamCaptureModeThreadLocal);
    if (!result) {
        result = vocoder_queue(v, 1 << items_step, 1 << frames_step, reach, v->stream, NULL);
        cudaError_t ended = cudaStreamEndCapture(v->stream, &graph);
        result = result ? result : ended;
    }
    if (!result) {
        result = cudaGraphInstantiate(exec, graph, 0);
    }
    if (!result) {
        result = cudaGraphLaunch(*exec, v->stream);
    }
    if (graph) {
        cudaGraphDestroy(graph);
    }
    return cuda_device_check(v->device, result, "prepare the vocoder's graph", error);
}

/* Every run that a call can be cut into, once without lanes. */
static utter_status capture_all(struct cuda_vocoder *v, utter_error *error)
{
    struct cuda_call nobody = {0};
    utter_status status =
        cuda_device_check(v->device, cuda_call_set(v->call, &nobody, v->stream), "vocoder", error);
    for (int i = 0; !status && (i == 0 || 1 << (i - 1) < v->n_lanes) && i < VOCODER_ITEM_STEPS; i++) {
        int n = clamp(v->n_lanes, 1, 1 << i); /* a graph for more lanes than there are does no harm */
        for (int k = 0; !status && k < VOCODER_FRAME_STEPS && n << k <= v->n_slots; k++) {
            status = capture(v, i, k, VOCODER_WHOLE, &v->graphs[i][k], error);
        }
    }
    for (int k = 0; !status && k < VOCODER_FRAME_STEPS; k++) {
        status = capture(v, 0, k, VOCODER_FRONT, &v->fronts[k], error);
    }
    return status ? status : cuda_wait_stream(v->device, v->stream, "run the vocoder", error);
}

utter_status cuda_vocoder_open(struct cuda_vocoder **vocoder, const struct model *model,
    struct cuda_device *device, int n_lanes, utter_error *error)
{
    struct cuda_vocoder *v = *vocoder = memory_new(1, sizeof *v);
    if (!v) {
        return error_memory(error, "the vocoder");
    }
    v->device = device;
    utter_status status = set_up(v, model, n_lanes, error);
    if (!status) {
        vocoder_lay_out(v, &v->arena);
        status = cuda_arena_open(&v->arena, device, "the vocoder", error);
    }
    if (!status) {
        vocoder_lay_out(v, &v->arena);
        status = cuda_device_check(
            device, cudaStreamCreateWithFlags(&v->stream, cudaStreamNonBlocking), "a stream", error);
    }
    if (!status) {
        status = cuda_device_check(
            device, cuda_conv_prepare(device), "prepare the vocoder's kernels", error);
    }
    if (!status) {
        status =
            cuda_device_check(device, cuda_steps_prepare(), "prepare the vocoder's kernels", error);
    }
    if (!status) {
        status = vocoder_load(v, error);
    }
    if (!status) {
        status = capture_all(v, error);
    }
    if (status) {
        cuda_vocoder_close(vocoder);
    }
    return status;
}

void cuda_vocoder_close(struct cuda_vocoder **vocoder)
{
    struct cuda_vocoder *v = *vocoder;
    if (v && !v->device->hangs) {
        for (int k = 0; k < VOCODER_FRAME_STEPS; k++) {
            if (v->fronts[k]) {
                cudaGraphExecDestroy(v->fronts[k]);
            }
        }
        for (int i = 0; i < VOCODER_ITEM_STEPS; i++) {
            for (int k = 0; k < VOCODER_FRAME_STEPS; k++) {
                if (v->graphs[i][k]) {
                    cudaGraphExecDestroy(v->graphs[i][k]);
                }
            }
        }
        if (v->stream) {
            cudaStreamDestroy(v->stream);
        }
        cuda_arena_close(&v->arena);
        memory_free(v);
    }
    *vocoder = NULL;
}

/* ---- Calls ---- */

utter_status cuda_vocoder_reset(
    struct cuda_vocoder *v, int lane, cudaStream_t stream, utter_error *error)
{
    /* Keys and values that were written are known by the position. */
    return cuda_device_check(v->device,
        cudaMemsetAsync(v->state + lane * v->lane_bytes, 0, (size_t)v->past_bytes, stream),
        "empty a lane of the vocoder", error);
}

void *cuda_vocoder_state(const struct cuda_vocoder *v, int lane)
{
    return v->state + lane * v->lane_bytes;
}

uint64_t cuda_vocoder_state_bytes(const struct cuda_vocoder *v)
{
    return (uint64_t)v->lane_bytes;
}

static int step_for(int n)
{
    int step = 0;
    while (1 << step < n) {
        step++;
    }
    return step;
}

static cudaError_t run_once(struct cuda_vocoder *v, const struct cuda_call *call, int frames_step,
    enum vocoder_reach reach, cudaStream_t stream)
{
    cudaError_t result = cuda_call_set(v->call, call, stream);
    int items_step = step_for(call->n);
    if (result) {
        return result;
    }
    if (v->tap_fn) { /* kernels outside of a graph may begin before the call is there */
        result = cudaStreamSynchronize(stream);
        if (result) {
            return result;
        }
        return vocoder_queue(v, 1 << items_step, 1 << frames_step, reach, stream, call);
    }
    return cudaGraphLaunch(
        reach == VOCODER_FRONT ? v->fronts[frames_step] : v->graphs[items_step][frames_step], stream);
}

/* All frames of up to CONV_CALL_LANES lanes. */
static cudaError_t run_lanes(struct cuda_vocoder *v, const struct cuda_vocoder_job *job,
    const int *lanes, int n, enum vocoder_reach reach, cudaStream_t stream)
{
    struct cuda_call call = {.n = n,
        .codes_stride = job->codes_stride,
        .pcm_stride = job->pcm_stride,
        .not_a_number = job->not_a_number};
    cudaError_t result = cudaSuccess;
    for (int i = 0; i < n; i++) {
        call.lanes[i] = lanes[i];
    }
    for (int done = 0; !result && done < job->n_frames;) {
        int step = VOCODER_FRAME_STEPS - 1;
        while (1 << step > job->n_frames - done || !v->graphs[step_for(n)][step]) {
            step--;
        }
        call.codes = job->codes + (int64_t)done * v->config->n_codebooks;
        call.pcm = job->pcm + (int64_t)done * v->config->frame_samples;
        result = run_once(v, &call, step, reach, stream);
        for (int i = 1; i < CUDA_TRIES && cuda_device_refused(result); i++) { /* no sound has begun */
            cudaGetLastError();
            cuda_wait_refused(i - 1);
            result = run_once(v, &call, step, reach, stream);
        }
        done += 1 << step;
    }
    return result;
}

utter_status cuda_vocoder_run(
    struct cuda_vocoder *v, const struct cuda_vocoder_job *job, cudaStream_t stream, utter_error *error)
{
    cudaError_t result = cudaSuccess;
    for (int i = 0; !result && i < job->n; i += CONV_CALL_LANES) {
        result = run_lanes(
            v, job, job->lanes + i, clamp(job->n - i, 0, CONV_CALL_LANES), VOCODER_WHOLE, stream);
    }
    return cuda_device_check(v->device, result, "run the vocoder", error);
}

utter_status cuda_vocoder_hear(
    struct cuda_vocoder *v, const struct cuda_vocoder_job *job, cudaStream_t stream, utter_error *error)
{
    return cuda_device_check(
        v->device, run_lanes(v, job, job->lanes, 1, VOCODER_FRONT, stream), "run the vocoder", error);
}

/* Counted are the time steps of a block's output that still depend on what was there before: a
 * transposed convolution looks back by one input, the units by the rows that they keep, and so does
 * the last convolution. */
int cuda_vocoder_memory_frames(const struct cuda_vocoder *v)
{
    int64_t n_old = 0;
    for (int i = 0; i < v->config->n_rates; i++) {
        const struct vocoder_block *b = &v->blocks[i];
        n_old = (n_old + 1) * b->rate;
        for (int k = 0; k < VOCODER_UNITS; k++) {
            n_old += b->units[k].past.n_rows;
        }
    }
    n_old += v->last_past.n_rows;
    return (int)((n_old + v->config->frame_samples - 1) / v->config->frame_samples);
}
