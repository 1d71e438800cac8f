/* SPDX-License-Identifier: Apache-2.0
 * Arenas, pinned memory, and uploads through two pinned buffers in turn. Each is its caller's to close. */
#include "cuda/device/memory.h"

#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "cuda/device/wait.h"

void *cuda_arena_take(struct cuda_arena *arena, uint64_t bytes)
{
    uint64_t at = arena->used;
    arena->used += (bytes + CUDA_ALIGN - 1) / CUDA_ALIGN * CUDA_ALIGN;
    return arena->base ? arena->base + at : NULL;
}

utter_status cuda_arena_open(
    struct cuda_arena *arena, struct cuda_device *device, const char *what, utter_error *error)
{
    uint64_t available;
    void *base = NULL;
    utter_status status = cuda_device_memory(device, &available, error);
    if (status) {
        return status;
    }
    arena->size = arena->used;
    if (arena->size > available) {
        return error_set(error, UTTER_E_MEMORY,
            "cuda:%d: %s: %.0f MB are needed, %.0f MB are free (end what else uses the GPU, or open "
            "the "
            "model with fewer lanes)",
            device->index, what, 1e-6 * (double)arena->size, 1e-6 * (double)available);
    }
    cudaError_t result = cudaMalloc(&base, arena->size ? arena->size : 1);
    if (result == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        return error_set(error, UTTER_E_MEMORY,
            "cuda:%d: %s: %.0f MB could not be allocated, %.0f MB are free (end what else uses the "
            "GPU, or "
            "open the model with fewer lanes)",
            device->index, what, 1e-6 * (double)arena->size, 1e-6 * (double)available);
    }
    if ((status = cuda_device_check(device, result, "allocate memory", error))) {
        return status;
    }
    *arena = (struct cuda_arena){.base = base, .size = arena->size, .device = device};
    status = cuda_device_check(device, cudaMemset(base, 0, arena->size), "clear memory", error);
    if (!status) { /* other streams do not wait for it */
        status = cuda_wait_stream(device, NULL, "clear memory", error);
    }
    if (status) {
        cuda_arena_close(arena);
    }
    return status;
}

void cuda_arena_close(struct cuda_arena *arena)
{
    if (arena->base && !arena->device->hangs) {
        cudaFree(arena->base);
    }
    *arena = (struct cuda_arena){0};
}

utter_status cuda_pinned_open(struct cuda_device *device, uint64_t bytes, void **host, void **device_at,
    const char *what, utter_error *error)
{
    *host = *device_at = NULL;
    cudaError_t result = cudaHostAlloc(host, bytes, cudaHostAllocMapped);
    if (result == cudaErrorMemoryAllocation) { /* nothing is broken by it */
        cudaGetLastError();
        *host = NULL;
        return error_set(error, UTTER_E_MEMORY, "cuda:%d: %s: %.0f MB could not be allocated",
            device->index, what, 1e-6 * (double)bytes);
    }
    utter_status status = cuda_device_check(device, result, what, error);
    if (status) {
        *host = NULL;
        return status;
    }
    memset(*host, 0, bytes);
    status = cuda_device_check(device, cudaHostGetDevicePointer(device_at, *host, 0), what, error);
    if (status) {
        cuda_pinned_close(*host);
        *host = NULL;
    }
    return status;
}

void cuda_pinned_close(void *host)
{
    if (host) {
        cudaFreeHost(host);
    }
}

/* ---- Upload ---- */

struct cuda_upload {
    struct cuda_device *device;
    cudaStream_t stream;
    void *buffers[2];
    cudaEvent_t sent[2]; /* the buffer may be filled again */
    int turn;
};

utter_status cuda_upload_open(struct cuda_upload **at, struct cuda_device *device, utter_error *error)
{
    struct cuda_upload *u = memory_new(1, sizeof *u);
    void *unused;
    *at = NULL;
    if (!u) {
        return error_memory(error, "an upload");
    }
    u->device = device;
    utter_status status = cuda_device_check(
        device, cudaStreamCreateWithFlags(&u->stream, cudaStreamNonBlocking), "a stream", error);
    for (int i = 0; !status && i < 2; i++) {
        status = cuda_pinned_open(
            device, CUDA_UPLOAD_BYTES, &u->buffers[i], &unused, "pinned memory for the upload", error);
        if (!status) {
            status = cuda_device_check(device,
                cudaEventCreateWithFlags(&u->sent[i], cudaEventDisableTiming), "an event", error);
        }
    }
    if (status) {
        cuda_upload_close(&u);
    }
    *at = u;
    return status;
}

void cuda_upload_close(struct cuda_upload **at)
{
    struct cuda_upload *u = *at;
    if (u && !u->device->hangs) {
        for (int i = 0; i < 2; i++) {
            if (u->sent[i]) {
                cudaEventDestroy(u->sent[i]);
            }
            cuda_pinned_close(u->buffers[i]);
        }
        if (u->stream) {
            cudaStreamDestroy(u->stream);
        }
        memory_free(u);
    }
    *at = NULL;
}

utter_status cuda_upload_buffer(struct cuda_upload *u, void **buffer, utter_error *error)
{
    *buffer = u->buffers[u->turn];
    return cuda_wait_for(u->device, u->sent[u->turn], "upload", error);
}

utter_status cuda_upload_send(struct cuda_upload *u, void *to, uint64_t bytes, utter_error *error)
{
    utter_status status = cuda_device_check(u->device,
        cudaMemcpyAsync(to, u->buffers[u->turn], bytes, cudaMemcpyHostToDevice, u->stream), "upload",
        error);
    if (!status) {
        status =
            cuda_device_check(u->device, cudaEventRecord(u->sent[u->turn], u->stream), "upload", error);
    }
    u->turn = !u->turn;
    return status;
}

utter_status cuda_upload_copy(
    struct cuda_upload *u, void *to, const void *from, uint64_t bytes, utter_error *error)
{
    for (uint64_t done = 0; done < bytes;) {
        void *buffer;
        uint64_t n = min(bytes - done, CUDA_UPLOAD_BYTES);
        utter_status status = cuda_upload_buffer(u, &buffer, error);
        if (status) {
            return status;
        }
        memcpy(buffer, (const char *)from + done, n);
        if ((status = cuda_upload_send(u, (char *)to + done, n, error))) {
            return status;
        }
        done += n;
    }
    return UTTER_OK;
}

cudaStream_t cuda_upload_stream(struct cuda_upload *u)
{
    return u->stream;
}

utter_status cuda_upload_finish(struct cuda_upload *u, utter_error *error)
{
    return cuda_wait_stream(u->device, u->stream, "upload", error);
}
