/* SPDX-License-Identifier: Apache-2.0
 * What a build of the frame kernel for several lanes tells between blocks, and where it stands; in which order a
 * block takes pages of the talker's cache. A body, as persistent/layout_body.h is: for FRAME_LANES lanes and a talker
 * of width FRAME_LANES_WIDTH. */
#ifndef CUDA_PERSISTENT_LANES_LANES_LAYOUT_BODY_H
#define CUDA_PERSISTENT_LANES_LANES_LAYOUT_BODY_H

#include "cuda/persistent/layout_body.h"

enum { LANES = FRAME_LANES, LANES_WIDTH = FRAME_LANES_WIDTH, LANES_FOURS = (LANES + 3) / 4 };

enum lanes_kind {
    LANES_X_STATE,  /* the vector in front of a layer */
    LANES_X_QKV,    /* [kv head][lane][512] */
    LANES_X_MIXED,  /* the mixed heads: a vector of a unit for each kv head */
    LANES_X_MIDDLE, /* the vector between the halves of a layer */
    LANES_X_INNER,  /* the inner vector */
    LANES_X_SCORES, /* [lane][4096] */
    LANES_X_CODES,  /* [lane]: no floats, see lanes_choose */
    LANES_X_INPUT,  /* the vector in front of the predictor, and of the talker's head */
    LANES_X_KEPT, /* as the mixed heads, of a pass that only keeps keys: one kv head's blocks read them */
    LANES_N_KINDS
};
enum { LANES_SET_TALKER, LANES_SET_PREDICTOR, LANES_N_SETS };

/* Vectors stand in the exchange as the tensor cores take them: for four lanes, a unit of 256 elements and a warp, 16
 * bytes for each of its threads; lanes_vector.cuh. */
enum { LANES_UNIT_WORDS = FRAME_WARPS * 32 * 4 };

FRAME_FN int lanes_vector_words(int units)
{
    return LANES_FOURS * units * LANES_UNIT_WORDS;
}

/* The word of a pair of elements, of which `element` is one: the upper parts (part 0) or what is left of them (1). */
FRAME_FN int lanes_word_at(int units, int lane, int element, int part)
{
    int unit = element / FRAME_UNIT_K, warp = element % FRAME_UNIT_K / 32, pair = element % 32 / 2;
    int thread = (lane % 4 * 2 + part) * 4 + pair % 4;
    return ((lane / 4 * units + unit) * FRAME_WARPS + warp) * 128 + thread * 4 + pair / 8 * 2 +
           pair / 4 % 2;
}

/* The word of the squares of four elements from `element` on, behind a vector of width `width`: a thread of a warp
 * gets those of four units at once. */
FRAME_FN int lanes_square_at(int width, int lane, int element)
{
    int chunk = element / 1024, unit = element % 1024 / FRAME_UNIT_K,
        warp = element % FRAME_UNIT_K / 32;
    return lanes_vector_words(width / FRAME_UNIT_K) +
           ((lane / 4 * (width / 1024) + chunk) * FRAME_WARPS + warp) * 128 +
           (lane % 4 * 8 + element % 32 / 4) * 4 + unit;
}

FRAME_FN int lanes_kind_at(int kind)
{
    const int state =
        lanes_vector_words(LANES_WIDTH / FRAME_UNIT_K) + lanes_vector_words(LANES_WIDTH / 1024);
    const int mixed = lanes_vector_words(FRAME_KV_HEADS);
    const int words[LANES_N_KINDS] = {state, FRAME_KV_HEADS * LANES * FRAME_GROUP, mixed, state,
        lanes_vector_words(3 * LANES_WIDTH / FRAME_UNIT_K), LANES * 4096, 32, state, mixed};
    int at = 0;
    for (int i = 0; i < kind; i++) {
        at += words[i];
    }
    return at;
}

/* A page of the talker's cache, of one layer and kv head: keys, and from here on values, in a slot of the ring; where
 * slots have half the size, in one each. */
enum { LANES_VALUES_AT = FRAME_UNIT_BYTES };

/* Pages of the talker's cache that a block has, by their number among its own, of which there are n, in the order in
 * which it takes them: those of the first half of its parts, then those of the second one, so that a warp has one
 * part at a time. Number 0 is the first, -1 stands behind the last. */
enum { LANES_PARTS = FRAME_KEY_PARTS / 2, LANES_GROUPS = LANES_PARTS / 2 };

FRAME_FN int lanes_page_after(int page, int n)
{
    int next = page % LANES_GROUPS + 1 < LANES_GROUPS ? page + 1 : page + 1 + LANES_GROUPS;
    return next < n ? next : page % LANES_PARTS < LANES_GROUPS && n > LANES_GROUPS ? LANES_GROUPS : -1;
}

/* The marks of shared->pair: bits of b.marks that begin at 0 with each launch, as the words do. */
enum { LANES_PAIR_O_BIT = 30, LANES_PAIR_BIT };

#endif
