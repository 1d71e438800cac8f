/* SPDX-License-Identifier: Apache-2.0
 * The steps of a layer for several lanes. A product is that of one lane with more columns; what differs is who has
 * what. The state x of a row stands in one thread of the block that *owns* the row: block i has rows i * W / 128 and
 * on, thread t the row t % (W / 128) of lane t / (W / 128). It adds what a product has left and tells all blocks the
 * sum as their products take it (lanes_vector.cuh):
 *
 *   lanes_qkv       a vector               -> LANES_X_QKV             all blocks
 *   lanes_attend_*  LANES_X_QKV            -> LANES_X_MIXED           the kv head's blocks
 *   lanes_o         LANES_X_MIXED          -> own, LANES_X_MIDDLE     all kv heads, and the other of the cluster
 *   lanes_gate_up   LANES_X_MIDDLE         -> LANES_X_INNER           all blocks
 *   lanes_down      LANES_X_INNER          -> own, LANES_X_STATE      all blocks, and the other of its cluster
 *
 * Between two writes of a kind lies a vector that all blocks have read, as for one lane. */
#ifndef CUDA_PERSISTENT_LANES_LANES_STEPS_CUH
#define CUDA_PERSISTENT_LANES_LANES_STEPS_CUH

#include "cuda/persistent/lanes/lanes_attend.cuh"
#include "cuda/persistent/produce.cuh"

/* ---- Rows that this thread owns ---- */

template <int W> DEV bool lanes_owns(const struct block &b, const struct lanes_launch &lanes)
{
    return b.thread < lanes.n * (W / FRAME_BLOCKS);
}

template <int W> DEV int lanes_own_lane(const struct block &b)
{
    return b.thread / (W / FRAME_BLOCKS);
}

template <int W> DEV int lanes_own_row(const struct block &b)
{
    return b.index * (W / FRAME_BLOCKS) + b.thread % (W / FRAME_BLOCKS);
}

/* This row's element of a norm's weight; 1 where there is no norm. */
template <int W>
DEV float lanes_own_weight(const struct block &b, const struct lanes_launch &lanes, const float *norm)
{
    return norm && lanes_owns<W>(b, lanes) ? norm[lanes_own_row<W>(b)] : 1.0f;
}

/* The owners' numbers, times the norm's weight -> the exchange; the mark. */
template <int W, enum lanes_kind KIND>
DEV uint32_t lanes_publish(struct block &b, const struct lanes_launch &lanes, float own, float weight)
{
    const uint32_t mark = lanes_mark(b, KIND);
    if (b.warp * 32 < LANES * (W / FRAME_BLOCKS)) {
        const int lane = lanes_own_lane<W>(b), row = lanes_own_row<W>(b);
        const bool mine = lanes_owns<W>(b, lanes);
        uint32_t *words = lanes_at<KIND>(b);
        lanes_put<W / FRAME_UNIT_K>(b, words, lane, row, dev_mul(own, weight), mine, mark);
        lanes_put_square<W>(b, words, lane, row, own, mine, mark);
    }
    return mark;
}

/* Turns a mark of shared->pair. */
DEV uint32_t lanes_turn(struct block &b, int bit)
{
    b.marks ^= 1u << bit;
    return b.marks >> bit & 1;
}

/* What two blocks that share a row tile, half of the sum each, have for each other's rows: sums of a product of 16
 * rows -> the sum of both in the owner's thread. Lanes that are not there swap nothing of use: a warp goes through
 * this as one. bias: NULL, or what the first of them adds. The next such sum lies behind a vector of all blocks. */
DEV float lanes_swap(struct block &b, const float *bias)
{
    const bool gives = b.thread >= 128;
    const int half = b.index % 2, c = b.thread % 128 / 8, r = b.thread % 8;
    const int row = (gives ? 1 - half : half) * 8 + r;
    const uint32_t mark = lanes_turn(b, LANES_PAIR_BIT);
    if (c >= LANES) {
        return 0;
    }
    uint32_t *word = &b.shared->pair[0][c * 8 + r], other;
    float value = lanes_sum<16>(b, c, row);
    if (bias) {
        value += half == 0 ? bias[b.index / 2 * 16 + row] : 0;
    }
    if (gives) {
        dev_pair_put(word, (numeric_to_bits(value) & ~1u) | mark);
        return 0;
    }
    do {
        other = dev_pair_get(word);
    } while ((other & 1) != mark && !block_is_late(b));
    return exchange_rounded(value) + exchange_value(other);
}

