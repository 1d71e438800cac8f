/* SPDX-License-Identifier: Apache-2.0
 * Buffers and graphs of the frame loop, and the calls of its door; but for prompts: prefill.c. */
#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "cuda/device/wait.h"
#include "cuda/graph/frame_parts.h"

/* What runs at open: the longest prompt's rows, graphs. A build for a device that is slower than any GPU sets less. */
#ifndef CUDA_WARM_ROWS
#define CUDA_WARM_ROWS CUDA_MAX_VECTORS
#define CUDA_WARM_SIZES FRAME_SIZES
#endif

static utter_status check(
    struct cuda_frame *f, cudaError_t result, const char *what, utter_error *error)
{
    return cuda_device_check(f->device, result, what, error);
}

/* ---- Memory ---- */

static int qkv_rows(const struct stack_config *s)
{
    return cuda_padded((s->n_heads + 2 * s->n_kv_heads) * s->head);
}

static void lay_out(struct frame_buffers *b, struct cuda_arena *arena, const struct config *c,
    int n_lanes, int lane_pages)
{
    const struct stack_config *t = &c->talker, *p = &c->predictor;
    const uint64_t n = CUDA_MAX_VECTORS, twice = 2 * CUDA_MAX_SLOTS, size = sizeof(float);
    const uint64_t width = (uint64_t)cuda_padded(t->width);
    const uint64_t text = (uint64_t)cuda_padded(c->text_width);
    b->qkv_stride = max(qkv_rows(t), qkv_rows(p));
    b->mixed_stride = cuda_padded(max(t->n_heads * t->head, p->n_heads * p->head));
    b->gate_stride = cuda_padded(max(t->inner, p->inner));
    b->slots = cuda_arena_take(arena, sizeof *b->slots);
    b->lane_ids = cuda_arena_take(arena, (uint64_t)(n_lanes + 1) * sizeof *b->lane_ids);
    b->x = cuda_arena_take(arena, n * width * size);
    b->text_in = cuda_arena_take(arena, n * text * size);
    b->text_mid = cuda_arena_take(arena, n * text * size);
    b->text = cuda_arena_take(arena, n * width * size);
    b->pad = cuda_arena_take(arena, width * size);
    b->input = cuda_arena_take(arena, twice * width * size);
    b->px = cuda_arena_take(arena, twice * (uint64_t)cuda_padded(p->width) * size);
    b->qkv = cuda_arena_take(arena, n * (uint64_t)b->qkv_stride * size);
    b->mixed = cuda_arena_take(arena, n * (uint64_t)b->mixed_stride * size);
    b->gate = cuda_arena_take(arena, n * (uint64_t)b->gate_stride * size);
    const int widest =
        max(max(max(b->gate_stride, b->mixed_stride), p->width), max(t->width, c->text_width));
    b->operand = cuda_arena_take(arena, cuda_wide_packed_bytes(CUDA_MAX_VECTORS, widest));
    b->inner =
        cuda_arena_take(arena, cuda_wide_bytes(CUDA_MAX_VECTORS, max(b->gate_stride, b->mixed_stride)));
    b->scales = cuda_arena_take(arena, n * size);
    b->squares = cuda_arena_take(arena, n * (uint64_t)cuda_padded(max(t->width, p->width)) / 4 * size);
    b->split = cuda_arena_take(arena, cuda_attend_rows_bytes(t->n_kv_heads, lane_pages));
    b->angles = cuda_arena_take(arena, n * (uint64_t)t->head * size);
    b->signals = cuda_arena_take(arena, 2 * n * sizeof *b->signals);
    b->arrivals = cuda_arena_take(arena, sizeof *b->arrivals);
    b->lost = cuda_arena_take(arena, sizeof *b->lost);
    const uint64_t frames = CUDA_MAX_SLOTS * (uint64_t)c->predictor_vocabulary;
    b->logits = cuda_arena_take(arena, max(frames, n * (uint64_t)c->codec_vocabulary) * size);
    struct cuda_stack talker = {.n_heads = t->n_heads, .head = t->head};
    b->partial = cuda_arena_take(arena, cuda_attend_floats(&talker, CUDA_MAX_VECTORS) * size);
    b->arrived = cuda_arena_take(arena, n * (uint64_t)t->n_kv_heads * sizeof *b->arrived);
    b->watched = cuda_arena_take(arena, (uint64_t)(t->n_layers * t->n_heads) * sizeof *b->watched);
}

