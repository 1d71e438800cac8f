/* SPDX-License-Identifier: Apache-2.0
 * Attention of some vectors over the keys of their lanes. A block takes one kv head of one vector and every
 * CUDA_SPLITS-th page of its keys; the block that ends last puts the parts together, in the order of the pages'
 * blocks. Its four warps take four neighbouring keys each. Keys and values are fp32, as in the CPU's cache. */
#include "cuda/graph/attend_many.h"
#include "cuda/graph/attend_page.h"
#include "cuda/parts/look.cuh"
#include "cuda/parts/softmax.cuh"

namespace {

enum { N_THREADS = N_WARPS * 32 };

template <int DIMS> __global__ void __launch_bounds__(32) place_kernel(struct heads_task task)
{
    __shared__ float work[CUDA_MAX_HEAD], angles[CUDA_MAX_HEAD];
    const int v = (int)blockIdx.y;
    ptx_let_next_begin();
    ptx_wait_for_earlier();
    if (lane_of(task.a, v) >= 0) {
        find_angles(task, position_of(task.a, v), angles, (int)threadIdx.x, 32);
        __syncwarp();
        place_key<DIMS>(task, v, (int)blockIdx.x, angles, work);
    }
}

/* True in all threads of the block that is the last of `n` to come here. */
__device__ __forceinline__ bool last_to_arrive(uint32_t *arrived, int n)
{
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(arrived, 1u) + 1 == (uint32_t)n;
        if (last) {
            *arrived = 0;
        }
    }
    __syncthreads();
    __threadfence();
    return last;
}

/* What all splits of vector v have, put together. */
__device__ void join_splits(const struct heads_task &task, int v, int kv_head, int n_parts)
{
    const struct cuda_attend &a = task.a;
    const int group = task.n_heads / task.n_kv_heads, stride = task.head + 2;
    for (int i = (int)threadIdx.x; i < group * task.head; i += N_THREADS) {
        int of = kv_head * group + i / task.head, d = i % task.head;
        float sum;
        float out = join_parts(a.partial + ((int64_t)v * task.n_heads + of) * CUDA_SPLITS * stride,
            stride, n_parts, d, &sum);
        store_mixed(task, v, of * task.head + d, out / sum);
    }
}

/* What the warps have of `n` heads from `of` on: the result, or this split's part of it. */
__device__ void store_part(
    const struct heads_task &task, const float *parts, int v, int of, int n, int split, int n_parts)
{
    const struct cuda_attend &a = task.a;
    const int stride = task.head + 2;
    for (int i = (int)threadIdx.x; i < n * task.head; i += N_THREADS) {
        int h = i / task.head, d = i % task.head;
        float largest, sum;
        float out = join_warps(parts + h * stride, PAIR * stride, d, &largest, &sum);
        if (n_parts == 1) {
            store_mixed(task, v, (of + h) * task.head + d, out / sum);
            continue;
        }
        float *part = a.partial + (((int64_t)v * task.n_heads + of + h) * CUDA_SPLITS + split) * stride;
        part[2 + d] = out;
        if (d == 0) {
            part[0] = largest;
            part[1] = sum;
        }
    }
}

/* What the kernel uses after its wait. */
__device__ __forceinline__ void need_late(const struct cuda_attend &a)
{
    ptx_need(a.lanes);
    ptx_need(a.qkv);
    ptx_need(a.mixed);
    ptx_need(a.mixed_stride);
    ptx_need(a.cache);
    ptx_need((int64_t)a.page_floats);
    ptx_need(a.pages);
    ptx_need(a.partial);
    ptx_need(a.arrived);
}

