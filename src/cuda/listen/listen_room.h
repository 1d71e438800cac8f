/* SPDX-License-Identifier: Apache-2.0
 * What an encoder needs for one recording: device memory, weights copied into it, a stream, and the first failure. A
 * function that takes everything runs twice: once to count, once after listen_room_open to take and copy. */
#ifndef CUDA_LISTEN_LISTEN_ROOM_H
#define CUDA_LISTEN_LISTEN_ROOM_H

#include "cuda/device/memory.h"
#include "cuda/listen/listen.h"

struct listen_room {
    struct cuda_device *device;
    struct cuda_arena arena;
    struct cuda_upload *upload;
    cudaStream_t stream;
    const char *what; /* for messages */
    utter_error *error;
    utter_status status; /* after a failure nothing more happens */
};

/* After the count. */
void listen_room_open(struct listen_room *room);
/* Waits for what was copied. */
void listen_room_ready(struct listen_room *room);
void listen_room_close(struct listen_room *room);

float *listen_take(struct listen_room *room, int64_t n); /* zeroed */
const void *listen_put(
    struct listen_room *room, const void *data, uint64_t bytes); /* NULL stays NULL */
/* Sets w, type, w_stride, bias, n_in, n_out, taps of a convolution whose other fields are zero or set by the caller.
 * */
struct listen_conv listen_put_conv(
    struct listen_room *room, const struct weight *w, const float *bias, int taps);

/* For what was queued, to its end. In front of copies to and from ordinary memory, which wait without one. */
void listen_wait(struct listen_room *room);
/* Notes the result of queued work. */
void listen_note(struct listen_room *room, cudaError_t result);
void listen_run(struct listen_room *room, const struct listen_conv *conv);

#endif
