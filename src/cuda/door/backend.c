/* SPDX-License-Identifier: Apache-2.0
 * The backend door on the GPU: checks of what comes in, and the calls that it leads to. Work of all lanes is
 * queued on one CUDA stream; collect waits for it, with an end to its patience. NVTX ranges name what is queued, for
 * NVIDIA's profilers. */
#include <nvtx3/nvToolsExt.h>
#include <string.h>

#include "base/minmax.h"
#include "cuda/device/wait.h"
#include "cuda/door/backend_parts.h"
#include "cuda/parts/steps.h"
#include "cuda/persistent/persistent.h"

/* ---- Waiting ---- */

/* Until all that was queued is done; *waited_s: how long. */
static utter_status wait_all(struct backend *b, double *waited_s, utter_error *error)
{
    *waited_s = 0;
    if (!b->busy) {
        return UTTER_OK;
    }
    struct cuda_wait wait = cuda_wait_begin(b->usual_index < 0 ? 0 : b->usual_s[b->usual_index]);
    utter_status status = cuda_frame_settle(b->frame, error);
    if (status || (status = backend_check(b, cudaEventRecord(b->done, b->stream), "wait", error)) ||
        (status = cuda_wait_on(&b->device, &wait, b->done, "a frame", error))) {
        return status;
    }
    *waited_s = cuda_waited(&wait);
    b->busy = false;
    b->round++;
    if (b->usual_index >= 0) {
        cuda_wait_note(&b->usual_s[b->usual_index], &wait);
    }
    b->usual_index = -1;
    return UTTER_OK;
}

utter_status backend_settle(struct backend *b, utter_error *error)
{
    utter_status status = cuda_frame_settle(b->frame, error);
    status = status ? status : backend_check(b, cudaEventRecord(b->done, b->stream), "wait", error);
    return status ? status : cuda_wait_for(&b->device, b->done, "wait", error);
}

static void cuda_kernels(const struct backend *b, const char **used, const char **all, int *n_threads)
{
    *used = backend_left_kernel(b) ? b->name_left : b->name;
    const char *why;
    *all = frame_kernel_fits(&b->weights, &b->device, &why) ? "frame, graph" : "graph";
    *n_threads = 1;
}

/* ---- Lanes ---- */

utter_status backend_enter(struct backend *b, int lane, utter_error *error)
{
    utter_status status = cuda_device_enter(&b->device, error);
    return status ? status : request_lane(lane, b->lanes.n, error);
}

static utter_status cuda_reset(
    struct backend *b, int lane, const struct lane_settings *settings, utter_error *error)
{
    utter_status status = backend_enter(b, lane, error);
    if (status) {
        return status;
    }
    struct lane *l = &b->of[lane];
    /* The next one would write its pages where a copy of these still reads. */
    if (l->grew == b->round && (status = backend_settle(b, error))) {
        return status;
    }
    *l = (struct lane){.codes = l->codes,
        .sent = l->sent,
        .look.scores = l->look.scores,
        .scores = l->scores,
        .scores_room = l->scores_room};
    cuda_lanes_empty(&b->pages, lane);
    b->busy = true;
    b->primed = false; /* by a prompt that failed */
    status = cuda_frame_renew(b->frame, lane, settings, error);
    return status ? status : cuda_vocoder_reset(b->vocoder, lane, b->stream, error);
}

utter_status backend_grow(struct backend *b, int lane, int n_positions, utter_error *error)
{
    if (n_positions > b->pages.held[lane] * CUDA_PAGE) {
        b->of[lane].grew = b->round;
    }
    return cuda_lanes_grow(&b->pages, lane, n_positions, b->stream, error);
}

struct request_lane backend_standing(const struct backend *b, const struct lane *l)
{
    return (struct request_lane){l->position, b->lane_room, (uint32_t)l->n_frames, l->ready, l->ended};
}

/* The clock of a prompt begins with its recording, where it has one. */
static utter_status begin_prompt(struct backend *b, utter_error *error)
{
    b->busy = true;
    b->usual_index = -1;
    if (b->primed) {
        b->primed = false;
        return UTTER_OK;
    }
    return backend_check(b, cudaEventRecord(b->prompt[0], b->stream), "a prompt", error);
}

