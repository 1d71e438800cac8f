/* SPDX-License-Identifier: Apache-2.0
 * Attention of many vectors: a block takes one kv head of one vector and all of its keys. There are
 * enough vectors to fill the device, so no two blocks have to wait for each other; its warps do in
 * turn what the warps of all splits do in attend.cu. */
#include "cuda/graph/attend_many.h"
#include "cuda/parts/look.cuh"
#include "cuda/parts/softmax.cuh"

namespace {

enum {
    WARPS = 8,
    THREADS = WARPS * 32,
    DIMS = 4,
    HEAD = DIMS * 32,
    MANY = 9, /* vectors: fewer are faster with a block for each split */
};

struct shared {
    float q[PAIR * HEAD], work[WARPS][HEAD], angles[HEAD];
    float parts[CUDA_SPLITS][N_WARPS * PAIR * (HEAD + 2)];
};

/* What the splits have of n heads from `of` on, put together. */
__device__ __forceinline__ void join_all(
    const struct heads_task &task, const struct shared &s, int v, int of, int n, int n_parts)
{
    const int stride = task.head + 2;
    for (int i = (int)threadIdx.x; i < n * task.head; i += THREADS) {
        const int h = i / task.head, d = i % task.head;
        float largest[CUDA_SPLITS], weight[CUDA_SPLITS], value[CUDA_SPLITS], most = -INFINITY;
        float total = 0, out = 0;
#pragma unroll
        for (int k = 0; k < CUDA_SPLITS; k++) {
            largest[k] = -INFINITY;
            weight[k] = value[k] = 0;
            if (k < n_parts) {
                value[k] =
                    join_warps(s.parts[k] + h * stride, PAIR * stride, d, &largest[k], &weight[k]);
            }
        }
        if (n_parts == 1) {
            store_mixed(task, v, (of + h) * task.head + d, value[0] / weight[0]);
            continue;
        }
#pragma unroll
        for (int k = 0; k < CUDA_SPLITS; k++) {
            most = fmaxf(most, largest[k]);
        }
#pragma unroll
        for (int k = 0; k < CUDA_SPLITS; k++) {
            join_part(largest[k], weight[k], value[k], most, &total, &out);
        }
        store_mixed(task, v, (of + h) * task.head + d, out / total);
    }
}

/* LOOKS: heads of the layer are watched. A multiprocessor of 100 KB has room for two blocks. */
template <bool LOOKS>
__global__ void __launch_bounds__(THREADS, PTX_100_KB ? 2 : 3) many_kernel(struct heads_task task)
{
    static_assert(sizeof(struct shared) * 3 > 100 << 10, "room for three");
    __shared__ struct shared s;
    const struct cuda_attend &a = task.a;
    const int warp = (int)threadIdx.x / 32, v = (int)blockIdx.y, kv_head = (int)blockIdx.x;
    const int group = task.n_heads / task.n_kv_heads;
    ptx_let_next_begin();
    ptx_wait_for_earlier();
    const int lane_id = lane_of(a, v);
    if (lane_id < 0) {
        return;
    }
    const int n_keys = position_of(a, v) + 1, n_pages = (n_keys + a.page_size - 1) / a.page_size;
    const int n_parts = min((int)CUDA_SPLITS, n_pages);
    find_angles(task, n_keys - 1, s.angles, (int)threadIdx.x, THREADS);
    for (int first = 0; first < group; first += PAIR) {
        const int n = min((int)PAIR, group - first), of = kv_head * group + first;
        __syncthreads();
        place_all<DIMS>(task, v, kv_head, of, n, first == 0, s.angles, s.work[warp], s.q, WARPS);
        __syncthreads();
        for (int i = warp; i < n_parts * N_WARPS; i += WARPS) {
            attend_pair<DIMS>(
                task, lane_id, kv_head, i / N_WARPS, i % N_WARPS, n_keys, s.q, s.parts[i / N_WARPS]);
        }
        __syncthreads();
        join_all(task, s, v, of, n, n_parts);
        for (int i = warp; LOOKS && i < n_parts * N_WARPS; i += WARPS) {
            look_pair<DIMS>(task, v, kv_head, of, n, i / N_WARPS, i % N_WARPS, n_keys, s.q);
        }
    }
}

} // namespace

cudaError_t cuda_attend_many_open(void)
{
    cudaError_t result = prefer_shared(ptx_kernel(many_kernel<false>));
    return result ? result : prefer_shared(ptx_kernel(many_kernel<true>));
}

bool cuda_attend_many_suits(const struct cuda_attend *a)
{
    return !a->prompt && a->each == 1 && a->partial && a->n_vectors >= MANY && a->stack->head <= HEAD;
}

template <bool LOOKS>
static cudaError_t launch_many(const struct cuda_queue *queue, const struct cuda_attend *attend)
{
    dim3 grid((unsigned)attend->stack->n_kv_heads, (unsigned)attend->n_vectors);
    return launch(many_kernel<LOOKS>, grid, THREADS, queue->overlaps, queue->stream,
        task_of(attend, CUDA_SPLITS));
}

cudaError_t cuda_attend_many_queue(const struct cuda_queue *queue, const struct cuda_attend *attend)
{
    return attend->watched ? launch_many<true>(queue, attend) : launch_many<false>(queue, attend);
}
