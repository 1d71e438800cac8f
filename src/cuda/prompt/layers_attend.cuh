/* SPDX-License-Identifier: Apache-2.0
 * Attention in the kernel of layers: a block takes 32 rows and the two query heads of a kv head, 64 rows of a product
 * by a team. The pages of a quarter (attend_rows.cuh) are one team's, in order; team t has quarter 2 t + 1, then 2 t,
 * and joins the two; then the first team joins what the second has. Of a task that two blocks share each has two of
 * the quarters, a team one; the second block leaves what it has in scratch memory, and the first waits for it, as all
 * blocks are on the device at once. Each row gets what attend_rows gives it, to the bit: a page that is behind all
 * keys of a row has weight 0 for it. */
#ifndef CUDA_PROMPT_LAYERS_ATTEND_CUH
#define CUDA_PROMPT_LAYERS_ATTEND_CUH

#include "cuda/prompt/layers_ring.cuh"

#if PTX_GROUPS

namespace {

/* ---- Tasks and their pages ---- */

/* A block's task. Where blocks would be left over, the longest are two blocks': each takes two of the quarters. */
struct rows_task {
    int kv_head;
    int first; /* row */
    int n_pages;
    int number; /* of the task */
    int part;   /* 0 or 1: which half of the quarters; or ALL_QUARTERS */
};

/* Number i, from the longest on. */
__device__ __forceinline__ struct rows_task find_task(const struct layers_task &task, int i)
{
    const struct heads_task &a = task.attend;
    const bool whole = i >= 2 * task.n_split;
    const int number = whole ? i - task.n_split : i / 2, before = divide(number, task.kv_heads);
    struct rows_task mine;
    mine.number = number;
    mine.part = whole ? ALL_QUARTERS : i % 2;
    mine.kv_head = number - before * a.n_kv_heads;
    mine.first = ((a.a.n_vectors + TASK_ROWS - 1) / TASK_ROWS - 1 - before) * TASK_ROWS;
    const int n_keys = a.a.first_position + min(a.a.n_vectors, mine.first + TASK_ROWS);
    mine.n_pages = (n_keys + CUDA_PAGE - 1) / CUDA_PAGE;
    return mine;
}

/* Pages of a quarter. */
__device__ __forceinline__ int pages_of(const struct rows_task &task, int quarter)
{
    return (task.n_pages - quarter + QUARTERS - 1) / QUARTERS;
}

/* Quarters of the teams: of a whole task, in two passes, number 1 first, those of a part are 2 apart; of a part both
 * teams have their own. */
__device__ __forceinline__ int quarter_of(const struct rows_task &task, int team, int pass)
{
    return task.part == ALL_QUARTERS ? 2 * team + pass : 2 * task.part + team;
}

__device__ __forceinline__ int passes_of(const struct rows_task &task)
{
    return task.part == ALL_QUARTERS ? 2 : 1;
}

__device__ __forceinline__ struct place next_pages(struct place at)
{
    const bool around = at.slot + 1 == PAGE_SLOTS;
    return {around ? 0 : at.slot + 1, at.parity ^ (around ? 1u : 0u)};
}

/* All pages of this block's tasks, a slot for both teams. */
__device__ __forceinline__ void bring_pages(
    const struct layers_task &task, struct state &b, uint32_t slots, struct place &at)
{
    const struct heads_task &a = task.attend;
#pragma unroll 1
    for (int i = (int)blockIdx.x; i < task.n_tasks && a.a.lanes[0] >= 0; i += (int)gridDim.x) {
        const struct rows_task mine = find_task(task, i);
        const struct page *pages =
            (const struct page *)a.a.split + (int64_t)mine.kv_head * a.a.pages_stride;
#pragma unroll 1
        for (int pass = passes_of(mine) - 1; pass >= 0; pass--) {
            const int apart = quarter_of(mine, 1, pass) - quarter_of(mine, 0, pass);
#pragma unroll 1
            for (int page = quarter_of(mine, 0, pass); page < mine.n_pages;
                 page += QUARTERS, at = next_pages(at)) {
                const bool two = page + apart < mine.n_pages;
                const uint32_t to = slots + (uint32_t)(at.slot * SLOT),
                               full = ptx_shared_at(&b.pages_full[at.slot]);
                ptx_wait(&b.pages_empty[at.slot], at.parity ^ 1);
                ptx_expect(full, (two ? 2 : 1) * (uint32_t)sizeof(struct page));
                ptx_bulk_copy(to, pages + page, sizeof(struct page), full);
                if (two) {
                    ptx_bulk_copy(to + (uint32_t)sizeof(struct page), pages + page + apart,
                        sizeof(struct page), full);
                }
            }
        }
    }
}

/* ---- A team's rows ---- */

/* Queries of a warp's 16 rows as operands. */
struct held_queries {
    uint4 upper[STEPS], lower[STEPS];
};

/* What rows behind the last one get is not stored. */
__device__ __forceinline__ void hold_queries(
    struct held_queries &q, const struct heads_task &a, int first, int head)
{
    const struct query_rows *from = query_rows_of(a, head, min(first, a.a.n_vectors - 1));
    const int me = self() % 32;
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        q.upper[s] = __ldcg(&from->steps[s][0][me]);
        q.lower[s] = __ldcg(&from->steps[s][1][me]);
    }
}

