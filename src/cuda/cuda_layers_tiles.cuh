/* SPDX-License-Identifier: Apache-2.0
 * The products of the kernel of layers, from their sums on: heads normed, rotated and written where attention and the
 * cache want them, the gate, sums that are added to the state. */
#ifndef CUDA_CUDA_LAYERS_TILES_CUH
#define CUDA_CUDA_LAYERS_TILES_CUH

#include "cuda/cuda_layers_ring.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

namespace {

/* ---- Queries, keys and values ---- */

/* Numbers d * 32 + lane of a head. */
struct quarters {
    float of[4];
};

/* As place_head (cuda_heads.cuh), of registers. */
__device__ __forceinline__ struct quarters place(
    const struct quarters &x, const struct quarters &norm, const struct quarters &angles, float eps)
{
    float sum = 0;
    struct quarters work, out;
#pragma unroll
    for (int d = 0; d < 4; d++) {
        sum = __fmaf_rn(x.of[d], x.of[d], sum);
        work.of[d] = __fmul_rn(x.of[d], norm.of[d]);
    }
    sum = warp_sum(sum);
    const float scale = 1.0f / sqrtf(sum / (float)HEAD + eps);
#pragma unroll
    for (int d = 0; d < 2; d++) {
        const float first = __fmul_rn(work.of[d], scale), second = __fmul_rn(work.of[d + 2], scale);
        out.of[d] = __fmaf_rn(first, angles.of[d], -__fmul_rn(second, angles.of[d + 2]));
        out.of[d + 2] = __fmaf_rn(second, angles.of[d], __fmul_rn(first, angles.of[d + 2]));
    }
    return out;
}

__device__ __forceinline__ struct quarters quarters_of(const float *head, int lane)
{
    struct quarters q;
#pragma unroll
    for (int d = 0; d < 4; d++) {
        q.of[d] = head[d * 32 + lane];
    }
    return q;
}

__device__ __forceinline__ void store_quarters(float *head, const struct quarters &q, int lane)
{
#pragma unroll
    for (int d = 0; d < 4; d++) {
        head[d * 32 + lane] = q.of[d];
    }
}

/* As store_split (cuda_prompt.cuh): one of two neighbours stores upper parts, one lower. */
__device__ __forceinline__ void store_split_quarters(
    uint4 (&to)[2][CUDA_PAGE][COLS], int row, const struct quarters &q, int lane)
{
    const int lower = lane % 2;
#pragma unroll
    for (int d = 0; d < 4; d++) {
        const float other = __shfl_xor_sync(0xffffffffu, q.of[d], 1);
        const int col = d * 32 + lane / 2 * 2, piece = col / 8 ^ row % 8;
        ((uint32_t *)&to[lower][row][piece])[col % 8 / 2] =
            lower ? finish_part(other, q.of[d], true) : finish_part(q.of[d], other, false);
    }
}

/* Where a tile's numbers stand until each warp takes whole heads of some vectors. */
__device__ __forceinline__ int staged(int v, int row)
{
    return v * HEAD + (row ^ v % 4 * 8);
}

/* A head of a vector on its way. */
struct head_of {
    struct quarters x, angles;
    int page;
};

/* What hand_heads_on knows of its tile. */
struct heads_tile {
    const float *stage;
    const float *angles;  /* of its first vector */
    const int32_t *pages; /* of the lane; NULL where no keys are made */
    int position;         /* of the first vector */
    bool turns;           /* a query or a key */
};

__device__ __forceinline__ struct head_of take_head(const struct heads_tile &tile, int v, int lane)
{
    struct head_of h = {};
    if (tile.turns) {
        h.angles = quarters_of(tile.angles + v * HEAD, lane);
    }
    if (tile.pages) {
        h.page = tile.pages[(tile.position + v) / CUDA_PAGE];
    }
#pragma unroll
    for (int d = 0; d < 4; d++) {
        h.x.of[d] = tile.stage[staged(v, d * 32 + lane)];
    }
    return h;
}

/* Head number `head` of queries, keys and values for the n_vectors from `first` on, each by a warp, while the next one
 * is on its way. */
__device__ __forceinline__ void hand_heads_on(const struct layers_task &task, int l, const float *stage,
    int head, int first, int n_vectors, int lane_id)
{
    const struct task &a = task.attend;
    const struct layer &layer = task.layers[l];
    const int lane = self() % 32, n = min(n_vectors, a.a.n_vectors - first);
    const bool query = head < a.n_heads, key = !query && head < a.n_heads + a.n_kv_heads;
    const int kv_head = (head - a.n_heads) % a.n_kv_heads;
    const struct heads_tile tile = {stage, task.angles + (int64_t)first * HEAD,
        !query && lane_id >= 0 ? a.a.pages + (int64_t)lane_id * a.a.pages_stride : NULL,
        a.a.first_position + first, query || key};
    const struct quarters norm =
        tile.turns ? quarters_of(query ? layer.q_norm : layer.k_norm, lane) : quarters{};
    float *cache = a.a.cache + (((int64_t)l * a.n_kv_heads + kv_head) * 2 + !key) * CUDA_PAGE * HEAD;
    float *placed = a.a.placed + first * a.a.qkv_stride + (int64_t)head * HEAD;
    const int begin = warp_of();
    struct head_of h = {};
    if (begin < n) {
        h = take_head(tile, begin, lane);
    }
#pragma unroll 1
    for (int v = begin; v < n; v += MULTIPLIERS) {
        struct head_of next = {};
        if (v + MULTIPLIERS < n) {
            next = take_head(tile, v + MULTIPLIERS, lane);
        }
        if (tile.turns) {
            h.x = place(h.x, norm, h.angles, a.eps);
        }
        if (query) {
            store_quarters(placed + v * a.a.qkv_stride, h.x, lane);
        } else if (tile.pages) {
            const int row = (tile.position + v) % CUDA_PAGE;
            struct page *split = split_page(a, kv_head, tile.position + v);
            store_quarters(cache + h.page * (int64_t)a.a.page_floats + row * HEAD, h.x, lane);
            store_split_quarters(key ? split->keys : split->values, row, h.x, lane);
        }
        h = next;
    }
}

/* ---- Gate ---- */

/* As leave_operand (cuda_wide.cuh) of sums that this thread staged, so that one piece of code does a few groups after
 * the other: more instructions than their cache has room for are as slow as memory. */
__device__ __forceinline__ void hand_gate_on(const struct layers_task &task, const float *scales,
    const float2 *mine, int n_groups, int tile, int first)
{
    const int lane = self() % 32, g = lane / 4;
    uint16_t *to = (uint16_t *)task.inner +
                   operand_place(task.room_groups, first + lane % 4, tile * 8 + g / 2 * 2) + g % 2 * 8;
    scales += lane % 4;
    int left = task.attend.a.n_vectors - first - lane % 4;
#pragma unroll 1
    for (int from = 0; from < n_groups; from += AT_ONCE) {
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            const float2 sum = mine[j * 32];
            const float scale = scales[j * CUDA_TILE_VECTORS];
            const float value = finish_silu(__fmul_rn(sum.x, scale)) * __fmul_rn(sum.y, scale);
            const float other = __shfl_xor_sync(0xffffffffu, value, 4);
            if (j * CUDA_TILE_VECTORS < left) {
                *(uint32_t *)(to + j * (GROUP_BYTES / 2)) =
                    g % 2 ? finish_part(other, value, true) : finish_part(value, other, false);
            }
        }
        mine += AT_ONCE * 32;
        scales += AT_ONCE * CUDA_TILE_VECTORS;
        to += AT_ONCE * (GROUP_BYTES / 2);
        left -= AT_ONCE * CUDA_TILE_VECTORS;
    }
}