static utter_status end_prompt(struct backend *b, int lane, utter_error *error)
{
    for (int i = 0; i < b->lanes.n; i++) {
        b->of[i].prompted = i == lane;
    }
    return backend_check(b, cudaEventRecord(b->prompt[1], b->stream), "a prompt", error);
}

static utter_status cuda_prefill(
    struct backend *b, int lane, const struct row *rows, int n, utter_error *error)
{
    utter_status status = backend_enter(b, lane, error);
    if (status) {
        return status;
    }
    struct lane *l = &b->of[lane];
    const struct request_lane at = backend_standing(b, l);
    if ((status = request_rows(b->model->config, &at, rows, n, error))) {
        return status;
    }
    if ((status = backend_grow(b, lane, l->position + n, error))) {
        return status;
    }
    nvtxRangePushA("prefill");
    status = begin_prompt(b, error);
    status = status ? status : cuda_frame_prefill(b->frame, lane, l->position, rows, n, error);
    status = status ? status : end_prompt(b, lane, error);
    nvtxRangePop();
    l->position += n;
    l->ready = !status;
    return status;
}

/* As a prompt, but nobody's first frame comes behind it: the clock of prompts is left to those of others. */
static utter_status cuda_weigh_call(struct backend *b, int lane, const struct row *rows, int n,
    const int32_t *codes, struct likelihood *likelihoods, utter_error *error)
{
    utter_status status = backend_enter(b, lane, error);
    if (status) {
        return status;
    }
    double waited_s;
    struct lane *l = &b->of[lane];
    const struct request_lane at = backend_standing(b, l);
    if ((status = request_rows(b->model->config, &at, rows, n, error)) ||
        (status = request_weigh(b->model->config, codes, n, error)) ||
        (status = backend_grow(b, lane, l->position + n, error))) {
        return status;
    }
    b->busy = true;
    b->usual_index = -1;
    nvtxRangePushA("weigh");
    status = cuda_frame_weigh(b->frame, lane, l->position, rows, n, codes, likelihoods, error);
    nvtxRangePop();
    l->position += n;
    return status ? status : wait_all(b, &waited_s, error);
}

/* ---- Frames ---- */

static utter_status cuda_room(struct backend *b, int lane, utter_error *error)
{
    utter_status status = backend_enter(b, lane, error);
    const struct lane *l = &b->of[lane];
    return status || l->ready ? status : backend_grow(b, lane, l->position + 1, error);
}

static utter_status check_frame(struct backend *b, const struct frame_in *in, utter_error *error)
{
    utter_status status = backend_enter(b, in->lane, error);
    if (status) {
        return status;
    }
    const struct request_lane at = backend_standing(b, &b->of[in->lane]);
    status = request_frame(b->model->config, &at, in, error);
    return status ? status : cuda_room(b, in->lane, error);
}

static int usual_index_of(int n)
{
    int usual_index = 0;
    while (1 << usual_index < n && usual_index + 1 < BACKEND_USUALS) {
        usual_index++;
    }
    return usual_index;
}

/* At most CUDA_MAX_SLOTS lanes. */
static utter_status frame_group(struct backend *b, const struct frame_in *in, int n, utter_error *error)
{
    /* First frames together: a launch of the frame kernel holds lanes of one kind. */
    for (int kind = 0, at = 0; kind < 2; kind++) {
        for (int i = 0; i < n; i++) {
            const struct lane *l = &b->of[in[i].lane];
            if (l->ready == (kind == 0)) {
                b->in[at++] = (struct cuda_frame_in){&in[i], !l->ready, l->position, l->look};
            }
        }
    }
    b->usual_index = b->busy ? -1 : usual_index_of(n);
    b->busy = true;
    const uint64_t behind = cuda_frame_sequence(b->frame);
    nvtxRangePushA("frame");
    utter_status status = cuda_frame_run(b->frame, b->in, n, b->usual_index >= 0, error);
    nvtxRangePop();
    for (int i = 0; i < n && !status; i++) {
        struct lane *l = &b->of[in[i].lane];
        l->framed = true;
        l->behind = behind;
        l->vocoded = false;
        l->n_frames++;
        l->n_waiting = 1;
        l->out = (struct lane_out){.codes = l->codes};
        if (!l->ready) {
            backend_tell_scores(l);
        }
        l->position += !l->ready;
        l->ready = false;
    }
    return status;
}

