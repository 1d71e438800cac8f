/* SPDX-License-Identifier: Apache-2.0
 * The products of the kernel of layers, from their sums on: heads normed, rotated and written where attention and the
 * cache want them, the gate, sums that are added to the state. */
#ifndef CUDA_PROMPT_LAYERS_TILES_CUH
#define CUDA_PROMPT_LAYERS_TILES_CUH

#include "cuda/prompt/layers_ring.cuh"

#if PTX_GROUPS

namespace {

/* ---- Queries, keys and values ---- */

/* Numbers d * 32 + lane of a head. */
struct quarters {
    float of[4];
};

/* As place_head (parts/heads.cuh), of registers: `scale` is the factor of the norm. */
__device__ __forceinline__ struct quarters place(
    const struct quarters &x, const struct quarters &norm, const struct quarters &angles, float scale)
{
    struct quarters work, out;
#pragma unroll
    for (int d = 0; d < 4; d++) {
        work.of[d] = __fmul_rn(x.of[d], norm.of[d]);
    }
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

/* As store_split (attend_rows.cuh): one of two neighbours stores upper parts, one lower. */
__device__ __forceinline__ void store_split_quarters(
    page_part &to, int row, const struct quarters &q, int lane)
{
    const int lower = lane % 2;
#pragma unroll
    for (int d = 0; d < 4; d++) {
        const float other = __shfl_xor_sync(0xffffffffu, q.of[d], 1);
        const int col = d * 32 + lane / 2 * 2, piece = col / 8 % LINE ^ row % LINE;
        ((uint32_t *)&to[col / 8 / LINE][lower][row][piece])[col % 8 / 2] =
            finish_part(lower ? other : q.of[d], lower ? q.of[d] : other, lower);
    }
}

/* The same of row v of a query: to where hold_queries has the operands of its 16 rows. */
__device__ __forceinline__ void store_query(
    struct query_rows &to, int row, const struct quarters &q, int lane)
{
    const int lower = lane % 2;
#pragma unroll
    for (int d = 0; d < 4; d++) {
        const float other = __shfl_xor_sync(0xffffffffu, q.of[d], 1);
        uint4 &four = to.steps[d * 2 + lane / 16][lower][row % 8 * 4 + lane / 2 % 4];
        ((uint32_t *)&four)[row / 8 % 2 + lane / 8 % 2 * 2] =
            finish_part(lower ? other : q.of[d], lower ? q.of[d] : other, lower);
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

/* What store_heads knows of its tile. */
struct heads_tile {
    const float *stage;
    const float *angles;  /* of its first vector */
    const int32_t *pages; /* of the lane; NULL where no keys are made */
    int first, position;  /* the first vector, and where it stands */
    int n;                /* vectors */
    int head, kv_head;
    bool query, key;
    float *cache; /* of the kv head's keys, or values, from the first page on */
    struct quarters norm;
};

__device__ __forceinline__ struct heads_tile heads_tile_of(const struct layers_task &task, int l,
    const float *stage, int head, int first, int n_vectors, int lane_id)
{
    const struct heads_task &a = task.attend;
    const struct layer &layer = task.layers[l];
    struct heads_tile t;
    t.stage = stage;
    t.angles = task.angles + (int64_t)first * HEAD;
    t.first = first;
    t.position = a.a.first_position + first;
    t.n = min(n_vectors, a.a.n_vectors - first);
    t.head = head;
    t.query = head < a.n_heads;
    t.key = !t.query && head < a.n_heads + a.n_kv_heads;
    t.kv_head = head - a.n_heads - (t.key ? 0 : a.n_kv_heads);
    t.pages = !t.query && lane_id >= 0 ? a.a.pages + (int64_t)lane_id * a.a.pages_stride : NULL;
    t.cache = a.a.cache + (((int64_t)l * a.n_kv_heads + t.kv_head) * 2 + !t.key) * CUDA_PAGE * HEAD;
    t.norm =
        t.query || t.key ? quarters_of(t.query ? layer.q_norm : layer.k_norm, self() % 32) : quarters{};
    return t;
}

__device__ __forceinline__ struct head_of take_head(const struct heads_tile &tile, int v, int lane)
{
    struct head_of h = {};
    if (tile.query || tile.key) {
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

/* Sums of squares of HEADS_AT_ONCE heads, each as warp_sum has it: none waits for the others. */
__device__ __forceinline__ void square_heads(
    float (&sum)[HEADS_AT_ONCE], const struct head_of (&h)[HEADS_AT_ONCE])
{
#pragma unroll
    for (int k = 0; k < HEADS_AT_ONCE; k++) {
        sum[k] = 0;
#pragma unroll
        for (int d = 0; d < 4; d++) {
            sum[k] = __fmaf_rn(h[k].x.of[d], h[k].x.of[d], sum[k]);
        }
    }
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
#pragma unroll
        for (int k = 0; k < HEADS_AT_ONCE; k++) {
            sum[k] += __shfl_xor_sync(0xffffffffu, sum[k], step);
        }
    }
}

/* Their factors, each by a third of the lanes. */
__device__ __forceinline__ float scale_heads(const float (&sum)[HEADS_AT_ONCE], float eps, int lane)
{
    const float mine = lane % HEADS_AT_ONCE == 0 ? sum[0] : lane % HEADS_AT_ONCE == 1 ? sum[1] : sum[2];
    return norm_factor(mine, HEAD, eps);
}

/* Vector v's head to where it is wanted. */
__device__ __forceinline__ void store_head(const struct heads_task &a, const struct heads_tile &tile,
    struct head_of &h, float scale, int v, int lane)
{
    if (tile.query || tile.key) {
        h.x = place(h.x, tile.norm, h.angles, scale);
    }
    if (v >= tile.n) {
        return;
    }
    if (tile.query) {
        store_query(*query_rows_of(a, tile.head, tile.first + v), tile.first + v, h.x, lane);
    } else if (tile.pages) {
        const int row = (tile.position + v) % CUDA_PAGE;
        struct page *split = split_page(a, tile.kv_head, tile.position + v);
        store_quarters(tile.cache + h.page * (int64_t)a.a.page_floats + row * HEAD, h.x, lane);
        store_split_quarters(tile.key ? split->keys : split->values, row, h.x, lane);
    }
}

/* All vectors of a tile, by each warp HEADS_AT_ONCE at a time, while the next are on their way. */
__device__ __forceinline__ void store_heads(const struct heads_task &a, const struct heads_tile &tile)
{
    const int lane = self() % 32, begin = warp_of(), last = tile.n - 1;
    struct head_of next[HEADS_AT_ONCE];
    if (last < 0) { /* half a tile, behind all vectors */
        return;
    }
#pragma unroll
    for (int k = 0; k < HEADS_AT_ONCE; k++) {
        next[k] = take_head(tile, min(begin + k * MULTIPLIERS, last), lane);
    }
#pragma unroll 1
    for (int from = begin; from <= last; from += HEADS_AT_ONCE * MULTIPLIERS) {
        struct head_of h[HEADS_AT_ONCE];
        float sum[HEADS_AT_ONCE];
#pragma unroll
        for (int k = 0; k < HEADS_AT_ONCE; k++) {
            h[k] = next[k];
            next[k] = take_head(tile, min(from + (HEADS_AT_ONCE + k) * MULTIPLIERS, last), lane);
        }
        square_heads(sum, h);
        const float scale = scale_heads(sum, a.eps, lane);
#pragma unroll
        for (int k = 0; k < HEADS_AT_ONCE; k++) {
            store_head(a, tile, h[k], __shfl_sync(0xffffffffu, scale, k), from + k * MULTIPLIERS, lane);
        }
    }
}

/* ---- Gate ---- */

/* As leave_operand (wide.cuh) of sums that this thread staged, so that one piece of code does a few groups after
 * the other: more instructions than their cache has room for are as slow as memory. */
__device__ __forceinline__ void store_gate(const struct layers_task &task, const float *scales,
    const float2 *mine, int n_groups, int tile, int first)
{
    const int lane = self() % 32, g = lane / 4;
    const bool odd = g % 2;
    uint16_t *to = (uint16_t *)task.inner +
                   operand_place(task.room_groups, first + lane % 4, tile * 8 + g / 2 * 2) + g % 2 * 8;
    scales += lane % 4;
    int left = min(task.attend.a.n_vectors - first, n_groups * CUDA_TILE_VECTORS) - lane % 4;
#pragma unroll 1
    for (int from = 0; from < n_groups; from += STORED_GROUPS) {
        float gate[STORED_GROUPS], below[STORED_GROUPS], up[STORED_GROUPS], value[STORED_GROUPS];
        bool plain = true;
#pragma unroll
        for (int j = 0; j < STORED_GROUPS; j++) {
            const float2 sum = mine[j * 32];
            const float scale = scales[j * CUDA_TILE_VECTORS];
            gate[j] = __fmul_rn(sum.x, scale);
            up[j] = __fmul_rn(sum.y, scale);
            below[j] = 1.0f + expf(-gate[j]);
            value[j] = finish_divide(gate[j], below[j], finish_reciprocal(below[j]));
            plain = plain && (j * CUDA_TILE_VECTORS >= left || finish_divides(gate[j], below[j]));
        }
        if (!__all_sync(0xffffffffu, plain)) {
#pragma unroll
            for (int j = 0; j < STORED_GROUPS; j++) {
                value[j] = gate[j] / below[j];
            }
        }
#pragma unroll
        for (int j = 0; j < STORED_GROUPS; j++) {
            value[j] *= up[j];
            const float other = __shfl_xor_sync(0xffffffffu, value[j], 4);
            if (j * CUDA_TILE_VECTORS < left) {
                *(uint32_t *)(to + j * (GROUP_BYTES / 2)) =
                    finish_part(odd ? other : value[j], odd ? value[j] : other, odd);
            }
        }
        mine += STORED_GROUPS * 32;
        scales += STORED_GROUPS * CUDA_TILE_VECTORS;
        to += STORED_GROUPS * (GROUP_BYTES / 2);
        left -= STORED_GROUPS * CUDA_TILE_VECTORS;
    }
}

/* ---- The products of tile_8x18 and tile_12x18 ---- */

/* Sums of heads, times their factors, to where whole heads are read. */
__device__ __forceinline__ void stage_heads(
    const struct sums<tile_8x18::MINE> &s, const float *scales, float *stage, int warp, int lane)
{
    const int row = warp * CUDA_TILE + lane / 4;
    float *low = stage + staged(lane % 4, row), *high = stage + staged(lane % 4, row + 8);
    scales += lane % 4;
#pragma unroll
    for (int j = 0; j < tile_8x18::GROUPS; j++) {
        const float scale = scales[j * CUDA_TILE_VECTORS];
        low[j * CUDA_TILE_VECTORS * HEAD] = __fmul_rn(s.before[j][0], scale) + 0.0f;
        high[j * CUDA_TILE_VECTORS * HEAD] = __fmul_rn(s.before[j][1], scale) + 0.0f;
    }
}

/* A team's sums to where store_gate has them. */
template <class S>
__device__ __forceinline__ float2 *stage_gate(const struct sums<S::MINE> &s, void *slot)
{
    float2 *mine = (float2 *)slot + warp_of() * S::GROUPS * 32 + self() % 32;
#pragma unroll
    for (int j = 0; j < S::GROUPS; j++) {
        mine[j * 32] = make_float2(s.before[j][0], s.before[j][1]);
    }
    return mine;
}

/* Heads of layer l, or its gate. */
__device__ __forceinline__ void make_heads_or_gate(const struct layers_task &task, struct state &b,
    unsigned char *slots, struct place &at, int l, bool gate)
{
    const struct grid grid = task.grids[gate ? OF_GATE : OF_HEADS];
    int turn = 0;
#pragma unroll 1
    for (int i = (int)blockIdx.x; i < grid.n; i += (int)gridDim.x, turn ^= 1) {
        struct place last;
        const struct found tile = find_tile(grid, i);
        const int warp = warp_of(), first = tile.group * CUDA_TILE_VECTORS;
        unsigned char *stage;
        {
            struct sums<tile_8x18::MINE>
                s; /* of a half too: as many products, with what its slot has besides */
            multiply<tile_8x18>(s, b, slots, at, task.width_tiles, &last);
            stage = slots + behind(last).slot * SLOT;
            ptx_some_barrier<2,
                BARRIER_THREADS>(); /* all are through with the slot, and the factors are there */
            if (gate) {
                stage_gate<tile_8x18>(s, stage);
            } else {
                stage_heads(s, b.scales[turn], (float *)stage, warp, self() % 32);
            }
        }
        if (gate) {
            store_gate(task, b.scales[turn],
                (const float2 *)stage + warp * tile_8x18::GROUPS * 32 + self() % 32, tile.n_groups,
                tile.row * tile_8x18::ROWS + warp, first);
        } else {
            multipliers_barrier();
            store_heads(task.attend, heads_tile_of(task, l, (const float *)stage, tile.row, first,
                                         tile.n_groups * CUDA_TILE_VECTORS, task.attend.a.lanes[0]));
        }
        leave_last<tile_8x18>(b, last);
    }
}

/* The gate in tiles of 12 row tiles. */
__device__ __forceinline__ void make_gate_12x18(
    const struct layers_task &task, struct state &b, unsigned char *slots, struct place &at)
{
    const struct grid grid = task.grids[OF_GATE];
    int turn = 0;
#pragma unroll 1
    for (int i = (int)blockIdx.x; i < grid.n; i += (int)gridDim.x, turn ^= 1) {
        struct place last;
        float2 *own, *rest;
        {
            struct sums_12x18 s;
            multiply_12x18(s, b, slots, at, task.width_tiles, &last);
            ptx_some_barrier<2,
                BARRIER_THREADS>(); /* all are through with the slots, and the factors are there */
            own = stage_gate<tile_8x18>(s.own, slots + behind(last).slot * SLOT);
            rest = stage_gate<tile_8x9>(s.rest, slots + behind(behind(last)).slot * SLOT);
        }
        const struct found tile = find_tile(grid, i);
        const int warp = warp_of(), first = warp / TEAM_WARPS * tile_8x9::GROUPS;
#pragma unroll 1
        for (int part = 0; part < 2; part++) {
            const int from = part ? first : 0;
            const int n = part ? min((int)tile_8x9::GROUPS, tile.n_groups - first) : tile.n_groups;
            store_gate(task, b.scales[turn] + from * CUDA_TILE_VECTORS, part ? rest : own, n,
                tile.row * tile_12x18::ROWS + (part ? MULTIPLIERS + warp % TEAM_WARPS : warp),
                (tile.group + from) * CUDA_TILE_VECTORS);
        }
        leave_last<tile_12x18>(b, last);
    }
}

/* ---- Products that are added ---- */

/* x += the sums; and x times the next norm's weights as the next product's operand, the squares of each tile beside
 * it (as leave_normed of wide_group.cu). */
__device__ __forceinline__ void store_sums(const struct layers_task &task,
    const struct sums<tile_4x10::MINE> &s, const float (&old)[tile_4x10::MINE][2], float2 n0, float2 n1,
    int tile, int first, int end)
{
    const int lane = self() % 32, g = lane / 4, col = tile * CUDA_TILE + g / 2 * 2;
    const bool odd = g % 2;
    const int v = first + lane % 4, left = end - v;
    float *x = task.x + v * task.x_stride + tile * CUDA_TILE + g;
    uint16_t *to = (uint16_t *)task.operand + operand_place(task.room_groups, v, col) + (odd ? 8 : 0);
    float *squares = task.squares + ((int64_t)v * task.width_tiles + tile) * 4 + g / 2;
#pragma unroll
    for (int j = 0; j < tile_4x10::MINE; j++) {
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
                *squares = norm_squares(x0, x1);
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
#pragma unroll 1
    for (int i = (int)blockIdx.x; i < task.grids[OF_SUMS].n; i += (int)gridDim.x) {
        struct sums<tile_4x10::MINE> s;
        struct place last;
        float old[tile_4x10::MINE][2]; /* this block wrote them */
        const struct found tile = find_tile(task.grids[OF_SUMS], i);
        const int row_tile = tile.row * tile_4x10::ROWS + warp % tile_4x10::ROWS;
        const int first = (tile.group + warp / TEAM_WARPS * tile_4x10::MINE) * CUDA_TILE_VECTORS;
        const int end = min(task.attend.a.n_vectors, (tile.group + tile.n_groups) * CUDA_TILE_VECTORS);
#pragma unroll
        for (int j = 0; j < tile_4x10::MINE; j++) {
            const int v = first + j * CUDA_TILE_VECTORS + lane % 4;
            const float *x = task.x + v * task.x_stride + row_tile * CUDA_TILE + lane / 4;
            old[j][0] = v < end ? x[0] : 0.0f;
            old[j][1] = v < end ? x[8] : 0.0f;
        }
        const float *norm = next_norm + row_tile * CUDA_TILE + lane / 8 * 2;
        const float2 n0 = *(const float2 *)norm, n1 = *(const float2 *)(norm + 8);
        multiply<tile_4x10>(s, b, slots, at, n_k, &last);
        leave_stage<tile_4x10>(b, last, lane);
        store_sums(task, s, old, n0, n1, row_tile, first, end);
    }
}

} // namespace

#endif

#endif