/* ---- The broad products ---- */

/* Sums of heads, times their factors, to where whole heads are read. */
template <class S>
__device__ __forceinline__ void stage_heads(
    const struct sums<S> &s, const float *scales, float *stage, int warp, int lane)
{
    const int row = warp * CUDA_TILE + lane / 4;
#pragma unroll
    for (int j = 0; j < S::GROUPS; j++) {
        const int v = j * CUDA_TILE_VECTORS + lane % 4;
        stage[staged(v, row)] = __fmul_rn(s.before[j][0], scales[v]) + 0.0f;
        stage[staged(v, row + 8)] = __fmul_rn(s.before[j][1], scales[v]) + 0.0f;
    }
}

/* Makes a tile and leaves its sums in the slot of its last operand: heads times their factors, or the gate's as they
 * are. */
template <class S>
__device__ __forceinline__ void stage_tile(const struct layers_task &task, struct state &b,
    unsigned char *slots, struct place &at, const float *scales, bool gate, struct place *last)
{
    struct sums<S> s;
    multiply<S>(s, b, slots, at, task.width_tiles, last);
    unsigned char *stage = slots + behind(*last).slot * SLOT;
    const int warp = warp_of(), lane = self() % 32;
    group_some_meet<2, TOLD>(); /* all are through with the slot, and the factors are there */
    if (gate) {
        float2 *mine = (float2 *)stage + warp * broad::GROUPS * 32 + lane;
#pragma unroll
        for (int j = 0; j < S::GROUPS; j++) {
            mine[j * 32] = make_float2(s.before[j][0], s.before[j][1]);
        }
    } else {
        stage_heads(s, scales, (float *)stage, warp, lane);
    }
}

