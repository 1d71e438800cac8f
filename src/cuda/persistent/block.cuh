/* SPDX-License-Identifier: Apache-2.0
 * What every step of the frame kernel stands on: a thread's view of its block, the ring that brings weights, the
 * exchange of words between blocks, and a vector on its way into a product.
 *
 * A word of the exchange is a float whose lowest bit is a mark: a reader knows by it that the word is the one it
 * waits for, so data and signal are one. A kind of words changes its mark each time it is written; between two
 * writes of one kind lies an exchange that all blocks have finished, so nobody still waits for the words before. */
#ifndef CUDA_PERSISTENT_BLOCK_CUH
#define CUDA_PERSISTENT_BLOCK_CUH

#include "base/numeric.h"
#include "cuda/persistent/args.h"
#include "cuda/persistent/device.cuh"
#include "cuda/persistent/layout_body.h"

struct block {
    const struct frame_args *args;
    struct frame_shared *shared;
    unsigned char *ring;
    int thread, warp, lane; /* thread: of the multiplying ones */
    int index, kv_head, part;
    int set;        /* of words: which pass this is */
    uint32_t marks; /* a bit for each kind of each set, the highest for the totals */
    int slot;       /* of the ring: the next unit's */
    uint32_t phase;
    int turn;             /* of shared->sums */
    uint32_t clear_phase; /* of shared->totals_clear */
#ifdef FRAME_TRACED
    int n_trace;
#endif
};

/* Four floats at once, from and to a border of 16 bytes. */
DEV void block_read4(const float *from, float (&to)[4])
{
    float4 v = *(const float4 *)from;
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}

/* The same, of which the first n are of a result. */
DEV void block_read_first(const float *from, int n, float (&to)[4])
{
    const float4 v = ptx_load_first_floats(from, n);
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}

DEV void block_write4(float *to, const float (&from)[4])
{
    float4 v = {from[0], from[1], from[2], from[3]};
    *(float4 *)to = v;
}

DEV float dev_warp_sum(float v)
{
    for (int mask = 16; mask > 0; mask >>= 1) {
        v += dev_xor(v, mask);
    }
    return v;
}

/* ---- Time ---- */

/* Asked in every waiting loop; true: wait no longer, the frame is lost. */
DEV bool block_is_late(const struct block &b)
{
    return *(volatile uint32_t *)&b.shared->dead != 0;
}

/* One thread of each block looks at the clock for all others, so that their loops are short. */
DEV void block_watch(struct block &b)
{
    const uint64_t deadline = dev_clock() + b.args->control.patience;
    while (*(volatile uint32_t *)&b.shared->stop != FRAME_STOP_ALL) {
        if (dev_clock() > deadline && !block_is_late(b)) {
            *(volatile uint32_t *)&b.shared->dead = 1;
            dev_or(b.args->control.error, FRAME_LATE);
        }
        dev_sleep();
    }
}

/* Notes when thread 0 of block 0 has come to a place, in a build that asks for it. */
DEV void block_trace(struct block &b, int place)
{
#ifdef FRAME_TRACED
    if (b.index == 0 && b.thread == 0 && b.args->control.trace && b.n_trace < FRAME_TRACE) {
        b.args->control.trace[b.n_trace++] = dev_clock() << 8 | (uint64_t)(b.set * 16 + place);
    }
#else
    (void)b;
    (void)place;
#endif
}

/* ---- The ring ---- */

/* One look at a barrier, by who gives up when the frame is lost. */
DEV bool ring_try(const struct block &b, uint64_t *bars, int slot, uint32_t parity)
{
    return dev_mbar_try_unless(&bars[slot], parity, &b.shared->dead);
}

DEV void ring_wait(const struct block &b, uint64_t *bars, int slot, uint32_t parity)
{
    while (!ring_try(b, bars, slot, parity) && !block_is_late(b)) {
    }
}

DEV void ring_next(const struct block &b, int &slot, uint32_t &phase)
{
    if (++slot == b.args->control.n_slots) {
        slot = 0;
        phase ^= 1;
    }
}

/* A slot that this warp has waited for, and of which it wants nothing. */
DEV void ring_pass(struct block &b)
{
    dev_bar_warp();
    if (b.lane == 0) {
        dev_mbar_arrive(&b.shared->empty[b.slot]);
    }
    ring_next(b, b.slot, b.phase);
}

