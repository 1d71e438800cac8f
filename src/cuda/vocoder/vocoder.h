/* SPDX-License-Identifier: Apache-2.0
 * Codes -> samples on the GPU, with the whole state of a lane carried in device memory: any chunking gives the same
 * samples. Nothing here waits: work is queued on the caller's CUDA stream. */
#ifndef CUDA_VOCODER_VOCODER_H
#define CUDA_VOCODER_VOCODER_H

#include "cuda/device/device.h"
#include "model/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cuda_vocoder; /* prepared weights, and the state of n_lanes lanes */

/* Bytes that cuda_vocoder_open will allocate: `shared` once and `lane` for each lane. */
void cuda_vocoder_plan(const struct model *model, uint64_t *shared_bytes, uint64_t *lane_bytes);

/* How many numbers the sound of one frame multiplies. */
double cuda_vocoder_products(const struct cuda_vocoder *vocoder);

utter_status cuda_vocoder_open(struct cuda_vocoder **vocoder, const struct model *model,
    struct cuda_device *device, int n_lanes, utter_error *error);
void cuda_vocoder_close(struct cuda_vocoder **vocoder);

/* Queues: empties a lane's state. */
utter_status cuda_vocoder_reset(
    struct cuda_vocoder *vocoder, int lane, cudaStream_t stream, utter_error *error);

/* What is to be decoded. Every lane is named once. */
struct cuda_vocoder_job {
    const int *lanes; /* host, [n] */
    int n;
    int n_frames; /* the same for all: 1 .. BACKEND_MAX_FEED */
    /* Device: lane l's frames at codes + l * codes_stride, [n_frames][n_codebooks]. */
    const int32_t *codes;
    int64_t codes_stride; /* in codes */
    float *pcm;           /* mapped host memory: lane l's samples at pcm + l * pcm_stride */
    int64_t pcm_stride;   /* in samples */
    /* Mapped host memory, [lanes]: becomes 1 when a sample was NaN (written as 0). */
    uint32_t *not_a_number;
};

/* Queues the decoding of a job. All paths that it can take were run once at open. */
utter_status cuda_vocoder_run(struct cuda_vocoder *vocoder, const struct cuda_vocoder_job *job,
    cudaStream_t stream, utter_error *error);

/* The same for one lane without samples, only for the state that is left: complete once cuda_vocoder_memory_frames
 * more frames have been decoded. */
utter_status cuda_vocoder_hear(struct cuda_vocoder *vocoder, const struct cuda_vocoder_job *job,
    cudaStream_t stream, utter_error *error);
int cuda_vocoder_memory_frames(const struct cuda_vocoder *vocoder);

/* The whole state of a lane in device memory, for copies of it. */
void *cuda_vocoder_state(const struct cuda_vocoder *vocoder, int lane);
uint64_t cuda_vocoder_state_bytes(const struct cuda_vocoder *vocoder);

/* Bytes held now. */
void cuda_vocoder_memory(
    const struct cuda_vocoder *vocoder, uint64_t *shared_bytes, uint64_t *lane_bytes);

/* Named activations "vocoder.STAGE" of the runs to come, waiting for each; fn NULL: off. For tests. */
void cuda_vocoder_tap(struct cuda_vocoder *vocoder, backend_tap_fn *fn, void *user);

#ifdef __cplusplus
}
#endif

#endif
