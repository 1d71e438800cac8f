/* SPDX-License-Identifier: Apache-2.0
 * Attention of a prompt's rows, which are of one lane and share their keys. First all heads of queries and keys are
 * normed and rotated and keys and values go to the cache; then a block takes 32 rows and two query heads of one kv
 * head, and goes through the pages of keys in order. Scores and sums are made on tensor cores from factors in two bf16
 * parts, three of the four products. What a row gets depends on its position and the keys up to it alone: pages lie at
 * fixed positions, and a key behind a row has weight 0. So any cut of a prompt into calls gives the same bits. */
#include "cuda/cuda_heads.cuh"
#include "cuda/cuda_operand.cuh"

namespace {

enum {
    READY_WARPS = 8,
    N_WARPS = 4, /* two tiles of rows, two query heads */
    N_THREADS = N_WARPS * 32,
    ROWS = 16, /* of a warp */
    BLOCK_ROWS = 2 * ROWS,
    PAIR = 2, /* query heads of a block */
    MOST_HEAD = 128,
    STEPS = MOST_HEAD / 16, /* of a dot product */
    COLS = MOST_HEAD / 8,   /* tiles of 8 numbers of a head */
    ITEMS = STEPS * 2 * 32 / N_THREADS,
};

/* ---- Heads ---- */

__global__ void __launch_bounds__(READY_WARPS * 32) ready_kernel(struct task task)
{
    __shared__ float work[READY_WARPS][MOST_HEAD], angles[MOST_HEAD];
    const int v = (int)blockIdx.x, warp = (int)threadIdx.x / 32;
    find_angles(task, position_of(task.a, v), angles, (int)threadIdx.x, READY_WARPS * 32);
    ptx_let_next_begin();
    ptx_wait_for_earlier();
    __syncthreads();
    for (int job = warp; job < task.n_heads + task.n_kv_heads; job += READY_WARPS) {
        if (job < task.n_heads) {
            float *q = task.a.placed + v * task.a.qkv_stride + (int64_t)job * task.head;
            place_head<MOST_HEAD / 32>(task, q, task.q_norm, angles, work[warp], q);
        } else {
            place_key<MOST_HEAD / 32>(task, v, job - task.n_heads, angles, work[warp]);
        }
    }
}

/* ---- Pages ---- */

/* A thread's part of a page on its way: keys as pairs of numbers, values as pairs of positions. */
struct loaded {
    float2 key[ITEMS][2];
    float value[ITEMS][4];
};

/* A page as the operands of tensor cores: upper parts in x and y, lower in z and w. */
struct page {
    uint4 keys[STEPS][2][32]; /* [16 numbers][8 keys] */
    uint4 values[COLS][32];   /* [8 numbers] of 16 keys */
};

__device__ __forceinline__ void load_page(
    struct loaded &to, const struct task &task, int lane, int kv_head, int number, int n_keys)
{
    const int me = (int)threadIdx.x % 32, g = me / 4, t = me % 4, n = n_keys - number * CUDA_PAGE;
    const float *keys = page_of(task, lane, kv_head, number), *values = keys + CUDA_PAGE * task.head;
#pragma unroll
    for (int e = 0; e < ITEMS; e++) {
        const int item = e * N_WARPS + (int)threadIdx.x / 32;
        const int key = item % 2 * 8 + g, col = item / 2 * 16 + 2 * t, dim = item * 8 + g;
        const bool there = key < n && col < task.head;
        const float2 *at = (const float2 *)(keys + key * task.head + col);
        to.key[e][0] = there ? at[0] : make_float2(0, 0);
        to.key[e][1] = there ? at[4] : make_float2(0, 0);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int slot = 2 * t + i % 2 + i / 2 * 8;
            to.value[e][i] = slot < n && dim < task.head ? values[slot * task.head + dim] : 0.0f;
        }
    }
}

__device__ __forceinline__ uint4 split_four(float a, float b, float c, float d)
{
    return make_uint4(finish_part(a, b, false), finish_part(c, d, false), finish_part(a, b, true),
        finish_part(c, d, true));
}

__device__ __forceinline__ void store_page(struct page &to, const struct loaded &from)
{
    const int me = (int)threadIdx.x % 32;
#pragma unroll
    for (int e = 0; e < ITEMS; e++) {
        const int item = e * N_WARPS + (int)threadIdx.x / 32;
        const float2 *k = from.key[e];
        const float *v = from.value[e];
        to.keys[item / 2][item % 2][me] = split_four(k[0].x, k[0].y, k[1].x, k[1].y);
        to.values[item][me] = split_four(v[0], v[1], v[2], v[3]);
    }
}