/* LOOKS: heads of the layer are watched. */
template <int DIMS, bool LOOKS>
__global__ void __launch_bounds__(N_THREADS) attend_kernel(struct heads_task task)
{
    constexpr int HEAD = DIMS * 32;
    __shared__ float q[PAIR * HEAD], work[N_WARPS][HEAD], angles[2 * HEAD];
    __shared__ float parts[N_WARPS * PAIR * (HEAD + 2)];
    const struct cuda_attend &a = task.a;
    const int me = (int)threadIdx.x, v = (int)blockIdx.y, group = task.n_heads / task.n_kv_heads;
    const int kv_head = (int)blockIdx.x / task.n_splits, split = (int)blockIdx.x % task.n_splits;
    const bool known = !a.positions; /* positions that no kernel writes: their angles need not wait */
    if (known) {
        find_angles(task, position_of(a, v), angles, me, N_THREADS);
    }
    ptx_let_next_begin();
    need_late(a);
    ptx_wait_for_earlier();
    const int lane_id = lane_of(a, v);
    if (lane_id < 0) {
        return;
    }
    const int n_keys = position_of(a, v) + 1, n_pages = (n_keys + a.page_size - 1) / a.page_size;
    const int n_parts = min(task.n_splits, n_pages);
    if (split >= n_parts) {
        return;
    }
    if (!known) {
        find_angles(task, n_keys - 1, angles, me, N_THREADS);
    }
    const bool places = !a.prompt && (n_pages - 1) % task.n_splits == split;
    const int n_placed = places ? v % a.each + 1 : 0; /* at most 2: the predictor's first step */
    if (n_placed > 1) {
        find_angles(task, n_keys - 2, angles + task.head, me, N_THREADS);
    }
    for (int first = 0; first < group; first += PAIR) {
        const int n = min((int)PAIR, group - first), of = kv_head * group + first;
        __syncthreads();
        place_all<DIMS>(
            task, v, kv_head, of, n, first == 0 ? n_placed : 0, angles, work[me / 32], q, N_WARPS);
        __syncthreads();
        attend_pair<DIMS>(task, lane_id, kv_head, split, me / 32, n_keys, q, parts);
        __syncthreads();
        store_part(task, parts, v, of, n, split, n_parts);
        if (LOOKS) {
            look_pair<DIMS>(task, v, kv_head, of, n, split, me / 32, n_keys, q);
        }
    }
    if (n_parts > 1 && last_to_arrive(a.arrived + v * task.n_kv_heads + kv_head, n_parts)) {
        join_splits(task, v, kv_head, n_parts);
    }
}

} // namespace

cudaError_t cuda_attend_open(void)
{
    const void *const kernels[] = {ptx_kernel(attend_kernel<4, false>),
        ptx_kernel(attend_kernel<8, false>), ptx_kernel(attend_kernel<4, true>),
        ptx_kernel(attend_kernel<8, true>), ptx_kernel(place_kernel<4>), ptx_kernel(place_kernel<8>)};
    cudaError_t result = cudaSuccess;
    for (int i = 0; i < 6 && result == cudaSuccess; i++) {
        result = prefer_shared(kernels[i]);
    }
    result = result ? result : cuda_attend_many_open();
    return result ? result : cuda_attend_page_open();
}

uint64_t cuda_attend_floats(const struct cuda_stack *stack, int n_vectors)
{
    return (uint64_t)n_vectors * (uint64_t)stack->n_heads * CUDA_SPLITS * (uint64_t)(stack->head + 2);
}

template <int DIMS, bool LOOKS>
static cudaError_t launch_attend(
    const struct cuda_queue *queue, const struct heads_task &task, int n_vectors)
{
    dim3 grid((unsigned)(task.n_kv_heads * task.n_splits), (unsigned)n_vectors);
    return launch(attend_kernel<DIMS, LOOKS>, grid, N_THREADS, queue->overlaps, queue->stream, task);
}

cudaError_t cuda_attend_queue(const struct cuda_queue *queue, const struct cuda_attend *attend)
{
    if (cuda_attend_page_suits(attend)) {
        return cuda_attend_page_queue(queue, attend);
    }
    if (cuda_attend_many_suits(attend)) {
        return cuda_attend_many_queue(queue, attend);
    }
    const struct cuda_stack *s = attend->stack;
    const struct heads_task task = task_of(attend, attend->partial ? CUDA_SPLITS : 1);
    const bool narrow = s->head <= 128;
    if (attend->prompt) {
        dim3 grid((unsigned)s->n_kv_heads, (unsigned)attend->n_vectors);
        cudaError_t result =
            narrow ? launch(place_kernel<4>, grid, 32, queue->overlaps, queue->stream, task)
                   : launch(place_kernel<8>, grid, 32, queue->overlaps, queue->stream, task);
        if (result != cudaSuccess) {
            return result;
        }
    }
    const int n = attend->n_vectors;
    if (attend->watched) {
        return narrow ? launch_attend<4, true>(queue, task, n) : launch_attend<8, true>(queue, task, n);
    }
    return narrow ? launch_attend<4, false>(queue, task, n) : launch_attend<8, false>(queue, task, n);
}
