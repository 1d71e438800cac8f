/* SPDX-License-Identifier: Apache-2.0
 * What the parts of the kernel of layers share (layers.cu): its task, the ring that copies come to, the tiles of a
 * product. */
#ifndef CUDA_PROMPT_LAYERS_TASK_CUH
#define CUDA_PROMPT_LAYERS_TASK_CUH

#include "cuda/lib/ptx_copy.cuh"
#include "cuda/lib/ptx_order.cuh"
#include "cuda/prompt/attend_rows.cuh"
#include "cuda/prompt/wide_team.cuh"

namespace {

enum {
    FEW_TILES_AT_ONCE = 2, /* tiles of columns that are multiplied at once, of tile_12x18 */
    EACH = DEEP,           /* tiles of a part of the width */
    TEAM_WARPS = 4,
    MULTIPLIERS = 8, /* warps that multiply and attend: the first of a block, two teams */
    SCALE_WARPS = 3, /* warps that find the factors of norms; a block's last */
    THREADS = (MULTIPLIERS + 1 + SCALE_WARPS) * 32, /* with the warp that brings */
    BARRIER_THREADS = THREADS - 32,                 /* that take part in barriers: all but that warp */
    STORED_GROUPS = 3,                              /* groups of vectors that are stored together */
    HEADS_AT_ONCE = 3,                              /* heads that a warp makes side by side */
    VECTORS = 72,                                   /* of the widest tile */
    SLOT = VECTORS / CUDA_TILE_VECTORS * GROUP_BYTES,
    SLOTS = 6,
    LINES = 1024, /* bytes: slots begin at whole multiples */
    SHARED = SLOTS * SLOT + LINES,
    TASK_ROWS = 2 * ROWS,   /* rows of a task of attention, each of two heads */
    PAGE_SLOTS = SLOTS - 2, /* that hold pages of both teams; teams exchange results in the others */
    MANY_PAGES = 12,        /* from so many pages of the longest task on, two blocks share tasks */
    ALL_QUARTERS = -1,      /* the part of a task that one block has alone */
    TILE_COST = 12,         /* a tile's beginning and end, in the units of `busiest` (layers.cu) */
    REGISTERS = 224,        /* that a thread which multiplies has */
    OTHER_REGISTERS = 56,   /* of any other thread */
    HEAD = MOST_HEAD,
};
static_assert(SLOT == VECTORS * HEAD * 4, "heads of all vectors stand in a slot");
static_assert(SLOT % LINES == 0 && 2 * sizeof(struct page) <= SLOT, "a slot has two pages");

/* A block's tile of a product: ROWS tiles of 16 rows by GROUPS groups of 4 vectors. How the two
 * teams share it: of 8 row tiles each team has 4, for all groups; of 4 row tiles each team has all,
 * for half of the groups; of 12 row tiles each team has 4 for all groups, and the last 4 for half of
 * the groups. The slots of the ring that a stage takes:
 * - of 4 row tiles one: weights and operand together;
 * - of 8 two: the weights, then the operand;
 * - of 12 three: the weights of the first 8 row tiles, the operand, the other weights. */
template <int ROWS_, int GROUPS_> struct tile {
    enum : int {
        ROWS = ROWS_,
        GROUPS = GROUPS_,
        TAKES = ROWS / TEAM_WARPS, /* slots of a stage */
        STAGE_IS_PART =
            ROWS >= MULTIPLIERS, /* the stages are the parts of the sum: products of the width */
        MINE = ROWS == MULTIPLIERS ? GROUPS : GROUPS / 2, /* groups of a team */
    };
};
typedef tile<8, 9> tile_8x9; /* half of tile_8x18, and what a team has of the last rows of tile_12x18 */
typedef tile<8, 18> tile_8x18;   /* queries, keys and values; the gate */
typedef tile<12, 18> tile_12x18; /* the gate, where that leaves fewer blocks idle */
typedef tile<4, 10> tile_4x10;   /* the output projection, and the product behind the gate */

/* Weights of a layer. */
struct layer {
    const void *qkv, *o, *gate, *down; /* matrices in tiles (device/weights.h) */
    const float *post_norm;            /* behind attention */
    const float *next_norm;            /* in front of the next layer */
    const float *q_norm, *k_norm;
};

/* Divides integers below 2^16 by a number that the host knows, with a product instead of a
 * division: the quotient is the upper half of number * reciprocal. */
struct divisor {
    uint64_t reciprocal; /* 2^32 / divisor, rounded up */
};

enum { LAYERS_MOST = 40 }; /* their pointers are parameters of the kernel */

enum { OF_HEADS, OF_GATE, OF_SUMS };

/* The tiles of a product, which are dealt out to the blocks. Blocks whose turn would be the last,
 * incomplete round get half a tile each, where there are at least twice as many blocks as tiles in
 * it. */
struct grid {
    int n_columns;          /* of tiles: groups of vectors are cut into so many */
    int n;                  /* tiles, a half counted as one */
    int n_whole;            /* the first n_whole are whole */
    int step;               /* groups of vectors in a column; the last column may have fewer */
    int first_half;         /* groups in the first half of a tile that is cut */
    struct divisor columns; /* divides by n_columns */
};

struct layers_task {
    struct layer layers[LAYERS_MOST];
    struct heads_task attend; /* of the first layer */
    int n_layers;
    int n_groups;    /* of vectors */
    int room_groups; /* that the operands have room for */
    int width_tiles, mixed_tiles,
        inner_tiles;      /* tiles of 16 columns of the width, of attention, of the gate */
    bool gate_12x18;      /* the gate's tiles are tile_12x18 */
    struct grid grids[3]; /* OF_HEADS, OF_GATE, OF_SUMS */
    struct divisor kv_heads;
    int n_tasks; /* of attention: what blocks have, a half counted as one */
    int n_split; /* of attention: rows and heads that two blocks share */
    float eps;
    float *x; /* from here on as struct cuda_layers (layers.h) says */
    int64_t x_stride;
    void *operand, *inner;
    const float *scales;
    float *squares, *angles;
    uint64_t *signals;
    uint32_t *arrivals;
    uint32_t arrivals_before;
    uint32_t *lost, *lost_on_device;
    uint64_t patience;
};

#if PTX_GROUPS

/* A block's shared memory beside the ring. */
struct state {
    uint64_t full[SLOTS];  /* barriers: the slot's copies are there */
    uint64_t empty[SLOTS]; /* barriers: all warps have left the slot */
    uint64_t open;         /* barrier: the phase may begin (wait_for_all) */
    uint64_t room;         /* barrier: attention has left the ring */
    uint64_t pages_full[PAGE_SLOTS], pages_empty[PAGE_SLOTS]; /* as full and empty, for pages */
    uint32_t late;  /* not 0: it waits for other blocks no longer */
    uint32_t ended; /* phases that this block has ended */
    /* Factors of the norm for the vectors of this tile and of the next, in turns. */
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

/* A place in the ring. */
struct place {
    int slot;
    uint32_t parity; /* 0 where the slot is filled for the first, third ... time, else 1 */
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

/* A tile of a product. */
struct found {
    int row;      /* in units of its rows */
    int group;    /* of vectors, its first */
    int n_groups; /* that it has at most */
};

/* Tile number i; those of a block are gridDim.x apart. */
__device__ __forceinline__ struct found find_tile(const struct grid &grid, int i)
{
    const int half = i - grid.n_whole, at = half < 0 ? i : grid.n_whole + half / 2;
    const int row = divide(at, grid.columns), second = half >= 0 && half % 2 ? grid.first_half : 0;
    const int n = half < 0 ? grid.step : second ? grid.step - second : grid.first_half;
    return {row, (at - row * grid.n_columns) * grid.step + second, n};
}

/* Queries of 16 rows of a head as operands (hold_queries), in place of the rows. */
struct query_rows {
    uint4 steps[STEPS][2][32]; /* upper parts, lower; of a thread */
};

__device__ __forceinline__ struct query_rows *query_rows_of(const struct heads_task &a, int head, int v)
{
    return (struct query_rows *)a.a.placed +
           ((int64_t)head * ((a.a.n_vectors + ROWS - 1) / ROWS) + v / ROWS);
}

/* A barrier of the warps that multiply. */
__device__ __forceinline__ void multipliers_barrier()
{
    ptx_some_barrier<1, MULTIPLIERS * 32>();
}

#endif

} // namespace

#endif
