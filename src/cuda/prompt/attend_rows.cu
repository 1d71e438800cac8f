/* SPDX-License-Identifier: Apache-2.0
 * Attention of a prompt's rows, which are of one lane and share their keys. First all heads of queries and keys are
 * normed and rotated, keys and values go to the cache, and those of all positions, split in two bf16 parts, into
 * pages that can be copied as they are; then a block takes 16 rows and two query heads of one kv head, and goes
 * through the pages in order, every fourth of them by the same two warps. Scores and sums are made on tensor cores,
 * three of the four products of parts. What a row gets depends on its position and the keys up to it alone: pages
 * lie at fixed positions, and a key behind a row has weight 0. So any cut of a prompt into calls gives the same
 * bits. */
#include "cuda/prompt/attend_rows.cuh"

namespace {

enum { READY_WARPS = 8 };

/* ---- Heads ---- */

/* Key and value of a new position, by one warp: to the cache, and split. */
__device__ __forceinline__ void ready_key(
    const struct heads_task &task, int v, int kv_head, const float *angles, float *work, float *rotated)
{
    const struct cuda_attend &a = task.a;
    const int position = position_of(a, v), slot = position % CUDA_PAGE,
              col = (int)threadIdx.x % 32 * 4;
    const float *k = a.qkv + v * a.qkv_stride + (int64_t)(task.n_heads + kv_head) * task.head;
    float *keys = page_of(task, lane_of(a, v), kv_head, position / CUDA_PAGE) + slot * task.head;
    struct page *page = split_page(task, kv_head, position);
    const float4 value = four_of(k + (int64_t)task.n_kv_heads * task.head, task.head);
    place_head<MOST_HEAD / 32>(task, k, task.k_norm, angles, work, rotated);
    const float4 key = four_of(rotated, task.head);
    if (col < task.head) {
        *(float4 *)(keys + col) = key;
        *(float4 *)(keys + CUDA_PAGE * task.head + col) = value;
    }
    store_split(page->keys, slot, key);
    store_split(page->values, slot, value);
    __syncwarp();
}

/* A block for each new row, then one for each other position. */
__global__ void __launch_bounds__(READY_WARPS * 32) ready_kernel(struct heads_task task)
{
    __shared__ __align__(16) float work[READY_WARPS][MOST_HEAD], rotated[READY_WARPS][MOST_HEAD];
    __shared__ float angles[MOST_HEAD];
    const struct cuda_attend &a = task.a;
    const int v = (int)blockIdx.x, warp = (int)threadIdx.x / 32, other = v - a.n_vectors;
    if (other < 0) {
        find_angles(task, position_of(a, v), angles, (int)threadIdx.x, READY_WARPS * 32);
    }
    ptx_let_next_begin();
    ptx_wait_for_earlier();
    const int lane_id = lane_of(a, 0);
    if (lane_id < 0) { /* nobody's prompt */
        return;
    }
    if (other >= 0) {
        const bool there = other < a.first_position;
        const int position = there ? other : other + a.n_vectors;
        for (int kv_head = warp; kv_head < task.n_kv_heads; kv_head += READY_WARPS) {
            const float *keys = page_of(task, lane_id, kv_head, position / CUDA_PAGE);
            ready_old_key(task, there ? keys : NULL, position, kv_head);
        }
        return;
    }
    __syncthreads();
    for (int job = warp; job < task.n_heads + task.n_kv_heads; job += READY_WARPS) {
        if (job < task.n_kv_heads) {
            ready_key(task, v, job, angles, work[warp], rotated[warp]);
        } else {
            float *q = a.placed + v * a.qkv_stride + (int64_t)(job - task.n_kv_heads) * task.head;
            place_head<MOST_HEAD / 32>(task, q, task.q_norm, angles, work[warp], q);
        }
    }
}

/* ---- Attention ---- */

template <int ROUNDS>
__global__ void __launch_bounds__(N_THREADS, 1) attend_rows_kernel(struct heads_task task)
{
    PTX_DYNAMIC_SHARED(unsigned char, shared, 16);
    ptx_let_next_begin();
    ptx_wait_for_earlier();
    if (lane_of(task.a, 0) < 0) {
        return;
    }
    attend_rows<ROUNDS>(task, *(struct shares<ROUNDS> *)shared, (int)blockIdx.x,
        (int)(gridDim.y - 1 - blockIdx.y) * ROWS); /* the longest first */
}

/* Whether pages can be on their way while others are worked on. */
bool fits_two(int block_shared)
{
    return (int)sizeof(struct shares<2>) <= block_shared;
}

} // namespace

uint64_t cuda_attend_rows_bytes(int n_kv_heads, int n_pages)
{
    return (uint64_t)n_kv_heads * (uint64_t)n_pages * CUDA_ROWS_PAGE;
}

bool cuda_attend_rows_suits(const struct cuda_stack *stack)
{
    return stack->head <= MOST_HEAD && stack->head % CUDA_TILE == 0;
}

cudaError_t cuda_attend_rows_queue(const struct cuda_queue *queue, const struct cuda_attend *attend)
{
    struct heads_task task = task_of(attend, 1);
    const int group = task.n_heads / task.n_kv_heads, n = attend->n_vectors - attend->unused;
    const int n_keys = attend->first_position + attend->n_vectors;
    const int n_pages = (n_keys + CUDA_PAGE - 1) / CUDA_PAGE;
    cudaError_t result = launch(ready_kernel, dim3((unsigned)(n_pages * CUDA_PAGE)), READY_WARPS * 32,
        queue->overlaps, queue->stream, task);
    if (result != cudaSuccess || n == 0) {
        return result;
    }
    task.a.first_position += attend->unused;
    task.a.placed += attend->unused * attend->qkv_stride;
    task.a.n_vectors = n;
    dim3 grid(
        (unsigned)(task.n_kv_heads * ((group + PAIR - 1) / PAIR)), (unsigned)((n + ROWS - 1) / ROWS));
    return fits_two(queue->block_shared)
               ? launch(attend_rows_kernel<2>, grid, N_THREADS, queue->overlaps, queue->stream, task,
                     (int)sizeof(struct shares<2>))
               : launch(attend_rows_kernel<1>, grid, N_THREADS, queue->overlaps, queue->stream, task,
                     (int)sizeof(struct shares<1>));
}

cudaError_t cuda_attend_rows_open(int block_shared)
{
    const bool two = fits_two(block_shared);
    const void *kernel = two ? ptx_kernel(attend_rows_kernel<2>) : ptx_kernel(attend_rows_kernel<1>);
    cudaError_t result = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
        (int)(two ? sizeof(struct shares<2>) : sizeof(struct shares<1>)));
    result = result ? result : prefer_shared(ptx_kernel(ready_kernel));
    return result ? result : prefer_shared(kernel);
}