static utter_status cuda_frame_call(
    struct backend *b, const struct frame_in *in, int n, utter_error *error)
{
    utter_status status = cuda_device_enter(&b->device, error);
    if (!status && (n < 0 || n > b->lanes.n)) {
        return error_set(error, UTTER_E_ARGUMENT, "%d frames: there are %d lanes", n, b->lanes.n);
    }
    for (int i = 0; i < n && !status; i++) {
        status = check_frame(b, &in[i], error);
    }
    for (int i = 0; i < n && !status; i += CUDA_MAX_SLOTS) {
        status = frame_group(b, in + i, min(n - i, CUDA_MAX_SLOTS), error);
    }
    return status;
}

static utter_status cuda_feed(
    struct backend *b, int lane, const int32_t *codes, int n_frames, utter_error *error)
{
    utter_status status = backend_enter(b, lane, error);
    if (status) {
        return status;
    }
    if ((status = request_feed(b->model->config, codes, n_frames, error))) {
        return status;
    }
    double waited_s;
    struct lane *l = &b->of[lane];
    if (l->sent == b->round && (status = wait_all(b, &waited_s, error))) { /* codes are on their way */
        return status;
    }
    l->sent = b->round;
    size_t bytes = (size_t)(n_frames * b->model->config->n_codebooks) * sizeof *codes;
    int32_t *from = b->fed + (size_t)lane * backend_lane_codes(b);
    memcpy(from, codes, bytes);
    memcpy(l->codes, codes, bytes);
    l->n_waiting = n_frames;
    l->framed = l->vocoded = false;
    l->out = (struct lane_out){.codes = l->codes, .n_frames = n_frames};
    b->busy = true;
    return backend_check(b,
        cudaMemcpyAsync(b->lanes.codes + (size_t)lane * backend_lane_codes(b), from, bytes,
            cudaMemcpyHostToDevice, b->stream),
        "feed", error);
}

/* A recording in front of a prompt: the vocoder's state behind it. Nothing waits: codes in ordinary memory are taken
 * when they are passed. */
static utter_status cuda_prime(
    struct backend *b, int lane, const int32_t *codes, int n_frames, utter_error *error)
{
    utter_status status = backend_enter(b, lane, error);
    if (status || (status = request_prime(b->model->config, codes, n_frames, error))) {
        return status;
    }
    if ((status = begin_prompt(b, error))) {
        return status;
    }
    b->primed = true;
    const size_t n_codebooks = (size_t)b->model->config->n_codebooks;
    struct cuda_vocoder_job job = {&lane, 1, 0, b->lanes.codes, (int64_t)backend_lane_codes(b),
        b->pcm_at, (int64_t)backend_lane_samples(b), b->bad_at};
    const int n_front = n_frames - cuda_vocoder_memory_frames(b->vocoder);
    nvtxRangePushA("prime");
    for (int at = 0; at < n_frames && !status; at += job.n_frames) {
        const bool front = at < n_front;
        job.n_frames = min((front ? n_front : n_frames) - at, BACKEND_MAX_FEED);
        status = backend_check(b,
            cudaMemcpyAsync(b->lanes.codes + (size_t)lane * backend_lane_codes(b),
                codes + (size_t)at * n_codebooks, (size_t)job.n_frames * n_codebooks * sizeof *codes,
                cudaMemcpyHostToDevice, b->stream),
            "a recording's codes", error);
        if (!status) {
            status = front ? cuda_vocoder_hear(b->vocoder, &job, b->stream, error)
                           : cuda_vocoder_run(b->vocoder, &job, b->stream, error);
        }
    }
    nvtxRangePop();
    return status;
}

/* ---- Sound ---- */

