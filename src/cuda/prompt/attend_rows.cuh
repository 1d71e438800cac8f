/* SPDX-License-Identifier: Apache-2.0
 * Attention of a prompt's rows on tensor cores, as the kernels of prompts share it (attend_rows.cu, layers.cu):
 * the pages of split keys and values, what becomes of a page's scores, how parts of a row are joined and stored; and
 * what a block of attend_rows.cu does for 16 rows and two query heads. */
#ifndef CUDA_PROMPT_ATTEND_ROWS_CUH
#define CUDA_PROMPT_ATTEND_ROWS_CUH

#include "cuda/lib/ptx_copy.cuh"
#include "cuda/lib/ptx_matrix.cuh"
#include "cuda/parts/heads.cuh"
#include "cuda/parts/operand.cuh"

namespace {

enum {
    SIDE = 4,
    QUARTERS = 4, /* pages by their number: summed apart, then together */
    PAIR = 2,     /* query heads of a block */
    N_WARPS = QUARTERS * PAIR,
    N_THREADS = N_WARPS * 32,
    ROWS = 16, /* of a block */
    MOST_HEAD = 128,
    STEPS = MOST_HEAD / 16, /* of a dot product */
    COLS = MOST_HEAD / 8,   /* pieces of a head: 8 numbers */
    LINE = 8,               /* pieces beside each other */
};

/* The keys or the values of a page: lines of 8 pieces; of each half of a head the upper parts of all rows, then the
 * lower ones. Piece c of row r lies at c ^ r % 8, so that the same pieces of 8 rows are in different banks, and as
 * products by teams read operands in lines of 128 bytes. */
typedef uint4 page_part[COLS / LINE][2][CUDA_PAGE][LINE];

struct page {
    page_part keys, values;
};
static_assert(sizeof(struct page) == CUDA_ROWS_PAGE, "cuda_attend_rows_bytes counts them");

/* ---- Heads ---- */

__device__ __forceinline__ uint4 split_four(float a, float b, float c, float d)
{
    return make_uint4(finish_part(a, b, false), finish_part(c, d, false), finish_part(a, b, true),
        finish_part(c, d, true));
}

/* Numbers 4 l .. 4 l + 3 of a row, for thread l of a warp. */
__device__ __forceinline__ void store_split(page_part &to, int row, float4 x)
{
    const int lane = (int)threadIdx.x % 32, piece = lane / 2 % LINE ^ row % LINE;
    uint4(&half)[2][CUDA_PAGE][LINE] = to[lane / 2 / LINE];
    const uint4 parts = split_four(x.x, x.y, x.z, x.w);
    ((uint2 *)&half[0][row][piece])[lane % 2] = make_uint2(parts.x, parts.y);
    ((uint2 *)&half[1][row][piece])[lane % 2] = make_uint2(parts.z, parts.w);
}

__device__ __forceinline__ float4 four_of(const float *row, int head)
{
    const int col = (int)threadIdx.x % 32 * 4;
    return col < head ? *(const float4 *)(row + col) : make_float4(0, 0, 0, 0);
}

__device__ __forceinline__ struct page *split_page(
    const struct heads_task &task, int kv_head, int position)
{
    return (struct page *)task.a.split + (int64_t)kv_head * task.a.pages_stride + position / CUDA_PAGE;
}

/* Key and value of a position before the new ones, by one warp, from its page in the cache; NULL: zeros, for what is
 * behind the last position. */
__device__ __forceinline__ void ready_old_key(
    const struct heads_task &task, const float *keys, int position, int kv_head)
{
    const int slot = position % CUDA_PAGE;
    float4 key = make_float4(0, 0, 0, 0), value = key;
    if (keys) {
        key = four_of(keys + slot * task.head, task.head);
        value = four_of(keys + (CUDA_PAGE + slot) * task.head, task.head);
    }
    struct page *page = split_page(task, kv_head, position);
    store_split(page->keys, slot, key);
    store_split(page->values, slot, value);
}

/* ---- A warp's rows ---- */

/* Queries of 16 rows of a head, as operands: of each thread of a warp beside each other. */
struct queries {
    uint4 upper[STEPS][32], lower[STEPS][32];
};

/* Rows g and g + 8 of 16, of one query head. */
struct rows {
    float out[COLS][4]; /* numbers 2t, 2t + 1 of a tile: of row g, then of row g + 8 */
    float largest[2], sum[2];
    int position[2];
};

/* A share of the steps, by each of the QUARTERS warps of a head. */
__device__ __forceinline__ void load_queries(
    struct queries &to, const struct heads_task &task, int first, int head, int quarter)
{
    const struct cuda_attend &a = task.a;
    const int me = (int)threadIdx.x % 32, g = me / 4, t = me % 4;
#pragma unroll
    for (int i = 0; i < STEPS / QUARTERS; i++) {
        const int s = quarter * (STEPS / QUARTERS) + i;
        float2 x[4];
#pragma unroll
        for (int j = 0; j < 4; j++) { /* rows g, g + 8; then 8 numbers further */
            const int v = first + g + j % 2 * 8, col = s * 16 + 2 * t + j / 2 * 8;
            const float *q = a.placed + v * a.qkv_stride + (int64_t)head * task.head + col;
            x[j] = v < a.n_vectors && col < task.head ? *(const float2 *)q : make_float2(0, 0);
        }
        const uint4 one = split_four(x[0].x, x[0].y, x[1].x, x[1].y),
                    two = split_four(x[2].x, x[2].y, x[3].x, x[3].y);
        to.upper[s][me] = make_uint4(one.x, one.y, two.x, two.y);
        to.lower[s][me] = make_uint4(one.z, one.w, two.z, two.w);
    }
}

__device__ __forceinline__ void begin_rows(struct rows &r, const struct heads_task &task, int first)
{
    const int g = (int)threadIdx.x % 32 / 4;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        r.position[half] = task.a.first_position + first + g + half * 8;
        r.largest[half] = -INFINITY;
        r.sum[half] = 0;
    }
#pragma unroll
    for (int j = 0; j < COLS; j++) {
        r.out[j][0] = r.out[j][1] = r.out[j][2] = r.out[j][3] = 0;
    }
}