uint64_t cuda_frame_plan(const struct model *model)
{
    struct frame_buffers buffers;
    struct cuda_arena arena = {0};
    lay_out(
        &buffers, &arena, model->config, 1, 0); /* what depends on the lanes: cuda_attend_rows_bytes */
    return arena.used;
}

static utter_status pinned(
    struct cuda_frame *f, uint64_t bytes, void *host, void *device_at, utter_error *error)
{
    return cuda_pinned_open(f->device, bytes, host, device_at, "pinned memory for frames", error);
}

static utter_status event(struct cuda_frame *f, cudaEvent_t *at, unsigned flags, utter_error *error)
{
    return check(f, cudaEventCreateWithFlags(at, flags), "an event", error);
}

static utter_status open_host(struct cuda_frame *f, utter_error *error)
{
    const uint64_t n = CUDA_MAX_VECTORS, width = (uint64_t)f->model->config->talker.width;
    utter_status status =
        pinned(f, FRAME_ORDERS * sizeof *f->orders, (void **)&f->orders, (void **)&f->orders_at, error);
    if (!status) {
        status = pinned(
            f, (uint64_t)f->lanes.n * sizeof *f->out, (void **)&f->out, (void **)&f->out_at, error);
    }
    if (!status) {
        status = pinned(
            f, sizeof *f->layers_lost, (void **)&f->layers_lost, (void **)&f->layers_lost_at, error);
    }
    for (int i = 0; i < FRAME_STAGES && !status; i++) {
        struct frame_stage *s = &f->stages[i];
        if ((status = pinned(f, n * sizeof *s->rows, (void **)&s->rows, (void **)&s->rows_at, error)) ||
            (status = pinned(
                 f, n * width * sizeof(float), (void **)&s->vectors, (void **)&s->vectors_at, error)) ||
            (status = pinned(
                 f, n * sizeof *s->codes, (void **)&s->codes, (void **)&s->codes_at, error)) ||
            (status = pinned(f, n * sizeof *s->likelihoods, (void **)&s->likelihoods,
                 (void **)&s->likelihoods_at, error))) {
            return status;
        }
        status = event(f, &s->taken, cudaEventDisableTiming, error);
    }
    for (int i = 0; i < FRAME_ORDERS && !status; i++) {
        status = event(f, &f->order_taken[i], cudaEventDisableTiming, error);
    }
    for (int i = 0; i < 3 && !status; i++) {
        status = event(f, &f->times[i], cudaEventDefault, error);
    }
    return status;
}

static utter_status open_device(struct cuda_frame *f, utter_error *error)
{
    const struct config *c = f->model->config;
    lay_out(&f->b, &f->arena, c, f->lanes.n, f->lanes.pages_stride);
    utter_status status = cuda_arena_open(&f->arena, f->device, "buffers of a frame", error);
    if (status) {
        return status;
    }
    lay_out(&f->b, &f->arena, c, f->lanes.n, f->lanes.pages_stride);
    const size_t n_ids = (size_t)f->lanes.n + 1;
    int32_t *ids = memory_new(n_ids, sizeof *ids);
    if (!ids) {
        return error_memory(error, "lanes");
    }
    for (int i = 0; i < f->lanes.n; i++) {
        ids[i] = i;
    }
    ids[f->lanes.n] = -1;
    status = check(f, cudaMemcpy(f->b.lane_ids, ids, n_ids * sizeof *ids, cudaMemcpyHostToDevice),
        "upload", error);
    if (!status) {
        status = check(f, cudaMemset(f->b.signals, 0, 2 * CUDA_MAX_VECTORS * sizeof *f->b.signals),
            "upload", error);
    }
    if (!status) {
        status = check(f, cudaMemset(f->b.arrivals, 0, sizeof *f->b.arrivals), "upload", error);
    }
    if (!status) {
        status = check(f, cudaMemset(f->b.lost, 0, sizeof *f->b.lost), "upload", error);
    }
    if (!status) { /* the copy may still be on its way, and other streams do not wait for it */
        status = check(f, cudaDeviceSynchronize(), "upload", error);
    }
    memory_free(ids);
    return status;
}

static utter_status open_kernels(struct cuda_frame *f, utter_error *error)
{
    cudaError_t result = cuda_linear_open(f->queue.block_shared);
    result = result ? result : cuda_wide_open(&f->device->arch);
    result = result ? result : cuda_attend_open();
    result = result ? result : cuda_attend_rows_open(f->queue.block_shared);
    return check(f, result ? result : cuda_choose_open(), "prepare the kernels", error);
}