/* Sums on their way: of the queries' upper parts with the keys' upper, then lower; of their lower ones with the
 * upper. */
struct scores {
    float upper[16], lower[8];
};

__device__ __forceinline__ void ask_for_scores(
    struct scores &to, const struct held_queries &q, const struct page *page)
{
    const uint64_t keys = ptx_group_lines(page->keys, 16, 1024);
    ptx_group_begin();
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        const uint64_t at = keys + (uint64_t)(s / 4 * (sizeof(page->keys[0]) / 16) + s % 4 * 2);
        ptx_group_mma(to.upper, q.upper[s], at, s > 0);
        ptx_group_mma(to.lower, q.lower[s], at, s > 0);
    }
    ptx_group_end();
}

__device__ __forceinline__ void read_scores(
    float (&score)[2][4], const struct scores &from, const struct rows &r, int first_key, float scale)
{
    const int t = self() % 4;
#pragma unroll
    for (int half = 0; half < 2; half++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int key = first_key + half * 8 + 2 * t + i % 2;
            const float sum =
                from.upper[half * 4 + i] + (from.lower[half * 4 + i] + from.upper[8 + half * 4 + i]);
            score[half][i] = key <= r.position[i / 2] ? __fmul_rn(sum, scale) : -INFINITY;
        }
    }
}

__device__ __forceinline__ void ask_for_values(
    struct rows &r, const float (&score)[2][4], const struct page *page)
{
    const uint4 one = split_four(score[0][0], score[0][1], score[0][2], score[0][3]),
                two = split_four(score[1][0], score[1][1], score[1][2], score[1][3]);
    const uint4 upper = make_uint4(one.x, one.y, two.x, two.y),
                lower = make_uint4(one.z, one.w, two.z, two.w);
    const uint64_t values = ptx_group_lines(page->values, sizeof(page->values[0]), 1024);
    float(&out)[COLS * 4] = *(float(*)[COLS * 4]) r.out;
    ptx_group_begin();
    ptx_group_mma_transposed(out, upper, values, 1);
    ptx_group_mma_transposed(out, lower, values, 1);
    ptx_group_mma_transposed(out, upper, values + sizeof(page->values[0][0]) / 16, 1);
    ptx_group_end();
}

/* A quarter's pages: number `quarter` and every fourth behind it. The scores of a page are made while the one before
 * it is weighed; those of the last one twice. `slots_taken`: the other team may have one page more. */
