/* SPDX-License-Identifier: Apache-2.0
 * What utterances change, in device memory: position, settings, history, caches. Plain data, shared by the graph of
 * kernels and the persistent kernel. A frame works on *slots*: slot i is the i-th lane of this frame, so that a
 * graph for 8 slots serves any 8 lanes. */
#ifndef CUDA_DEVICE_LANES_H
#define CUDA_DEVICE_LANES_H

#include "base/numeric.h"
#include "cuda/device/pages.h"
#include "cuda/device/weights.h"
#include "model/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One lane, in device memory. Written by kernels; the host resets it through a kernel. */
struct cuda_lane {
    struct lane_settings settings;
    int32_t position;                    /* the talker's next */
    uint32_t n_frames;                   /* chosen so far */
    int32_t ended;                       /* the end token was chosen */
    int32_t taken[CONFIG_MAX_CODEBOOKS]; /* codes of the last frame: chosen, or the caller's */
};

/* What a frame gave, in mapped host memory; complete when `sequence` is that of the frame. */
struct cuda_frame_out {
    int32_t codes[CONFIG_MAX_CODEBOOKS]; /* as chosen */
    int32_t end, not_a_number;
    /* Blocks of the frame kernel did not reach a barrier in time: no codes, and the lane is as before. */
    int32_t failed;
    uint64_t sequence;
};

/* Rows that a lane looks at while a frame is made, and where what the watched heads score of them goes. */
struct cuda_look {
    int32_t begin, end; /* equal: none */
    float *scores;      /* mapped: [heads watched][cuda_look_rows] */
};

/* How many of the rows the lane has when `position` is its last. */
NUMERIC_FN int cuda_look_rows(const struct cuda_look *look, int position)
{
    const int end = look->end <= position ? look->end : position + 1;
    return end > look->begin ? end - look->begin : 0;
}

/* Pointers into device memory; index lane first. Strides are in elements. */
struct cuda_lanes {
    int n;
    struct cuda_lane *state; /* [n] */
    float *hidden;           /* [n][talker width_padded]: after the final norm, of the last position */
    float *logits;           /* [n][codec_vocabulary], of the last position */
    uint8_t *seen;           /* [n][codec_vocabulary]: chosen as code 0 before */
    float *sum;              /* [n][talker width]: embeddings of the codes of the frame being made */
    int32_t *codes;          /* [n][BACKEND_MAX_FEED][n_codebooks] as the vocoder gets them */

    /* Talker's cache: position p of lane l is slot p % CUDA_PAGE of page pages[l * pages_stride + p / CUDA_PAGE]. A
     * page is [n_layers][n_kv_heads][2: keys, values][CUDA_PAGE][head] floats. */
    float *cache;
    uint64_t page_floats;
    int n_pages;
    int32_t *pages;
    int pages_stride;

    /* Predictor's cache, one frame's positions: [n][n_layers][n_kv_heads][2][n_codebooks][head] floats. */
    float *predictor_cache;
    uint64_t predictor_floats; /* of one lane */
};

/* Bytes of what a lane always has, and of one page of the talker's cache. */
uint64_t cuda_lanes_lane_bytes(const struct model *model);
uint64_t cuda_lanes_page_bytes(const struct model *model);
/* The pages that n lanes should have: enough for CUDA_LANE_POSITIONS of each, and for one lane as far as it goes. */
int cuda_lanes_pages(int n_lanes, int lane_positions);
enum { CUDA_LANE_POSITIONS = 2048, CUDA_LONE_POSITIONS = 8704 };

/* The host's side of the pages: which are free, and which a lane holds. */
struct cuda_pages {
    struct cuda_device *device;
    struct cuda_lanes *lanes;
    struct cuda_arena arena;
    int32_t *table;  /* pinned copy of lanes->pages */
    int32_t *unused; /* [n_unused], a stack */
    int n_unused;
    int *held; /* [n]: pages of each lane */
};

/* All-zero pages and lanes in. */
utter_status cuda_lanes_open(struct cuda_pages *pages, struct cuda_lanes *lanes,
    const struct model *model, struct cuda_device *device, int n_lanes, int n_pages, int lane_positions,
    utter_error *error);
void cuda_lanes_close(struct cuda_pages *pages);
/* Sees to it that a lane has pages for n_positions positions; what is new is queued. UTTER_E_MEMORY when there are no
 * more. */
utter_status cuda_lanes_grow(
    struct cuda_pages *pages, int lane, int n_positions, cudaStream_t stream, utter_error *error);
/* Takes a lane's pages back. */
void cuda_lanes_empty(struct cuda_pages *pages, int lane);

#ifdef __cplusplus
}
#endif

#endif