/* The padding text goes into most frames: it is projected once. */
static utter_status project_pad(struct cuda_frame *f, utter_error *error)
{
    struct frame_stage *s = &f->stages[0];
    s->rows[0].text = f->model->config->tts_pad;
    utter_status status =
        frame_queue_text(f, &s->rows_at[0].text, sizeof(struct cuda_row), 1, f->b.pad, error);
    return status ? status : cuda_wait_stream(f->device, f->queue.stream, "project the padding", error);
}

/* ---- Graphs ---- */

typedef utter_status queue_fn(struct cuda_frame *f, int n_slots, utter_error *error);

static utter_status capture(
    struct cuda_frame *f, queue_fn *queue, int n_slots, cudaGraphExec_t *exec, utter_error *error)
{
    cudaGraph_t graph = NULL;
    utter_status status =
        check(f, cudaStreamBeginCapture(f->queue.stream, cudaStreamCaptureModeThreadLocal),
            "begin a graph", error);
    if (status) {
        return status;
    }
    status = queue(f, n_slots, error);
    cudaError_t ended = cudaStreamEndCapture(f->queue.stream, &graph);
    status = status ? status : check(f, ended, "end a graph", error);
    if (!status) {
        status = check(f, cudaGraphInstantiate(exec, graph, 0), "make a graph", error);
    }
    if (graph) {
        cudaGraphDestroy(graph);
    }
    return status;
}

/* Frames without any lane, so that each graph has run once before somebody waits for it. */
static utter_status warm_up(struct cuda_frame *f, utter_error *error)
{
    utter_status status = frame_queue_begin(f, &f->orders_at[0], error);
    for (int i = 0; i < CUDA_WARM_SIZES && f->talker[i] && !status; i++) {
        status = check(f, cudaGraphLaunch(f->talker[i], f->queue.stream), "run a graph", error);
        if (!status) {
            status = check(f, cudaGraphLaunch(f->predictor[i], f->queue.stream), "run a graph", error);
        }
    }
    return status ? status : cuda_wait_stream(f->device, f->queue.stream, "the first run", error);
}

/* Prompts of nobody, so that the kernels for few and for many rows are there before somebody waits for them. */
static utter_status warm_prompts(struct cuda_frame *f, utter_error *error)
{
    static const int lengths[] = {1, 2, 4, 8, 16, 32, 64, 128, CUDA_MAX_VECTORS};
    utter_status status = UTTER_OK;
    memset(f->stages[0].rows, 0, CUDA_MAX_VECTORS * sizeof *f->stages[0].rows);
    const size_t n = sizeof lengths / sizeof *lengths;
    for (size_t i = 0; i < n && lengths[i] <= CUDA_WARM_ROWS && !status; i++) {
        status = frame_queue_prompt(f, &f->stages[0], f->lanes.n, 0, lengths[i], true, 0, error);
    }
    if (status || (status = check(f, cudaEventRecord(f->stages[0].taken, f->queue.stream),
                       "the first prompts", error))) {
        return status;
    }
    status = cuda_wait_for(f->device, f->stages[0].taken, "the first prompts", error);
    f->layers_unseen = false;
    if (!status && frame_prompts_lost(f)) { /* a GPU on which it does not work */
        f->layer_blocks = 0;
        *f->layers_lost = 0;
        status = check(f, cudaMemsetAsync(f->b.lost, 0, sizeof *f->b.lost, f->queue.stream),
            "the first prompts", error);
    }
    return status;
}

static utter_status open_graphs(struct cuda_frame *f, utter_error *error)
{
    utter_status status = frame_queue_begin(f, &f->orders_at[0], error);
    /* Once without a graph: the first launch of a kernel loads it, which a capture must not do. */
    for (int i = 0; i < FRAME_SIZES && (i == 0 || 1 << (i - 1) < f->lanes.n) && !status; i++) {
        if (i < CUDA_WARM_SIZES &&
            ((status = frame_queue_talker(f, 1 << i, error)) ||
                (status = frame_queue_predictor(f, 1 << i, error)) ||
                (status = cuda_wait_stream(f->device, f->queue.stream, "the first frame", error)))) {
            return status;
        }
        if ((status = capture(f, frame_queue_talker, 1 << i, &f->talker[i], error))) {
            return status;
        }
        status = capture(f, frame_queue_predictor, 1 << i, &f->predictor[i], error);
    }
    return status ? status : warm_up(f, error);
}