__device__ __forceinline__ void take_quarter(struct rows &r, const struct held_queries &q,
    struct state &b, const unsigned char *slots, struct place &at, int quarter, int n, int slots_taken,
    float scale)
{
    const int me = self(), team_at = warp_of() / TEAM_WARPS * (int)sizeof(struct page);
    struct scores sums;
    const struct page *page = (const struct page *)(slots + at.slot * SLOT + team_at);
    if (n > 0) {
        ptx_wait(&b.pages_full[at.slot], at.parity);
        ask_for_scores(sums, q, page);
        ptx_group_wait(sums.upper);
        ptx_group_wait(sums.lower);
    }
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        const struct place then = next_pages(at);
        const bool last = i + 1 == n;
        const struct page *next =
            last ? page : (const struct page *)(slots + then.slot * SLOT + team_at);
        float score[2][4];
        read_scores(score, sums, r, (quarter + i * QUARTERS) * CUDA_PAGE, scale);
        if (!last) {
            ptx_wait(&b.pages_full[then.slot], then.parity);
        }
        ask_for_scores(sums, q, next);
        weigh(r, score);
        ask_for_values(r, score, page);
        ptx_group_wait(sums.upper);
        ptx_group_wait(sums.lower);
        ptx_group_wait(*(float(*)[COLS * 4]) r.out);
        if (me % 32 == 0) {
            ptx_arrive_at(ptx_shared_at(&b.pages_empty[at.slot]));
        }
        at = then;
        page = next;
    }
    if (slots_taken > n) {
        ptx_wait(&b.pages_full[at.slot], at.parity);
        if (me % 32 == 0) {
            ptx_arrive_at(ptx_shared_at(&b.pages_empty[at.slot]));
        }
        at = next_pages(at);
    }
}

/* What a team's warps leave, in a slot of their own, or, of the second part of a task, in scratch memory. */
struct team_room {
    struct left_over rows[TEAM_WARPS];
};
static_assert(sizeof(struct team_room) <= SLOT, "a team's rows stand in a slot");

/* Numbers 2t, 2t + 1 and eight further of a tile of 16 that a warp left, divided by the row's sum. All threads of a
 * warp come here; those of rows that are not there get anything. */
__device__ __forceinline__ float4 divide_left(
    const struct left_over &from, int row, int tile, bool there)
{
    const int me = self() % 32;
    const float sum = from.sum[row][me], reciprocal = finish_reciprocal(sum);
    float x[4], out[4];
    bool plain = true;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        x[k] = from.out[tile * 2 + k / 2][2 * row + k % 2][me];
        out[k] = finish_divide(x[k], sum, reciprocal);
        plain = plain && (!there || finish_divides(x[k], sum));
    }
    if (!__all_sync(0xffffffffu, plain)) {
#pragma unroll
        for (int k = 0; k < 4; k++) {
            out[k] = x[k] / sum;
        }
    }
    return make_float4(out[0], out[1], out[2], out[3]);
}

/* Half of the rows' tiles as store_rows, as the operand of the product that follows: a head is a slab of it. */
__device__ __forceinline__ void store_half(
    const struct left_over &from, const struct heads_task &a, int first, int head, int half)
{
    const int me = self() % 32, v = first + me / 4;
    const int64_t at = operand_place(a.a.operand_groups, v, head * HEAD + 2 * (me % 4));
#pragma unroll 1
    for (int row = 0; row < 2; row++) {
        const bool there = v + row * 8 < a.a.n_vectors;
        uint32_t *to = (uint32_t *)((uint16_t *)a.a.operand + at) +
                       row * (8 / CUDA_TILE_VECTORS) * (GROUP_BYTES / 4) +
                       half * (STEPS / 2) * (GROUP_PIECES * 4);
#pragma unroll 1
        for (int i = 0; i < STEPS / 2; i++, to += GROUP_PIECES * 4) {
            const float4 x = divide_left(from, row, half * (STEPS / 2) + i, there);
            const uint4 parts = split_four(x.x, x.y, x.z, x.w);
            if (there) {
                to[0] = parts.x;
                to[4] = parts.z;
                to[32] = parts.y;
                to[36] = parts.w;
            }
        }
    }
}
static_assert(HEAD == CUDA_TILE * CUDA_WIDE_SLAB, "a head is a slab");

