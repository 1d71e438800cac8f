/* SPDX-License-Identifier: Apache-2.0
 * Reads: a vector in shared memory, units of weights from the ring. Writes: shared->sums.
 * Shares: rows among blocks as plan.h says; of each unit every warp takes 32 columns, so that a row's sum is
 * spread over the warps; product_sum adds them in the order of the warps.
 * Waits for: each slot's mbarrier; the warp's own part of the vector. A barrier must follow before sums are read.
 *
 * Weights go from the ring to registers before the vector is waited for (product_hold), so that behind the wait
 * there is only arithmetic, and the ring is filled again in the meantime. */
#ifndef CUDA_PERSISTENT_PRODUCT_CUH
#define CUDA_PERSISTENT_PRODUCT_CUH

#include "cuda/persistent/block.cuh"

/* WHOLE runs of K units and, when CUT is not 0, one of CUT units. */
template <bool IS_PACKED, int WHOLE_RUNS, int K_UNITS, int CUT_UNITS> struct shape {
    static constexpr bool PACKED = IS_PACKED;
    static constexpr int WHOLE = WHOLE_RUNS, K = K_UNITS, CUT = CUT_UNITS;
    static constexpr int RUNS = WHOLE + (CUT > 0), ROWS = RUNS * 16, UNITS = WHOLE * K + CUT;
    static constexpr int HELD = UNITS < 12 ? UNITS : 12;
    static constexpr bool ONE_SCALE = PACKED && K <= 4 && CUT == 0; /* of a warp's part of the vector */
    static constexpr int CHAINS = RUNS == 1  ? 4
                                  : RUNS < 6 ? 2
                                             : 1; /* of sums that do not wait for each other */
};

/* Units in registers: this warp's two tiles of 16 columns, or its one of 32 and the scales of two rows. */
template <class S> struct held {
    uint4 tile[S::HELD][S::PACKED ? 1 : 2];
    uint32_t scale[S::PACKED ? S::HELD : 1];
};

template <class S, bool WAIT> DEV void product_load(struct block &b, struct held<S> &h, int u)
{
    const int per_slot = frame_slot_units(S::PACKED, PTX_HALF_SLOTS), in_slot = u % per_slot,
              to = u % S::HELD;
    if (WAIT && in_slot == 0) {
        ring_wait(b, b.shared->full, b.slot, b.phase);
    }
    const unsigned char *at = b.ring + b.slot * b.args->control.slot_bytes;
    if constexpr (S::PACKED) {
        at += in_slot * FRAME_PACKED_BYTES + b.warp * FRAME_PACKED_EACH;
        h.tile[to][0] = ptx_load_stage(at + b.lane * 16);
        h.scale[to] = *(const uint32_t *)(at + 512 + b.lane / 4 * 4);
    } else {
        at += in_slot * FRAME_UNIT_BYTES + b.warp * 1024 + b.lane * 16;
        h.tile[to][0] = ptx_load_stage(at);
        h.tile[to][1] = ptx_load_stage(at + 512);
    }
    if (in_slot == per_slot - 1 || u == S::UNITS - 1) {
        ring_leave(b);
    }
}

/* As many of the coming product's units as there is room for -> registers. */
template <class S> DEV void product_hold(struct block &b, struct held<S> &h)
{
    /* Packed ones are there, mostly; all slots are looked at first, so that reading one does not wait for the other.
     * */
    int slot = b.slot;
    uint32_t phase = b.phase;
    for (int u = 0; S::PACKED && u < S::HELD; u += frame_slot_units(S::PACKED, PTX_HALF_SLOTS)) {
        ring_wait(b, b.shared->full, slot, phase);
        ring_next(b, slot, phase);
    }
#pragma unroll
    for (int u = 0; u < S::HELD; u++) {
        product_load<S, !S::PACKED>(b, h, u);
    }
}

/* Where the scale of a unit of a packed vector lies. */
DEV const float *product_vector_scale(const unsigned char *rows, int column, int units, int unit)
{
    return (const float *)(rows + 2 * column * frame_row_bytes(units) + unit * 64 + 32);
}

/* This thread's operands of one unit for columns 4 `four` and on: upper and lower parts of a column lie in
 * neighbouring columns of the instruction. */
template <class S, int COLUMNS>
DEV uint4 product_operand(
    const struct block &b, const unsigned char *rows, int units, int unit, int four)
{
    const int left = COLUMNS - 4 * four;
    const bool mine = b.lane / 4 < 2 * left; /* the other columns are zero */
    rows += 8 * four * frame_row_bytes(units);
    const unsigned char *at = rows + (mine ? b.lane / 4 * frame_row_bytes(units) : 0) + unit * 64 +
                              (S::PACKED ? b.lane % 4 * 8 : b.lane % 4 * 16 ^ unit / 2 % 2 * 16);
    uint4 x = {0, 0, 0, 0};
    if constexpr (S::PACKED) {
        const int column = b.lane % 4 < left ? b.lane % 4 : 0; /* of this thread's results */
        const uint2 two = *(const uint2 *)at;
        x.x = mine ? two.x : 0;
        x.y = mine ? two.y : 0;
        if (!S::ONE_SCALE) {
            x.z = numeric_to_bits(*product_vector_scale(rows, column, units, unit));
        }
    } else if (mine) {
        x = dev_load16(at);
    }
    return x;
}

/* d += weights x operand. PACKED: d[0] and d[2] are the sums of two rows, times their scales and the vector's, where
 * that is not one for all. */