/* The talker's graphs once more, because what they are to do has changed; nothing is queued. Attention of few vectors
 * and of many runs once before, without any lane, as in open_graphs. */
static utter_status renew_talkers(struct cuda_frame *f, utter_error *error)
{
    f->orders[0].n = 0;
    utter_status status = frame_queue_begin(f, &f->orders_at[0], error);
    for (int i = 0; i < CUDA_WARM_SIZES && f->talker[i] && !status; i += 4) {
        status = frame_queue_talker(f, 1 << i, error);
    }
    status = status ? status : cuda_wait_stream(f->device, f->queue.stream, "heads to watch", error);
    for (int i = 0; i < FRAME_SIZES && f->talker[i] && !status; i++) {
        cudaGraphExec_t exec = NULL;
        status = capture(f, frame_queue_talker, 1 << i, &exec, error);
        if (!status) {
            cudaGraphExecDestroy(f->talker[i]);
            f->talker[i] = exec;
        }
    }
    return status;
}

/* ---- Opening ---- */

utter_status cuda_frame_open(struct cuda_frame **at, const struct cuda_weights *weights,
    const struct model *model, struct cuda_device *device, const struct cuda_lanes *lanes,
    cudaStream_t stream, utter_error *error)
{
    struct cuda_frame *f = memory_new(1, sizeof *f);
    *at = NULL;
    if (!f) {
        return error_memory(error, "frames");
    }
    f->weights = weights;
    f->model = model;
    f->device = device;
    f->lanes = *lanes;
    f->queue = (struct cuda_queue){stream, device->arch.overlaps, (int)device->arch.block_shared};
    f->layer_patience = CUDA_LAYERS_PATIENCE;
    f->layer_blocks = cuda_layers_blocks(&device->arch);
    utter_status status = open_kernels(f, error);
    if (status || (status = open_device(f, error)) || (status = open_host(f, error)) ||
        (status = project_pad(f, error)) || (status = open_graphs(f, error)) ||
        (status = warm_prompts(f, error))) {
        cuda_frame_close(&f);
    }
    *at = f;
    return status;
}

static void close_event(cudaEvent_t event)
{
    if (event) {
        cudaEventDestroy(event);
    }
}

void cuda_frame_close(struct cuda_frame **at)
{
    struct cuda_frame *f = *at;
    *at = NULL;
    if (!f) {
        return;
    }
    cuda_wait_stream(f->device, f->queue.stream, "frames", NULL);
    if (f->device->hangs) { /* kernels may still write to all of it */
        return;
    }
    frame_kernel_close(&f->kernel);
    for (int i = 0; i < FRAME_SIZES; i++) {
        if (f->talker[i]) {
            cudaGraphExecDestroy(f->talker[i]);
        }
        if (f->predictor[i]) {
            cudaGraphExecDestroy(f->predictor[i]);
        }
    }
    for (int i = 0; i < FRAME_STAGES; i++) {
        cuda_pinned_close(f->stages[i].rows);
        cuda_pinned_close(f->stages[i].vectors);
        cuda_pinned_close(f->stages[i].codes);
        cuda_pinned_close(f->stages[i].likelihoods);
        close_event(f->stages[i].taken);
    }
    for (int i = 0; i < FRAME_ORDERS; i++) {
        close_event(f->order_taken[i]);
    }
    for (int i = 0; i < 3; i++) {
        close_event(f->times[i]);
    }
    cuda_pinned_close(f->orders);
    cuda_pinned_close(f->out);
    cuda_pinned_close(f->layers_lost);
    cuda_arena_close(&f->arena);
    memory_free(f->tap_memory);
    memory_free(f);
}

/* ---- Calls ---- */

utter_status cuda_frame_renew(
    struct cuda_frame *f, int lane, const struct lane_settings *settings, utter_error *error)
{
    for (int i = 0; i < FRAME_STAGES; i++) { /* what it was prompted with is not wanted any more */
        f->stages[i].unsure = f->stages[i].unsure && f->stages[i].lane != lane;
    }
    struct cuda_renew renew = {f->lanes, lane, f->weights->codec_vocabulary, *settings};
    return check(f, cuda_renew_queue(&f->queue, &renew), "empty a lane", error);
}