/* ---- Products ---- */

/* The product of a vector that a norm stands before; its sums of squares. PLACE: of the trace. */
template <class S, int W, int PLACE>
DEV void lanes_state_product(struct block &b, const struct lanes_launch &lanes, struct held<S> &h,
    const uint32_t *words, uint32_t mark)
{
    struct lanes_product<S> p = {};
    uint4 x[LANES_FOURS][S::K + W / 1024];
    lanes_take<S::K, W / 1024>(b, lanes, words, S::K, 0, mark, x);
    block_trace(b, PLACE);
    lanes_multiply<S, 0, S::UNITS>(b, h, p, x);
    lanes_squares<S::K, W / 1024>(b, x);
    lanes_note<S>(b, p);
    dev_bar();
}

/* The product of units `unit` and on of a vector of `units`. */
template <class S, int PLACE>
DEV void lanes_plain_product(struct block &b, const struct lanes_launch &lanes, struct held<S> &h,
    const uint32_t *words, int units, int unit, uint32_t mark)
{
    constexpr int ALL = S::K == 1 ? S::UNITS : S::K, N = ALL < 12 ? ALL : 12, N_PARTS = ALL / N;
    static_assert(ALL % N == 0 && N_PARTS <= 2, "in one part, or in two");
    struct lanes_product<S> p = {};
    uint4 x[LANES_FOURS][N];
    lanes_take<N, 0>(b, lanes, words, units, unit, mark, x);
    block_trace(b, PLACE);
    lanes_multiply<S, 0, N_PARTS == 1 ? S::UNITS : N>(b, h, p, x);
    if constexpr (N_PARTS == 2) {
        lanes_take<N, 0>(b, lanes, words, units, unit + N, mark, x);
        lanes_multiply<S, N, N>(b, h, p, x);
    }
    lanes_note<S>(b, p);
    dev_bar();
}

template <class S, int W>
DEV uint32_t lanes_qkv(struct block &b, const struct lanes_launch &lanes, struct held<S> &h,
    const uint32_t *words, uint32_t state_mark, float eps)
{
    lanes_state_product<S, W, 1>(b, lanes, h, words, state_mark);
    const uint32_t mark = lanes_mark(b, LANES_X_QKV);
    for (int t = b.thread; t < S::ROWS * lanes.n; t += FRAME_THREADS) {
        const int c = t / S::ROWS, row = t % S::ROWS;
        const float value = lanes_sum<S::ROWS>(b, c, row) * product_scale(b, c, W, eps);
        exchange_put(
            lanes_at<LANES_X_QKV>(b) + (b.kv_head * LANES + c) * FRAME_GROUP + b.part * 32 + row, value,
            mark);
    }
    return mark;
}

/* Row `row` of the output projection: the parts of the kv heads that this block has, as integers. */
template <class S> DEV int64_t lanes_o_sum(const struct block &b, int lane, int row)
{
    uint64_t total = 0;
    for (int i = 0; i < S::UNITS; i++) {
        total += totals_part(exchange_rounded(lanes_sum<S::ROWS>(b, lane, i * 16 + row)));
    }
    return (int64_t)(total - S::UNITS * TOTAL_COUNT);
}

