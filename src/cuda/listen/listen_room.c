/* SPDX-License-Identifier: Apache-2.0
 * The life of an encoder's memory and stream, and its weights on their way to the device. */
#include "cuda/listen/listen_room.h"

#include "cuda/device/wait.h"

void listen_room_open(struct listen_room *r)
{
    if (!r->status) {
        r->status = cuda_arena_open(&r->arena, r->device, r->what, r->error);
    }
    if (!r->status) {
        r->status = cuda_upload_open(&r->upload, r->device, r->error);
    }
    if (!r->status) {
        r->status = cuda_device_check(r->device,
            cudaStreamCreateWithFlags(&r->stream, cudaStreamNonBlocking), "a stream", r->error);
    }
}

void listen_room_ready(struct listen_room *r)
{
    if (!r->status) {
        r->status = cuda_upload_finish(r->upload, r->error);
    }
}

void listen_room_close(struct listen_room *r)
{
    if (r->stream) {
        cuda_wait_stream(r->device, r->stream, r->what, NULL);
    }
    if (r->device->hangs) { /* kernels may still write to all of it */
        return;
    }
    cuda_upload_close(&r->upload);
    if (r->stream) {
        cudaStreamDestroy(r->stream);
    }
    cuda_arena_close(&r->arena);
}

float *listen_take(struct listen_room *r, int64_t n)
{
    return cuda_arena_take(&r->arena, (uint64_t)n * sizeof(float));
}

const void *listen_put(struct listen_room *r, const void *data, uint64_t bytes)
{
    if (!data) {
        return NULL;
    }
    void *at = cuda_arena_take(&r->arena, bytes);
    if (at && !r->status) {
        r->status = cuda_upload_copy(r->upload, at, data, bytes, r->error);
    }
    return at;
}

struct listen_conv listen_put_conv(
    struct listen_room *r, const struct weight *w, const float *bias, int taps)
{
    return (struct listen_conv){
        .w = listen_put(r, w->data, (uint64_t)(w->rows * w->cols) * dtype_bytes(w->type)),
        .type = w->type,
        .w_stride = w->cols,
        .bias = listen_put(r, bias, (uint64_t)w->rows * sizeof(float)),
        .n_in = (int)(w->cols / taps),
        .n_out = (int)w->rows,
        .taps = taps,
        .dilation = 1,
        .step = 1,
        .y_stride = w->rows,
        .x_stride = w->cols / taps};
}

void listen_note(struct listen_room *r, cudaError_t result)
{
    if (!r->status && result) {
        r->status = cuda_device_check(r->device, result, r->what, r->error);
    }
}

void listen_wait(struct listen_room *r)
{
    if (!r->status) {
        r->status = cuda_wait_stream(r->device, r->stream, r->what, r->error);
    }
}

void listen_run(struct listen_room *r, const struct listen_conv *conv)
{
    if (!r->status && conv->n_t > 0) {
        listen_note(r, listen_conv_run(conv, r->stream));
    }
}
