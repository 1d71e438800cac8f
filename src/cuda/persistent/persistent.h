/* SPDX-License-Identifier: Apache-2.0
 * The persistent kernel: one frame of one lane, or of several, in one cooperative launch. It reads the weights and
 * keeps the lanes of the graph path (device/weights.h, device/lanes.h), so a stream may change between the two from
 * frame to frame. */
#ifndef CUDA_PERSISTENT_PERSISTENT_H
#define CUDA_PERSISTENT_PERSISTENT_H

#include "cuda/persistent/build.h"
#include "cuda/persistent/lanes/lanes_args.h"

#ifdef __cplusplus
extern "C" {
#endif

struct frame_kernel;

/* The build for one lane and a talker of this width. */
struct frame_build frame_kernel_build(int talker_width, enum frame_packed packed);

/* A matrix of bf16 tiles as packed units (frame_pack.cuh): their bytes, and the work, queued. */
uint64_t frame_pack_bytes(const struct cuda_matrix *matrix);
cudaError_t frame_pack(void *to, const struct cuda_matrix *matrix, cudaStream_t stream);

/* True when this GPU and this checkpoint suit the kernel; else *why (static text) says what is missing. */
bool frame_kernel_fits(
    const struct cuda_weights *weights, const struct cuda_device *device, const char **why);

/* Bytes of device memory that frame_kernel_open allocates. */
uint64_t frame_kernel_plan(const struct cuda_weights *weights, enum frame_packed packed);

/* What a frame of one lane reads of matrices in 8 bits: the talker's once, the predictor's for each code. */
struct frame_reads {
    uint64_t talker_bytes, predictor_bytes;
};
struct frame_reads frame_packed_reads(const struct cuda_weights *weights);

/* packed: what is made here, in 8 bits, from the weights of the graph path. */
utter_status frame_kernel_open(struct frame_kernel **kernel, const struct cuda_weights *weights,
    struct cuda_device *device, const struct cuda_lanes *lanes, const struct config *config,
    enum frame_packed packed, cudaStream_t stream, utter_error *error);
void frame_kernel_close(struct frame_kernel **kernel);

/* What a frame needs of one lane. */
struct frame_ask {
    int lane, position;         /* of the talker's step */
    const float *text;          /* [talker width] in device memory, NULL: none */
    const int32_t *forced;      /* codes in device memory, or NULL */
    struct cuda_frame_out *out; /* mapped memory, the device's side */
    struct cuda_look look;      /* none without frame_kernel_watch */
};

/* The most lanes of one launch. */
int frame_kernel_lanes(const struct frame_kernel *kernel);

/* Queues one launch for n different lanes. flags of args.h: for more than one lane FRAME_STEP or none. */
utter_status frame_kernel_run(struct frame_kernel *kernel, const struct frame_ask *asks, int n,
    uint32_t flags, uint64_t sequence, utter_error *error);

/* FRAME_LATE when a wait took too long since the last call, or 0; waits for the stream. Not 0: lanes are not to be
 * used any more, the kernel itself is as new. */
utter_status frame_kernel_errors(struct frame_kernel *kernel, uint32_t *errors, utter_error *error);

/* In device memory: [n_layers][n_heads] of the talker, which of the watched heads a head is, or -1. */
void frame_kernel_watch(struct frame_kernel *kernel, const int16_t *watched);

/* Where predictor logits of the next launches go: NULL, or [n_codebooks][predictor_vocabulary] in device memory. */
void frame_kernel_tap(struct frame_kernel *kernel, float *predictor_logits);

/* Where a build with FRAME_TRACED notes what block 0 does when: NULL, or [FRAME_TRACE] in device memory. */
void frame_kernel_trace(struct frame_kernel *kernel, uint64_t *trace);

/* How many slots of weights may be on their way to a block at once, and how many clocks lie between two copies; for
 * measuring. */
void frame_kernel_ahead(struct frame_kernel *kernel, int n_slots, int copy_clocks);

/* Clocks after which a frame is lost. */
void frame_kernel_patience(struct frame_kernel *kernel, uint64_t clocks);

#ifdef __cplusplus
}
#endif

#endif
