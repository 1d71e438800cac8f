/* SPDX-License-Identifier: Apache-2.0
 * The life of the GPU backend: how much memory, what opens and closes in which order. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "cuda/device/cards.h"
#include "cuda/device/wait.h"
#include "cuda/door/backend_parts.h"
#include "cuda/parts/steps.h"
#include "cuda/persistent/persistent.h"

void backend_close(struct backend **at)
{
    struct backend *b = *at;
    *at = NULL;
    if (!b || b->device.hangs) { /* kernels may still write to all of it */
        return;
    }
    if (b->stream) {
        cudaSetDevice(b->device.index);
        cuda_wait_stream(&b->device, b->stream, "the last work", NULL);
    }
    if (b->device.hangs) {
        return;
    }
    cuda_vocoder_close(&b->vocoder);
    cuda_frame_close(&b->frame);
    cuda_lanes_close(&b->pages);
    cuda_weights_close(&b->weights);
    cuda_pinned_close(b->fed);
    cuda_pinned_close(b->pcm);
    cuda_pinned_close(b->bad);
    for (int i = 0; b->of && i < b->lanes.n; i++) {
        memory_free(b->of[i].codes);
        cuda_pinned_close(b->of[i].scores);
    }
    memory_free(b->of);
    for (int i = 0; i < 2; i++) {
        if (b->sound[i]) {
            cudaEventDestroy(b->sound[i]);
        }
        if (b->prompt[i]) {
            cudaEventDestroy(b->prompt[i]);
        }
    }
    if (b->done) {
        cudaEventDestroy(b->done);
    }
    if (b->stream) {
        cudaStreamDestroy(b->stream);
    }
    memory_free(b);
}

uint64_t backend_least_lane_bytes(const struct model *model)
{
    uint64_t shared, lane;
    cuda_vocoder_plan(model, &shared, &lane);
    return cuda_lanes_lane_bytes(model) + lane + CUDA_LEAST_PAGES * cuda_lanes_page_bytes(model);
}

uint64_t backend_fixed_bytes(const struct model *model)
{
    uint64_t vocoder, lane;
    cuda_vocoder_plan(model, &vocoder, &lane);
    return cuda_weights_plan(model) + cuda_frame_plan(model) + vocoder;
}

uint64_t backend_rows_bytes(const struct model *model, int n_pages)
{
    return cuda_attend_rows_bytes(model->config->talker.n_kv_heads, n_pages);
}

static bool wants(const struct backend_options *o, const char *kernels)
{
    return o->cpu_kernels && strcmp(o->cpu_kernels, kernels) == 0;
}

/* The GPU, or no more of it than the card has that it is posed as. */
static utter_status open_device(
    struct cuda_device *device, const struct backend_options *o, utter_error *error)
{
    if (!o->as) {
        return cuda_device_open(device, o->device, error);
    }
    const struct cuda_card *card = cuda_card_find(o->as);
    if (!card) {
        return error_set(error, UTTER_E_ARGUMENT,
            "no card is called \"%s\" (3060, 4090, a100, 5090, ...: src/cuda/device/cards.h)", o->as);
    }
    const struct cuda_arch as = cuda_card_arch(card);
    return cuda_device_open_as(device, o->device, &as, error);
}

/* Says which kernels cannot be had before anything is allocated. */
static utter_status check_wanted(struct backend *b, const struct backend_options *o, utter_error *error)
{
    const char *why;
    if (o->cpu_kernels && !wants(o, "frame") && !wants(o, "graph")) {
        return error_set(error, UTTER_E_ARGUMENT, "kernels \"%s\": %s has frame and graph",
            o->cpu_kernels, b->device.name);
    }
    cuda_weights_shapes(&b->weights, b->model);
    if (wants(o, "frame") && !frame_kernel_fits(&b->weights, &b->device, &why)) {
        return error_set(error, UTTER_E_DEVICE,
            "kernels \"frame\": the frame kernel is missing: %s (choose kernels graph)", why);
    }
    return UTTER_OK;
}

