/* SPDX-License-Identifier: Apache-2.0
 * Attention of vectors whose lanes have one short page: the predictor's, of which a frame has dozens of short ones.
 * A block is one query head of one vector. Keys and values of the steps before are on their way while the block norms
 * and turns its own; these it takes from the products themselves, and the first query head of a group puts them into
 * the page. */
#include "cuda/graph/attend_page.h"
#include "cuda/parts/norm.cuh"
#include "cuda/parts/operand.cuh"

namespace {

enum {
    N_THREADS = 128,
    SHARE = 8,                      /* threads of a key */
    N_KEYS = N_THREADS / SHARE,     /* of a page, at most */
    MAX_HEAD = N_THREADS,           /* a thread has one dimension of the result */
    QUADS = MAX_HEAD / (4 * SHARE), /* of a key in each of its threads */
    DIMS = MAX_HEAD / 32,           /* of a head in each thread of a warp */
    MAX_OWN = 2,                    /* vectors of one lane beside each other */
};

struct page_task {
    struct cuda_attend a;
    int n_heads, n_kv_heads, head;
    float eps, scale;
    const float *q_norm, *k_norm, *inv_freq;
};

struct shared {
    float4 q[MAX_HEAD / 4], keys[MAX_OWN][MAX_HEAD / 4]; /* keys: of this vector, of the one before */
    float values[MAX_OWN][MAX_HEAD];
    float angles[MAX_OWN][MAX_HEAD]; /* cosines, then sines, of half a head */
    float work[1 + MAX_OWN][MAX_HEAD];
    float scores[N_KEYS];
};

/* Cosines and sines of the positions of this vector and, with two, of the one before. */
__device__ void find_angles(const struct page_task &task, struct shared &s, int position, int n_own)
{
    const int half = task.head / 2;
    for (int i = (int)threadIdx.x; i < n_own * half; i += N_THREADS) {
        const int own = i / half, d = i % half;
        sincosf(
            (float)(position - own) * task.inv_freq[d], &s.angles[own][half + d], &s.angles[own][d]);
    }
}

/* What a warp works on: warp 0 has the query, the next ones the keys of this vector and of the one before, the last
 * one their values. */
struct piece {
    const float *from; /* NULL: nothing */
    float values[DIMS], norm[DIMS];
};

__device__ __forceinline__ struct piece piece_of(
    const struct page_task &task, int v, int of, int kv_head, int n_own)
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const float *row = task.a.qkv + (v - (warp == 2)) * task.a.qkv_stride;
    const float *norm = warp == 0 ? task.q_norm : task.k_norm;
    struct piece piece = {row + (int64_t)(warp == 0 ? of : task.n_heads + kv_head) * task.head};
    if (warp == 3 || (warp == 2 && n_own < 2)) {
        piece.from = NULL;
    }
#pragma unroll
    for (int i = 0; i < DIMS; i++) {
        piece.norm[i] = i * 32 + lane < task.head ? norm[i * 32 + lane] : 0.0f;
        piece.values[i] = 0;
    }
    return piece;
}

__device__ __forceinline__ void load_piece(const struct page_task &task, struct piece &piece)
{
#pragma unroll
    for (int i = 0; i < DIMS; i++) {
        const int d = i * 32 + (int)threadIdx.x % 32;
        piece.values[i] = piece.from && d < task.head ? piece.from[d] : 0.0f;
    }
}

/* Norms and turns a head by one warp; `work` and `out` are [head]. */
__device__ __forceinline__ void turn(const struct page_task &task, const struct piece &piece,
    const float *angles, float *work, float *out)
{
    const int lane = (int)threadIdx.x % 32, half = task.head / 2;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < DIMS; i++) {
        sum += piece.values[i] * piece.values[i];
        work[i * 32 + lane] = piece.values[i] * piece.norm[i];
    }
    sum = warp_sum(sum);
    const float scale = norm_factor(sum, task.head, task.eps);
    __syncwarp(); /* work[d + half] may be another warp lane's */
#pragma unroll
    for (int i = 0; i < (DIMS + 1) / 2; i++) {
        const int d = i * 32 + lane;
        if (d < half) {
            const float first = work[d] * scale, second = work[d + half] * scale;
            out[d] = first * angles[d] - second * angles[half + d];
            out[d + half] = second * angles[d] + first * angles[half + d];
        }
    }
    __syncwarp();
}

/* What this thread needs of the n_old first keys and values of the page. */
__device__ __forceinline__ void load_old(const struct page_task &task, const float *keys, int n_old,
    float4 (&old_keys)[QUADS], float (&old_values)[N_KEYS])
{
    const int me = (int)threadIdx.x;
#pragma unroll
    for (int i = 0; i < QUADS; i++) {
        const int quad = i * SHARE + me % SHARE;
        const bool there = me / SHARE < n_old && quad * 4 < task.head;
        old_keys[i] = there ? *(const float4 *)(keys + (int64_t)(me / SHARE) * task.head + quad * 4)
                            : make_float4(0, 0, 0, 0);
    }
#pragma unroll
    for (int p = 0; p < N_KEYS; p++) {
        old_values[p] =
            p < n_old && me < task.head ? keys[(int64_t)(task.a.page_size + p) * task.head + me] : 0.0f;
    }
}

/* Key and value of this vector go to the page. */
__device__ __forceinline__ void keep_own(
    const struct page_task &task, const struct shared &s, float *keys, int position)
{
    const int d = (int)threadIdx.x;
    if (d < task.head) {
        float *to = keys + (int64_t)position * task.head + d;
        to[0] = ((const float *)s.keys[0])[d];
        to[(int64_t)task.a.page_size * task.head] = s.values[0][d];
    }
}

