/* SPDX-License-Identifier: Apache-2.0
 * The life of the GPU backend: how much memory, what opens and closes in which order. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/minmax.h"
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
    return cuda_lanes_lane_bytes(model) + lane + 512 / CUDA_PAGE * cuda_lanes_page_bytes(model);
}

static enum frame_packed packed_of(const struct backend_options *o)
{
    return o->weights == UTTER_WEIGHTS_Q8             ? FRAME_PACKED_ALL
           : o->weights == UTTER_WEIGHTS_Q8_PREDICTOR ? FRAME_PACKED_PREDICTOR
                                                      : FRAME_PACKED_NONE;
}

static bool wants(const struct backend_options *o, const char *kernels)
{
    return o->cpu_kernels && strcmp(o->cpu_kernels, kernels) == 0;
}

/* Says which kernels and weights cannot be had before anything is allocated. */
static utter_status check_wanted(struct backend *b, const struct backend_options *o, utter_error *error)
{
    const bool packed = packed_of(o) != FRAME_PACKED_NONE;
    const char *why;
    if (o->cpu_kernels && !wants(o, "frame") && !wants(o, "graph")) {
        return error_set(error, UTTER_E_ARGUMENT, "kernels \"%s\": %s has frame and graph",
            o->cpu_kernels, b->device.name);
    }
    if (o->weights == UTTER_WEIGHTS_Q4 || (packed && wants(o, "graph"))) {
        return error_set(error, UTTER_E_ARGUMENT,
            "weights of %d bits: %s has them for 8 bits and kernels \"frame\" (choose the cpu, or the "
            "checkpoint as it is)",
            packed ? 8 : 4, b->device.name);
    }
    cuda_weights_shapes(&b->weights, b->model);
    if ((packed || wants(o, "frame")) && !frame_kernel_fits(&b->weights, &b->device, &why)) {
        return error_set(error, UTTER_E_DEVICE, "%s: the frame kernel is missing: %s (choose %s)",
            packed ? "weights of 8 bits" : "kernels \"frame\"", why,
            packed ? "the cpu, or the checkpoint as it is" : "kernels graph");
    }
    return UTTER_OK;
}

/* What the frame kernel keeps, weights in 8 bits above all, where it may be chosen. */
static uint64_t kernel_plan(struct backend *b, const struct backend_options *o)
{
    const char *why;
    return !wants(o, "graph") && frame_kernel_fits(&b->weights, &b->device, &why)
               ? frame_kernel_plan(&b->weights, packed_of(o))
               : 0;
}

/* Bytes that are free, and what they are for. */
struct memory_plan {
    uint64_t available;
    uint64_t fixed; /* whatever the number of lanes */
    uint64_t lane;  /* a lane without its cache */
    uint64_t page;  /* a page of the cache */
    uint64_t fit;   /* number of lanes with the least of cache */
};

/* Of a backend that knows its device and the shapes of its weights. */
static struct memory_plan plan_memory(struct backend *b, const struct backend_options *o)
{
    struct memory_plan p = {.available = cuda_device_free_bytes(&b->device)};
    uint64_t vocoder = 0, vocoder_lane = 0;
    cuda_vocoder_plan(b->model, &vocoder, &vocoder_lane);
    /* A fiftieth stays free for the driver's own needs: code of kernels, graphs. */
    p.fixed = cuda_weights_plan(b->model) + cuda_frame_plan(b->model) + vocoder + p.available / 50;
    p.fixed += kernel_plan(b, o);
    p.fixed += cuda_attend_rows_bytes(
        b->model->config->talker.n_kv_heads, (o->lane_positions + CUDA_PAGE - 1) / CUDA_PAGE);
    p.lane = cuda_lanes_lane_bytes(b->model) + vocoder_lane;
    p.page = cuda_lanes_page_bytes(b->model);
    p.fit = p.available > p.fixed ? (p.available - p.fixed) / backend_least_lane_bytes(b->model) : 0;
    return p;
}

int backend_suiting_lanes(const struct model *model, const struct backend_options *options)
{
    struct backend *b = memory_new(1, sizeof *b);
    uint64_t n = CUDA_FEW_LANES;
    if (b && cuda_device_open(&b->device, options->device, NULL) == UTTER_OK) {
        b->model = model;
        cuda_weights_shapes(&b->weights, model);
        const struct memory_plan p = plan_memory(b, options);
        const uint64_t part = p.available / 8 * 7,
                       each = p.lane + CUDA_LANE_POSITIONS / CUDA_PAGE * p.page;
        const uint64_t few = min(p.fit, CUDA_FEW_LANES);
        n = part > p.fixed ? (part - p.fixed) / each : 0;
        n = max(n, max(few, 1));
    }
    memory_free(b);
    return (int)min(n, CUDA_MAX_SLOTS);
}

/* Says what is missing before anything is allocated, and what would fit. */
static utter_status check_memory(
    struct backend *b, const struct backend_options *o, int *n_pages, utter_error *error)
{
    const struct memory_plan p = plan_memory(b, o);
    const int n_lanes = o->n_lanes;
    if ((uint64_t)n_lanes > p.fit) {
        const uint64_t least = backend_least_lane_bytes(b->model);
        return error_set(error, UTTER_E_MEMORY,
            "cuda:%d: a model with %d lanes needs %.1f GB, and %.1f GB of %s are free (%d lanes would "
            "fit)",
            b->device.index, n_lanes, 1e-9 * (double)(p.fixed + (uint64_t)n_lanes * least),
            1e-9 * (double)p.available, b->device.name, (int)p.fit);
    }
    uint64_t most = (p.available - p.fixed - (uint64_t)n_lanes * p.lane) / p.page;
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

/* "frame": the persistent kernel; "graph"; NULL: the faster one, or, with 8-bit weights, the one that has them. */
static utter_status choose_kernels(
    struct backend *b, const struct backend_options *o, double begin, utter_error *error)
{
    static const char *const IN_8_BITS[] = {"", ", predictor in 8 bits", ", in 8 bits"};
    const enum frame_packed packed = packed_of(o);
    const bool kernel = wants(o, "frame") || packed != FRAME_PACKED_NONE;
    bool persistent = false;
    utter_status status = cuda_frame_choose(b->frame,
        wants(o, "graph") ? CUDA_FRAME_GRAPHS
        : kernel          ? CUDA_FRAME_KERNEL
                          : CUDA_FRAME_FASTER,
        packed, &persistent, error);
    b->packed = packed;
    b->kernel_bytes = persistent ? frame_kernel_plan(&b->weights, packed) : 0;
    snprintf(b->name, sizeof b->name, "%s%s (%s, sm_%d, warm after %.1f s)",
        persistent ? "frame" : "graph", IN_8_BITS[packed], b->device.name, b->device.arch.capability,
        clock_seconds() - begin);
    snprintf(b->name_left, sizeof b->name_left, "graph, after a frame that was lost (%s, sm_%d)",
        b->device.name, b->device.arch.capability);
    return status;
}

static utter_status open_parts(struct backend *b, const struct backend_options *o, utter_error *error)
{
    int n_pages = 0;
    double begin = clock_seconds();
    utter_status status = cuda_device_open(&b->device, o->device, error);
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