/* Told once what warp `of_team` of the second part has left can be read. */
__device__ __forceinline__ uint64_t *sign_of(
    const struct layers_task &task, const struct rows_task &mine, int of_team)
{
    return task.signals + CUDA_MAX_VECTORS + mine.number * TEAM_WARPS + of_team;
}

__device__ __forceinline__ void attend_task_rows(const struct layers_task &task, struct state &b,
    unsigned char *slots, struct place &at, const struct rows_task &mine, uint32_t sign)
{
    const struct heads_task &a = task.attend;
    const int warp = warp_of(), team = warp / TEAM_WARPS, of_team = warp % TEAM_WARPS;
    const int head = mine.kv_head * PAIR + of_team % PAIR, first = mine.first + of_team / PAIR * ROWS;
    const bool whole = mine.part == ALL_QUARTERS;
    unsigned char *rooms = slots + PAGE_SLOTS * SLOT;
    struct left_over &one = ((struct team_room *)rooms)->rows[of_team],
                     &two = ((struct team_room *)(rooms + SLOT))->rows[of_team],
                     &far = ((struct team_room *)a.a.partial + mine.number)->rows[of_team];
    struct held_queries q;
    struct rows r;
    hold_queries(q, a, first, head);
#pragma unroll 1
    for (int pass = passes_of(mine) - 1; pass >= 0; pass--) {
        const int quarter = quarter_of(mine, team, pass);
        begin_rows(r, a, first);
        take_quarter(r, q, b, slots, at, quarter, pages_of(mine, quarter),
            pages_of(mine, quarter_of(mine, 0, pass)), a.scale);
        if (pass == 1) {
            leave_rows(team ? two : one, r);
        }
    }
    /* The own other quarter; what the second team has; what the second part has. */
#pragma unroll 1
    for (int from = whole ? 0 : 1; from < 3 - (mine.part != 0); from++) {
        if (from == 1) {
            if (team == 1) {
                leave_rows(two, r);
            }
            multipliers_barrier();
        }
        if (from == 2 && team == 0) {
            await_scale(task, b, sign_of(task, mine, of_team), sign);
            __threadfence();
        }
        if (team == 0 || from == 0) {
            join_rows(r, from == 0 ? (team ? two : one) : from == 1 ? two : far);
        }
    }
    if (team == 0) {
        leave_rows(mine.part == 1 ? far : one, r);
    }
    if (mine.part == 1 && team == 0) {
        __threadfence();
        __syncwarp();
        if (self() % 32 == 0) {
            publish_scale(sign_of(task, mine, of_team), sign, 0);
        }
    }
    multipliers_barrier();
    if (mine.part != 1) {
        store_half(one, a, first, head, team);
    }
    multipliers_barrier(); /* the next rows take the same place */
}

__device__ __forceinline__ void attend_all(
    const struct layers_task &task, struct state &b, unsigned char *slots, struct place &at, int phase)
{
    const struct heads_task &a = task.attend;
#pragma unroll 1
    for (int i = (int)blockIdx.x; i < task.n_tasks && a.a.lanes[0] >= 0; i += (int)gridDim.x) {
        attend_task_rows(
            task, b, slots, at, find_task(task, i), task.arrivals_before + (uint32_t)phase);
    }
    ptx_copies_follow();
    __syncwarp();
    if (self() % 32 == 0) {
        ptx_arrive_at(ptx_shared_at(&b.room));
    }
}

} // namespace

#endif

#endif
