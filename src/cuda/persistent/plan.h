/* SPDX-License-Identifier: Apache-2.0
 * How the persistent frame kernel shares a pass over the weights among blocks: which block multiplies which rows, in
 * which order its bytes come, where results stand in the exchange, and how shared memory is laid out. Plain
 * arithmetic that the host (checks, tests) and the device (producer and consumers) compute from the same lines.
 *
 * A matrix is cut into *units*: 16 rows by 256 columns, which lie together: 8 KB of bf16 in the layout of
 * device/weights.h, or 4 KB of whole numbers and 256 bytes of scales (pack.cuh). The 8 warps that multiply share
 * the columns of each unit, 32 neighbouring ones a warp, whatever the product: so a warp waits for its own part of a
 * vector alone. A slot of the ring holds 2 units of bf16 or 4 of whole numbers. */
#ifndef CUDA_PERSISTENT_PLAN_H
#define CUDA_PERSISTENT_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define FRAME_FN static inline constexpr __host__ __device__
#elif defined __cplusplus
#define FRAME_FN static inline constexpr
#else
#define FRAME_FN static inline
#endif
#define FRAME_ALIGNED                                                                                  \
    __attribute__((aligned(128))) /* for loads of 16 bytes, and so that rows lie in known banks */

/* The lanes of a launch that a file builds the kernel for, and the talker's width, 0: all; see
 * persistent/lanes/frame_lanes.cuh. */
#ifndef FRAME_LANES
#define FRAME_LANES 1
#define FRAME_LANES_WIDTH 0
#endif

enum {
    FRAME_BLOCKS = 128, /* one a multiprocessor; others stay idle */
    FRAME_PARTS = 16,   /* blocks that share a kv head: block = kv head * FRAME_PARTS + part */
    FRAME_KV_HEADS = 8, /* with two query heads of 128 each */
    FRAME_HEAD = 128,
    FRAME_WARPS = 8,          /* that multiply */
    FRAME_THREADS = 256,      /* of them */
    FRAME_ALL_THREADS = 384,  /* with four more warps, the first of which brings the weights */
    FRAME_UNIT_K = 256,       /* columns of a unit */
    FRAME_UNIT_BYTES = 8192,  /* in bf16 */
    FRAME_CODES_BYTES = 4096, /* of a unit in 8 bits, before its scales */
    FRAME_PACKED_BYTES = 4352,
    FRAME_SLOT_UNITS = 2,
    FRAME_PACKED_UNITS = 4,
    FRAME_MIXED = 2048, /* width of all query heads together */
    FRAME_GROUP = 512,  /* two query heads, key and value of one kv head */
    FRAME_MAX_COLUMNS =
        FRAME_LANES > 1 ? FRAME_LANES : 2,  /* one lane: the predictor's first pass has two positions */
    FRAME_PLACED = FRAME_LANES > 1 ? 1 : 2, /* columns that a block attends for */
    FRAME_MAX_LAYERS = 64,                  /* of both stacks together */
    FRAME_MAX_POSITIONS = 16,               /* of the predictor */
    FRAME_MAX_SCORES = 3072,                /* the larger vocabulary */
    FRAME_SPLIT =
        132, /* words of one head in a block's part of the talker's attention: 128 sums, maximum, mass */
};

enum frame_step { FRAME_QKV, FRAME_O, FRAME_GATE_UP, FRAME_DOWN, FRAME_HEAD_ROWS, FRAME_PROJECT };

/* One run of units: those of one row tile from `unit` on. */
struct frame_run {
    int row_tile, unit, n_units;
};

/* The number of runs of any block: whole row tiles, and half of one when the tiles do not come out even. The output
 * projection is cut by kv heads instead: each block has the 256 columns of its own, which it has mixed itself. */
FRAME_FN int frame_n_runs(enum frame_step step, int row_tiles)
{
    return step == FRAME_O ? row_tiles / FRAME_PARTS
                           : row_tiles / FRAME_BLOCKS + (row_tiles % FRAME_BLOCKS != 0);
}

/* Run i of a block, in the order in which it is consumed. Query, key and value rows follow the kv heads, everything
 * else the blocks; what is left over, half as many tiles as blocks, is cut in two along the columns. */
FRAME_FN struct frame_run frame_run_at(
    enum frame_step step, int row_tiles, int k_units, int block, int i)
{
    struct frame_run run = {0, 0, k_units};
    int whole = row_tiles / FRAME_BLOCKS;
    if (step == FRAME_QKV) {
        int head = block / FRAME_PARTS, tile = block % FRAME_PARTS * 2 + i; /* 32 tiles a kv head */
        run.row_tile = tile < 16   ? head * 16 + tile
                       : tile < 24 ? 128 + head * 8 + tile - 16
                                   : 192 + head * 8 + tile - 24;
    } else if (step == FRAME_O) {
        run.row_tile = block % FRAME_PARTS * (row_tiles / FRAME_PARTS) + i;
        run.unit = block / FRAME_PARTS;
        run.n_units = 1;
    } else if (i < whole) {
        run.row_tile = block * whole + i;
    } else {
        run.row_tile = FRAME_BLOCKS * whole + block / 2;
        run.n_units = k_units / 2;
        run.unit = block % 2 * run.n_units;
    }
    return run;
}

