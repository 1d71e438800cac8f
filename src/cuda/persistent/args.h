/* SPDX-License-Identifier: Apache-2.0
 * What the persistent frame kernel gets, grouped by life time; one constant parameter. All pointers are the
 * device's. */
#ifndef CUDA_PERSISTENT_ARGS_H
#define CUDA_PERSISTENT_ARGS_H

#include "cuda/device/lanes.h"
#include "cuda/device/weights.h"
#include "cuda/persistent/plan.h"

struct frame_layer {
    const void *qkv, *o, *gate_up, *down; /* tiles, see device/weights.h */
    const float *input_norm, *post_norm, *q_norm, *k_norm;
};

enum {
    FRAME_STEP =
        1, /* the talker takes a step; without it hidden state and logits are those of the lane */
    FRAME_ROW = 2, /* its input is `text` alone, not the codes of the frame before: a row of a prompt */
    FRAME_NO_HEAD = 4, /* and ends after its layers: a row of a prompt that is not the last */
    FRAME_NO_CODES = 8 /* ends after the talker's head: the last row of a prompt */
};

enum { FRAME_TRACE = 8192 };
enum { FRAME_LATE = 1 }; /* of *error */

/* What a lane has in device memory. */
struct frame_state {
    struct cuda_lane *lane;
    float *hidden, *logits; /* [talker width], [codec_vocabulary] */
    uint8_t *seen;          /* [codec_vocabulary] */
    float *cache;           /* pages, see device/lanes.h */
    uint64_t page_floats;
    const int32_t *pages; /* of this lane */
    float *sum;     /* [talker width]: embeddings of the last frame's codes, added in their order */
    int32_t *codes; /* [n_codebooks] as the vocoder gets them, or NULL */
};

struct frame_args {
    struct {
        const struct frame_layer *layers; /* [n_talker + n_predictor] */
        int n_talker, n_predictor, n_codebooks, codec_vocabulary, predictor_vocabulary;
        const void *talker_head;
        const void *const *heads; /* [n_codebooks - 1] tiles */
        const void *projection;   /* NULL when the widths are equal */
        const float *projection_bias;
        const float *talker_norm, *predictor_norm;
        const float *talker_freq, *predictor_freq; /* [64] */
        const uint16_t *const *code_table;         /* [n_codebooks] rows of talker width, bf16 */
        float talker_eps, predictor_eps;
    } weights;
    struct frame_state state;
    struct {
        uint32_t
            *words; /* the exchange; the host clears it and `parity` after an error, the kernel never */
        uint64_t *totals; /* [2][FRAME_TOTALS], cleared likewise */
        uint32_t *
            parity; /* [FRAME_BLOCKS]: which of its two marks each kind was last written with, a bit each */
        float *kept; /* [FRAME_BLOCKS][n_predictor][FRAME_KEPT_FLOATS]: each block's own */
    } scratch;
    struct {
        int position; /* of the talker's step */
        const float
            *text; /* [talker width]: the projected text that joins the codes, NULL: none; or the row */
        const int32_t *forced; /* NULL, or [n_codebooks] */
        uint32_t flags;
        int codec_eos, suppress_from, n_slots, slot_bytes;
        int n_ahead, pace; /* slots on their way, clocks between two copies of weights */
        uint64_t sequence;
        struct cuda_frame_out *out; /* mapped host memory */
        uint32_t *error;            /* bits; 0: all went well */
        uint64_t patience;          /* clocks after which a wait is an error */
        uint64_t *trace; /* NULL, or [FRAME_TRACE]: where a build with FRAME_TRACED notes clocks */
        float *predictor_logits; /* NULL, or [n_codebooks][predictor_vocabulary], for comparisons */
    } control;
};

#endif