static enum cuda_frame_way way_of(const struct backend_options *o)
{
    return wants(o, "graph")   ? CUDA_FRAME_GRAPHS
           : wants(o, "frame") ? CUDA_FRAME_KERNEL
                               : CUDA_FRAME_RULE;
}

/* What the frame kernel keeps, where it may be chosen. */
static uint64_t kernel_plan(struct backend *b, const struct backend_options *o)
{
    const enum cuda_frame_way way = way_of(o);
    const bool may = way == CUDA_FRAME_KERNEL ||
                     (way == CUDA_FRAME_RULE && cuda_frame_ruled(&b->weights, &b->device, o->n_lanes));
    return may ? frame_kernel_plan(&b->weights) : 0;
}

/* Bytes that are free, and what they are for. */
struct memory_plan {
    uint64_t available;
    uint64_t fixed; /* whatever the number of lanes */
    uint64_t lane;  /* a lane without its cache */
    uint64_t page;  /* a page of the cache */
    uint64_t row;   /* what prompts keep for each page that one lane may hold */
    uint64_t rows;  /* that of the longest lane */
    uint64_t fit;   /* number of lanes with the least of cache */
};

/* How many things of `each` bytes fit, of which the first few have rows of `row` bytes, in all not more than rows. */
static uint64_t fit_with_rows(uint64_t available, uint64_t each, uint64_t row, uint64_t rows)
{
    const uint64_t some = available / (each + row),
                   many = available > rows ? (available - rows) / each : 0;
    return max(some, many);
}

/* Of a backend that knows its device and the shapes of its weights. */
static struct memory_plan plan_memory(
    struct backend *b, const struct backend_options *o, uint64_t available)
{
    struct memory_plan p = {.available = available};
    uint64_t unused, vocoder_lane;
    cuda_vocoder_plan(b->model, &unused, &vocoder_lane);
    /* A fiftieth stays free for the driver's own needs: code of kernels, graphs; and no less than what its pages add to
     * the arenas of weights, lanes, frames, the frame kernel and sound. */
    enum { ARENAS = 5, DRIVER_PAGE = 2 << 20 };
    p.fixed = backend_fixed_bytes(b->model) + max(p.available / 50, ARENAS * DRIVER_PAGE);
    p.fixed += kernel_plan(b, o);
    /* A packed talker leaves the table of text in pinned memory (cuda_weights_open), which is the GPU's too here. */
    const struct weight *text = &b->model->talker.text_embedding;
    p.fixed += b->device.unified && pack_is(b->model->talker.stack.layers[0].q.type)
                   ? (uint64_t)(text->rows * text->cols) * sizeof(uint16_t)
                   : 0;
    p.lane = cuda_lanes_lane_bytes(b->model) + vocoder_lane;
    p.page = cuda_lanes_page_bytes(b->model);
    p.row = backend_rows_bytes(b->model, 1);
    p.rows = backend_rows_bytes(b->model, (o->lane_positions + CUDA_PAGE - 1) / CUDA_PAGE);
    p.fit = p.available > p.fixed
                ? fit_with_rows(p.available - p.fixed, backend_least_lane_bytes(b->model),
                      CUDA_LEAST_PAGES * p.row, p.rows)
                : 0;
    return p;
}

int backend_suiting_lanes(const struct model *model, const struct backend_options *options)
{
    struct backend *b = memory_new(1, sizeof *b);
    uint64_t n = CUDA_FEW_LANES;
    if (b && open_device(&b->device, options, NULL) == UTTER_OK) {
        b->model = model;
        cuda_weights_shapes(&b->weights, model);
        const struct memory_plan p = plan_memory(b, options, cuda_device_free_bytes(&b->device));
        const uint64_t part = b->device.unified ? p.available / 2 : p.available / 8 * 7,
                       each = p.lane + CUDA_LANE_POSITIONS / CUDA_PAGE * p.page;
        const uint64_t few = min(p.fit, CUDA_FEW_LANES);
        n = part > p.fixed + p.rows ? (part - p.fixed - p.rows) / each : 0;
        n = max(n, max(few, 1));
    }
    memory_free(b);
    return (int)min(n, CUDA_MAX_SLOTS);
}