/* Decodes those of the lanes that have n_frames frames waiting. */
static utter_status vocode_group(
    struct backend *b, const int *lanes, int n, int n_frames, utter_error *error)
{
    int some[CUDA_MAX_SLOTS], m = 0;
    utter_status status = UTTER_OK;
    for (int i = 0; i <= n && !status; i++) {
        if (m > 0 && (i == n || m == CUDA_MAX_SLOTS)) {
            struct cuda_vocoder_job job = {some, m, n_frames, b->lanes.codes,
                (int64_t)backend_lane_codes(b), b->pcm_at, (int64_t)backend_lane_samples(b), b->bad_at};
            nvtxRangePushA("vocode");
            status = cuda_vocoder_run(b->vocoder, &job, b->stream, error);
            nvtxRangePop();
            m = 0;
        }
        if (i < n && b->of[lanes[i]].n_waiting == n_frames) {
            some[m++] = lanes[i];
        }
    }
    for (int i = 0; i < n && !status; i++) {
        struct lane *l = &b->of[lanes[i]];
        if (l->n_waiting == n_frames) {
            l->n_waiting = 0;
            l->vocoded = true;
            l->out.n_samples = (size_t)n_frames * (size_t)b->model->config->codec.frame_samples;
        }
    }
    return status;
}

static utter_status cuda_vocode(struct backend *b, const int *lanes, int n, utter_error *error)
{
    utter_status status = cuda_device_enter(&b->device, error);
    for (int i = 0; i < n && !status; i++) {
        status = backend_enter(b, lanes[i], error);
        if (!status && b->of[lanes[i]].n_waiting > 0) {
            b->bad[lanes[i]] = 0;
        }
    }
    if (!status) {
        status = backend_check(b, cudaEventRecord(b->sound[0], b->stream), "vocode", error);
    }
    for (int i = 0; i < n && !status; i++) {
        int n_frames = b->of[lanes[i]].n_waiting;
        if (n_frames > 0) {
            b->busy = true;
            status = vocode_group(b, lanes, n, n_frames, error);
        }
    }
    return status ? status : backend_check(b, cudaEventRecord(b->sound[1], b->stream), "vocode", error);
}

/* Seconds between two events; 0 where the later one has not come. */
static double elapsed(cudaEvent_t between[2])
{
    float ms = 0;
    if (cudaEventElapsedTime(&ms, between[0], between[1]) != cudaSuccess) {
        cudaGetLastError();
    }
    return 1e-3 * (double)ms;
}

static utter_status take_frame(struct backend *b, int lane, utter_error *error)
{
    struct lane *l = &b->of[lane];
    const struct cuda_frame_out *from = cuda_frame_result(b->frame, lane);
    if (from->sequence <= l->behind) {
        return error_set(error, UTTER_E_DEVICE,
            "lane %d: the GPU has not made its frame (open the model again)", lane);
    }
    l->out.end = l->ended = from->end != 0;
    l->out.not_a_number = from->not_a_number != 0;
    l->out.n_frames = !l->ended;
    memcpy(l->codes, from->codes, (size_t)b->model->config->n_codebooks * sizeof *l->codes);
    cuda_frame_times(b->frame, &l->out.talker_s, &l->out.predictor_s);
    l->out.prefill_s = l->prompted ? elapsed(b->prompt) : -1; /* of several prompts the last is timed */
    l->framed = l->prompted = false;
    return UTTER_OK;
}

static void take_sound(struct backend *b, int lane)
{
    struct lane *l = &b->of[lane];
    l->out.vocoder_s = elapsed(b->sound);
    l->out.not_a_number = l->out.not_a_number || b->bad[lane] != 0;
    /* A frame that is the end has no sound; frames that were fed have, also behind the end. */
    bool some = l->out.n_frames > 0;
    l->out.pcm = some ? b->pcm + (size_t)lane * backend_lane_samples(b) : NULL;
    l->out.n_samples = some ? l->out.n_samples : 0;
    l->vocoded = false;
}

