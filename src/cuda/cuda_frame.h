/* SPDX-License-Identifier: Apache-2.0
 * The talker, the choice of codes and the predictor on the GPU: rows -> hidden state and logits; lanes -> frames. Work
 * is queued on one CUDA stream; codes and flags arrive in mapped host memory under a sequence number. */
#ifndef CUDA_CUDA_FRAME_H
#define CUDA_CUDA_FRAME_H

#include "cuda/cuda_lanes.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cuda_frame; /* buffers, captured graphs */

/* What a frame gave, in mapped host memory; complete when `sequence` is that of the frame. */
struct cuda_frame_out {
    int32_t codes[CONFIG_MAX_CODEBOOKS]; /* as chosen */
    int32_t end, not_a_number;
    uint64_t sequence;
};

/* Bytes of device memory that cuda_frame_open will allocate beside the cache and the lanes. */
uint64_t cuda_frame_plan(const struct model *model, int n_lanes);

utter_status cuda_frame_open(struct cuda_frame **frame, const struct cuda_weights *weights,
    const struct model *model, struct cuda_device *device, const struct cuda_lanes *lanes,
    cudaStream_t stream, utter_error *error);
void cuda_frame_close(struct cuda_frame **frame);

/* Queues: a lane as new. */
utter_status cuda_frame_reset(
    struct cuda_frame *frame, int lane, const struct lane_settings *settings, utter_error *error);

/* Queues rows through the talker at positions `position` and on; the pages are there. The rows are copied at once. */
utter_status cuda_frame_prefill(struct cuda_frame *frame, int lane, int position,
    const struct row *rows, int n, utter_error *error);

/* Queues one frame of n <= CUDA_MAX_SLOTS lanes. `step[i]`: the lane takes a talker step first. Sequence numbers of
 * the lanes' results go to sequence[n]. */
utter_status cuda_frame_run(struct cuda_frame *frame, const struct frame_in *in, const bool *step,
    int n, uint64_t sequence, utter_error *error);

/* The lane's result of its last frame; to be read once the sequence number stands in it. */
volatile struct cuda_frame_out *cuda_frame_out_of(struct cuda_frame *frame, int lane);

void cuda_frame_tap(struct cuda_frame *frame, backend_tap_fn *fn, void *user);

#ifdef __cplusplus
}
#endif

#endif
