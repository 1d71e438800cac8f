/* SPDX-License-Identifier: Apache-2.0
 * What a build of the frame kernel for several lanes tells between blocks, and where it stands: as in frame_plan.h, for
 * FRAME_LANES lanes and a talker of width FRAME_LANES_WIDTH. */
#ifndef CUDA_FRAME_LANES_PLAN_H
#define CUDA_FRAME_LANES_PLAN_H

#include "cuda/frame_plan.h"

enum { LANES = FRAME_LANES, LANES_WIDTH = FRAME_LANES_WIDTH };

enum lanes_kind {
    LANES_X_STATE,  /* [lane][width] */
    LANES_X_QKV,    /* [kv head][lane][512] */
    LANES_X_SPLIT,  /* [lane][kv head][part][2 heads][FRAME_SPLIT] */
    LANES_X_MIXED,  /* [kv head][lane][256] */
    LANES_X_O,      /* [kv head][lane][width] */
    LANES_X_MIDDLE, /* [lane][width]: the state between the halves of a layer */
    LANES_X_INNER,  /* [lane][inner] */
    LANES_X_SCORES, /* [lane][4096] */
    LANES_X_CODES,  /* [lane]: no floats, see lanes_choose */
    LANES_N_KINDS
};
enum { LANES_SET_TALKER, LANES_SET_PREDICTOR, LANES_N_SETS };

FRAME_FN int lanes_kind_at(int kind)
{
    const int words[LANES_N_KINDS] = {LANES * LANES_WIDTH, FRAME_KV_HEADS * LANES * FRAME_GROUP,
        LANES * FRAME_BLOCKS * 2 * FRAME_SPLIT, FRAME_KV_HEADS * LANES * 256,
        FRAME_KV_HEADS * LANES * LANES_WIDTH, LANES * LANES_WIDTH, LANES * 3 * LANES_WIDTH,
        LANES * 4096, 32};
    int at = 0;
    for (int i = 0; i < kind; i++) {
        at += words[i];
    }
    return at;
}

/* The mark of shared->pair: a bit of b.marks that begins at 0 with each launch, as the words do. */
enum { LANES_PAIR_BIT = 31 };

#endif
