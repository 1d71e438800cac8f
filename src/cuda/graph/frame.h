/* SPDX-License-Identifier: Apache-2.0
 * The talker, the choice of codes and the predictor on the GPU: rows -> hidden state and logits; lanes -> frames.
 * Work is queued on one CUDA stream; codes and flags arrive in mapped host memory. */
#ifndef CUDA_GRAPH_FRAME_H
#define CUDA_GRAPH_FRAME_H

#include "cuda/device/lanes.h"
#include "cuda/device/weights.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cuda_frame; /* buffers, captured graphs */

/* Bytes of device memory that cuda_frame_open will allocate beside the lanes'. */
uint64_t cuda_frame_plan(const struct model *model);

/* All that is passed must outlive the frame. Every graph is run once. */
utter_status cuda_frame_open(struct cuda_frame **frame, const struct cuda_weights *weights,
    const struct model *model, struct cuda_device *device, const struct cuda_lanes *lanes,
    cudaStream_t stream, utter_error *error);
/* How frames are made: by graphs, all lanes in one pass; by the persistent kernel (persistent/persistent.h), up to 8
 * lanes in one; or by that of the two which the rule names for this GPU, model and number of lanes (frame_rule.h). */
enum cuda_frame_way { CUDA_FRAME_GRAPHS, CUDA_FRAME_KERNEL, CUDA_FRAME_RULE };
/* True: the rule names the persistent kernel. */
bool cuda_frame_ruled(
    const struct cuda_weights *weights, const struct cuda_device *device, int n_lanes);
/* From now on, for all frames: what a lane gets must not depend on how many there are. The first FRAME_MOST_LANES lanes
 * have room for CUDA_FRAME_TRIAL_POSITIONS positions, and are to be renewed behind it. *note: NULL, or what of the
 * kernel does not work on this GPU, so that the graphs make its frames. UTTER_E_DEVICE when the kernel was asked for
 * and does not suit this GPU or checkpoint. */
enum { CUDA_FRAME_TRIAL_POSITIONS = 3 };
utter_status cuda_frame_choose(
    struct cuda_frame *frame, enum cuda_frame_way way, const char **note, utter_error *error);
/* True while the persistent kernel makes frames: it is gone once its blocks did not reach a barrier
 * in time. */
bool cuda_frame_persistent(const struct cuda_frame *frame);
void cuda_frame_close(struct cuda_frame **frame);

/* Queues: a lane as new. */
utter_status cuda_frame_renew(
    struct cuda_frame *frame, int lane, const struct lane_settings *settings, utter_error *error);

/* Queues rows through the talker at positions `position` and on, whose pages are there. The rows are copied at
 * once. */
utter_status cuda_frame_prefill(struct cuda_frame *frame, int lane, int position,
    const struct row *rows, int n, utter_error *error);

/* The same, and how likely the codes are that come behind them (backend.h, weigh); waits for each piece. */
utter_status cuda_frame_weigh(struct cuda_frame *frame, int lane, int position, const struct row *rows,
    int n, const int32_t *codes, struct likelihood *likelihoods, utter_error *error);

/* One lane of a frame. */
struct cuda_frame_in {
    const struct frame_in *in;
    bool step; /* a talker step at `position` comes first */
    int position;
    struct cuda_look look; /* of the step */
};

/* Which heads of the talker frames score rows with from now on, where lanes look at some; n 0: none. Behind a wait. */
utter_status cuda_frame_watch(
    struct cuda_frame *frame, const struct talker_head *heads, int n, utter_error *error);

/* Queues one frame of n <= CUDA_MAX_SLOTS lanes, right behind what stands in front of it: where a prompt is lost there,
 * the frame does nothing, the prompt is read again, and the frame made again. alone: nothing else is queued, so that it
 * should take as long as those before it did. */
utter_status cuda_frame_run(
    struct cuda_frame *frame, const struct cuda_frame_in *in, int n, bool alone, utter_error *error);

/* Sees to it that what stands on prompts can be queued, but for frames: those whose layers one kernel makes are read
 * again, by kernel after kernel, where its blocks did not reach a barrier in time. Waits for the end of these. */
utter_status cuda_frame_settle(struct cuda_frame *frame, utter_error *error);
/* The number of the last order; what a later one gives has a greater one as its sequence. */
uint64_t cuda_frame_sequence(const struct cuda_frame *frame);
/* What the lane's last frame gave, to be read once the stream has come past it. */
const struct cuda_frame_out *cuda_frame_result(const struct cuda_frame *frame, int lane);
/* Seconds of the last frame that has ended. */
void cuda_frame_times(struct cuda_frame *frame, double *talker_s, double *predictor_s);

/* Seconds that cuda_frame_run has waited for frames of the persistent kernel since the last such question. */
double cuda_frame_waited(struct cuda_frame *frame);

/* Named activations of what comes, waiting for each; fn NULL: off. For tests. */
void cuda_frame_tap(struct cuda_frame *frame, backend_tap_fn *fn, void *user);

#ifdef __cplusplus
}
#endif

#endif
