/* SPDX-License-Identifier: Apache-2.0
 * What the parts of the kernel of layers share (cuda_layers.cu): its task, the ring that copies come to, the tiles of a
 * product. */
#ifndef CUDA_CUDA_LAYERS_CUH
#define CUDA_CUDA_LAYERS_CUH

#include "cuda/cuda_layers.h"
#include "cuda/cuda_prompt.cuh"
#include "cuda/cuda_ptx_group.cuh"
#include "cuda/cuda_wide.cuh"

namespace {

enum {
    DEEP = CUDA_WIDE_SLAB, /* tiles of columns of a stage */
    HALF = DEEP / 2,       /* that are multiplied at once */
    FEW_TILES = 64,        /* of columns: up to these 8 parts are summed, else 16 */
    EACH = 8,              /* tiles of a part of the width */
    TEAM_WARPS = 4,
    MULTIPLIERS = 8, /* warps, the first */
    SPARE = 3,       /* the last */
    THREADS = (MULTIPLIERS + 1 + SPARE) * 32,
    TOLD = THREADS - 32, /* threads that meet: all but those that bring */
    WEIGHT_BYTES = DEEP * CUDA_TILE_BYTES,
    GROUP_BYTES = DEEP * GROUP_PIECES * 16,
    AT_ONCE = 3,  /* groups of vectors that are handed on */
    VECTORS = 72, /* of the widest tile */
    SLOT = VECTORS / CUDA_TILE_VECTORS * GROUP_BYTES,
    SLOTS = 6,
    SHARED = SLOTS * SLOT,
    REGISTERS = 224, /* of those that multiply; others */
    LEFT = 56,
    HEAD = MOST_HEAD,
};
static_assert(SLOT == VECTORS * HEAD * 4, "heads of all vectors stand in a slot");
static_assert((int)sizeof(struct shares<2>) <= SHARED, "attention takes the place of the ring");

/* A block's tile: ROWS tiles of rows by GROUPS groups of vectors. Teams have rows of their own, or, with half as many,
 * groups. A stage is one slot, or two: weights, operand. */
template <int ROWS_, int GROUPS_> struct tile {
    enum : int {
        ROWS = ROWS_,
        GROUPS = GROUPS_,
        TAKES = ROWS == MULTIPLIERS ? 2 : 1,
        MINE = ROWS == MULTIPLIERS ? GROUPS : GROUPS / 2, /* groups of a team */
        AHEAD = SLOTS / TAKES,
    };
};
typedef tile<8, 9> half_broad;
typedef tile<8, 18> broad; /* queries, keys and values; gate */
typedef tile<4, 10> slim;  /* output projection; behind the gate */

struct layer {
    const void *qkv, *o, *gate, *down; /* tiles */
    const float *post_norm, *next_norm, *q_norm, *k_norm;
};

struct layers_task {
    struct layer layers[CUDA_LAYERS_MOST];
    struct task attend;                  /* of the first layer */
    int n_layers, n_groups, room_groups; /* groups of vectors; of operands */
    int width_tiles, mixed_tiles, inner_tiles;
    float eps;
    float *x;
    int64_t x_stride;
    void *operand, *inner;
    const float *scales;
    float *squares, *angles;
    uint64_t *told; /* factors of norms */
    uint32_t *met;
    uint32_t met_before;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

struct state {
    uint64_t full[SLOTS], empty[SLOTS];
    uint64_t open; /* the phase may begin */
    uint64_t room; /* attention has left the ring */
    float scales[2][VECTORS];
};

/* This thread, read anew: what follows from it is not kept in registers from phase to phase. */
__device__ __forceinline__ int self()
{
    int me;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(me));
    return me;
}

__device__ __forceinline__ int warp_of()
{
    return __shfl_sync(0xffffffffu, self() / 32, 0);
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

template <class S> __device__ __forceinline__ struct place next_stage(struct place at)
{
    return S::TAKES == 2 ? behind(behind(at)) : behind(at);
}

template <class S> __device__ __forceinline__ struct place operand_of(struct place at)
{
    return S::TAKES == 2 ? behind(at) : at;
}

/* The tiles of a product: number i of all, those of a block are gridDim.x apart. Where less than half of the blocks
 * would have one more, they are cut in two halves of their groups. */
template <class S> struct grid {
    int n_columns, n, whole; /* tiles, halves counted; the first so many are whole */
    int row, group,
        n_groups; /* of a tile: among the blocks' rows; its first group and how many it may have */

    __device__ __forceinline__ grid(const struct layers_task &task, int n_row_tiles)
    {
        const int blocks = (int)gridDim.x;
        n_columns = (task.n_groups + S::GROUPS - 1) / S::GROUPS;
        const int all = n_row_tiles / S::ROWS * n_columns, rest = all % blocks;
        whole = S::TAKES == 2 && 2 * rest <= blocks ? all - rest : all;
        n = whole + 2 * (all - whole);
    }
    __device__ __forceinline__ void find(int i)
    {
        const int half = i - whole, at = half < 0 ? i : whole + half / 2;
        row = at / n_columns;
        group = at % n_columns * S::GROUPS + (half < 0 ? 0 : half % 2 * (S::GROUPS / 2));
        n_groups = half < 0 ? S::GROUPS : S::GROUPS / 2;
    }
};

__device__ __forceinline__ int head_tiles(const struct task &a)
{
    return (a.n_heads + 2 * a.n_kv_heads) * HEAD / CUDA_TILE;
}

#endif

} // namespace

#endif
