/* SPDX-License-Identifier: Apache-2.0
 * Where a build of the persistent kernel has its words in the exchange, and how its shared memory is laid out. Not a
 * header but a body: a file of builds/ says FRAME_LANES and FRAME_LANES_WIDTH, the most lanes of a launch and the
 * talker's width (0: any), and includes the .cuh files of this room, which all stand on this one. Nobody else does
 * (tools/check_layers); the host gets sizes from struct frame_build (build.h). */
#ifndef CUDA_PERSISTENT_LAYOUT_BODY_H
#define CUDA_PERSISTENT_LAYOUT_BODY_H

#include "cuda/persistent/plan.h"

#if !defined FRAME_LANES || !defined FRAME_LANES_WIDTH
#error "for files of builds/, which say how many lanes they have"
#endif

/* For loads of 16 bytes, and so that rows lie in known banks. */
#define FRAME_ALIGNED __attribute__((aligned(128)))

enum {
    FRAME_MAX_COLUMNS =
        FRAME_LANES > 1 ? FRAME_LANES : 2,  /* one lane: the predictor's first pass has two */
    FRAME_PLACED = FRAME_LANES > 1 ? 1 : 2, /* columns that a block attends for */
};

/* Where the exchange keeps what; in 4-byte words, each kind written once between two device-wide exchanges. There are
 * three sets, for the passes of the talker, of the predictor, and of its first step with two columns: so every word
 * of a kind is written whenever its kind is, and its mark is never older than the last time. */
enum { FRAME_SET_TALKER, FRAME_SET_PREDICTOR, FRAME_SET_FIRST, FRAME_N_SETS };
enum frame_kind {
    FRAME_X_QKV, /* [kv head][column][512]: read by the 16 blocks of the kv head */
    FRAME_X_SPLIT, /* [kv head][part][2 heads][FRAME_SPLIT]: the talker's attention, read by the kv head's blocks */
    FRAME_X_INNER, /* [column][inner] */
    FRAME_X_DOWN,  /* [column][parts][width] */
    FRAME_X_SCORES,
    FRAME_X_INPUT, /* [column][2 parts][the predictor's width] */
    FRAME_N_KINDS
};

FRAME_FN int frame_kind_at(int kind)
{
    const int words[FRAME_N_KINDS] = {FRAME_KV_HEADS * FRAME_MAX_COLUMNS * FRAME_GROUP,
        FRAME_KV_HEADS * FRAME_KEY_PARTS * 2 * FRAME_SPLIT, FRAME_MAX_COLUMNS * 6144,
        FRAME_MAX_COLUMNS * 2048, 4096, FRAME_MAX_COLUMNS * 2048};
    int at = 0;
    for (int i = 0; i < kind; i++) {
        at += words[i];
    }
    return at;
}

FRAME_FN size_t frame_exchange_bytes(void)
{
    return (size_t)FRAME_N_SETS * (size_t)frame_kind_at(FRAME_N_KINDS) * 4;
}

/* Shared memory of a block: fixed parts, then the ring. */
enum {
    FRAME_WIDE = FRAME_LANES_WIDTH != 1024, /* the talker of 1.7B: an inner vector of 6,144 */
    /* One lane: the inner vector, or the half that a block has, in two rows a column and warp; also the sampler's
     * list. Several: that list, also the notes of the talker's attention. */
    FRAME_VECTOR_BYTES = FRAME_LANES > 1 ? FRAME_MAX_SCORES * 8
                                         : FRAME_WARPS * 2 * (FRAME_WIDE ? 24 * 64 + 64 : 6 * 64 + 64),
    /* Each warp's share of up to 128 rows of a column, or of fewer of two. */
    FRAME_SUM_FLOATS = FRAME_LANES * FRAME_WARPS * (FRAME_WIDE ? 128 : 64) + FRAME_MAX_COLUMNS * 8,
};

struct frame_shared {
    uint64_t full[FRAME_MAX_SLOTS], empty[FRAME_MAX_SLOTS];
    /* Barriers for the totals of the layer before: all blocks have read them; this block's share of them is zero. */
    uint64_t totals_read, totals_clear;
    FRAME_ALIGNED float sums[2][FRAME_SUM_FLOATS];         /* of products in turns */
    FRAME_ALIGNED float placed[FRAME_PLACED][FRAME_GROUP]; /* q, q, k after norm and rotation, v */
    float cosine[FRAME_PLACED][64], sine[FRAME_PLACED][64];
    float squares[FRAME_MAX_COLUMNS][FRAME_WARPS]; /* each warp's share of a sum of squares */
    float scores[FRAME_PLACED][2][FRAME_MAX_POSITIONS];
    FRAME_ALIGNED float shares[FRAME_WARPS][FRAME_PLACED]
                              [FRAME_SHARES]; /* each warp's, of keys or parts */
    uint32_t pair[3][FRAME_MAX_COLUMNS * 8];  /* words that the other block of a cluster writes */
    uint32_t reduced[4][FRAME_WARPS];
    uint32_t counter[2];
    int32_t winner;
    FRAME_ALIGNED uint32_t settings[24];             /* struct lane_settings */
    uint32_t n_frames;                               /* of the lane, before this one */
    const uint16_t *code_table[FRAME_MAX_POSITIONS]; /* as many as there are codebooks at most */
    int32_t chosen[FRAME_MAX_POSITIONS];             /* codes of this frame, as sampling chose them */
    int32_t taken[FRAME_MAX_POSITIONS];              /* the same, as the lane goes on with them */
    uint32_t dead;                           /* an exchange ran out of time: nothing waits any more */
    uint32_t lost;                           /* what was decided about the frame */
    uint32_t stop;                           /* FRAME_STOP_... */
    const void *layers[FRAME_MAX_LAYERS][8]; /* struct frame_layer */
    FRAME_ALIGNED unsigned char vector[FRAME_VECTOR_BYTES];
    /* then the ring, on a border of 128 bytes */
};

FRAME_FN size_t frame_ring_at(void)
{
    return (sizeof(struct frame_shared) + 127) / 128 * 128;
}

#endif