template <class S>
DEV void product_unit(
    float (&d)[S::CHAINS][4], const struct held<S> &h, int at, int chain, const uint4 &x)
{
    if constexpr (S::PACKED) {
        /* Sums below 2^22 on top of these bits are floats, and so is what is behind the subtraction, exactly. */
        constexpr float MAGIC = 0x1.8p23f;
        int32_t whole[4] = {0x4b400000, 0x4b400000, 0x4b400000, 0x4b400000};
        float part[4];
        dev_mma_bytes(whole, h.tile[at][0], x.x, x.y);
        for (int i = 0; i < 4; i++) {
            part[i] = numeric_from_bits((uint32_t)whole[i]) - MAGIC;
        }
        const float scale = S::ONE_SCALE ? 1 : numeric_from_bits(x.z);
        float(&to)[4] = d[chain % S::CHAINS];
        to[0] += fmaf(part[0], 256.0f, part[1]) * (numeric_from_bits(h.scale[at] << 16) * scale);
        to[2] +=
            fmaf(part[2], 256.0f, part[3]) * (numeric_from_bits(h.scale[at] & 0xffff0000u) * scale);
    } else {
        dev_mma(d[2 * chain % S::CHAINS], h.tile[at][0], x.x, x.y);
        dev_mma(d[(2 * chain + 1) % S::CHAINS], h.tile[at][1], x.z, x.w);
    }
}

/* Floats between the sums of two columns: 8 more than there are, so that columns have other banks. */
FRAME_FN int product_stride(int rows)
{
    return FRAME_WARPS * rows + 8;
}

/* Each thread's share of the columns' sums of squares, or NULL -> this warp's. */
template <int COLUMNS> DEV void product_squares(const struct block &b, const float *squares)
{
    for (int c = 0; squares && c < COLUMNS; c++) {
        const float sum = dev_warp_sum(squares[c]);
        if (b.lane == 0) {
            b.shared->squares[c][b.warp] = sum;
        }
    }
}

/* sums[column][warp][row of this block] of this warp's columns. rows: of a vector of `units` units, its part `half`
 * for the run that is cut. An instruction has room for 4 columns: more take several for the same weights. squares:
 * NULL, or each thread's share of the columns' sums, added up for product_scale in the shadow of the products. */
template <class S, int COLUMNS>
DEV void product(struct block &b, struct held<S> &h, const unsigned char *rows, int units,
    const float *squares = NULL)
{
    static_assert(COLUMNS * product_stride(S::ROWS) <= FRAME_SUM_FLOATS, "the sums do not fit");
    constexpr bool AHEAD = S::RUNS > 1; /* operands that are used more than once stay in registers */
    constexpr int FOURS = (COLUMNS + 3) / 4;
    const int half = S::WHOLE > 0 && S::CUT > 0 ? b.index % 2 * S::CUT : 0;
    uint4 x[FOURS][AHEAD ? S::K : 1];
    float d[FOURS][S::RUNS][S::CHAINS][4] = {};
    dev_bar_warp();
#pragma unroll
    for (int k = 0; AHEAD && k < S::K; k++) {
#pragma unroll
        for (int f = 0; f < FOURS; f++) {
            x[f][k] = product_operand<S, COLUMNS>(b, rows, units, k, f);
        }
    }
    product_squares<COLUMNS>(b, squares);
#pragma unroll
    for (int u = 0; u < S::UNITS; u++) {
        const bool whole = u < S::WHOLE * S::K;
        const int run = whole ? u / S::K : S::WHOLE, k = whole ? u % S::K : u - S::WHOLE * S::K;
#pragma unroll
        for (int f = 0; f < FOURS; f++) {
            if (AHEAD && whole) {
                product_unit<S>(d[f][run], h, u % S::HELD, k, x[f][k]);
            } else {
                product_unit<S>(d[f][run], h, u % S::HELD, k,
                    product_operand<S, COLUMNS>(b, rows, units, half + k, f));
            }
        }
        if (u + S::HELD < S::UNITS) {
            product_load<S, true>(b, h, u + S::HELD);
        }
    }
    const int group = b.lane / 4, quarter = b.lane % 4;
    b.turn ^= 1; /* some may still add the sums of the product before */
#pragma unroll
    for (int f = 0; f < FOURS; f++) {
        const int column = 4 * f + quarter; /* both of its parts stand in this thread */
        if (column >= COLUMNS) {
            continue;
        }
        const float scale = S::ONE_SCALE ? *product_vector_scale(rows, column, units, 0) : 1;
        float *sums =
            b.shared->sums[b.turn] + column * product_stride(S::ROWS) + b.warp * S::ROWS + group;
#pragma unroll
        for (int run = 0; run < S::RUNS; run++) {
            float low = 0, high = 0;
#pragma unroll
            for (int i = 0; i < S::CHAINS; i++) {
                const float(&sum)[4] = d[f][run][i];
                low += S::PACKED ? sum[0] : sum[0] + sum[1];
                high += S::PACKED ? sum[2] : sum[2] + sum[3];
            }
            sums[run * 16] = low * scale;
            sums[run * 16 + 8] = high * scale;
        }
    }
}

/* The sum of one of this block's ROWS rows. */
template <int ROWS> DEV float product_sum(const struct block &b, int column, int row)
{
    const float *sums = b.shared->sums[b.turn] + column * product_stride(ROWS) + row;
    float part[FRAME_WARPS];
#pragma unroll
    for (int warp = 0; warp < FRAME_WARPS; warp++) {
        part[warp] = sums[warp * ROWS];
    }
    return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
}

/* What a norm multiplies its column with: the product had the vector before it. n 0: no norm, 1. */
DEV float product_scale(const struct block &b, int column, int n, float eps)
{
    if (n == 0) {
        return 1.0f;
    }
    const float *part = b.shared->squares[column];
    float sum =
        ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
    return dev_rsqrt(sum / (float)n + eps);
}

#endif
