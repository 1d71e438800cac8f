/* SPDX-License-Identifier: Apache-2.0
 * The GPU behind the backend door: what its files share. */
#ifndef CUDA_DOOR_BACKEND_PARTS_H
#define CUDA_DOOR_BACKEND_PARTS_H

#include "cuda/graph/frame.h"
#include "cuda/listen/encoder.h"
#include "cuda/listen/speaker.h"
#include "cuda/vocoder/vocoder.h"
#include "model/request.h"

/* The host's side of a lane. */
struct lane {
    int position;    /* the talker's next */
    bool ready;      /* hidden and logits wait for the choice of code 0 */
    bool ended;      /* the end token was chosen */
    bool framed;     /* a frame was queued that collect has not handed out */
    bool vocoded;    /* and its samples too */
    uint64_t behind; /* the order in front of that frame's */
    int n_frames;    /* chosen so far */
    int n_waiting;   /* frames of codes that vocode has not seen */
    unsigned sent;   /* the round in which its pinned codes were sent */
    unsigned grew;   /* the round in which its pinned table of pages was sent */
    bool prompted;   /* its prompt is what b->prompt stands around, and has not been reported */
    struct cuda_look look;
    float *scores;      /* look.scores, as the host sees them */
    size_t scores_room; /* floats */
    struct lane_out out;
    int32_t *codes; /* [BACKEND_MAX_FEED][n_codebooks]: what collect hands out */
};

enum { BACKEND_USUALS = 8 };

struct backend {
    const struct model *model;
    struct cuda_device device;
    struct cuda_weights weights;
    struct cuda_lanes lanes;
    struct cuda_pages pages;
    int64_t lane_room; /* positions that a lane may ask for, whole pages */
    struct cuda_frame *frame;
    uint64_t kernel_bytes; /* that the persistent kernel keeps; 0: the graphs were chosen */
    struct cuda_vocoder *vocoder;
    cudaStream_t stream;
    cudaEvent_t done;      /* after all that was queued */
    cudaEvent_t sound[2];  /* around the last vocode */
    cudaEvent_t prompt[2]; /* around the last prompt, its recording included */
    bool primed;           /* prompt[0] stands before a recording whose rows have not come */
    /* What waiting for a frame of up to 1, 2, 4 .. lanes takes at least; 0: not known. */
    double usual_s[BACKEND_USUALS];
    int usual_index; /* in usual_s, while a frame and nothing else is queued; else -1 */
    struct lane *of; /* [n_lanes] */
    struct cuda_frame_in in[CUDA_MAX_SLOTS];
    int32_t *fed;           /* pinned: [n_lanes][BACKEND_MAX_FEED][n_codebooks] */
    float *pcm, *pcm_at;    /* mapped: [n_lanes][BACKEND_MAX_FEED * frame_samples] */
    uint32_t *bad, *bad_at; /* mapped: [n_lanes], a sample was no number */
    int n_watched;          /* heads */
    bool busy;              /* something is queued since the last wait */
    unsigned round;         /* one more after each wait; from 1 on */
    char name[420];         /* of the device and its kernels */
    char name_left[340];    /* once the graphs have taken over */
};

/* Bytes of device memory, whatever the number of lanes, without the persistent kernel's own. */
uint64_t backend_fixed_bytes(const struct model *model);
/* What prompts keep beside the cache, where a lane may hold so many pages of it. */
uint64_t backend_rows_bytes(const struct model *model, int n_pages);
/* Bytes of a lane, vocoder included, with the least of cache that makes sense: 512 positions, 40 seconds. */
enum { CUDA_LEAST_PAGES = 512 / CUDA_PAGE };
uint64_t backend_least_lane_bytes(const struct model *model);
/* As many as take seven eighths of the memory that is free, half of it where it is the system's too, each with
 * CUDA_LANE_POSITIONS positions of cache: the rest is for recordings, snapshots and other programs. Not more than a
 * frame takes at once; not fewer than CUDA_FEW_LANES, if so many can be opened at all. CUDA_FEW_LANES too where there
 * is no such GPU: opening says why. */
int backend_suiting_lanes(const struct model *model, const struct backend_options *options);
enum { CUDA_FEW_LANES = 24 };
utter_status backend_open(struct backend **b, const struct model *model,
    const struct backend_options *options, utter_error *error);
void backend_close(struct backend **b);

/* True once the graphs have taken over from the persistent kernel. */
static inline bool backend_left_kernel(const struct backend *b)
{
    return b->kernel_bytes > 0 && !cuda_frame_persistent(b->frame);
}

/* The first line of every call: the device is this thread's and whole, and the lane is there. */
utter_status backend_enter(struct backend *b, int lane, utter_error *error);

/* Waits until all that is queued has been done: in front of calls of the runtime that would wait for it without end.
 * */
utter_status backend_settle(struct backend *b, utter_error *error);

/* Where a lane stands, for checks of what is asked of it. */
struct request_lane backend_standing(const struct backend *b, const struct lane *lane);

/* Pages for so many positions of a lane; what is new of its table is on its way then. */
utter_status backend_grow(struct backend *b, int lane, int n_positions, utter_error *error);

/* Watched heads, as in the door. */
utter_status backend_watch(
    struct backend *b, const struct talker_head *heads, int n, utter_error *error);
utter_status backend_look(struct backend *b, int lane, int begin, int end, utter_error *error);
/* What a lane scores in the frame that has been queued, which took a step, comes out with it. */
void backend_tell_scores(struct lane *lane);

/* Fills in step_s by the bytes of weights that are told, or the model's. */
void backend_foretell(const struct backend *b, struct backend_memory *memory);

/* Snapshots, as in the door. */
utter_status backend_lane_keep(struct backend *b, int lane, int n_rows, bool vocoder,
    struct backend_snapshot **snapshot, utter_error *error);
utter_status backend_lane_resume(
    struct backend *b, int lane, const struct backend_snapshot *snapshot, utter_error *error);
void backend_snapshot_free(struct backend *b, struct backend_snapshot **snapshot);

static inline utter_status backend_check(
    struct backend *b, cudaError_t result, const char *what, utter_error *error)
{
    return cuda_device_check(&b->device, result, what, error);
}

/* Samples and codes that a lane has room for on their way to and from the host. */
static inline size_t backend_lane_samples(const struct backend *b)
{
    return BACKEND_MAX_FEED * (size_t)b->model->config->codec.frame_samples;
}

static inline size_t backend_lane_codes(const struct backend *b)
{
    return BACKEND_MAX_FEED * (size_t)b->model->config->n_codebooks;
}

#endif