utter_status cuda_frame_watch(
    struct cuda_frame *f, const struct talker_head *heads, int n, utter_error *error)
{
    const struct stack_config *t = &f->model->config->talker;
    const size_t all = (size_t)t->n_layers * (size_t)t->n_heads;
    int16_t *watched = memory_new(all, sizeof *watched);
    if (!watched) {
        return error_memory(error, "heads to watch");
    }
    memset(watched, 0xff, all * sizeof *watched); /* -1 everywhere */
    memset(f->watches, 0, sizeof f->watches);
    for (int i = 0; i < n; i++) {
        watched[heads[i].layer * t->n_heads + heads[i].head] = (int16_t)i;
        f->watches[heads[i].layer] = true;
    }
    utter_status status =
        check(f, cudaMemcpy(f->b.watched, watched, all * sizeof *watched, cudaMemcpyHostToDevice),
            "heads to watch", error);
    if (!status) { /* it may still be on its way, and other streams do not wait for it */
        status = check(f, cudaDeviceSynchronize(), "heads to watch", error);
    }
    memory_free(watched);
    if (f->kernel) {
        frame_kernel_watch(f->kernel, f->b.watched);
    }
    backend_tap_fn *tap = f->tap;
    f->tap = NULL; /* which waits, and a capture must not */
    status = status ? status : renew_talkers(f, error);
    f->tap = tap;
    return status;
}

static void fill_order(
    struct cuda_frame *f, struct cuda_order *o, const struct cuda_frame_in *in, int n)
{
    o->n = n;
    o->looks = 0;
    o->sequence = ++f->sequence;
    for (int i = 0; i < n; i++) {
        o->slots[i].lane = in[i].in->lane;
        o->slots[i].text = in[i].in->text;
        o->slots[i].position = in[i].position;
        o->slots[i].step = in[i].step;
        o->slots[i].look = in[i].look;
        o->looks |= in[i].look.end > in[i].look.begin;
        o->slots[i].forced = in[i].in->forced != NULL;
        if (in[i].in->forced) {
            memcpy(
                o->slots[i].codes, in[i].in->forced, (size_t)f->weights->n_codebooks * sizeof(int32_t));
        }
    }
}

/* The smallest graph that has n slots. */
static int size_of(int n)
{
    int size = 0;
    while (1 << size < n) {
        size++;
    }
    return size;
}

static utter_status run_part(
    struct cuda_frame *f, queue_fn *queue, cudaGraphExec_t graph, int n, utter_error *error)
{
    return f->tap ? queue(f, n, error)
                  : check(f, cudaGraphLaunch(graph, f->queue.stream), "run a frame", error);
}

/* n lanes through the graphs of 1 << size slots. */
static utter_status run_graphs(
    struct cuda_frame *f, int turn, int size, bool step, bool text, utter_error *error)
{
    utter_status status = frame_queue_begin(f, &f->orders_at[turn], error);
    if (!status && text) {
        status = frame_queue_text(f, f->b.slots->text, sizeof(int32_t), 1 << size, f->b.text, error);
    }
    if (!status && step) {
        status = run_part(f, frame_queue_talker, f->talker[size], 1 << size, error);
    }
    if (!status) {
        status = check(f, cudaEventRecord(f->times[1], f->queue.stream), "a frame", error);
    }
    return status ? status : run_part(f, frame_queue_predictor, f->predictor[size], 1 << size, error);
}

/* Lanes through the graphs, whose order is to be filled. */
static utter_status run_slots(
    struct cuda_frame *f, const struct cuda_frame_in *in, int n, int turn, utter_error *error)
{
    bool any_step = false, any_text = false;
    for (int i = 0; i < n; i++) {
        any_step = any_step || in[i].step;
        any_text = any_text || (in[i].step && in[i].in->text != f->model->config->tts_pad);
    }
    return run_graphs(f, turn, size_of(n), any_step, any_text, error);
}

/* Of a frame the last graph alone changes a lane; so a frame of which something was refused is tried again. */
static utter_status try_slots(
    struct cuda_frame *f, const struct cuda_frame_in *in, int n, int turn, utter_error *error)
{
    utter_status status = UTTER_E_MEMORY;
    for (int i = 0; i < CUDA_TRIES && status == UTTER_E_MEMORY; i++) {
        status = run_slots(f, in, n, turn, error);
        if (status == UTTER_E_MEMORY) { /* the next one writes the order that this one may still read */
            const utter_status waited = cuda_wait_stream(f->device, f->queue.stream, "a frame", error);
            status = waited ? waited : status;
            cuda_wait_refused(i);
        }
    }
    return status;
}