/* What takes less memory than n_fit lanes of this model. */
static const char *advice(const struct model *model, uint64_t n_fit)
{
    const enum dtype type = model->talker.stack.layers[0].q.type;
    if (type == DTYPE_Q4 || (type == DTYPE_Q8 && model->packed_file)) {
        return n_fit > 0 ? "open fewer lanes" : "choose the cpu";
    }
    return type == DTYPE_Q8 ? n_fit > 0 ? "open fewer lanes, or weights q4" : "open it with weights q4"
           : n_fit > 0      ? "open fewer lanes, or weights q8 or q4"
                            : "open it with weights q8 or q4";
}

/* Says what is missing before anything is allocated, and what would fit. */
static utter_status check_memory(
    struct backend *b, const struct backend_options *o, int *n_pages, utter_error *error)
{
    uint64_t available;
    utter_status status = cuda_device_memory(&b->device, &available, error);
    if (status) {
        return status;
    }
    const struct memory_plan p = plan_memory(b, o, available);
    const int n_lanes = o->n_lanes;
    if ((uint64_t)n_lanes > p.fit) {
        const uint64_t least = backend_least_lane_bytes(b->model);
        return error_set(error, UTTER_E_MEMORY,
            "cuda:%d: a model with %d lane%s needs %.1f GB, and %.1f GB of %s are free: "
            "%d lane%s would fit (%s)",
            b->device.index, n_lanes, n_lanes == 1 ? "" : "s",
            1e-9 * (double)(p.fixed + (uint64_t)n_lanes * least +
                            min(p.rows, (uint64_t)n_lanes * CUDA_LEAST_PAGES * p.row)),
            1e-9 * (double)p.available, b->device.name, (int)p.fit, p.fit == 1 ? "" : "s",
            advice(b->model, p.fit));
    }
    const uint64_t most =
        fit_with_rows(p.available - p.fixed - (uint64_t)n_lanes * p.lane, p.page, p.row, p.rows);
    int wanted = cuda_lanes_pages(n_lanes, o->lane_positions);
    *n_pages = (uint64_t)wanted < most ? wanted : (int)most;
    return UTTER_OK;
}

static utter_status open_host(struct backend *b, int n_lanes, utter_error *error)
{
    void *unused;
    uint64_t samples = (uint64_t)n_lanes * backend_lane_samples(b),
             codes = (uint64_t)n_lanes * backend_lane_codes(b);
    b->of = memory_new((size_t)n_lanes, sizeof *b->of);
    for (int i = 0; b->of && i < n_lanes; i++) {
        b->of[i].codes = memory_new(backend_lane_codes(b), sizeof(int32_t));
        if (!b->of[i].codes) {
            return error_memory(error, "lanes");
        }
    }
    if (!b->of) {
        return error_memory(error, "lanes");
    }
    utter_status status = cuda_pinned_open(
        &b->device, samples * sizeof(float), (void **)&b->pcm, (void **)&b->pcm_at, "samples", error);
    if (!status) {
        status = cuda_pinned_open(
            &b->device, codes * sizeof(int32_t), (void **)&b->fed, &unused, "codes", error);
    }
    if (!status) {
        status = cuda_pinned_open(&b->device, (uint64_t)n_lanes * sizeof *b->bad, (void **)&b->bad,
            (void **)&b->bad_at, "flags", error);
    }
    for (int i = 0; i < 2 && !status; i++) {
        status = backend_check(b, cudaEventCreate(&b->sound[i]), "an event", error);
        status = status ? status : backend_check(b, cudaEventCreate(&b->prompt[i]), "an event", error);
    }
    return status ? status
                  : backend_check(b, cudaEventCreateWithFlags(&b->done, cudaEventDisableTiming),
                        "an event", error);
}