/* The scores of all keys up to `position`; key p of the page is in `old` of its threads if p < n_old. */
__device__ __forceinline__ void score_keys(
    const struct page_task &task, struct shared &s, const float4 (&old)[QUADS], int n_old, int position)
{
    const int p = (int)threadIdx.x / SHARE, share = (int)threadIdx.x % SHARE;
    float dot = 0;
#pragma unroll
    for (int i = 0; i < QUADS; i++) {
        const int quad = i * SHARE + share;
        if (p <= position && quad * 4 < task.head) {
            const float4 q = s.q[quad], k = p < n_old ? old[i] : s.keys[position - p][quad];
            dot += q.x * k.x + q.y * k.y + q.z * k.z + q.w * k.w;
        }
    }
#pragma unroll
    for (int step = SHARE / 2; step > 0; step /= 2) {
        dot += __shfl_xor_sync(0xffffffffu, dot, step);
    }
    if (share == 0) {
        s.scores[p] = p <= position ? dot * task.scale : -INFINITY;
    }
}

/* Dimension `d` of the mixed head. */
__device__ __forceinline__ float mix(
    const struct shared &s, const float (&old)[N_KEYS], int n_old, int position, int d)
{
    float most = s.scores[0], total = 0, out = 0;
#pragma unroll
    for (int p = 1; p < N_KEYS; p++) {
        most = fmaxf(most, s.scores[p]);
    }
#pragma unroll
    for (int p = 0; p < N_KEYS; p++) {
        if (p <= position) {
            const float weight = expf(s.scores[p] - most);
            total += weight;
            out += weight * (p < n_old ? old[p] : s.values[position - p][d]);
        }
    }
    return out / total;
}

/* What the kernel uses after its wait. */
__device__ __forceinline__ void need_late(const struct cuda_attend &a)
{
    ptx_need(a.lanes);
    ptx_need(a.layer);
    ptx_need(a.qkv);
    ptx_need(a.qkv_stride);
    ptx_need(a.mixed);
    ptx_need(a.mixed_stride);
    ptx_need(a.cache);
    ptx_need((int64_t)a.page_floats);
    ptx_need(a.page_size);
    ptx_need(a.operand);
}

__global__ void __launch_bounds__(N_THREADS) page_kernel(struct page_task task)
{
    __shared__ struct shared s;
    const struct cuda_attend &a = task.a;
    const int me = (int)threadIdx.x, warp = me / 32, v = (int)blockIdx.y, of = (int)blockIdx.x;
    const int group = task.n_heads / task.n_kv_heads, kv_head = of / group;
    const int n_own = v % a.each + 1, n_old = a.first_position, position = n_old + n_own - 1;
    find_angles(task, s, position, n_own);
    struct piece piece = piece_of(task, v, of, kv_head, n_own);
    ptx_let_next_begin();
    need_late(a);
    ptx_wait_for_earlier();

    const int lane_id = a.lanes[v / a.each];
    load_piece(task, piece);
    float fresh[MAX_OWN] = {};
#pragma unroll
    for (int own = 0; own < MAX_OWN; own++) {
        if (own < n_own && me < task.head) {
            fresh[own] = a.qkv[(v - own) * a.qkv_stride +
                               (int64_t)(task.n_heads + task.n_kv_heads + kv_head) * task.head + me];
        }
    }
    if (lane_id < 0) {
        return;
    }
    float *keys = a.cache + lane_id * (int64_t)a.page_floats +
                  ((int64_t)a.layer * task.n_kv_heads + kv_head) * 2 * a.page_size * task.head;
    float4 old_keys[QUADS];
    float old_values[N_KEYS];
    load_old(task, keys, n_old, old_keys, old_values);
#pragma unroll
    for (int own = 0; own < MAX_OWN; own++) {
        s.values[own][me] = fresh[own];
    }
    __syncthreads(); /* angles */
    if (piece.from) {
        turn(task, piece, s.angles[warp == 2], s.work[warp],
            (float *)(warp == 0 ? s.q : s.keys[warp - 1]));
    }
    __syncthreads();
    score_keys(task, s, old_keys, n_old, position);
    if (of % group == 0) {
        keep_own(task, s, keys, position);
    }
    __syncthreads();
    if (me < task.head) {
        const float mixed = mix(s, old_values, n_old, position, me);
        if (a.operand) {
            operand_store(a.operand, a.operand_groups, v, of * task.head + me, mixed);
        } else {
            a.mixed[v * a.mixed_stride + (int64_t)of * task.head + me] = mixed;
        }
    }
}

} // namespace

cudaError_t cuda_attend_page_open(void)
{
    return prefer_shared(ptx_kernel(page_kernel));
}

bool cuda_attend_page_suits(const struct cuda_attend *a)
{
    return !a->prompt && !a->positions && !a->pages && !a->partial && a->page_size <= N_KEYS &&
           a->each <= MAX_OWN && a->stack->head <= MAX_HEAD && a->stack->head % 4 == 0;
}

cudaError_t cuda_attend_page_queue(const struct cuda_queue *queue, const struct cuda_attend *attend)
{
    const struct cuda_stack *stack = attend->stack;
    const struct cuda_layer *layer = &stack->layers[attend->layer];
    struct page_task task = {*attend, stack->n_heads, stack->n_kv_heads, stack->head, stack->norm_eps,
        (float)(1.0 / sqrt((double)stack->head)), layer->q_norm, layer->k_norm, stack->inv_freq};
    task.a.stack = NULL;
    return launch(page_kernel, dim3((unsigned)stack->n_heads, (unsigned)attend->n_vectors), N_THREADS,
        queue->overlaps, queue->stream, task);
}