/* Where a thread finds its row of 16 keys as operands: of keys (the same numbers of 8 keys), of values (all of 16
 * keys, 8 numbers). */
__device__ __forceinline__ uint4 load_keys(const page_part &from, int part, int step)
{
    const int me = (int)threadIdx.x % 32, row = me % 8 + me / 16 * 8;
    return ptx_blocks(&from[step * 2 / LINE][part][row][(step * 2 % LINE + me / 8 % 2) ^ me % LINE]);
}

__device__ __forceinline__ uint4 load_values(const page_part &from, int part, int tile)
{
    const int me = (int)threadIdx.x % 32, row = me % 16;
    return ptx_blocks_transposed(&from[tile / LINE][part][row][(tile % LINE + me / 16) ^ me % LINE]);
}

/* Scores of the page's 16 keys: keys 2t, 2t + 1 of each half of the page, of row g, then of row g + 8. */
__device__ __forceinline__ void find_scores(float (&score)[2][4], const struct rows &r,
    const struct queries &q, const struct page &page, int first_key, float scale)
{
    const int me = (int)threadIdx.x % 32;
    float sums[3][2][4] = {}; /* of upper parts; of one lower part */
#pragma unroll 2
    for (int s = 0; s < STEPS;
         s++) { /* more code than this would not stay in the instructions' cache */
        const uint4 upper = load_keys(page.keys, 0, s), lower = load_keys(page.keys, 1, s);
        const uint4 q_upper = q.upper[s][me], q_lower = q.lower[s][me];
        ptx_mma(sums[0][0], q_upper, upper.x, upper.y);
        ptx_mma(sums[0][1], q_upper, upper.z, upper.w);
        ptx_mma(sums[1][0], q_lower, upper.x, upper.y);
        ptx_mma(sums[1][1], q_lower, upper.z, upper.w);
        ptx_mma(sums[2][0], q_upper, lower.x, lower.y);
        ptx_mma(sums[2][1], q_upper, lower.z, lower.w);
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
    struct rows &r, const struct queries &q, const struct page &page, int first_key, float scale)
{
    float score[2][4];
    find_scores(score, r, q, page, first_key, scale);
    weigh(r, score);
    const uint4 one = split_four(score[0][0], score[0][1], score[0][2], score[0][3]),
                two = split_four(score[1][0], score[1][1], score[1][2], score[1][3]);
    const uint4 upper = make_uint4(one.x, one.y, two.x, two.y),
                lower = make_uint4(one.z, one.w, two.z, two.w);
#pragma unroll
    for (int j = 0; j < COLS; j += SIDE) { /* SIDE sums beside each other: none waits for itself */
        const uint4 a = load_values(page.values, 0, j), b = load_values(page.values, 0, j + 2);
        const uint4 c = load_values(page.values, 1, j), d = load_values(page.values, 1, j + 2);
        ptx_mma(r.out[j], upper, a.x, a.y);
        ptx_mma(r.out[j + 1], upper, a.z, a.w);
        ptx_mma(r.out[j + 2], upper, b.x, b.y);
        ptx_mma(r.out[j + 3], upper, b.z, b.w);
        ptx_mma(r.out[j], lower, a.x, a.y);
        ptx_mma(r.out[j + 1], lower, a.z, a.w);
        ptx_mma(r.out[j + 2], lower, b.x, b.y);
        ptx_mma(r.out[j + 3], lower, b.z, b.w);
        ptx_mma(r.out[j], upper, c.x, c.y);
        ptx_mma(r.out[j + 1], upper, c.z, c.w);
        ptx_mma(r.out[j + 2], upper, d.x, d.y);
        ptx_mma(r.out[j + 3], upper, d.z, d.w);
    }
}

/* What a warp leaves for another of the same rows: a number of all threads beside each other. */
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

__device__ __forceinline__ void join_rows(struct rows &r, const struct left_over &from)
{
    const int me = (int)threadIdx.x % 32;
#pragma unroll
    for (int row = 0; row < 2; row++) {
        const float other = from.largest[row][me], largest = fmaxf(r.largest[row], other);
        const float base = largest == -INFINITY ? 0.0f : largest; /* no keys of either count */
        const float mine = expf(r.largest[row] - base), theirs = expf(other - base);
        r.largest[row] = largest;
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
    const struct heads_task &task, int v, int head, int tile, float a, float b, float c, float d)
{
    const struct cuda_attend &p = task.a;
    const int t = (int)threadIdx.x % 4, col = head * task.head + tile * 16;
    if (p.operand) {
        operand_store_two(p.operand, p.operand_groups, v, col + 2 * t, a, b);
        operand_store_two(p.operand, p.operand_groups, v, col + 2 * t + 8, c, d);
        return;
    }
    float *to = p.mixed + v * p.mixed_stride + col + 2 * t;
    *(float2 *)to = make_float2(a, b);
    *(float2 *)(to + 8) = make_float2(c, d);
}

/* A quarter of the rows' tiles, from what a warp left; a piece of code for a few numbers after the other. */
__device__ __forceinline__ void store_rows(
    const struct left_over &from, const struct heads_task &task, int first, int head, int quarter)
{
    const int me = (int)threadIdx.x % 32;
#pragma unroll 1
    for (int i = 0; i < COLS / QUARTERS; i++) {
        const int row = i % 2, j = quarter * (COLS / QUARTERS) + i / 2 * 2,
                  v = first + me / 4 + row * 8;
        const float sum = from.sum[row][me];
        if (v < task.a.n_vectors && j * 8 < task.head) {
            store_tile(task, v, head, j / 2, from.out[j][2 * row][me] / sum,
                from.out[j][2 * row + 1][me] / sum, from.out[j + 1][2 * row][me] / sum,
                from.out[j + 1][2 * row + 1][me] / sum);
        }
    }
}

/* Shared memory: pages of some rounds while there are keys, then what is left over. */
template <int ROUNDS> struct shares {
    struct queries queries[PAIR];
    union {
        struct page pages[ROUNDS][QUARTERS];
        struct left_over rows[N_WARPS / 2];
    };
};

/* The pages of a round, by all threads. */
__device__ __forceinline__ void ask_for_pages(
    struct page (&to)[QUARTERS], const struct page *from, int round, int n_pages)
{
    const int n = min(QUARTERS, n_pages - round * QUARTERS) * (int)(sizeof(struct page) / 16);
    const uint4 *piece = (const uint4 *)(from + round * QUARTERS);
    for (int i = (int)threadIdx.x; i < n; i += N_THREADS) {
        ptx_copy((uint4 *)to + i, piece + i, false);
    }
    ptx_copy_end();
}

/* Quarters 1 and 3 to 0 and 2, then 2 to 0, and what 0 has to room[member]. */
__device__ __forceinline__ void join_quarters(
    struct left_over *room, struct rows &r, int quarter, int member)
{
#pragma unroll 1
    for (int step = 1; step <= QUARTERS; step *= 2) {
        struct left_over &at = room[quarter / (2 * step) * PAIR + member];
        const bool last = step == QUARTERS;
        if (last ? quarter == 0 : quarter % (2 * step) == step) {
            leave_rows(at, r);
        }
        __syncthreads();
        if (!last && quarter % (2 * step) == 0) {
            join_rows(r, at);
        }
        if (!last) {
            __syncthreads();
        }
    }
}

/* Rows first .. first + ROWS - 1, of the query heads of pair number `pair`, by a block of N_THREADS. */
template <int ROUNDS>
__device__ __forceinline__ void attend_rows(
    const struct heads_task &task, struct shares<ROUNDS> &room, int pair, int first)
{
    const struct cuda_attend &a = task.a;
    const int warp = (int)threadIdx.x / 32, quarter = warp / PAIR,
              group = task.n_heads / task.n_kv_heads;
    const int pairs = (group + PAIR - 1) / PAIR, kv_head = pair / pairs;
    const int member = pair % pairs * PAIR + warp % PAIR, head = kv_head * group + member;
    const int n_keys = a.first_position + min(a.n_vectors, first + ROWS);
    const int n_pages = (n_keys + CUDA_PAGE - 1) / CUDA_PAGE;
    const int n_rounds = (n_pages + QUARTERS - 1) / QUARTERS;
    const struct page *pages = (const struct page *)a.split + (int64_t)kv_head * a.pages_stride;
    struct rows r;
    for (int i = 0; i < ROUNDS - 1; i++) {
        ask_for_pages(room.pages[i], pages, i, n_pages);
    }
    load_queries(room.queries[warp % PAIR], task, first, min(head, task.n_heads - 1), quarter);
    begin_rows(r, task, first);
    for (int i = 0; i < n_rounds; i++) {
        const int number = i * QUARTERS + quarter, then = i + ROUNDS - 1;
        if (ROUNDS == 1) {
            ask_for_pages(room.pages[0], pages, i, n_pages);
        }
        ptx_copy_wait<(ROUNDS > 2 ? ROUNDS - 2 : 0)>();
        __syncthreads(); /* all see the round, and are through with the one before it */
        if (ROUNDS > 1) {
            ask_for_pages(room.pages[then % ROUNDS], pages, then, n_pages);
        }
        if (member < group && number < n_pages) {
            take_page(r, room.queries[warp % PAIR], room.pages[i % ROUNDS][quarter], number * CUDA_PAGE,
                task.scale);
        }
        if (ROUNDS == 1) {
            __syncthreads();
        }
    }
    ptx_copy_wait<0>();
    __syncthreads();
    join_quarters(room.rows, r, quarter, warp % PAIR);
    if (member < group) {
        store_rows(room.rows[warp % PAIR], task, first, head, quarter);
    }
    __syncthreads(); /* the next rows' pages take the same place */
}

} // namespace

#endif