/* The parts whose sum a row of a product is in the exchange. */
FRAME_FN int frame_parts(enum frame_step step, int row_tiles)
{
    return step == FRAME_O ? FRAME_KV_HEADS : row_tiles < FRAME_BLOCKS ? 2 : 1;
}

/* The words of a head: whole row tiles first, then the left-over rows twice, a half of the sum each. */
FRAME_FN int frame_words(int row_tiles)
{
    int whole = row_tiles / FRAME_BLOCKS * FRAME_BLOCKS;
    return whole * 16 + (row_tiles - whole) * 32;
}

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
        FRAME_KV_HEADS * FRAME_PARTS * 2 * FRAME_SPLIT, FRAME_MAX_COLUMNS * 6144,
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

/* Totals of 8 bytes, to which the 8 kv heads add their parts of the output projection: [column][width], two of them
 * in turns. A row's place: a thread that reads four neighbouring rows gets them in two times 16 bytes, each of which
 * lies beside those of its neighbours. */
enum { FRAME_TOTALS = 2048 };

FRAME_FN size_t frame_totals_bytes(void)
{
    return 2 * FRAME_TOTALS * sizeof(uint64_t);
}

FRAME_FN int frame_total_at(int row)
{
    return (row & ~31) + (row / 2 % 2) * 16 + row / 4 % 8 * 2 + row % 2;
}

/* What a block keeps of the predictor's keys and values in device memory, in floats a layer: each warp the keys w
 * and w + 8, each dimension its values, four positions together. */
enum {
    FRAME_KEY_FLOATS = FRAME_MAX_POSITIONS * FRAME_HEAD,
    FRAME_KEPT_FLOATS = FRAME_KEY_FLOATS + FRAME_HEAD * FRAME_MAX_POSITIONS
};

/* Bytes between rows of a warp's part of a vector of n units: 32 numbers of each unit as bf16, or as bytes with their
 * scale, and so much that the next row lies in other banks. */
FRAME_FN int frame_row_bytes(int units)
{
    return units * 64 + (units % 2 == 0) * 64;
}

/* Shared memory of a block: fixed parts, then the ring. */
enum {
    FRAME_WIDE = FRAME_LANES_WIDTH != 1024, /* the talker of 1.7B: an inner vector of 6,144 */
    /* One lane: the inner vector, or the half that a block has, in two rows a column and warp; also the sampler's
     * list.
       Several: that list, also the notes of the talker's attention. */
    FRAME_VECTOR_BYTES = FRAME_LANES > 1 ? FRAME_MAX_SCORES * 8
                                         : FRAME_WARPS * 2 * (FRAME_WIDE ? 24 * 64 + 64 : 6 * 64 + 64),
    /* Each warp's share of up to 128 rows of a column, or of fewer of two. */
    FRAME_SUM_FLOATS = FRAME_LANES * FRAME_WARPS * (FRAME_WIDE ? 128 : 64) + FRAME_MAX_COLUMNS * 8,
    FRAME_MAX_SLOTS = 16,
};

/* The producer may end; and the watch too. */
enum { FRAME_STOP_WEIGHTS = 1, FRAME_STOP_ALL };

struct frame_shared {
    uint64_t full[FRAME_MAX_SLOTS], empty[FRAME_MAX_SLOTS];
    uint64_t totals_read, totals_clear; /* of the layer before: by all blocks; for all blocks */
    FRAME_ALIGNED float sums[2][FRAME_SUM_FLOATS];         /* of products in turns */
    FRAME_ALIGNED float placed[FRAME_PLACED][FRAME_GROUP]; /* q, q, k after norm and rotation, v */
    float cosine[FRAME_PLACED][64], sine[FRAME_PLACED][64];
    float squares[FRAME_MAX_COLUMNS][FRAME_WARPS]; /* each warp's share of a sum of squares */
    float scores[FRAME_PLACED][2][FRAME_MAX_POSITIONS];
    FRAME_ALIGNED float shares[FRAME_WARPS][FRAME_PLACED]
                              [FRAME_MAX_POSITIONS]; /* each warp's weights of keys or parts */
    uint32_t pair[3][FRAME_MAX_COLUMNS * 8]; /* words that the other block of a cluster writes */
    uint32_t reduced[4][FRAME_WARPS];
    uint32_t counter[2];
    int32_t winner;
    FRAME_ALIGNED uint32_t settings[24];             /* struct lane_settings */
    uint32_t n_frames;                               /* of the lane, before this one */
    const uint16_t *code_table[FRAME_MAX_POSITIONS]; /* as many as there are codebooks at most */
    int32_t chosen[FRAME_MAX_POSITIONS],
        taken[FRAME_MAX_POSITIONS];          /* codes of this frame: as chosen; as the lane continues */
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

FRAME_FN size_t frame_slot_bytes(bool packed)
{
    return packed ? FRAME_PACKED_UNITS * FRAME_PACKED_BYTES : FRAME_SLOT_UNITS * FRAME_UNIT_BYTES;
}

/* Slots of the ring in a block's shared memory; at least 3 are needed. */
FRAME_FN int frame_n_slots(size_t block_shared, bool packed)
{
    size_t n = block_shared < frame_ring_at()
                   ? 0
                   : (block_shared - frame_ring_at()) / frame_slot_bytes(packed);
    return n > FRAME_MAX_SLOTS ? FRAME_MAX_SLOTS : (int)n;
}

#endif
