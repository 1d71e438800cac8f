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
    SIDE = 4,
    HALVES = 2,  /* pages of even numbers, and of odd: summed apart, then together */
    N_WARPS = 8, /* two halves of the keys, two tiles of rows, two query heads */
    N_THREADS = N_WARPS * 32,
    ROWS = 16, /* of a warp */
    BLOCK_ROWS = 2 * ROWS,
    PAIR = 2, /* query heads of a block */
    MOST_HEAD = 128,
    STEPS = MOST_HEAD / 16,        /* of a dot product */
    COLS = MOST_HEAD / 8,          /* tiles of 8 numbers of a head */
    PAGE_WARPS = N_WARPS / HALVES, /* that bring a page */
    ITEMS = STEPS * 2 / PAGE_WARPS,
};

/* ---- Heads ---- */

__global__ void __launch_bounds__(READY_WARPS * 32) ready_kernel(struct task task)
{
    __shared__ float work[READY_WARPS][MOST_HEAD], angles[MOST_HEAD];
    const int v = (int)blockIdx.x, warp = (int)threadIdx.x / 32;
    find_angles(task, position_of(task.a, v), angles, (int)threadIdx.x, READY_WARPS * 32);
    ptx_let_next_begin();
    ptx_wait_for_earlier();
    if (lane_of(task.a, 0) < 0) { /* nobody's prompt */
        return;
    }
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

/* Where a page lies; its number in the cache is asked for a page before the page itself. */
__device__ __forceinline__ int64_t cache_page(
    const struct task &task, int lane, int number, int n_pages)
{
    const int32_t *pages = task.a.pages + (int64_t)lane * task.a.pages_stride;
    return number < n_pages ? pages[number] : 0;
}

/* Those of its n keys that there are; the others are zeros. */
__device__ __forceinline__ void load_page(
    struct loaded &to, const struct task &task, int64_t in_cache, int kv_head, int n)
{
    const int me = (int)threadIdx.x % 32, g = me / 4, t = me % 4;
    const float *keys = task.a.cache + in_cache * (int64_t)task.a.page_floats +
                        ((int64_t)task.a.layer * task.n_kv_heads + kv_head) * 2 * CUDA_PAGE * task.head;
    const float *values = keys + CUDA_PAGE * task.head;
#pragma unroll
    for (int e = 0; e < ITEMS; e++) {
        const int item = e * PAGE_WARPS + (int)threadIdx.x / 32 % PAGE_WARPS;
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
        const int item = e * PAGE_WARPS + (int)threadIdx.x / 32 % PAGE_WARPS;
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
    float sums[3][2][4] = {}; /* of upper parts; of one lower part */
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        const uint4 k[2] = {page.keys[s][0][me], page.keys[s][1][me]};
#pragma unroll
        for (int half = 0; half < 2; half++) {
            ptx_mma(sums[0][half], r.upper[s], k[half].x, k[half].y);
            ptx_mma(sums[1][half], r.lower[s], k[half].x, k[half].y);
            ptx_mma(sums[2][half], r.upper[s], k[half].z, k[half].w);
        }
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int key = first_key + half * 8 + 2 * (me % 4) + i % 2;
            const float sum = sums[0][half][i] + (sums[1][half][i] + sums[2][half][i]);
            score[half][i] = key <= r.position[i / 2] ? __fmul_rn(sum, scale) : -INFINITY;
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
        largest = fmaxf(largest, r.largest[row]);
        /* No key of this half of the pages may count for a row. */
        const float keep = r.largest[row] == largest ? 1.0f : expf(r.largest[row] - largest);
        const float from = largest == -INFINITY ? 0.0f : largest;
        r.largest[row] = largest;
        a[0] = expf(a[0] - from);
        a[1] = expf(a[1] - from);
        b[0] = expf(b[0] - from);
        b[1] = expf(b[1] - from);
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
    for (int j = 0; j < COLS; j += SIDE) { /* SIDE sums beside each other: none waits for itself */
        uint4 v[SIDE];
#pragma unroll
        for (int i = 0; i < SIDE; i++) {
            v[i] = page.values[j + i][me];
            ptx_mma(r.out[j + i], upper, v[i].x, v[i].y);
        }
#pragma unroll
        for (int i = 0; i < SIDE; i++) {
            ptx_mma(r.out[j + i], lower, v[i].x, v[i].y);
        }
#pragma unroll
        for (int i = 0; i < SIDE; i++) {
            ptx_mma(r.out[j + i], upper, v[i].z, v[i].w);
        }
    }
}

/* What the warp of the odd pages leaves for the one of the even pages: a number of all threads beside each other. */
struct left_over {
    float largest[2][32], sum[2][32], out[COLS][4][32];
};

__device__ __forceinline__ void leave_rows(struct left_over &to, const struct rows &r)
{
    const int me = (int)threadIdx.x % 32;
#pragma unroll
    for (int row = 0; row < 2; row++) {
        to.largest[row][me] = r.largest[row];
        to.sum[row][me] = r.sum[row];
    }
#pragma unroll
    for (int j = 0; j < COLS; j++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            to.out[j][i][me] = r.out[j][i];
        }
    }
}

/* Key 0 lies in an even page: `r` has a largest score. */
__device__ __forceinline__ void join_rows(struct rows &r, const struct left_over &from)
{
    const int me = (int)threadIdx.x % 32;
#pragma unroll
    for (int row = 0; row < 2; row++) {
        const float other = from.largest[row][me], largest = fmaxf(r.largest[row], other);
        const float mine = expf(r.largest[row] - largest), theirs = expf(other - largest);
        r.sum[row] = __fmaf_rn(theirs, from.sum[row][me], __fmul_rn(mine, r.sum[row]));
#pragma unroll
        for (int j = 0; j < COLS; j++) {
#pragma unroll
            for (int i = 2 * row; i < 2 * row + 2; i++) {
                r.out[j][i] = __fmaf_rn(theirs, from.out[j][i][me], __fmul_rn(mine, r.out[j][i]));
            }
        }
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

/* Shared memory: pages while there are keys, then what is left over. */
union room {
    struct page pages[HALVES][2];
    struct left_over rows[PAGE_WARPS];
};

__global__ void __launch_bounds__(N_THREADS, 1) prompt_kernel(struct task task)
{
    extern __shared__ __align__(16) unsigned char shared[];
    union room &room = *(union room *)shared;
    const struct cuda_attend &a = task.a;
    const int warp = (int)threadIdx.x / 32, half = warp / PAGE_WARPS,
              group = task.n_heads / task.n_kv_heads;
    const int pairs = (group + PAIR - 1) / PAIR, kv_head = (int)blockIdx.x / pairs;
    const int member = (int)blockIdx.x % pairs * PAIR + warp % PAIR, head = kv_head * group + member;
    const int begin = (int)(gridDim.y - 1 - blockIdx.y) * BLOCK_ROWS; /* the longest first */
    const int first = begin + warp / PAIR % 2 * ROWS;
    const int last = a.first_position + min(a.n_vectors, first + ROWS) - 1;
    const int n_keys = a.first_position + min(a.n_vectors, begin + BLOCK_ROWS);
    const int n_pages = (n_keys + CUDA_PAGE - 1) / CUDA_PAGE,
              n_rounds = (n_pages + HALVES - 1) / HALVES;
    const bool works = member < group && first < a.n_vectors;
    ptx_let_next_begin();
    ptx_wait_for_earlier();
    const int lane = lane_of(a, 0);
    if (lane < 0) {
        return;
    }
    struct loaded next;
    struct rows r;
    load_page(next, task, cache_page(task, lane, half, n_pages), kv_head, n_keys - half * CUDA_PAGE);
    int64_t in_cache = cache_page(task, lane, half + HALVES, n_pages);
    load_rows(r, task, first, min(head, task.n_heads - 1));
    store_page(room.pages[half][0], next);
    __syncthreads();
    for (int i = 0; i < n_rounds; i++) {
        const int number = i * HALVES + half, key = number * CUDA_PAGE;
        if (i + 1 < n_rounds) {
            load_page(next, task, in_cache, kv_head, n_keys - key - HALVES * CUDA_PAGE);
            in_cache = cache_page(task, lane, number + 2 * HALVES, n_pages);
        }
        if (works && key <= last) {
            take_page(r, room.pages[half][i % 2], key, task.scale);
        }
        if (i + 1 < n_rounds) {
            store_page(room.pages[half][(i + 1) % 2], next);
        }
        __syncthreads();
    }
    if (half == 1) {
        leave_rows(room.rows[warp % PAGE_WARPS], r);
    }
    __syncthreads();
    if (half == 0 && works) {
        join_rows(r, room.rows[warp % PAGE_WARPS]);
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
    return launch(
        prompt_kernel, grid, N_THREADS, queue->overlaps, queue->stream, task, (int)sizeof(union room));
}

cudaError_t cuda_prompt_open(void)
{
    cudaError_t result = cudaFuncSetAttribute((const void *)prompt_kernel,
        cudaFuncAttributeMaxDynamicSharedMemorySize, (int)sizeof(union room));
    result = result ? result : prefer_shared((const void *)ready_kernel);
    return result ? result : prefer_shared((const void *)prompt_kernel);
}
