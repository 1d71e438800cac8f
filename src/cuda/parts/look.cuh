/* SPDX-License-Identifier: Apache-2.0
 * What watched heads score of the rows that a lane looks at: beside attention, from the queries and keys that it has
 * in hand. Nothing is left in registers or shared memory, so attention gives the same bits with and without. */
#ifndef CUDA_PARTS_LOOK_CUH
#define CUDA_PARTS_LOOK_CUH

#include "cuda/parts/softmax.cuh"

namespace {

/* The keys from `row` on, KEYS of them at `keys`, and the query q of one head; `to`: of row look.begin. */
template <int DIMS>
__device__ __forceinline__ void look_keys(const struct heads_task &task, const struct cuda_look &look,
    int n_rows, const float *keys, int row, const float *q, float *to)
{
    const int lane = (int)threadIdx.x % 32;
    float mine = 0;
#pragma unroll
    for (int i = 0; i < KEYS; i++) {
        const bool there = row + i >= look.begin && row + i < look.begin + n_rows;
        float dot = 0;
#pragma unroll
        for (int d = 0; d < DIMS; d++) {
            const int at = d * 32 + lane;
            const bool counts = there && at < task.head;
            dot = __fmaf_rn(counts ? keys[i * task.head + at] : 0.0f, counts ? q[at] : 0.0f, dot);
        }
        dot = warp_sum(dot);
        mine = lane == i ? dot : mine;
    }
    const int at = row + lane - look.begin;
    if (lane < KEYS && at >= 0 && at < n_rows) {
        to[at] = __fmul_rn(mine, task.scale);
    }
}

/* Query heads `of` and on, n of them in q, by warp number `warp` of a split: of its keys, as attend_pair has them. */
template <int DIMS>
__device__ __forceinline__ void look_pair(const struct heads_task &task, int v, int kv_head, int of,
    int n, int split, int warp, int n_keys, const float *q)
{
    const struct cuda_attend &a = task.a;
    const struct cuda_look look = a.looks[v];
    const int n_rows = cuda_look_rows(&look, n_keys - 1), end = look.begin + n_rows;
#pragma unroll 1
    for (int page = split; page * a.page_size < end; page += task.n_splits) {
        const float *keys = page_of(task, lane_of(a, v), kv_head, page);
#pragma unroll 1
        for (int slot = warp * KEYS; slot < a.page_size; slot += N_WARPS * KEYS) {
            const int row = page * a.page_size + slot;
#pragma unroll 1
            for (int h = 0; row + KEYS > look.begin && row < end && h < n; h++) {
                const int at = a.watched[of + h];
                if (at >= 0) {
                    look_keys<DIMS>(task, look, n_rows, keys + slot * task.head, row, q + h * task.head,
                        look.scores + (int64_t)at * n_rows);
                }
            }
        }
    }
}

} // namespace

#endif