/* As lanes_swap: each of two blocks has half of the kv heads. A sum of less than 62 bits goes as two words. */
template <class S> DEV int64_t lanes_swap_o(struct block &b)
{
    const bool gives = b.thread >= 128;
    const int half = b.index % 2, c = b.thread % 128 / 8, r = b.thread % 8;
    const uint32_t mark = lanes_turn(b, LANES_PAIR_O_BIT);
    if (c >= LANES) {
        return 0;
    }
    const int64_t sum = lanes_o_sum<S>(b, c, (gives ? 1 - half : half) * 8 + r);
    uint32_t *words = &b.shared->pair[1][c * 8 + r], low, high;
    if (gives) {
        dev_pair_put(words, (uint32_t)sum << 1 | mark);
        dev_pair_put(words + LANES * 8, (uint32_t)(sum >> 31) << 1 | mark);
        return 0;
    }
    do {
        low = dev_pair_get(words);
        high = dev_pair_get(words + LANES * 8);
    } while (((low ^ mark) & 1 || (high ^ mark) & 1) && !block_is_late(b));
    return sum + ((int64_t)((int32_t)high >> 1) * ((int64_t)1 << 31) + (int64_t)(low >> 1));
}

/* The output projection of this block's row tile, added to the owners' rows: whole numbers, as the kernel for one
 * lane adds the kv heads. */
template <class S, int W>
DEV void lanes_o(struct block &b, const struct lanes_launch &lanes, struct held<S> &h,
    uint32_t mixed_mark, float &own)
{
    constexpr bool WHOLE = S::UNITS == FRAME_KV_HEADS;
    lanes_plain_product<S, 4>(b, lanes, h, lanes_at<LANES_X_MIXED>(b), FRAME_KV_HEADS,
        WHOLE ? 0 : b.index % 2 * S::UNITS, mixed_mark);
    block_trace(b, 5);
    int64_t total = 0;
    if constexpr (!WHOLE) {
        total = lanes_swap_o<S>(b);
    } else if (lanes_owns<W>(b, lanes)) {
        total = lanes_o_sum<S>(b, lanes_own_lane<W>(b), b.thread % 16);
    }
    own = exchange_rounded(own + totals_value((uint64_t)total + FRAME_KV_HEADS * TOTAL_COUNT));
}

template <class S, int W, int I>
DEV uint32_t lanes_gate_up(struct block &b, const struct lanes_launch &lanes, struct held<S> &h,
    uint32_t middle_mark, float eps)
{
    constexpr int UNITS = I / FRAME_BLOCKS;
    static_assert(UNITS % 2 == 0, "neighbours stand in one warp");
    lanes_state_product<S, W, 6>(b, lanes, h, lanes_at<LANES_X_MIDDLE>(b), middle_mark);
    block_trace(b, 7);
    const uint32_t mark = lanes_mark(b, LANES_X_INNER);
    for (int first = b.warp * 32; first < UNITS * lanes.n; first += FRAME_THREADS) {
        const int t = first + b.lane, c = t / UNITS, unit = t % UNITS, row = unit / 8 * 16 + unit % 8;
        float value = 0;
        if (c < lanes.n) {
            value = exchange_rounded(layer_gated(lanes_sum<S::ROWS>(b, c, row),
                lanes_sum<S::ROWS>(b, c, row + 8), product_scale(b, c, W, eps)));
        }
        lanes_put<I / FRAME_UNIT_K>(
            b, lanes_at<LANES_X_INNER>(b), c, b.index * UNITS + unit, value, c < lanes.n, mark);
    }
    return mark;
}

/* The block's part of the inner vectors: all of it, or half where two blocks share a row tile. */
template <class S, int W, int I>
DEV void lanes_down(struct block &b, const struct lanes_launch &lanes, struct held<S> &h,
    uint32_t inner_mark, float &own)
{
    constexpr int UNITS = I / FRAME_UNIT_K;
    lanes_plain_product<S, 8>(b, lanes, h, lanes_at<LANES_X_INNER>(b), UNITS,
        S::UNITS < UNITS ? b.index % 2 * S::UNITS : 0, inner_mark);
    block_trace(b, 9);
    float sum = 0;
    if constexpr (W == 1024) {
        sum = lanes_swap(b, NULL);
    } else if (lanes_owns<W>(b, lanes)) {
        sum = exchange_rounded(lanes_sum<16>(b, lanes_own_lane<W>(b), b.thread % 16));
    }
    own = exchange_rounded(own + sum);
}

#endif