static utter_status cuda_collect(struct backend *b, int lane, struct lane_out *out, utter_error *error)
{
    *out = (struct lane_out){0};
    double waited_s;
    utter_status status = backend_enter(b, lane, error);
    if (status || (status = wait_all(b, &waited_s, error))) {
        return status;
    }
    struct lane *l = &b->of[lane];
    if (l->framed && (status = take_frame(b, lane, error))) {
        return status;
    }
    if (l->vocoded) {
        take_sound(b, lane);
    }
    *out = l->out;
    out->wait_s = waited_s + cuda_frame_waited(b->frame);
    return UTTER_OK;
}

/* ---- Recordings ---- */

static utter_status cuda_encode_call(struct backend *b, const float *pcm, size_t n_samples,
    int32_t *codes, size_t capacity_frames, size_t *n_frames, backend_progress_fn *progress, void *user,
    utter_error *error)
{
    size_t frame = (size_t)b->model->config->codec.frame_samples, n = (n_samples + frame - 1) / frame;
    utter_status status = cuda_device_enter(&b->device, error);
    *n_frames = 0;
    if (status || (status = request_encode(b->model, n_samples, n, capacity_frames, error)) ||
        (status = backend_settle(b, error))) {
        return status;
    }
    status = cuda_encode(b->model, &b->device, pcm, n_samples, codes, progress, user, error);
    *n_frames = status ? 0 : n;
    return status;
}

static utter_status cuda_speaker_call(
    struct backend *b, const float *mels, size_t n_mels, float *vector, utter_error *error)
{
    utter_status status = cuda_device_enter(&b->device, error);
    if (status || (status = request_speaker(b->model, n_mels, error)) ||
        (status = backend_settle(b, error))) {
        return status;
    }
    return cuda_speaker(b->model, &b->device, mels, n_mels, vector, error);
}

/* ---- Seeing it ---- */

static void cuda_tap_set(struct backend *b, backend_tap_fn *fn, void *user)
{
    cuda_frame_tap(b->frame, fn, user);
    cuda_vocoder_tap(b->vocoder, fn, user);
}

static void cuda_memory(const struct backend *b, struct backend_memory *memory)
{
    uint64_t cache = (uint64_t)b->lanes.n_pages * b->lanes.page_floats * sizeof(float);
    *memory = (struct backend_memory){0};
    cuda_vocoder_memory(b->vocoder, &memory->shared_bytes, &memory->lane_bytes);
    memory->shared_bytes +=
        b->weights.arena.size + cuda_frame_plan(b->model) + cache +
        (backend_left_kernel(b) ? 0 : b->kernel_bytes) +
        cuda_attend_rows_bytes(b->model->config->talker.n_kv_heads, b->lanes.pages_stride);
    memory->lane_bytes += cuda_lanes_lane_bytes(b->model);
    memory->kept_bytes = cuda_vocoder_state_bytes(b->vocoder);
    memory->bytes_per_s = b->device.bytes_per_s;
    memory->most_lanes =
        b->lanes.n + (int)(cuda_device_free_bytes(&b->device) / backend_least_lane_bytes(b->model));
    memory->position_bytes = b->lanes.page_floats * sizeof(float) / CUDA_PAGE;
    backend_foretell(b, memory);
}

const struct backend_ops cuda_backend = {
    .name = "cuda",
    .gathers = 8,
    .reads_packed = true,
    .suiting_lanes = backend_suiting_lanes,
    .open = backend_open,
    .close = backend_close,
    .kernels = cuda_kernels,
    .lane_reset = cuda_reset,
    .prefill = cuda_prefill,
    .room = cuda_room,
    .frame = cuda_frame_call,
    .feed = cuda_feed,
    .vocode = cuda_vocode,
    .collect = cuda_collect,
    .prime = cuda_prime,
    .lane_keep = backend_lane_keep,
    .lane_resume = backend_lane_resume,
    .snapshot_free = backend_snapshot_free,
    .watch = backend_watch,
    .look = backend_look,
    .weigh = cuda_weigh_call,
    .encode = cuda_encode_call,
    .speaker = cuda_speaker_call,
    .tap = cuda_tap_set,
    .memory = cuda_memory,
};