static const char *packed_name(const struct model *model)
{
    const enum dtype talker = model->talker.stack.layers[0].q.type;
    return talker == DTYPE_Q8                                 ? ", in 8 bits"
           : talker == DTYPE_Q4                               ? ", in 4 bits"
           : pack_is(model->predictor.stack.layers[0].q.type) ? ", predictor in 8 bits"
                                                              : "";
}

/* With a page of the cache for each of the lanes that the kernels are tried with. */
static utter_status try_kernels(
    struct backend *b, const struct backend_options *o, const char **note, utter_error *error)
{
    const int n = min(o->n_lanes, FRAME_MOST_LANES);
    utter_status status = UTTER_OK;
    int tried = 0;
    for (; tried < n && !status; tried++) {
        status = backend_grow(b, tried, CUDA_FRAME_TRIAL_POSITIONS, error);
    }
    status = status ? status : cuda_frame_choose(b->frame, way_of(o), note, error);
    /* What grew has been read: whoever empties a lane need not wait for it. */
    status = status ? status : backend_settle(b, error);
    b->round++;
    while (tried > 0) {
        cuda_lanes_empty(&b->pages, --tried);
    }
    return status;
}

/* "frame": the persistent kernel; "graph"; NULL: by the rule. */
static utter_status choose_kernels(
    struct backend *b, const struct backend_options *o, double begin, utter_error *error)
{
    const char *note = NULL, *packed = packed_name(b->model);
    utter_status status = try_kernels(b, o, &note, error);
    if (status) {
        return status;
    }
    const bool persistent = cuda_frame_persistent(b->frame);
    b->kernel_bytes = persistent ? frame_kernel_plan(&b->weights) : 0;
    snprintf(b->name, sizeof b->name, "%s%s (%s, sm_%d, warm after %.1f s%s%s)",
        persistent ? "frame" : "graph", packed, b->device.name, b->device.arch.capability,
        clock_seconds() - begin, note ? "; " : "", note ? note : "");
    snprintf(b->name_left, sizeof b->name_left, "graph%s, after a frame that was lost (%s, sm_%d)",
        packed, b->device.name, b->device.arch.capability);
    return UTTER_OK;
}

static utter_status open_parts(struct backend *b, const struct backend_options *o, utter_error *error)
{
    int n_pages = 0;
    double begin = clock_seconds();
    b->lane_room = ((int64_t)o->lane_positions + CUDA_PAGE - 1) / CUDA_PAGE * CUDA_PAGE;
    utter_status status = open_device(&b->device, o, error);
    if (status || (status = cuda_weights_fit(b->model, error)) ||
        (status = check_wanted(b, o, error)) || (status = check_memory(b, o, &n_pages, error)) ||
        (status = backend_check(
             b, cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking), "a stream", error)) ||
        (status = cuda_weights_open(&b->weights, b->model, &b->device, error)) ||
        (status = cuda_lanes_open(&b->pages, &b->lanes, b->model, &b->device, o->n_lanes, n_pages,
             o->lane_positions, error)) ||
        (status = open_host(b, o->n_lanes, error)) ||
        (status = cuda_frame_open(
             &b->frame, &b->weights, b->model, &b->device, &b->lanes, b->stream, error)) ||
        (status = cuda_vocoder_open(&b->vocoder, b->model, &b->device, o->n_lanes, error))) {
        return status;
    }
    /* Weights are there, and every graph has run. */
    return choose_kernels(b, o, begin, error);
}

utter_status backend_open(struct backend **at, const struct model *model,
    const struct backend_options *options, utter_error *error)
{
    *at = NULL;
    utter_status status = request_open(options, error);
    if (status) {
        return status;
    }
    struct backend *b = memory_new(1, sizeof *b);
    if (!b) {
        return error_memory(error, "the backend");
    }
    b->model = model;
    b->usual_index = -1;
    b->round = 1;
    status = open_parts(b, options, error);
    if (status) {
        backend_close(&b);
    }
    *at = b;
    return status;
}