/* ---- A warp's rows ---- */

/* Rows g and g + 8 of 16, of one query head. */
struct rows {
    uint4 upper[STEPS], lower[STEPS]; /* the queries */
    float out[COLS][4];               /* numbers 2t, 2t + 1 of a tile: of row g, then of row g + 8 */
    float largest[2], sum[2];
    int position[2];
};

__device__ __forceinline__ void load_rows(struct rows &r, const struct task &task, int first, int head)
{
    const struct cuda_attend &a = task.a;
    const int g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        float2 x[4];
#pragma unroll
        for (int i = 0; i < 4; i++) { /* rows g, g + 8; then 8 numbers further */
            const int v = first + g + i % 2 * 8, col = s * 16 + 2 * t + i / 2 * 8;
            const float *q = a.placed + v * a.qkv_stride + (int64_t)head * task.head + col;
            x[i] = v < a.n_vectors && col < task.head ? *(const float2 *)q : make_float2(0, 0);
        }
        const uint4 one = split_four(x[0].x, x[0].y, x[1].x, x[1].y),
                    two = split_four(x[2].x, x[2].y, x[3].x, x[3].y);
        r.upper[s] = make_uint4(one.x, one.y, two.x, two.y);
        r.lower[s] = make_uint4(one.z, one.w, two.z, two.w);
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        r.position[half] = a.first_position + first + g + half * 8;
        r.largest[half] = -INFINITY;
        r.sum[half] = 0;
    }
#pragma unroll
    for (int j = 0; j < COLS; j++) {
        r.out[j][0] = r.out[j][1] = r.out[j][2] = r.out[j][3] = 0;
    }
}

/* Scores of the page's 16 keys: keys 2t, 2t + 1 of each half of the page, of row g, then of row g + 8. */
__device__ __forceinline__ void find_scores(
    float (&score)[2][4], const struct rows &r, const struct page &page, int first_key, float scale)
{
    const int me = (int)threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float high[4] = {}, left[4] = {}, right[4] = {};
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
            const uint4 k = page.keys[s][half][me];
            ptx_mma(high, r.upper[s], k.x, k.y);
            ptx_mma(left, r.lower[s], k.x, k.y);
            ptx_mma(right, r.upper[s], k.z, k.w);
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int key = first_key + half * 8 + 2 * (me % 4) + i % 2;
            const float dot = (high[i] + (left[i] + right[i])) * scale;
            score[half][i] = key <= r.position[i / 2] ? dot : -INFINITY;
        }
    }
}

/* Scores become weights; what is there already is scaled to the new largest score. */
__device__ __forceinline__ void weigh(struct rows &r, float (&score)[2][4])
{
#pragma unroll
    for (int row = 0; row < 2; row++) {
        float *a = score[0] + 2 * row, *b = score[1] + 2 * row;
        float largest = fmaxf(fmaxf(a[0], a[1]), fmaxf(b[0], b[1]));
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
        largest = fmaxf(largest, r.largest[row]); /* a number: key 0 counts for every row */
        const float keep = expf(r.largest[row] - largest);
        r.largest[row] = largest;
        a[0] = expf(a[0] - largest);
        a[1] = expf(a[1] - largest);
        b[0] = expf(b[0] - largest);
        b[1] = expf(b[1] - largest);
        float sum = (a[0] + a[1]) + (b[0] + b[1]);
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        r.sum[row] = __fmaf_rn(r.sum[row], keep, sum);
#pragma unroll
        for (int j = 0; j < COLS; j++) {
            r.out[j][2 * row] *= keep;
            r.out[j][2 * row + 1] *= keep;
        }
    }
}

__device__ __forceinline__ void take_page(
    struct rows &r, const struct page &page, int first_key, float scale)
{
    const int me = (int)threadIdx.x % 32;
    float score[2][4];
    find_scores(score, r, page, first_key, scale);
    weigh(r, score);
    const uint4 one = split_four(score[0][0], score[0][1], score[0][2], score[0][3]),
                two = split_four(score[1][0], score[1][1], score[1][2], score[1][3]);
    const uint4 upper = make_uint4(one.x, one.y, two.x, two.y),
                lower = make_uint4(one.z, one.w, two.z, two.w);
#pragma unroll
    for (int j = 0; j < COLS; j++) {
        const uint4 v = page.values[j][me];
        ptx_mma(r.out[j], upper, v.x, v.y);
        ptx_mma(r.out[j], lower, v.x, v.y);
        ptx_mma(r.out[j], upper, v.z, v.w);
    }
}