/* Heads of layer l, or its gate. */
__device__ __forceinline__ void make_broad(const struct layers_task &task, struct state &b,
    unsigned char *slots, struct place &at, int l, bool gate)
{
    struct grid<broad> grid(task, gate ? task.inner_tiles * 2 : head_tiles(task.attend));
    int turn = 0;
#pragma unroll 1
    for (int i = (int)blockIdx.x; i < grid.n; i += (int)gridDim.x, turn ^= 1) {
        struct place last;
        grid.find(i);
        if (grid.n_groups == broad::GROUPS) {
            stage_tile<broad>(task, b, slots, at, b.scales[turn], gate, &last);
        } else {
            stage_tile<half_broad>(task, b, slots, at, b.scales[turn], gate, &last);
        }
        const unsigned char *stage = slots + behind(last).slot * SLOT;
        const int warp = warp_of(), first = grid.group * CUDA_TILE_VECTORS;
        if (gate) {
            hand_gate_on(task, b.scales[turn],
                (const float2 *)stage + warp * broad::GROUPS * 32 + self() % 32, grid.n_groups,
                grid.row * broad::ROWS + warp, first);
        } else {
            group_some_meet<1, MULTIPLIERS * 32>();
            hand_heads_on(task, l, (const float *)stage, grid.row, first,
                grid.n_groups * CUDA_TILE_VECTORS, task.attend.a.lanes[0]);
        }
        leave_last<broad>(b, last);
    }
}

/* ---- Products that are added ---- */

/* x += the sums; and x times the next norm's weights as the next product's operand, the squares of each tile beside it
 * (as leave_normed of cuda_wide_group.cu). */
__device__ __forceinline__ void hand_sums_on(const struct layers_task &task, const struct sums<slim> &s,
    const float (&old)[slim::MINE][2], const float *next_norm, int tile, int first)
{
    const int lane = self() % 32, g = lane / 4, col = tile * CUDA_TILE + g / 2 * 2;
    const bool odd = g % 2;
    const float2 n0 = *(const float2 *)(next_norm + col), n1 = *(const float2 *)(next_norm + col + 8);
    const int v = first + lane % 4, left = task.attend.a.n_vectors - v;
    float *x = task.x + v * task.x_stride + tile * CUDA_TILE + g;
    uint16_t *to = (uint16_t *)task.operand + operand_place(task.room_groups, v, col) + (odd ? 8 : 0);
    float *squares = task.squares + ((int64_t)v * task.width_tiles + tile) * 4 + g / 2;
#pragma unroll
    for (int j = 0; j < slim::MINE; j++) {
        const float a = old[j][0] + s.before[j][0], b = old[j][1] + s.before[j][1];
        const float first_other = __shfl_xor_sync(0xffffffffu, a, 4),
                    second_other = __shfl_xor_sync(0xffffffffu, b, 4);
        const float2 x0 = odd ? make_float2(first_other, a) : make_float2(a, first_other),
                     x1 = odd ? make_float2(second_other, b) : make_float2(b, second_other);
        if (j * CUDA_TILE_VECTORS < left) {
            x[0] = a;
            x[8] = b;
            *(uint32_t *)to = finish_part(__fmul_rn(x0.x, n0.x), __fmul_rn(x0.y, n0.y), odd);
            *(uint32_t *)(to + 64) = finish_part(__fmul_rn(x1.x, n1.x), __fmul_rn(x1.y, n1.y), odd);
            if (!odd) {
                const float square = __fmaf_rn(x0.y, x0.y, __fmul_rn(x0.x, x0.x));
                *squares = __fadd_rn(square, __fmaf_rn(x1.y, x1.y, __fmul_rn(x1.x, x1.x)));
            }
        }
        x += CUDA_TILE_VECTORS * task.x_stride;
        to += GROUP_BYTES / 2;
        squares += CUDA_TILE_VECTORS * 4 * task.width_tiles;
    }
}

__device__ __forceinline__ void make_sums(const struct layers_task &task, struct state &b,
    unsigned char *slots, struct place &at, int n_k, const float *next_norm)
{
    const int lane = self() % 32, warp = warp_of();
    struct grid<slim> grid(task, task.width_tiles);
#pragma unroll 1
    for (int i = (int)blockIdx.x; i < grid.n; i += (int)gridDim.x) {
        struct sums<slim> s;
        struct place last;
        float old[slim::MINE][2]; /* this block wrote them */
        grid.find(i);
        const int tile = grid.row * slim::ROWS + warp % slim::ROWS;
        const int first = (grid.group + warp / TEAM_WARPS * slim::MINE) * CUDA_TILE_VECTORS;
#pragma unroll
        for (int j = 0; j < slim::MINE; j++) {
            const int v = first + j * CUDA_TILE_VECTORS + lane % 4;
            const float *x = task.x + v * task.x_stride + tile * CUDA_TILE + lane / 4;
            old[j][0] = v < task.attend.a.n_vectors ? x[0] : 0.0f;
            old[j][1] = v < task.attend.a.n_vectors ? x[8] : 0.0f;
        }
        multiply<slim>(s, b, slots, at, n_k, &last);
        leave_stage<slim>(b, last, lane);
        hand_sums_on(task, s, old, next_norm, tile, first);
    }
}

} // namespace

#endif

#endif