/* This warp has issued all its loads from the slot, which the producer may fill again. The fence is
 * needed: arriving at an mbarrier does not wait for the loads in front of it, and when these queue
 * up behind a loop that polls words of the exchange, the next bulk copy into the slot could overtake
 * them. */
DEV void ring_leave(struct block &b)
{
    dev_fence_copies();
    ring_pass(b);
}

/* ---- The exchange ---- */

/* The mark that a kind is written with next; and the same for its readers, after which it is that of the past. Every
 * thread of every block calls exchange_mark once for every use. */
DEV uint32_t exchange_next(const struct block &b, int kind)
{
    return (b.marks >> (b.set * FRAME_N_KINDS + kind) & 1) ^ 1;
}

DEV uint32_t exchange_mark(struct block &b, int kind)
{
    b.marks ^= 1u << (b.set * FRAME_N_KINDS + kind);
    return b.marks >> (b.set * FRAME_N_KINDS + kind) & 1;
}

template <int KIND> DEV uint32_t *exchange_at(const struct block &b)
{
    constexpr int ALL = frame_kind_at(FRAME_N_KINDS), AT = frame_kind_at(KIND);
    return b.args->scratch.words + b.set * ALL + AT;
}

DEV void exchange_put(uint32_t *at, float value, uint32_t mark)
{
    dev_put(at, (numeric_to_bits(value) & ~1u) | mark);
}

/* A number as it stands in a word, without its mark. What goes through the exchange in one build of the kernel and
 * stays in registers in another is rounded by this in both: so a lane's numbers do not depend on its company. */
DEV float exchange_rounded(float value)
{
    return numeric_from_bits(numeric_to_bits(value) & ~1u);
}

DEV float exchange_value(uint32_t word)
{
    return numeric_from_bits(word & ~1u);
}

/* Word by word, as floats. */
DEV uint4 exchange_sum(uint4 a, uint4 b)
{
    a.x = numeric_to_bits(numeric_from_bits(a.x) + numeric_from_bits(b.x));
    a.y = numeric_to_bits(numeric_from_bits(a.y) + numeric_from_bits(b.y));
    a.z = numeric_to_bits(numeric_from_bits(a.z) + numeric_from_bits(b.z));
    a.w = numeric_to_bits(numeric_from_bits(a.w) + numeric_from_bits(b.w));
    return a;
}

/* Waits for words of this mark: N single ones, `stride` apart, and two neighbouring ones beside them. All are on
 * their way at once, and asked for again until all are there. */
template <int N>
DEV void exchange_take_all(const struct block &b, const uint32_t *at, int stride,
    const uint32_t *beside, uint32_t mark, float (&to)[N], uint2 &two)
{
    const uint32_t flip = mark - 1;
    uint32_t v[N], ready;
    do {
        two = dev_get2(beside);
        for (int i = 0; i < N; i++) {
            v[i] = dev_get(at + i * stride);
        }
        dev_wait_for(two.x);
        for (int i = 0; i < N; i++) {
            dev_wait_for(v[i]);
        }
        ready = (two.x ^ flip) & (two.y ^ flip);
        for (int i = 0; i < N; i++) {
            ready &= v[i] ^ flip;
        }
    } while (dev_lowest(ready) == 0 && !block_is_late(b));
    for (int i = 0; i < N; i++) {
        to[i] = exchange_value(v[i]);
    }
    two.x &= ~1u, two.y &= ~1u;
}

/* And N times four neighbouring words, GROUP of them `stride` apart and the groups `outer`, those i for which
 * `wanted` has a bit; the others are 0. Only what was not there yet is asked for again; all that is asked for is on
 * its way before any of it is looked at. */
template <int N, int GROUP = N>
DEV void exchange_take4(const struct block &b, const uint32_t *at, int stride, uint32_t wanted,
    uint32_t mark, uint4 (&v)[N], int outer = 0)
{
    const uint32_t flip = mark - 1;
    uint32_t missing = wanted;
    for (int i = 0; i < N; i++) {
        v[i] = (uint4){0, 0, 0, 0};
    }
    do {
        for (int i = 0; i < N; i++) {
            dev_get4_if(missing >> i & 1, at + i / GROUP * outer + i % GROUP * stride, v[i]);
        }
        for (int i = 0; i < N; i++) {
            dev_wait_for(v[i].x);
        }
        for (int i = 0; i < N; i++) {
            uint32_t ready = (v[i].x ^ flip) & (v[i].y ^ flip) & (v[i].z ^ flip) & (v[i].w ^ flip);
            missing &= ~((ready & 1) << i);
        }
    } while (missing && !block_is_late(b));
    for (int i = 0; i < N; i++) {
        v[i].x &= ~1u, v[i].y &= ~1u, v[i].z &= ~1u, v[i].w &= ~1u;
    }
}

