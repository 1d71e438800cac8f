/* SPDX-License-Identifier: Apache-2.0
 * How the persistent frame kernel shares a pass over the weights among blocks: which block multiplies which rows, in
 * which order its bytes come. Plain arithmetic that the host (checks, tests) and the device (producer and consumers)
 * compute from the same lines. What depends on a build's number of lanes stands in layout_body.h.
 *
 * A matrix is cut into *units*: 16 rows by 256 columns, which lie together: 8 KB of bf16 in the layout of
 * device/tiles.h, or eight of the units of 8 bits that it describes, 4,352 bytes. The 8 warps that multiply share
 * the columns of each unit, 32 neighbouring ones a warp, whatever the product: so a warp waits for its own part of a
 * vector alone. A slot of the ring holds 2 units of bf16 or 4 of integers; half of that in code for GPUs whose blocks
 * have 99 KB (PTX_HALF_SLOTS): the more slots of a short ring are free, the less its copies wait. */
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
enum {
    FRAME_BLOCKS = 128, /* one a multiprocessor; others stay idle */
    FRAME_KV_HEADS = 8, /* with two query heads of 128 each */
    /* Blocks of a kv head: block = kv head * FRAME_KV_BLOCKS + part. */
    FRAME_KV_BLOCKS = FRAME_BLOCKS / FRAME_KV_HEADS,
    /* Parts of the talker's keys, summed apart and then joined: page p is in part p % FRAME_KEY_PARTS. */
    FRAME_KEY_PARTS = 16,
    FRAME_HEAD = 128,
    FRAME_WARPS = 8,           /* that multiply */
    FRAME_THREADS = 256,       /* of them */
    FRAME_ALL_THREADS = 384,   /* with four more warps, the first of which brings the weights */
    FRAME_UNIT_K = 256,        /* columns of a unit */
    FRAME_UNIT_BYTES = 8192,   /* in bf16 */
    FRAME_PACKED_BYTES = 4352, /* in 8 bits */
    FRAME_PACKED_EACH = 544,   /* of them a warp's: 512 of codes, and scales */
    FRAME_SLOT_UNITS = 2,
    FRAME_PACKED_UNITS = 4,
    FRAME_MIXED = 2048,       /* width of all query heads together */
    FRAME_GROUP = 512,        /* two query heads, key and value of one kv head */
    FRAME_MAX_LAYERS = 64,    /* of both stacks together */
    FRAME_MAX_POSITIONS = 16, /* of the predictor */
    /* Weights that a warp spreads: of the predictor's keys, or of the talker's parts. */
    FRAME_SHARES = FRAME_MAX_POSITIONS > FRAME_KEY_PARTS ? FRAME_MAX_POSITIONS : FRAME_KEY_PARTS,
    FRAME_MAX_SCORES = 3072, /* the larger vocabulary */
    FRAME_MAX_SLOTS = 16,    /* of the ring */
    /* Words of one head in a block's part of the talker's attention: 128 sums, maximum, mass. */
    FRAME_SPLIT = 132,
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
    return step == FRAME_O ? row_tiles / FRAME_KV_BLOCKS
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
        int head = block / FRAME_KV_BLOCKS,
            tile = block % FRAME_KV_BLOCKS * 2 + i; /* 32 tiles a kv head */
        run.row_tile = tile < 16   ? head * 16 + tile
                       : tile < 24 ? 128 + head * 8 + tile - 16
                                   : 192 + head * 8 + tile - 24;
    } else if (step == FRAME_O) {
        run.row_tile = block % FRAME_KV_BLOCKS * (row_tiles / FRAME_KV_BLOCKS) + i;
        run.unit = block / FRAME_KV_BLOCKS;
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

/* The producer may end; and the watch too. */
enum { FRAME_STOP_WEIGHTS = 1, FRAME_STOP_ALL };

/* Units that a slot of the ring holds. */
FRAME_FN int frame_slot_units(bool packed, bool half)
{
    return (packed ? FRAME_PACKED_UNITS : FRAME_SLOT_UNITS) / (half ? 2 : 1);
}

FRAME_FN size_t frame_slot_bytes(bool packed, bool half)
{
    return (size_t)frame_slot_units(packed, half) * (packed ? FRAME_PACKED_BYTES : FRAME_UNIT_BYTES);
}

/* Slots of the ring in a block's shared memory behind what a build keeps there (struct frame_build); 0: fewer than
 * are needed. */
FRAME_FN int frame_n_slots(size_t block_shared, size_t ring_at, bool packed, bool half)
{
    size_t n = block_shared < ring_at ? 0 : (block_shared - ring_at) / frame_slot_bytes(packed, half);
    return n > FRAME_MAX_SLOTS ? FRAME_MAX_SLOTS : n < (half ? 4 : 3) ? 0 : (int)n;
}

#endif