/* What is lost once may be lost to others that held the GPU for a while: the kernel tries again before the graphs take
 * over. *n_left of the lanes in `left` are for these then, or all behind prompts that were lost. */
static utter_status run_kernel(
    struct cuda_frame *f, struct cuda_frame_in *left, int *n_left, int turn, utter_error *error)
{
    utter_status status = UTTER_OK;
    for (int i = 0; i < CUDA_TRIES && *n_left && !status && !frame_prompts_lost(f); i++) {
        if (i > 0) {
            cuda_wait_refused(i - 1);
            fill_order(f, &f->orders[turn], left, *n_left);
        }
        status = frame_run_kernel(f, left, *n_left, turn, left, n_left, error);
        if (!status && *n_left > 0) {
            status = frame_kernel_clear(f->kernel, error);
            status = status ? status : cuda_wait_stream(f->device, f->queue.stream, "a frame", error);
        }
    }
    return status || *n_left == 0 || frame_prompts_lost(f) ? status : frame_leave_kernel(f, error);
}

/* Lanes whose order is filled: by the persistent kernel, and by the graphs those that it does not make. */
static utter_status run_lanes(
    struct cuda_frame *f, const struct cuda_frame_in *in, int n, int turn, utter_error *error)
{
    struct cuda_frame_in left[CUDA_MAX_SLOTS];
    int n_left = n;
    if (!f->kernel || f->tap) {
        return try_slots(f, in, n, turn, error);
    }
    memcpy(left, in, (size_t)n * sizeof *left);
    utter_status status = run_kernel(f, left, &n_left, turn, error);
    if (!status && n_left > 0 && !frame_prompts_lost(f)) {
        fill_order(f, &f->orders[turn], left, n_left);
        status = try_slots(f, left, n_left, turn, error);
    }
    return status;
}

utter_status cuda_frame_run(
    struct cuda_frame *f, const struct cuda_frame_in *in, int n, bool alone, utter_error *error)
{
    const int turn = (int)(f->next_order++ % FRAME_ORDERS);
    utter_status status = frame_prompts_lost(f) ? cuda_frame_settle(f, error) : UTTER_OK;
    if (status || (status = cuda_wait_for(f->device, f->order_taken[turn], "a frame", error))) {
        return status;
    }
    f->alone = alone;
    fill_order(f, &f->orders[turn], in, n);
    if ((status = check(f, cudaEventRecord(f->times[0], f->queue.stream), "a frame", error))) {
        return status;
    }
    status = run_lanes(f, in, n, turn, error);
    if (!status && f->layers_unseen) { /* the graphs are at work meanwhile; their sound waits */
        status = frame_see_prompts(f, error);
    }
    if (!status && frame_prompts_lost(f)) { /* no lane has changed */
        status = cuda_frame_settle(f, error);
        if (!status) {
            fill_order(f, &f->orders[turn], in, n);
            status = run_lanes(f, in, n, turn, error);
        }
    }
    if (!status) {
        status = check(f, cudaEventRecord(f->order_taken[turn], f->queue.stream), "a frame", error);
    }
    return status ? status : check(f, cudaEventRecord(f->times[2], f->queue.stream), "a frame", error);
}

uint64_t cuda_frame_sequence(const struct cuda_frame *f)
{
    return f->sequence;
}

const struct cuda_frame_out *cuda_frame_result(const struct cuda_frame *f, int lane)
{
    return &f->out[lane];
}

void cuda_frame_times(struct cuda_frame *f, double *talker_s, double *predictor_s)
{
    float first = 0, second = 0;
    if (cudaEventElapsedTime(&first, f->times[0], f->times[1]) != cudaSuccess ||
        cudaEventElapsedTime(&second, f->times[1], f->times[2]) != cudaSuccess) {
        cudaGetLastError(); /* not ended yet, or never begun: no time */
    }
    *talker_s = 1e-3 * (double)first;
    *predictor_s = 1e-3 * (double)second;
}

void cuda_frame_tap(struct cuda_frame *f, backend_tap_fn *fn, void *user)
{
    f->tap = fn;
    f->tap_user = user;
}