/* ---- Totals: words to which 8 blocks add ----
 *
 * A part is a whole number of 2^-27, so that their sum does not depend on the order; each also adds one to the bits
 * above, so a word tells by itself when it is complete. Of two buffers in turns one is zero when it is added to. */

/* Parts below 2^20 add up to less than 2^50; what is larger, or no number, makes the sum larger than that. */
#define TOTAL_UNIT 0x1p-27f
#define TOTAL_LIMIT 0x1p20f
#define TOTAL_LOST ((int64_t)1 << 51)
#define TOTAL_COUNT ((uint64_t)1 << 56)

static_assert(FRAME_N_SETS * FRAME_N_KINDS < 31, "no room for the turn of the totals");

DEV void totals_turn(struct block &b)
{
    b.marks ^= 1u << 31;
}

DEV uint64_t *totals_of(const struct block &b)
{
    return b.args->scratch.totals + (b.marks >> 31) * FRAME_TOTALS;
}

/* What a part adds to a word. */
DEV uint64_t totals_part(float part)
{
    const int64_t whole = fabsf(part) < TOTAL_LIMIT ? dev_round(part * (1 / TOTAL_UNIT)) : TOTAL_LOST;
    return (uint64_t)whole + TOTAL_COUNT;
}

DEV bool totals_ready(uint64_t word)
{
    return (uint32_t)((word + TOTAL_COUNT / 2) >> 32) >> 24 == FRAME_KV_HEADS;
}

DEV float totals_value(uint64_t word)
{
    const int64_t sum = (int64_t)(word - FRAME_KV_HEADS * TOTAL_COUNT);
    return (sum < 0 ? -sum : sum) < TOTAL_LOST / 2 + 1 ? (float)sum * TOTAL_UNIT : NAN;
}

/* N times two neighbouring words, `at` and 16 words on, and the same every 1,024: four rows each two times. */
template <int N> DEV void totals_take(const struct block &b, const uint64_t *at, uint64_t (&v)[N][2])
{
    uint32_t missing = (1u << N) - 1;
    for (int i = 0; i < N; i++) {
        v[i][0] = v[i][1] = 0;
    }
    do {
        for (int i = 0; i < N; i++) {
            dev_get2_wide_if(missing >> i & 1, at + i / 2 * 1024 + i % 2 * 16, v[i]);
        }
        for (int i = 0; i < N; i++) {
            dev_wait_for_wide(v[i][0]);
        }
        for (int i = 0; i < N; i++) {
            missing &= ~((uint32_t)(totals_ready(v[i][0]) && totals_ready(v[i][1])) << i);
        }
    } while (missing && !block_is_late(b));
}

/* Tells the clearing warp that all blocks have read the totals of the layer before. It is called
 * behind the barrier of the product of a layer's queries: there this block has had words of the down
 * projection from all blocks, and each block wrote those after it had read the totals. The barrier
 * of the down projection itself comes too early, because a block waits in front of it only for the
 * blocks that make its part of the inner vector, which can be half of them. It is also called once
 * at the frame's end. */
DEV void totals_release(const struct block &b)
{
    if (b.warp == 0 && b.lane == 0) {
        dev_mbar_arrive(&b.shared->totals_read);
    }
}

/* Waits until the totals of the layer before are zero again. It is called before a block puts its
 * first word of a down projection, because those words let other blocks go on to the next layer,
 * which adds to these totals. */
DEV void totals_await(struct block &b)
{
    if (b.warp == 0) {
        ring_wait(b, &b.shared->totals_clear, 0, b.clear_phase);
    }
    b.clear_phase ^= 1;
}

/* The work of a warp of its own: layer by layer it sets this block's share of the totals that all
 * blocks have read to zero. It is not done by the multiplying warps, because the fence behind it
 * takes half a microsecond. No fence stands between other blocks' additions and these zeros, but all
 * additions have been read: so the zeros are relaxed stores, which do not race with them. */
