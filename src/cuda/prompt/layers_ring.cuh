/* SPDX-License-Identifier: Apache-2.0
 * The ring of the kernel of layers: one warp that asks for weights and operands, eight that multiply them. */
#ifndef CUDA_PROMPT_LAYERS_RING_CUH
#define CUDA_PROMPT_LAYERS_RING_CUH

#include "cuda/prompt/layers_task.cuh"

#if PTX_GROUPS

namespace {

/* ---- Waiting for other blocks ---- */

/* Asked while a wait that began at `begin` is in vain; true: this block waits for nobody any more, and comes to its
 * end with whatever it has, which the host drops. Copies and the block's own warps need no deadline. */
__device__ __forceinline__ bool is_late(const struct layers_task &task, struct state &b, int64_t begin)
{
    volatile uint32_t *late = &b.late;
    if (*late == 0 && (uint64_t)(clock64() - begin) > task.patience) {
        *late = 1;
        *(volatile uint32_t *)task.lost = 1;
        *(volatile uint32_t *)task.lost_on_device = CUDA_PROMPT_LOST;
    }
    return *late != 0;
}

/* ---- The thread that brings ---- */

/* One thread asks for all copies, in few instructions each: when a stage took it 170 of them, products waited for
 * that and for nothing else. */

/* Waits until all blocks have ended the phases before `phase`, and then opens it for this block's
 * warps. A block that is late (is_late) no longer waits for other blocks, and what it goes on to
 * arrive at lets the others' counts reach their goals early. So either kind asks whether its own
 * warps have ended these phases: `open` is an mbarrier, whose parity tells a phase only from the
 * next one, not from the one after that. */
__device__ __forceinline__ void wait_for_all(const struct layers_task &task, struct state &b, int phase)
{
    const uint32_t goal = task.arrivals_before + (uint32_t)phase * gridDim.x;
    const int64_t begin = clock64();
    const volatile uint32_t *ended = &b.ended;
    uint32_t seen;
    do {
        seen = ptx_load_first(task.arrivals);
    } while (((int32_t)(seen - goal) < 0 && !is_late(task, b, begin)) || *ended < (uint32_t)phase);
    ptx_copies_see();
    ptx_arrive_at(ptx_shared_at(&b.open));
}

/* A product as copies see it, then a tile of it. */
struct product {
    const void *tiles, *operand;
    int grid; /* of the task's */
    int n_k;
};

struct source {
    const unsigned char *weights, *operand;
    int64_t row_step, slab_step;
    uint32_t operand_bytes; /* of a stage */
};

template <class S>
__device__ __forceinline__ struct source source_of(
    const struct layers_task &task, const struct product &product, const struct found &tile)
{
    struct source from;
    from.row_step = (int64_t)product.n_k * CUDA_TILE_BYTES;
    from.slab_step = (int64_t)task.room_groups * GROUP_BYTES;
    from.weights = (const unsigned char *)product.tiles + tile.row * S::ROWS * from.row_step;
    from.operand = (const unsigned char *)product.operand + (int64_t)tile.group * GROUP_BYTES;
    from.operand_bytes =
        (uint32_t)(min(tile.n_groups, max(task.n_groups - tile.group, 0)) * GROUP_BYTES);
    return from;
}

/* Where the ring's slots and their signs are in shared memory. */
struct ring {
    uint32_t slots, full, empty;
};

__device__ __forceinline__ struct ring ring_of(struct state &b, const unsigned char *slots)
{
    return {ptx_shared_at(slots), ptx_shared_at(b.full), ptx_shared_at(b.empty)};
}

/* A slot is free, and gets so many bytes. */
__device__ __forceinline__ void begin_slot(const struct ring &ring, struct place at, uint32_t bytes)
{
    ptx_wait_at(ring.empty + (uint32_t)at.slot * 8, at.parity ^ 1);
    ptx_expect(ring.full + (uint32_t)at.slot * 8, bytes);
}

/* The weights of the stage at which from.weights stands, which then stands at the next. */
template <class S>
__device__ __forceinline__ void bring_weights(
    struct source &from, const struct ring &ring, struct place at)
{
    const unsigned char *weights = from.weights;
    begin_slot(ring, at,
        min((int)S::ROWS, (int)MULTIPLIERS) * WEIGHT_BYTES + (S::TAKES == 1 ? from.operand_bytes : 0));
#pragma unroll
    for (int i = 0; i < S::ROWS; i++) {
        if (i == MULTIPLIERS) {
            at = behind(behind(at));
            begin_slot(ring, at, S::ROWS % MULTIPLIERS * WEIGHT_BYTES);
        }
        ptx_bulk_copy(ring.slots + (uint32_t)(at.slot * SLOT + i % MULTIPLIERS * WEIGHT_BYTES), weights,
            WEIGHT_BYTES, ring.full + (uint32_t)at.slot * 8);
        weights += from.row_step;
    }
    from.weights += WEIGHT_BYTES;
}

template <class S>
__device__ __forceinline__ void bring_operand(
    struct source &from, const struct ring &ring, struct place stage_at)
{
    const struct place at = operand_of(stage_at, S::TAKES);
    if (S::TAKES > 1) {
        begin_slot(ring, at, from.operand_bytes);
    }
    if (from.operand_bytes > 0) {
        ptx_bulk_copy(
            ring.slots + (uint32_t)(at.slot * SLOT + (S::TAKES == 1 ? S::ROWS * WEIGHT_BYTES : 0)),
            from.operand, from.operand_bytes, ring.full + (uint32_t)at.slot * 8);
    }
    from.operand += from.slab_step;
}

/* A product's stages into the ring: as many weights as fit before the phase is open, their operand then. */
template <class S>
__device__ __forceinline__ void bring(const struct layers_task &task, struct state &b,
    const struct ring &ring, struct place &at, const struct product &product, int phase)
{
    const int n = product.n_k / DEEP, n_tiles = task.grids[product.grid].n;
    bool open = false;
#pragma unroll 1
    for (int i = (int)blockIdx.x; i < n_tiles || !open; i += (int)gridDim.x) {
        const bool some = i < n_tiles;
        struct source from =
            source_of<S>(task, product, find_tile(task.grids[product.grid], some ? i : 0));
        const int ahead = open || !some ? 0 : min(n, SLOTS / S::TAKES);
        struct place weights_at = at;
#pragma unroll 1
        for (int k = 0; k < ahead; k++) {
            bring_weights<S>(from, ring, weights_at);
            weights_at = next_stage(weights_at, S::TAKES);
        }
        if (!open) {
            wait_for_all(task, b, phase);
            open = true;
        }
#pragma unroll 1
        for (int k = 0; some && k < n; k++) {
            if (k >= ahead) {
                bring_weights<S>(from, ring, at);
            }
            bring_operand<S>(from, ring, at);
            at = next_stage(at, S::TAKES);
        }
    }
}

/* ---- Numbers from block to block ---- */

/* A factor and the phase that it is of, in one word: who reads it needs no other sign. */
__device__ __forceinline__ void publish_scale(uint64_t *to, uint32_t phase, float scale)
{
    const uint64_t word = (uint64_t)phase << 32 | __float_as_uint(scale);
    ptx_store(to, word);
}

__device__ __forceinline__ float await_scale(
    const struct layers_task &task, struct state &b, const uint64_t *from, uint32_t phase)
{
    const int64_t begin = clock64();
    uint64_t word;
    do {
        word = ptx_load(from);
    } while ((uint32_t)(word >> 32) != phase && !is_late(task, b, begin));
    return __uint_as_float((uint32_t)word);
}

/* ---- The warps that multiply ---- */

template <class S>
__device__ __forceinline__ void take_weights(uint4 (&weights)[HALF], struct state &b,
    const unsigned char *slots, struct place at, int half, int me)
{
    if (half == 0) {
        ptx_wait(&b.full[at.slot], at.parity);
        if (S::TAKES == 2) {
            const struct place operand = operand_of(at, S::TAKES);
            ptx_wait(&b.full[operand.slot], operand.parity);
        }
    }
    load_weights(weights, slots + at.slot * SLOT + me / 32 % S::ROWS * WEIGHT_BYTES, half, me % 32);
}

template <class S>
__device__ __forceinline__ void multiply_half(struct sums<S::MINE> &s, const uint4 (&weights)[HALF],
    const unsigned char *slots, struct place at, int half, bool fresh, int warp)
{
    const unsigned char *from =
        slots + operand_of(at, S::TAKES).slot * SLOT +
        (S::TAKES == 1 ? S::ROWS * WEIGHT_BYTES + warp / TEAM_WARPS * S::MINE * GROUP_BYTES : 0);
    begin_half(s, weights, from, half, fresh);
}

/* This warp is through with a stage. */
template <class S>
__device__ __forceinline__ void leave_stage(struct state &b, struct place at, int lane)
{
    if (lane == 0) {
        ptx_arrive_at(ptx_shared_at(&b.empty[at.slot]));
        if (S::TAKES > 1) {
            ptx_arrive_at(ptx_shared_at(&b.empty[behind(at).slot]));
        }
        if (S::TAKES > 2) {
            ptx_arrive_at(ptx_shared_at(&b.empty[behind(behind(at)).slot]));
        }
    }
}

/* A tile's sums. The last stage is not left: *last. */
template <class S>
__device__ __forceinline__ void multiply(struct sums<S::MINE> &s, struct state &b,
    const unsigned char *slots, struct place &at, int n_k, struct place *last)
{
    const int n = n_k / DEEP, me = self(), warp = warp_of();
    const int part = S::STAGE_IS_PART ? 2 : n_k / parts_of(n_k) / HALF;
    uint4 weights[2][HALF]; /* of this half and the next, in turns */
    s = {}; /* those of the products too: what is read undefined would be kept from phase to phase */
    take_weights<S>(weights[0], b, slots, at, 0, me);
    bool fresh = true;
    int left = part;
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        const struct place then = next_stage(at, S::TAKES);
#pragma unroll
        for (int half = 0; half < 2; half++) {
            multiply_half<S>(
                s, weights[half], slots, at, half, S::STAGE_IS_PART ? half == 0 : fresh, warp);
            if (half == 0) {
                take_weights<S>(weights[1], b, slots, at, 1, me);
            } else if (i + 1 < n) {
                take_weights<S>(weights[0], b, slots, then, 0, me);
            }
            ptx_group_wait(s.now);
            if (half == 1 && i + 1 < n) {
                leave_stage<S>(b, at, me % 32);
            }
            fresh = --left == 0;
            if (S::STAGE_IS_PART ? half == 1 : fresh) {
                end_part(s);
                left = part;
            }
        }
        *last = at;
        at = then;
    }
}

