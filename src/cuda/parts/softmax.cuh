/* SPDX-License-Identifier: Apache-2.0
 * Attention over pages of keys as the kernels for few and for many vectors do it: which keys a warp takes, how the
 * parts of warps and of splits are put together. Steps are rounded as written, so that both give the same bits. */
#ifndef CUDA_PARTS_SOFTMAX_CUH
#define CUDA_PARTS_SOFTMAX_CUH

#include "cuda/parts/heads.cuh"
#include "cuda/parts/operand.cuh"

namespace {

enum {
    N_WARPS = 4, /* that share the keys of a page */
    KEYS = 4,    /* of a warp at once */
    PAIR = 2,    /* query heads at once */
};

/* A softmax in the making, of PAIR query heads, and what it weighs: DIMS values of a head in each thread. */
template <int DIMS> struct running {
    float largest[PAIR], sum[PAIR], out[PAIR][DIMS];
};

/* KEYS keys from slot `slot` on, of which those below n count. */
template <int DIMS>
__device__ __forceinline__ void take_keys(struct running<DIMS> &r, const struct heads_task &task,
    const float *page, int slot, int n, const float *q)
{
    const int lane = (int)threadIdx.x % 32;
    const float *values = page + (int64_t)task.a.page_size * task.head;
    float key[KEYS][DIMS], value[KEYS][DIMS], score[PAIR][KEYS];
#pragma unroll
    for (int i = 0; i < KEYS; i++) {
#pragma unroll
        for (int d = 0; d < DIMS; d++) {
            bool there = slot + i < n && d * 32 + lane < task.head;
            int64_t at = (int64_t)(slot + i) * task.head + d * 32 + lane;
            key[i][d] = there ? page[at] : 0.0f;
            value[i][d] = there ? values[at] : 0.0f;
        }
    }
#pragma unroll
    for (int h = 0; h < PAIR; h++) {
        float largest = r.largest[h];
#pragma unroll
        for (int i = 0; i < KEYS; i++) {
            float dot = 0;
#pragma unroll
            for (int d = 0; d < DIMS; d++) {
                const int at = d * 32 + lane;
                dot = __fmaf_rn(key[i][d], at < task.head ? q[h * task.head + at] : 0.0f, dot);
            }
            dot = __fmul_rn(warp_sum(dot), task.scale);
            score[h][i] = slot + i < n ? dot : -INFINITY;
            largest = fmaxf(largest, score[h][i]);
        }
        float keep = expf(r.largest[h] - largest); /* at least one key counts: `largest` is a number */
        r.largest[h] = largest;
        r.sum[h] = __fmul_rn(r.sum[h], keep);
#pragma unroll
        for (int d = 0; d < DIMS; d++) {
            r.out[h][d] = __fmul_rn(r.out[h][d], keep);
        }
#pragma unroll
        for (int i = 0; i < KEYS; i++) {
            float weight = expf(score[h][i] - largest);
            r.sum[h] = __fadd_rn(r.sum[h], weight);
#pragma unroll
            for (int d = 0; d < DIMS; d++) {
                r.out[h][d] = __fmaf_rn(weight, value[i][d], r.out[h][d]);
            }
        }
    }
}

/* What warp number `warp` of a split has: its keys of every page of the split, for the query heads in q. It goes to
 * parts[warp], [PAIR][head + 2] floats {largest, sum, out[head]}. */
template <int DIMS>
__device__ __forceinline__ void attend_pair(const struct heads_task &task, int lane_id, int kv_head,
    int split, int warp, int n_keys, const float *q, float *parts)
{
    const int me = (int)threadIdx.x % 32, size = task.a.page_size;
    struct running<DIMS> r;
#pragma unroll
    for (int h = 0; h < PAIR; h++) {
        r.largest[h] = -INFINITY;
        r.sum[h] = 0;
#pragma unroll
        for (int d = 0; d < DIMS; d++) {
            r.out[h][d] = 0;
        }
    }
    for (int page = split; page * size < n_keys; page += task.n_splits) {
        const float *keys = page_of(task, lane_id, kv_head, page);
        int n = min(size, n_keys - page * size);
        for (int slot = warp * KEYS; slot < n; slot += N_WARPS * KEYS) {
            take_keys<DIMS>(r, task, keys, slot, n, q);
        }
    }
#pragma unroll
    for (int h = 0; h < PAIR; h++) {
        float *part = parts + (warp * PAIR + h) * (task.head + 2);
        if (me == 0) {
            part[0] = r.largest[h];
            part[1] = r.sum[h];
        }
#pragma unroll
        for (int d = 0; d < DIMS; d++) {
            if (d * 32 + me < task.head) {
                part[2 + d * 32 + me] = r.out[h][d];
            }
        }
    }
}

/* One more part of a softmax that is put together, whose largest score is `most`. */
__device__ __forceinline__ void join_part(
    float largest, float weight, float value, float most, float *total, float *out)
{
    const float factor = weight > 0 ? expf(largest - most) : 0.0f;
    *total = __fmaf_rn(factor, weight, *total);
    *out = factor > 0 ? __fmaf_rn(factor, value, *out) : *out;
}

/* Puts n parts {largest, sum, out[head]} of one head together: number d of `out`, and the sum of weights. */
__device__ __forceinline__ float join_parts(
    const float *parts, int64_t stride, int n, int d, float *sum)
{
    float largest[CUDA_SPLITS], weight[CUDA_SPLITS], value[CUDA_SPLITS], most = -INFINITY, total = 0,
                                                                         out = 0;
#pragma unroll
    for (int i = 0; i < CUDA_SPLITS; i++) { /* all on their way at once */
        const float *part = parts + i * stride;
        largest[i] = i < n ? __ldcg(part) : -INFINITY;
        weight[i] = i < n ? __ldcg(part + 1) : 0.0f;
        value[i] = i < n ? __ldcg(part + 2 + d) : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < CUDA_SPLITS; i++) {
        most = fmaxf(most, largest[i]);
    }
#pragma unroll
    for (int i = 0; i < CUDA_SPLITS; i++) {
        join_part(largest[i], weight[i], value[i], most, &total, &out);
    }
    *sum = total;
    return out;
}

/* The same for the warps of a split, whose parts stand in shared memory. */
__device__ __forceinline__ float join_warps(
    const float *parts, int stride, int d, float *largest, float *sum)
{
    float most = -INFINITY, total = 0, out = 0;
#pragma unroll
    for (int i = 0; i < N_WARPS; i++) {
        most = fmaxf(most, parts[i * stride]);
    }
#pragma unroll
    for (int i = 0; i < N_WARPS; i++) {
        const float *part = parts + i * stride;
        join_part(part[0], part[1], part[2 + d], most, &total, &out);
    }
    *largest = most;
    *sum = total;
    return out;
}

/* Number i of what vector v gets: to the vectors, or to the operand of a wide product. */
__device__ __forceinline__ void store_mixed(const struct heads_task &task, int v, int i, float value)
{
    const struct cuda_attend &a = task.a;
    if (a.operand) {
        operand_store(a.operand, a.operand_groups, v, i, value);
    } else {
        a.mixed[v * a.mixed_stride + i] = value;
    }
}

/* Queries of the heads from `of` on, n of them, into q; with `keys`, also the keys of that many vectors up to v. Each
 * by one of n_warps warps; angles are those of v, and of the vectors before it, [head] each. */
template <int DIMS>
__device__ __forceinline__ void place_all(const struct heads_task &task, int v, int kv_head, int of,
    int n, int keys, const float *angles, float *work, float *q, int n_warps)
{
    const struct cuda_attend &a = task.a;
    for (int job = (int)threadIdx.x / 32; job < PAIR + keys; job += n_warps) {
        if (job < PAIR) { /* an odd group computes its last head twice */
            const float *x = a.qkv + v * a.qkv_stride + (int64_t)(of + min(job, n - 1)) * task.head;
            place_head<DIMS>(task, x, task.q_norm, angles, work, q + job * task.head);
        } else {
            place_key<DIMS>(task, v - (job - PAIR), kv_head, angles + (job - PAIR) * task.head, work);
        }
    }
}

} // namespace

#endif