DEV void totals_clear_all(struct block &b)
{
    constexpr int EACH = FRAME_TOTALS / FRAME_BLOCKS;
    for (uint32_t phase = 0;; phase ^= 1) {
        ring_wait(b, &b.shared->totals_read, 0, phase);
        const bool ends = *(volatile uint32_t *)&b.shared->stop == FRAME_STOP_ALL;
        if (dev_ballot(ends || block_is_late(b)) != 0) {
            return;
        }
        if (b.lane < EACH / 2) {
            dev_put2_wide(totals_of(b) + b.index * EACH + b.lane * 2, 0, 0);
            dev_fence();
        }
        totals_turn(b);
        dev_bar_warp();
        if (b.lane == 0) {
            dev_mbar_arrive(&b.shared->totals_clear);
        }
    }
}

/* ---- The vector of a product: each warp's own part ---- */

/* A thread holds 4 neighbouring elements of every fourth unit: the first of them in chunk i. */
DEV int vector_index(const struct block &b, int chunk)
{
    return chunk * 1024 + b.lane / 8 * FRAME_UNIT_K + b.warp * 32 + b.lane % 8 * 4;
}

/* This warp's rows of a vector of n units and COLUMNS columns; row 2 c holds the upper part of column c, 2 c + 1
 * what is left. */
template <int COLUMNS> DEV unsigned char *vector_rows(const struct block &b, int units)
{
    return b.shared->vector + b.warp * (2 * COLUMNS * frame_row_bytes(units));
}

/* The largest magnitude of 4 numbers in each thread of the warp, as its bits; NaN is larger than all
 * others. */
DEV uint32_t vector_largest(const float (&v)[4])
{
    uint32_t largest = 0;
    for (int i = 0; i < 4; i++) {
        const uint32_t bits = numeric_to_bits(v[i]) & 0x7fffffffu;
        largest = bits > largest ? bits : largest;
    }
    return dev_max(largest);
}

/* The unit in which this thread's elements of chunk i lie. */
DEV int vector_unit(const struct block &b, int chunk)
{
    return chunk * 4 + b.lane / 8;
}

/* This thread's 4 elements of a unit -> the rows of column c, in the order in which the product reads them;
 * neighbouring 16 bytes are swapped in every other pair of units, which would have the same banks. PACKED: as 16-bit
 * numbers with a scale for what the warp has of four units; they stay below 127 * 256, so that both halves are
 * signed bytes. All lanes come here; those without an element say so, and theirs are no larger than others or 0. */
template <bool PACKED>
DEV void vector_put(const struct block &b, unsigned char *rows, int units, int c, int unit,
    const float (&v)[4], bool mine)
{
    const int q = b.lane % 8;
    unsigned char *upper = rows + 2 * c * frame_row_bytes(units) + unit * 64;
    unsigned char *lower = upper + frame_row_bytes(units);
    if constexpr (PACKED) {
        /* The scale has a power of two in it instead of the largest number, which spares a division: 2^e, at most the
         * largest of them, becomes 16,256. */
        constexpr uint32_t LEAST = 27u << 23, EXPONENT = 0x7f800000, TIMES = (267u << 23) + 0x7e0000;
        const uint32_t largest = vector_largest(v),
                       power = (largest > LEAST ? largest : LEAST) & EXPONENT;
        const float inverse = numeric_from_bits(TIMES - power); /* 16,256 / 2^e */
        uint32_t high = 0, low = 0;
        for (int i = 0; i < 4; i++) {
            int code = (int)(numeric_to_bits(v[i] * inverse + 0x1.8p23f) - numeric_to_bits(0x1.8p23f));
            int top = (code + 128) >> 8;
            high |= ((uint32_t)top & 255) << 8 * i;
            low |= ((uint32_t)(code - top * 256) & 255) << 8 * i;
        }
        if (mine) {
            *(uint32_t *)(upper + q % 4 * 8 + q / 4 * 4) = high;
            *(uint32_t *)(lower + q % 4 * 8 + q / 4 * 4) = low;
            if (q == 0) {
                *(float *)(upper + 32) = numeric_from_bits(power) * (1 / 16256.0f);
            }
        }
    } else if (mine) {
        const int at = q % 2 * 32 + q / 4 * 8 + q / 2 % 2 * 4 + unit / 2 % 2 * 16;
        for (int i = 0; i < 2; i++) {
            const float v0 = v[2 * i], v1 = v[2 * i + 1];
            uint32_t both = pack_bf16(v0, v1);
            *(uint32_t *)(upper + (at ^ 16 * i)) = both;
            *(uint32_t *)(lower + (at ^ 16 * i)) = pack_bf16(
                v0 - numeric_from_bits(both << 16), v1 - numeric_from_bits(both & 0xffff0000u));
        }
    }
}

#endif