/* A team's sums of tile_12x18: of its own 4 row tiles, and of its half of the groups of the last 4. */
struct sums_12x18 {
    struct sums<tile_8x18::MINE> own;
    struct sums<tile_8x9::MINE> rest;
};

__device__ __forceinline__ void wait_for_stage(struct state &b, struct place at)
{
#pragma unroll
    for (int i = 0; i < tile_12x18::TAKES; i++) {
        ptx_wait(&b.full[at.slot], at.parity);
        at = behind(at);
    }
}

/* As multiply, with as many registers: weights are not read ahead, the other team's products go on meanwhile. */
__device__ __forceinline__ void multiply_12x18(struct sums_12x18 &s, struct state &b,
    const unsigned char *slots, struct place &at, int n_k, struct place *last)
{
    const int n = n_k / DEEP, me = self(), warp = warp_of();
    s = {};
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        const struct place rest_at = behind(behind(at));
        const uint4 *own = (const uint4 *)(slots + at.slot * SLOT + warp * WEIGHT_BYTES) + me % 32;
        const uint4 *rest =
            (const uint4 *)(slots + rest_at.slot * SLOT + warp % TEAM_WARPS * WEIGHT_BYTES) + me % 32;
        uint64_t operand = ptx_group_operand(slots + behind(at).slot * SLOT, GROUP_BYTES);
        const uint32_t mine = (uint32_t)(warp / TEAM_WARPS * tile_8x9::GROUPS * GROUP_BYTES / 16);
        wait_for_stage(b, at);
#pragma unroll 1
        for (int step = 0; step < DEEP; step += FEW_TILES_AT_ONCE) {
            uint4 weights[2][FEW_TILES_AT_ONCE];
#pragma unroll
            for (int k = 0; k < FEW_TILES_AT_ONCE; k++) {
                weights[0][k] = own[k * TILE_PIECES];
                weights[1][k] = rest[k * TILE_PIECES];
            }
            ptx_group_begin();
#pragma unroll
            for (int k = 0; k < FEW_TILES_AT_ONCE; k++) {
                const uint64_t tile = operand + (uint64_t)(k * GROUP_PIECES);
                ptx_group_mma(s.own.now, weights[0][k], tile, step + k > 0);
                ptx_group_mma(s.rest.now, weights[1][k], tile + mine, step + k > 0);
            }
            ptx_group_end();
            ptx_group_wait(s.own.now);
            ptx_group_wait(s.rest.now);
            own += FEW_TILES_AT_ONCE * TILE_PIECES;
            rest += FEW_TILES_AT_ONCE * TILE_PIECES;
            operand += (uint64_t)(FEW_TILES_AT_ONCE * GROUP_PIECES);
        }
        end_part(s.own); /* a stage is a part */
        end_part(s.rest);
        if (i + 1 < n) {
            leave_stage<tile_12x18>(b, at, me % 32);
        }
        *last = at;
        at = next_stage(at, tile_12x18::TAKES);
    }
}

/* What was written to a stage is written before copies come to it. */
template <class S> __device__ __forceinline__ void leave_last(struct state &b, struct place last)
{
    ptx_copies_follow();
    __syncwarp();
    leave_stage<S>(b, last, self() % 32);
}

} // namespace

#endif

#endif
