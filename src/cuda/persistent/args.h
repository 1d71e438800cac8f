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
    /* The talker takes a step; without it hidden state and logits are those of the lane. */
    FRAME_STEP = 1,
    /* Its input is `text` alone, not the codes of the frame before: a row of a prompt. */
    FRAME_ROW = 2,
    /* It ends after the talker's layers: a row of a prompt that is not the last. */
    FRAME_NO_HEAD = 4,
    /* It ends after the talker's head: the last row of a prompt. */
    FRAME_NO_CODES = 8
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
    struct cuda_look look;
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
        /* The host clears the first three after an error; the kernel never clears them. */
        uint32_t *words;  /* the exchange (block.cuh) */
        uint64_t *totals; /* [2][FRAME_TOTALS] */
        /* [FRAME_BLOCKS]: the mark that each kind of words was last written with, a bit each. */
        uint32_t *parity;
        /* [FRAME_BLOCKS][n_predictor][FRAME_KEPT_FLOATS]: the predictor's keys and values, each
         * block's own. */
        float *kept;
    } scratch;
    struct {
        int position; /* of the talker's step */
        /* [talker width]: the projected text that joins the codes; the row; or NULL: none. */
        const float *text;
        /* [n_codebooks]: codes that the lane takes instead of those that are chosen, or NULL. */
        const int32_t *forced;
        uint32_t flags;             /* FRAME_STEP ... */
        int codec_eos;              /* the code that ends an utterance */
        int suppress_from;          /* codes from here on are not chosen, but for codec_eos */
        int n_slots, slot_bytes;    /* of the ring */
        int n_ahead;                /* slots that are filled ahead, at most */
        int copy_clocks;            /* clocks between two copies of weights, at least */
        uint32_t keeps;             /* the layers of the predictor stay in the L2 cache */
        uint64_t sequence;          /* of the frame, for `out` */
        struct cuda_frame_out *out; /* mapped host memory */
        uint32_t *error;            /* bits; 0: all went well */
        uint64_t patience;          /* clocks after which a wait is an error */
        uint64_t *trace; /* [FRAME_TRACE]: where a build with FRAME_TRACED notes clocks, or NULL */
        /* [n_talker][2 FRAME_KV_HEADS]: which of the watched heads a head is, or -1; where lanes look at rows */
        const int16_t *watched;
        float *predictor_logits; /* [n_codebooks][predictor_vocabulary], for comparisons, or NULL */
    } control;
};

#endif
