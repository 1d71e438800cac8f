/* SPDX-License-Identifier: Apache-2.0
 * What utterances change, in device memory: position, settings, history, caches. Plain data, shared by the graph of
 * kernels and the persistent kernel. A frame works on *slots*: slot i is the i-th lane of this frame, so that a
 * graph for 8 slots serves any 8 lanes. */
#ifndef CUDA_CUDA_LANES_H
#define CUDA_CUDA_LANES_H

#include "cuda/cuda_weights.h"
#include "model/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CUDA_PAGE = 16, /* positions of the talker's cache that are handed out together */
    CUDA_SPLITS =
        8, /* pages of a lane are spread over this many blocks: page p goes to block p % CUDA_SPLITS */
    CUDA_MAX_SLOTS = 64, /* lanes of one frame; more are done in groups */
    CUDA_RING = 4,       /* frames of a lane whose codes the host can still read */
};

/* One lane, in device memory. Written by kernels; the host resets it through a kernel. */
struct cuda_lane {
    struct lane_settings settings;
    int32_t position;                    /* the talker's next */
    uint32_t n_frames;                   /* chosen so far */
    int32_t ended;                       /* the end token was chosen */
    int32_t going[CONFIG_MAX_CODEBOOKS]; /* the last frame as the lane goes on with it */
};

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

#ifdef __cplusplus
}
#endif

#endif
