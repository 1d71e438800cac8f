/* SPDX-License-Identifier: Apache-2.0
 * What the parts of the kernel of layers share (layers.cu): its task, the ring that copies come to, the tiles of a
 * product. */
#ifndef CUDA_PROMPT_LAYERS_CUH
#define CUDA_PROMPT_LAYERS_CUH

#include "cuda/lib/ptx_copy.cuh"
#include "cuda/lib/ptx_order.cuh"
#include "cuda/prompt/layers.h"
#include "cuda/prompt/prompt.cuh"
#include "cuda/prompt/wide_team.cuh"

namespace {

enum {
    FEW_AT_ONCE = 2, /* tiles of columns that are multiplied at once, of a tall tile */
    EACH = DEEP,     /* tiles of a part of the width */
    TEAM_WARPS = 4,
    MULTIPLIERS = 8, /* warps, the first */
    SPARE = 3,       /* the last */
    THREADS = (MULTIPLIERS + 1 + SPARE) * 32,
    TOLD = THREADS - 32, /* threads that meet: all but those that bring */
    AT_ONCE = 3,         /* groups of vectors that are handed on */
    BESIDE = 3,          /* heads of a warp */
    VECTORS = 72,        /* of the widest tile */
    SLOT = VECTORS / CUDA_TILE_VECTORS * GROUP_BYTES,
    SLOTS = 6,
    LINES = 1024, /* bytes: slots begin at whole multiples */
    SHARED = SLOTS * SLOT + LINES,
    TALL_ROWS = 2 * ROWS,   /* of attention, by two heads */
    PAGE_SLOTS = SLOTS - 2, /* for pages of both teams; what teams leave takes the others */
    MANY_PAGES = 12,        /* of the longest task: from here on two blocks share tasks */
    WHOLE = -1,
    END = 12,        /* of a tile, in steps of 16 bytes that come meanwhile */
    REGISTERS = 224, /* of those that multiply; others */
    LEFT = 56,
    HEAD = MOST_HEAD,
};
static_assert(SLOT == VECTORS * HEAD * 4, "heads of all vectors stand in a slot");
static_assert(SLOT % LINES == 0 && 2 * sizeof(struct page) <= SLOT, "a slot has two pages");

/* A block's tile: ROWS tiles of rows by GROUPS groups of vectors. Teams have rows of their own, or, with half as
 * many, groups; of a tall tile rows of their own, then groups of the rest. A stage is one slot, or two: weights,
 * operand; or three: the weights of the rest. */
template <int ROWS_, int GROUPS_> struct tile {
    enum : int {
        ROWS = ROWS_,
        GROUPS = GROUPS_,
        TAKES = ROWS / TEAM_WARPS,
        STAGE_IS_PART = ROWS >= MULTIPLIERS, /* of a sum: these products are of the width */
        MINE = ROWS == MULTIPLIERS ? GROUPS : GROUPS / 2, /* groups of a team */
    };
};
typedef tile<8, 9> half_broad;
typedef tile<8, 18> broad; /* queries, keys and values; gate */
typedef tile<12, 18> tall; /* gate, where that leaves fewer blocks idle */
typedef tile<4, 10> slim;  /* output projection; behind the gate */

struct layer {
    const void *qkv, *o, *gate, *down; /* tiles */
    const float *post_norm, *next_norm, *q_norm, *k_norm;
};

/* Divides whole numbers below 2^16 by a number that the host knows, with a product instead of a
 * division: the quotient is the upper half of number * reciprocal. */
struct divisor {
    uint64_t reciprocal; /* 2^32 / divisor, rounded up */
};

enum { OF_HEADS, OF_GATE, OF_SUMS };

/* The tiles of a product. Where less than half of the blocks would have one more broad tile, those are cut in two
 * halves of their groups. */
struct grid {
    int n_columns, n, whole; /* tiles, halves counted; the first so many are whole */
    int step;                /* groups of a whole tile: as many in all columns, or one less */
    int first_half;
    struct divisor columns;
};

struct layers_task {
    struct layer layers[CUDA_LAYERS_MOST];
    struct task attend;                  /* of the first layer */
    int n_layers, n_groups, room_groups; /* groups of vectors; of operands */
    int width_tiles, mixed_tiles, inner_tiles;
    bool tall;            /* the gate's tiles */
    struct grid grids[3]; /* OF_HEADS, OF_GATE, OF_SUMS */
    struct divisor kv_heads;
    int n_tasks, n_split; /* of attention: of blocks; rows and heads that two blocks have */
    float eps;
    float *x;
    int64_t x_stride;
    void *operand, *inner;
    const float *scales;
    float *squares, *angles;
    uint64_t *told; /* factors of norms; behind them signs of attention */
    uint32_t *met;
    uint32_t met_before;
    uint32_t *lost;    /* becomes 1 */
    uint64_t patience; /* clocks that a wait for other blocks may take */
};

#if PTX_GROUPS

struct state {
    uint64_t full[SLOTS], empty[SLOTS];
    uint64_t open; /* the phase may begin */
    uint64_t room; /* attention has left the ring */
    uint64_t pages_full[PAGE_SLOTS], pages_empty[PAGE_SLOTS];
    uint32_t late;  /* waits for other blocks no longer */
    uint32_t ended; /* phases of this block */
    float scales[2][VECTORS];
};

/* This thread, read anew: what follows from it is not kept in registers from phase to phase. */
__device__ __forceinline__ int self()
{
    return ptx_thread();
}

__device__ __forceinline__ int warp_of()
{
    return __shfl_sync(0xffffffffu, self() / 32, 0);
}

__device__ __forceinline__ int divide(int number, const struct divisor &by)
{
    return (int)((uint64_t)(uint32_t)number * by.reciprocal >> 32);
}

/* A place in the ring, and whether it is used for an even or an odd time. */
struct place {
    int slot;
    uint32_t parity;
};

__device__ __forceinline__ struct place behind(struct place at)
{
    const bool around = at.slot + 1 == SLOTS;
    return {around ? 0 : at.slot + 1, at.parity ^ (around ? 1u : 0u)};
}

/* Behind a stage that takes so many slots. */
__device__ __forceinline__ struct place next_stage(struct place at, int takes)
{
    const int slot = at.slot + takes;
    const bool around = slot >= SLOTS;
    return {around ? slot - SLOTS : slot, at.parity ^ (around ? 1u : 0u)};
}

__device__ __forceinline__ struct place operand_of(struct place at, int takes)
{
    return takes > 1 ? behind(at) : at;
}

/* Tile number i of a product; those of a block are gridDim.x apart. */
struct found {
    int row, group, n_groups; /* among the blocks' rows; its first group and how many it may have */
};

__device__ __forceinline__ struct found find_tile(const struct grid &grid, int i)
{
    const int half = i - grid.whole, at = half < 0 ? i : grid.whole + half / 2;
    const int row = divide(at, grid.columns), second = half >= 0 && half % 2 ? grid.first_half : 0;
    const int n = half < 0 ? grid.step : second ? grid.step - second : grid.first_half;
    return {row, (at - row * grid.n_columns) * grid.step + second, n};
}

/* Queries of 16 rows of a head as operands (hold_queries), in place of the rows. */
struct query_rows {
    uint4 steps[STEPS][2][32]; /* upper parts, lower; of a thread */
};

__device__ __forceinline__ struct query_rows *query_rows_of(const struct task &a, int head, int v)
{
    return (struct query_rows *)a.a.placed +
           ((int64_t)head * ((a.a.n_vectors + ROWS - 1) / ROWS) + v / ROWS);
}

struct multipliers_meet {
    static __device__ __forceinline__ void meet()
    {
        ptx_some_meet<1, MULTIPLIERS * 32>();
    }
};

#endif

} // namespace

#endif
