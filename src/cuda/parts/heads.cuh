/* SPDX-License-Identifier: Apache-2.0
 * Heads of queries and keys for the kernels of attention: where they lie, and their norm and rotation. A head is made
 * by one warp, with up to 32 DIMS numbers. Steps are rounded as written, whatever kernel they stand in. */
#ifndef CUDA_PARTS_HEADS_CUH
#define CUDA_PARTS_HEADS_CUH

#include "cuda/lib/launch.cuh"
#include "cuda/parts/norm.cuh"
#include "cuda/parts/steps.h"

namespace {

struct heads_task {
    struct cuda_attend a;
    int n_heads, n_kv_heads, head, n_splits;
    float eps, scale;
    const float *q_norm, *k_norm, *inv_freq;
};

__device__ __forceinline__ int lane_of(const struct cuda_attend &a, int v)
{
    return a.lanes[a.prompt ? 0 : v / a.each];
}

__device__ __forceinline__ int position_of(const struct cuda_attend &a, int v)
{
    return a.positions ? a.positions[v] : a.first_position + (a.prompt ? v : v % a.each);
}

/* The keys of a page of one kv head; its values stand page_size * head floats behind. */
__device__ __forceinline__ float *page_of(
    const struct heads_task &task, int lane_id, int kv_head, int page)
{
    const struct cuda_attend &a = task.a;
    int64_t number = a.pages ? a.pages[(int64_t)lane_id * a.pages_stride + page] : lane_id;
    int64_t head = ((int64_t)a.layer * task.n_kv_heads + kv_head) * 2 * a.page_size * task.head;
    return a.cache + number * (int64_t)a.page_floats + head;
}

/* Cosines, then sines, of one position for half a head: angles[head]. By threads `from`, from + step, ... */
__device__ __forceinline__ void find_angles(
    const struct heads_task &task, int position, float *angles, int from, int step)
{
    const int half = task.head / 2;
    for (int i = from; i < half; i += step) {
        sincosf(__fmul_rn((float)position, task.inv_freq[i]), &angles[half + i], &angles[i]);
    }
}

/* One head, normed and rotated by one warp: out[head], in shared or global memory; `work` is [head] in shared. */
template <int DIMS>
__device__ __forceinline__ void place_head(const struct heads_task &task, const float *x,
    const float *norm, const float *angles, float *work, float *out)
{
    const int lane = (int)threadIdx.x % 32, half = task.head / 2;
    float values[DIMS], sum = 0;
#pragma unroll
    for (int d = 0; d < DIMS; d++) {
        values[d] = d * 32 + lane < task.head ? x[d * 32 + lane] : 0.0f;
    }
#pragma unroll
    for (int d = 0; d < DIMS; d++) {
        sum = __fmaf_rn(values[d], values[d], sum);
        if (d * 32 + lane < task.head) {
            work[d * 32 + lane] = __fmul_rn(values[d], norm[d * 32 + lane]);
        }
    }
    sum = warp_sum(sum);
    const float scale = norm_factor(sum, task.head, task.eps);
    __syncwarp(); /* halves that are not whole warps are other threads' */
#pragma unroll
    for (int d = 0; d < (DIMS + 1) / 2; d++) {
        const int i = d * 32 + lane;
        if (i < half) {
            const float first = __fmul_rn(work[i], scale), second = __fmul_rn(work[i + half], scale);
            out[i] = __fmaf_rn(first, angles[i], -__fmul_rn(second, angles[half + i]));
            out[i + half] = __fmaf_rn(second, angles[i], __fmul_rn(first, angles[half + i]));
        }
    }
    __syncwarp();
}

/* The key and value of vector v, by one warp. */
template <int DIMS>
__device__ __forceinline__ void place_key(
    const struct heads_task &task, int v, int kv_head, const float *angles, float *work)
{
    const struct cuda_attend &a = task.a;
    const int lane = (int)threadIdx.x % 32, position = position_of(a, v), size = a.page_size;
    const float *k = a.qkv + v * a.qkv_stride + (int64_t)(task.n_heads + kv_head) * task.head;
    const float *value = k + (int64_t)task.n_kv_heads * task.head;
    float *page =
        page_of(task, lane_of(a, v), kv_head, position / size) + (int64_t)(position % size) * task.head;
#pragma unroll
    for (int d = 0; d < DIMS; d++) {
        if (d * 32 + lane < task.head) {
            page[(int64_t)size * task.head + d * 32 + lane] = value[d * 32 + lane];
        }
    }
    place_head<DIMS>(task, k, task.k_norm, angles, work, page);
}

/* Heads whose pages are split among n_splits blocks. */
inline struct heads_task task_of(const struct cuda_attend *attend, int n_splits)
{
    const struct cuda_stack *s = attend->stack;
    const struct cuda_layer *layer = &s->layers[attend->layer];
    struct heads_task task = {*attend, s->n_heads, s->n_kv_heads, s->head, n_splits, s->norm_eps,
        (float)(1.0 / sqrt((double)s->head)), layer->q_norm, layer->k_norm, s->inv_freq};
    task.a.stack = NULL;
    return task;
}

} // namespace

#endif
