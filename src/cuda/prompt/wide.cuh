/* SPDX-License-Identifier: Apache-2.0
 * What the kernels of many vectors share: their task, and the way of the results from registers to memory. A thread
 * loads all that its results need before it stores any of them: one way to memory and back, not one for each. */
#ifndef CUDA_PROMPT_WIDE_CUH
#define CUDA_PROMPT_WIDE_CUH

#include "cuda/lib/ptx_copy.cuh"
#include "cuda/lib/ptx_matrix.cuh"
#include "cuda/lib/ptx_order.cuh"
#include "cuda/parts/operand.cuh"
#include "cuda/prompt/wide.h"

/* As a kernel gets it. */
struct wide_task {
    struct cuda_linear p;
    int rows; /* of the matrix, as y has them */
    const uint4 *operand;
    float *scales;
    void *next;
    int next_k_tiles;
    int n_groups;         /* of the operand, and of the next */
    const float *squares; /* NULL: scales are known */
    const float *next_norm;
    float *next_squares;
};

namespace {

enum {
    TILE_PIECES = CUDA_TILE_BYTES / 16,          /* a weight tile in pieces of 16 bytes */
    GROUP_PIECES = 16,                           /* the same of a group of vectors */
    SLAB_PIECES = CUDA_WIDE_SLAB * GROUP_PIECES, /* the same of a group in all tiles of a slab */
};

/* Of one thread: sums of rows g and g + 8 of a row tile for a vector. */
template <int N> struct results {
    int tile[N], v[N];
    float first[N], second[N];
};

/* Where the result goes: a vector of y, or -1. */
__device__ __forceinline__ int goal_of(const struct wide_task &task, int tile, int v)
{
    const bool there = v < task.p.n_vectors && tile < task.p.matrix.n_row_tiles;
    return !there ? -1 : task.p.map ? task.p.map[v] : v;
}

/* Of a gate, as the operand of the next product. Two threads have neighbouring columns: one stores their upper parts,
 * one their lower. */
template <int N>
__device__ __forceinline__ void leave_operand(
    const struct wide_task &task, int g, const struct results<N> &r)
{
#pragma unroll
    for (int i = 0; i < N; i++) {
        const float mine = finish_silu(r.first[i]) * r.second[i];
        const float other = __shfl_xor_sync(0xffffffffu, mine, 4);
        const int v = r.v[i], tile = r.tile[i];
        const int64_t place = operand_place(task.n_groups, v, tile * 8 + g / 2 * 2);
        uint16_t *to = (uint16_t *)task.next + place + g % 2 * 8;
        if (v < task.p.n_vectors && tile < task.p.matrix.n_row_tiles) {
            *(uint32_t *)to = g % 2 ? finish_part(other, mine, true) : finish_part(mine, other, false);
        }
    }
}

template <int N>
__device__ __forceinline__ void add_results(const struct wide_task &task, int g, struct results<N> &r)
{
    const struct cuda_linear &p = task.p;
    float old[N][2];
#pragma unroll
    for (int i = 0; i < N; i++) {
        const int to = goal_of(task, r.tile[i], r.v[i]), row = r.tile[i] * CUDA_TILE + g;
        old[i][0] = to >= 0 && row < task.rows ? p.y[to * p.y_stride + row] : 0.0f;
        old[i][1] = to >= 0 && row + 8 < task.rows ? p.y[to * p.y_stride + row + 8] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
        const int to = goal_of(task, r.tile[i], r.v[i]), row = r.tile[i] * CUDA_TILE + g;
        r.first[i] = old[i][0] + r.first[i];
        r.second[i] = old[i][1] + r.second[i];
        if (to >= 0 && row < task.rows) {
            p.y[to * p.y_stride + row] = r.first[i];
        }
        if (to >= 0 && row + 8 < task.rows) {
            p.y[to * p.y_stride + row + 8] = r.second[i];
        }
    }
}

/* The last steps of all results of a thread; all threads of a warp come here together. */
template <int N>
__device__ __forceinline__ void store_results(const struct wide_task &task, int g, struct results<N> &r)
{
    const struct cuda_linear &p = task.p;
    if (p.norm) {
        float scale[N];
#pragma unroll
        for (int i = 0; i < N; i++) {
            scale[i] = r.v[i] < p.n_vectors ? ptx_load_alike(task.scales + r.v[i]) : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < N; i++) {
            r.first[i] = __fmul_rn(r.first[i], scale[i]);
            r.second[i] = __fmul_rn(r.second[i], scale[i]);
        }
    }
    if (p.kind == CUDA_GATE && task.next) {
        leave_operand(task, g, r);
    } else if (p.kind == CUDA_ADD) {
        add_results(task, g, r);
    } else {
#pragma unroll
        for (int i = 0; i < N; i++) {
            if (r.v[i] < p.n_vectors && r.tile[i] < p.matrix.n_row_tiles) {
                finish_rows(p, task.rows, r.tile[i], r.v[i], g, r.first[i], r.second[i]);
            }
        }
    }
}

} // namespace

/* Tiles of 64 rows and 64 vectors whose columns of the matrix all warps go through together (wide_tall.cu):
 * whether they suit the matrix and the device, how many there are, the product. */
bool wide_tall_suits(const struct cuda_wide *w);
int64_t wide_tall_blocks(const struct cuda_wide *w);
cudaError_t wide_tall_start(const struct cuda_queue *q, const struct wide_task &task);
cudaError_t wide_tall_open(int block_shared);

/* Tiles by teams of warps (wide_group.cu): the best of their shapes, or -1: they do not suit or are slower. */
enum { WIDE_GROUP_SHAPES = CUDA_WIDE_SHAPES - 5 };
cudaError_t wide_group_open(const struct cuda_arch *arch);
int wide_group_best(const struct cuda_wide *w);
cudaError_t wide_group_start(
    const struct cuda_queue *q, const struct cuda_wide *w, const struct wide_task &task, int shape);

#endif
