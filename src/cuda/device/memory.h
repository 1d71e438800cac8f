/* SPDX-License-Identifier: Apache-2.0
 * Device memory in one piece: what a part needs is counted first, so that too little is said before anything is
 * allocated, and then handed out in the same order. And pinned host memory that the device reads and writes.
 *
 * A part of the backend writes one function that calls cuda_arena_take for everything it keeps; it runs
 * twice, once on an arena without memory (to count), once on the real one. */
#ifndef CUDA_DEVICE_MEMORY_H
#define CUDA_DEVICE_MEMORY_H

#include "cuda/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CUDA_ALIGN = 512 }; /* every piece begins on this border */

struct cuda_arena {
    unsigned char *base; /* NULL: only counts */
    uint64_t used, size;
    struct cuda_device *device; /* of the memory */
};

/* The next `bytes` bytes, zeroed; NULL while counting. */
void *cuda_arena_take(struct cuda_arena *arena, uint64_t bytes);

/* Allocates `used` bytes of an arena that has counted, zeroed, and starts it again. UTTER_E_MEMORY, nothing
 * allocated, when the board has less; `what` names it. */
utter_status cuda_arena_open(
    struct cuda_arena *arena, struct cuda_device *device, const char *what, utter_error *error);
void cuda_arena_close(struct cuda_arena *arena); /* frees nothing of a device that was given up */

/* Pinned host memory, zeroed: `*host` for the CPU, `*device_at` the same bytes for kernels. UTTER_E_MEMORY when there
 * is none. */
utter_status cuda_pinned_open(struct cuda_device *device, uint64_t bytes, void **host, void **device_at,
    const char *what, utter_error *error);
void cuda_pinned_close(void *host); /* accepts NULL */

/* Copies to the device through two pinned buffers, so that filling one and sending the other overlap. */
struct cuda_upload;
utter_status cuda_upload_open(
    struct cuda_upload **upload, struct cuda_device *device, utter_error *error);
void cuda_upload_close(struct cuda_upload **upload);
enum { CUDA_UPLOAD_BYTES = 8 << 20 }; /* of one buffer */
/* A buffer to fill with up to CUDA_UPLOAD_BYTES bytes; then cuda_upload_send puts `bytes` of it to `to`. */
utter_status cuda_upload_buffer(struct cuda_upload *upload, void **buffer, utter_error *error);
utter_status cuda_upload_send(struct cuda_upload *upload, void *to, uint64_t bytes, utter_error *error);
/* `bytes` bytes from host memory as they are. */
utter_status cuda_upload_copy(
    struct cuda_upload *upload, void *to, const void *from, uint64_t bytes, utter_error *error);
/* Kernels that work on what was sent are queued here. */
cudaStream_t cuda_upload_stream(struct cuda_upload *upload);
/* Waits until everything has arrived. */
utter_status cuda_upload_finish(struct cuda_upload *upload, utter_error *error);

#ifdef __cplusplus
}
#endif

#endif