/* Numbers 2t, 2t + 1 and eight further of a tile of 16, of one row. */
__device__ __forceinline__ void store_tile(
    const struct task &task, int v, int head, int tile, float a, float b, float c, float d)
{
    const struct cuda_attend &p = task.a;
    const int t = (int)threadIdx.x % 4, col = head * task.head + tile * 16;
    if (p.operand) {
        const uint4 parts = split_four(a, b, c, d);
        uint2 *to = (uint2 *)p.operand +
                    ((int64_t)(v / CUDA_TILE_VECTORS) * p.operand_k_tiles + col / CUDA_TILE) * 32 +
                    v % CUDA_TILE_VECTORS * 8 + t;
        to[0] = make_uint2(parts.x, parts.y);
        to[4] = make_uint2(parts.z, parts.w);
        return;
    }
    float *to = p.mixed + v * p.mixed_stride + col + 2 * t;
    *(float2 *)to = make_float2(a, b);
    *(float2 *)(to + 8) = make_float2(c, d);
}

__device__ __forceinline__ void store_rows(
    const struct rows &r, const struct task &task, int first, int head)
{
    const int g = (int)threadIdx.x % 32 / 4;
#pragma unroll
    for (int row = 0; row < 2; row++) {
        const int v = first + g + row * 8;
        const float sum = r.sum[row];
#pragma unroll
        for (int j = 0; j < COLS; j += 2) {
            if (v < task.a.n_vectors && j * 8 < task.head) {
                store_tile(task, v, head, j / 2, r.out[j][2 * row] / sum, r.out[j][2 * row + 1] / sum,
                    r.out[j + 1][2 * row] / sum, r.out[j + 1][2 * row + 1] / sum);
            }
        }
    }
}

__global__ void __launch_bounds__(N_THREADS, 2) prompt_kernel(struct task task)
{
    __shared__ struct page pages[2];
    const struct cuda_attend &a = task.a;
    const int warp = (int)threadIdx.x / 32, group = task.n_heads / task.n_kv_heads;
    const int pairs = (group + PAIR - 1) / PAIR, kv_head = (int)blockIdx.x / pairs;
    const int member = (int)blockIdx.x % pairs * PAIR + warp % PAIR, head = kv_head * group + member;
    const int begin = (int)(gridDim.y - 1 - blockIdx.y) * BLOCK_ROWS; /* the longest first */
    const int first = begin + warp / PAIR * ROWS,
              last = a.first_position + min(a.n_vectors, first + ROWS) - 1;
    const int n_keys = a.first_position + min(a.n_vectors, begin + BLOCK_ROWS);
    const int n_pages = (n_keys + CUDA_PAGE - 1) / CUDA_PAGE;
    const bool works = member < group && first < a.n_vectors;
    ptx_let_next_begin();
    ptx_wait_for_earlier();
    const int lane = lane_of(a, 0);
    struct loaded next;
    struct rows r;
    load_page(next, task, lane, kv_head, 0, n_keys);
    load_rows(r, task, first, min(head, task.n_heads - 1));
    store_page(pages[0], next);
    __syncthreads();
    for (int i = 0; i < n_pages; i++) {
        if (i + 1 < n_pages) {
            load_page(next, task, lane, kv_head, i + 1, n_keys);
        }
        if (works && i * CUDA_PAGE <= last) {
            take_page(r, pages[i % 2], i * CUDA_PAGE, task.scale);
        }
        if (i + 1 < n_pages) {
            store_page(pages[(i + 1) % 2], next);
        }
        __syncthreads();
    }
    if (works) {
        store_rows(r, task, first, head);
    }
}

} // namespace

bool cuda_prompt_suits(const struct cuda_stack *stack)
{
    return stack->head <= MOST_HEAD && stack->head % CUDA_TILE == 0;
}

cudaError_t cuda_prompt_queue(const struct cuda_queue *queue, const struct cuda_attend *attend)
{
    const struct task task = task_of(attend, 1);
    const int group = task.n_heads / task.n_kv_heads, n = attend->n_vectors;
    cudaError_t result =
        launch(ready_kernel, dim3((unsigned)n), READY_WARPS * 32, queue->overlaps, queue->stream, task);
    if (result != cudaSuccess) {
        return result;
    }
    dim3 grid((unsigned)(task.n_kv_heads * ((group + PAIR - 1) / PAIR)),
        (unsigned)((n + BLOCK_ROWS - 1) / BLOCK_ROWS));
    return launch(prompt_kernel, grid, N_THREADS, queue->overlaps, queue->stream, task);
}
