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

/* Which of the weights are of 8 bits. */
enum frame_packed frame_kernel_packed(const struct cuda_weights *weights);

/* True when this GPU and this checkpoint suit the kernel; else *why (static text) says what is missing. */
bool frame_kernel_fits(
    const struct cuda_weights *weights, const struct cuda_device *device, const char **why);

/* The most lanes that a launch will take; 0: the kernel does not suit. */
int frame_kernel_most(const struct cuda_weights *weights, const struct cuda_device *device);

/* Bytes of device memory that frame_kernel_open allocates. */
uint64_t frame_kernel_plan(const struct cuda_weights *weights);

utter_status frame_kernel_open(struct frame_kernel **kernel, const struct cuda_weights *weights,
    struct cuda_device *device, const struct cuda_lanes *lanes, const struct config *config,
    cudaStream_t stream, utter_error *error);
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
/* Without the build for n lanes, and larger ones, from now on: with the last one the kernel is closed. */
void frame_kernel_limit(struct frame_kernel **kernel, int n);

/* Queues one launch for n different lanes. flags of args.h: for more than one lane FRAME_STEP or none. */
utter_status frame_kernel_run(struct frame_kernel *kernel, const struct frame_ask *asks, int n,
    uint32_t flags, uint64_t sequence, utter_error *error);

/* Queues behind a launch that was lost: the kernel as new. Its blocks no longer agree on the marks of the words that
 * they exchange. */
utter_status frame_kernel_clear(struct frame_kernel *kernel, utter_error *error);

/* From now on a frame is lost where this word of device memory, in place of the kernel's own, is not 0 in front of its
 * launch or becomes it; frame_kernel_clear clears it. */
void frame_kernel_heed(struct frame_kernel *kernel, uint32_t *error);

/* FRAME_LATE when a wait took too long since the last call, or 0; waits for the stream. Not 0: lanes are not to be
 * used any more, the kernel itself is as new. */
utter_status frame_kernel_errors(struct frame_kernel *kernel, uint32_t *errors, utter_error *error);

/* In device memory: [n_layers][n_heads] of the talker, which of the watched heads a head is, or -1. */
void frame_kernel_watch(struct frame_kernel *kernel, const int16_t *watched);

/* Where predictor logits of the next launches go: NULL, or [n_codebooks][predictor_vocabulary] in device memory. */
void frame_kernel_tap(struct frame_kernel *kernel, float *predictor_logits);

/* Where a build with FRAME_TRACED notes what block 0 does when: NULL, or [FRAME_TRACE] in device memory. */
void frame_kernel_trace(struct frame_kernel *kernel, uint64_t *trace);

/* How many slots of 16 KB of weights may be on their way to a block at once (where slots have half of that, twice as
 * many), and how many clocks lie between two copies; for measuring. */
void frame_kernel_ahead(struct frame_kernel *kernel, int n_slots, int copy_clocks);

/* Clocks after which a frame is lost, of the next n launches; those behind them have what all have at first. */
void frame_kernel_patience(struct frame_kernel *kernel, uint64_t clocks, int n);

#ifdef __cplusplus
}
#endif

#endif
