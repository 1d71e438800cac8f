/* SPDX-License-Identifier: Apache-2.0
 * Copies and fills: what kind of memory takes part, and for what the host waits. As the CUDA manual allows it, no
 * sooner: a copy from memory that is not pinned goes on after the call, from what the call has put aside; one to such
 * memory ends within the call; copies on the device and fills are waited for by nobody. */
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/host/runtime/runtime.h"

static bool on_device(const void *at)
{
    const struct host_area *a = host_area_of(at);
    return a && a->kind == HOST_GLOBAL;
}

static bool pinned(const void *at)
{
    const struct host_area *a = host_area_of(at);
    return a && a->kind == HOST_PINNED;
}

/* Pinned memory is mapped, and so it is an address of the device too. */
static bool may_be(const void *at, bool device)
{
    return device ? on_device(at) || pinned(at) : !on_device(at);
}

static bool suits(const struct host_work *w, enum cudaMemcpyKind kind, const char *call)
{
    if (kind == cudaMemcpyDefault) {
        return true;
    }
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (!may_be(w->to, to_device) || !may_be(w->from, from_device)) {
        host_finding("%s: %s memory is named as %s", call,
            may_be(w->to, to_device) ? "the source's" : "the target's",
            (may_be(w->to, to_device) ? from_device : to_device) ? "the device's" : "the host's");
        return false;
    }
    return true;
}

/* What the source has now, for a copy that goes on after the call. */
static void put_aside(struct host_work *w)
{
    char *all = malloc(w->bytes * w->rows);
    for (size_t i = 0; i < w->rows; i++) {
        memcpy(all + i * w->bytes, w->from + i * w->from_pitch, w->bytes);
    }
    w->staged = all;
    w->from = all;
    w->from_pitch = w->bytes;
}

static cudaError_t copy(
    struct host_work *w, enum cudaMemcpyKind kind, cudaStream_t at, bool waits, const char *call)
{
    struct CUstream_st *stream = host_stream_of(at, call);
    if (!stream || (unsigned)kind > cudaMemcpyDefault) {
        return stream ? cudaErrorInvalidMemcpyDirection : cudaErrorInvalidResourceHandle;
    }
    if (w->bytes > w->to_pitch || w->bytes > w->from_pitch) {
        return cudaErrorInvalidPitchValue;
    }
    if (w->bytes == 0 || w->rows == 0) {
        return cudaSuccess;
    }
    if (!suits(w, kind, call) || !host_area_reached(host_area_of(w->to), stream->device, call) ||
        !host_area_reached(host_area_of(w->from), stream->device, call) ||
        !host_area_holds(w->to, w->to_pitch, w->bytes, w->rows, call) ||
        !host_area_holds(w->from, w->from_pitch, w->bytes, w->rows, call)) {
        return cudaErrorInvalidValue;
    }
    const bool from_pageable = !host_area_of(w->from), to_pageable = !host_area_of(w->to);
    if (stream->capture && (from_pageable || to_pageable)) {
        host_finding("%s: memory that is not pinned in a captured copy", call);
        stream->spoiled = true;
        return cudaErrorStreamCaptureUnsupported;
    }
    if (from_pageable) {
        cudaError_t result = waits && !to_pageable ? host_wait_stream(stream, call) : cudaSuccess;
        if (result) {
            return result;
        }
        put_aside(w);
    }
    const bool both_device = on_device(w->to) && on_device(w->from);
    const bool ends_now = to_pageable || (waits && !from_pageable && !both_device);
    cudaError_t result = host_queue(stream, w, 0);
    return result || !ends_now ? result : host_wait_stream(stream, call);
}

static struct host_work one_row(void *to, const void *from, size_t bytes)
{
    return (struct host_work){.kind = HOST_WORK_COPY,
        .to = to,
        .from = from,
        .to_pitch = bytes,
        .from_pitch = bytes,
        .bytes = bytes,
        .rows = 1};
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    struct host_work w = one_row(to, from, bytes);
    cudaError_t result = host_enter_outside_capture(CALL_cudaMemcpy);
    return host_leave(result ? result : copy(&w, kind, NULL, true, "cudaMemcpy"));
}

cudaError_t cudaMemcpyAsync(
    void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    struct host_work w = one_row(to, from, bytes);
    cudaError_t result = host_enter(CALL_cudaMemcpyAsync);
    return host_leave(result ? result : copy(&w, kind, stream, false, "cudaMemcpyAsync"));
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
    size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    struct host_work w = {.kind = HOST_WORK_COPY,
        .to = to,
        .from = from,
        .to_pitch = to_pitch,
        .from_pitch = from_pitch,
        .bytes = width,
        .rows = height};
    cudaError_t result = host_enter(CALL_cudaMemcpy2DAsync);
    return host_leave(result ? result : copy(&w, kind, stream, false, "cudaMemcpy2DAsync"));
}

static cudaError_t fill(
    void *at, int value, size_t bytes, cudaStream_t of, bool waits, const char *call)
{
    struct host_work w = {.kind = HOST_WORK_SET,
        .to = at,
        .value = value & 255,
        .to_pitch = bytes,
        .bytes = bytes,
        .rows = 1};
    struct CUstream_st *stream = host_stream_of(of, call);
    if (!stream || bytes == 0) {
        return stream ? cudaSuccess : cudaErrorInvalidResourceHandle;
    }
    if (!host_area_of(at)) {
        host_finding("%s: %p is not memory of the device", call, at);
        return cudaErrorInvalidValue;
    }
    if (!host_area_reached(host_area_of(at), stream->device, call) ||
        !host_area_holds(at, bytes, bytes, 1, call)) {
        return cudaErrorInvalidValue;
    }
    cudaError_t result = host_queue(stream, &w, 0);
    return result || !waits || on_device(at) ? result : host_wait_stream(stream, call);
}

cudaError_t cudaMemset(void *at, int value, size_t bytes)
{
    cudaError_t result = host_enter_outside_capture(CALL_cudaMemset);
    return host_leave(result ? result : fill(at, value, bytes, NULL, true, "cudaMemset"));
}

cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t stream)
{
    cudaError_t result = host_enter(CALL_cudaMemsetAsync);
    return host_leave(result ? result : fill(at, value, bytes, stream, false, "cudaMemsetAsync"));
}
