/* SPDX-License-Identifier: Apache-2.0
 * The steps of a layer for several lanes. A product is that of one lane with more columns; what differs is who has
 * what. The state x of a row stands in one thread of the block that *owns* the row: block i has rows i * W / 128 and
 * on, thread t the row t % (W / 128) of lane t / (W / 128). It adds what a product has left and tells all blocks the
 * sum, so that they read one word an element, and not every part:
 *
 *   lanes_qkv       the vector             -> LANES_X_QKV             waits for nothing
 *   lanes_attend_*  LANES_X_QKV            -> LANES_X_MIXED           the kv head's blocks (the talker twice)
 *   lanes_o         LANES_X_MIXED          -> LANES_X_O               the kv head's blocks
 *   lanes_add_o     LANES_X_O              -> own, LANES_X_MIDDLE     a block of each kv head
 *   lanes_vector    LANES_X_MIDDLE         -> the vector              all blocks
 *   lanes_gate_up   the vector             -> LANES_X_INNER           waits for nothing
 *   lanes_down      LANES_X_INNER          -> own, LANES_X_STATE      all blocks, and the other of its cluster
 *   lanes_vector    LANES_X_STATE          -> the vector              all blocks
 *
 * Attention of the predictor is done by one block for each lane and kv head; the talker's pages are dealt out to all
 * blocks of a kv head, lane by lane, and the parts joined by that one. Between two writes of a kind lies a vector that
 * all blocks have read, as for one lane. */
#ifndef CUDA_FRAME_LANES_STEPS_CUH
#define CUDA_FRAME_LANES_STEPS_CUH

#include "cuda/frame_embed.cuh"
#include "cuda/frame_lanes.h"
#include "cuda/frame_lanes_plan.h"
#include "cuda/frame_produce.cuh"

/* This block's part in it. */
struct crowd {
    const struct frame_lanes_args *args;
    int n;
    int chooses; /* the lane whose codes it chooses, or -1 */
};

/* Turns the mark of a kind: the new one is written and waited for. Every thread of every block calls it once for
 * every use. */
DEV uint32_t lanes_mark(struct block &b, enum lanes_kind kind)
{
    const int bit = b.set * LANES_N_KINDS + kind;
    b.marks ^= 1u << bit;
    return b.marks >> bit & 1;
}

template <int KIND> DEV uint32_t *lanes_at(const struct block &b)
{
    constexpr int ALL = lanes_kind_at(LANES_N_KINDS), AT = lanes_kind_at(KIND);
    return b.args->scratch.words + b.set * ALL + AT;
}

/* ---- Rows that this thread owns ---- */

template <int W> DEV bool lanes_owns(const struct block &b, const struct crowd &crowd)
{
    return b.thread < crowd.n * (W / FRAME_BLOCKS);
}

template <int W> DEV int lanes_own_lane(const struct block &b)
{
    return b.thread / (W / FRAME_BLOCKS);
}

template <int W> DEV int lanes_own_row(const struct block &b)
{
    return b.index * (W / FRAME_BLOCKS) + b.thread % (W / FRAME_BLOCKS);
}

/* The owners' numbers -> the exchange; the mark. */
template <int W, enum lanes_kind KIND>
DEV uint32_t lanes_tell(struct block &b, const struct crowd &crowd, float own)
{
    const uint32_t mark = lanes_mark(b, KIND);
    if (lanes_owns<W>(b, crowd)) {
        exchange_put(lanes_at<KIND>(b) + lanes_own_lane<W>(b) * W + lanes_own_row<W>(b), own, mark);
    }
    return mark;
}

/* What two blocks that share a row tile, half of the sum each, have for each other's rows: sums of a product of 16 rows
 * -> the sum of both in the owner's thread. bias: NULL, or what the first of them adds. The next such sum lies behind
 * a vector of all blocks. */
DEV float lanes_swap(struct block &b, const struct crowd &crowd, const float *bias)
{
    const bool gives = b.thread >= 128;
    const int half = b.index % 2, c = b.thread % 128 / 8, r = b.thread % 8;
    const int row = (gives ? 1 - half : half) * 8 + r;
    b.marks ^= 1u << LANES_PAIR_BIT;
    const uint32_t mark = b.marks >> LANES_PAIR_BIT;
    if (c >= crowd.n) {
        return 0;
    }
    uint32_t *word = &b.shared->pair[c * 8 + r], other;
    float value = product_sum<16>(b, c, row);
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

/* ---- Vectors ---- */

/* Words of COLUMNS lanes from `first` on -> this thread's elements, 0 of those that are not there. All are on their
 * way at once. */
template <int W, int COLUMNS>
DEV void lanes_take(const struct block &b, const struct crowd &crowd, const uint32_t *words, int first,
    uint32_t mark, float (&x)[COLUMNS][LAYER_EACH(W)])
{
    constexpr int CHUNKS = W / 1024;
    const int left = crowd.n > first ? crowd.n - first : 0, n = left < COLUMNS ? left : COLUMNS;
    uint4 v[COLUMNS * CHUNKS];
    exchange_take4<COLUMNS * CHUNKS>(
        b, words + first * W + vector_index(b, 0), 1024, (1u << n * CHUNKS) - 1, mark, v);
    for (int i = 0; i < COLUMNS * CHUNKS; i++) {
        float *to = x[i / CHUNKS] + i % CHUNKS * 4;
        to[0] = numeric_from_bits(v[i].x), to[1] = numeric_from_bits(v[i].y);
        to[2] = numeric_from_bits(v[i].z), to[3] = numeric_from_bits(v[i].w);
    }
}

/* Sums over the threads of a warp, a column each, in the order of dev_warp_sum: with each step a thread gives away
 * half of its columns, so that 8 need 9 exchanges and not 40. -> shared->squares. */
DEV void lanes_squares(struct block &b, float (&sum)[LANES])
{
    int mask = 16;
#pragma unroll
    for (int n = LANES / 2; n > 0; n /= 2, mask /= 2) {
        const bool upper = b.lane & mask;
#pragma unroll
        for (int i = 0; i < n; i++) {
            const float other = dev_xor(upper ? sum[i] : sum[i + n], mask);
            sum[i] = (upper ? sum[i + n] : sum[i]) + other;
        }
    }
    for (; mask > 0; mask /= 2) {
        sum[0] += dev_xor(sum[0], mask);
    }
    if (b.lane % (32 / LANES) == 0) {
        b.shared->squares[b.lane / (32 / LANES)][b.warp] = sum[0];
    }
}

/* N lanes' elements of a state, times the norm's weight -> columns `first` and on of the vector; their squares. What
 * lanes that are not there leave is read by nobody. */
template <int W, int N>
DEV void lanes_put(const struct block &b, int first, const float (&x)[N][LAYER_EACH(W)],
    const float (&weight)[LAYER_EACH(W)], float (&squares)[LANES])
{
    unsigned char *rows = vector_rows<LANES>(b, W / FRAME_UNIT_K);
#pragma unroll
    for (int c = 0; c < N; c++) {
        squares[first + c] = 0;
#pragma unroll
        for (int i = 0; i < LAYER_EACH(W); i += 4) {
            float v[4];
            const float *e = x[c] + i;
            layer_times(e, weight + i, v);
            squares[first + c] += layer_squares(e);
            vector_put<false>(b, rows, W / FRAME_UNIT_K, first + c, vector_unit(b, i / 4), v, true);
        }
    }
}

/* The state of all lanes, times the norm's weight -> the vector; sums of squares. */
template <int W>
DEV void lanes_vector(struct block &b, const struct crowd &crowd, const uint32_t *words, uint32_t mark,
    const float (&weight)[LAYER_EACH(W)])
{
    constexpr int ONCE = LANES * W > 8192 ? 8192 / W : LANES;
    float squares[LANES];
#pragma unroll
    for (int first = 0; first < LANES; first += ONCE) {
        float x[ONCE][LAYER_EACH(W)];
        lanes_take<W, ONCE>(b, crowd, words, first, mark, x);
        lanes_put<W, ONCE>(b, first, x, weight, squares);
    }
    lanes_squares(b, squares);
}

/* ---- Products ---- */

template <class S, int W>
DEV uint32_t lanes_qkv(struct block &b, const struct crowd &crowd, struct held<S> &h, float eps)
{
    product<S, LANES>(b, h, vector_rows<LANES>(b, S::K), S::K);
    dev_bar();
    const uint32_t mark = lanes_mark(b, LANES_X_QKV);
    for (int t = b.thread; t < S::ROWS * crowd.n; t += FRAME_THREADS) {
        const int c = t / S::ROWS, row = t % S::ROWS;
        const float value = product_sum<S::ROWS>(b, c, row) * product_scale(b, c, W, eps);
        exchange_put(
            lanes_at<LANES_X_QKV>(b) + (b.kv_head * LANES + c) * FRAME_GROUP + b.part * 32 + row, value,
            mark);
    }
    return mark;
}

/* The mixed heads of the block's kv head, of all lanes -> the vector. Eight neighbouring threads have a lane. */
DEV void lanes_mixed(struct block &b, const struct crowd &crowd, uint32_t mark)
{
    constexpr int FOURS = (LANES + 3) / 4;
    const uint32_t *words = lanes_at<LANES_X_MIXED>(b) + (b.kv_head * LANES + b.lane / 8) * 256 +
                            b.warp * 32 + b.lane % 8 * 4;
    unsigned char *rows = vector_rows<LANES>(b, 1);
    uint32_t wanted = 0;
    for (int i = 0; i < FOURS; i++) {
        wanted |= (uint32_t)(4 * i + b.lane / 8 < crowd.n) << i;
    }
    uint4 v[FOURS];
    exchange_take4<FOURS>(b, words, 4 * 256, wanted, mark, v);
    for (int i = 0; i < FOURS; i++) {
        const float four[4] = {numeric_from_bits(v[i].x), numeric_from_bits(v[i].y),
            numeric_from_bits(v[i].z), numeric_from_bits(v[i].w)};
        vector_put<false>(b, rows, 1, 4 * i + b.lane / 8, 0, four, true);
    }
}

template <class S, int W>
DEV uint32_t lanes_o(struct block &b, const struct crowd &crowd, struct held<S> &h, uint32_t mixed_mark)
{
    lanes_mixed(b, crowd, mixed_mark);
    product<S, LANES>(b, h, vector_rows<LANES>(b, 1), 1);
    dev_bar();
    block_trace(b, 5);
    const uint32_t mark = lanes_mark(b, LANES_X_O);
    for (int t = b.thread; t < S::ROWS * crowd.n; t += FRAME_THREADS) {
        const int c = t / S::ROWS, row = t % S::ROWS;
        exchange_put(lanes_at<LANES_X_O>(b) + (b.kv_head * LANES + c) * W + b.part * S::ROWS + row,
            product_sum<S::ROWS>(b, c, row), mark);
    }
    return mark;
}

/* What the kv heads have for this thread's row is added to it. */
template <int W>
DEV void lanes_add_o(struct block &b, const struct crowd &crowd, uint32_t mark, float &own)
{
    if (lanes_owns<W>(b, crowd)) {
        float p[FRAME_KV_HEADS];
        exchange_take_each<FRAME_KV_HEADS>(b,
            lanes_at<LANES_X_O>(b) + lanes_own_lane<W>(b) * W + lanes_own_row<W>(b), LANES * W,
            FRAME_KV_HEADS, mark, p);
        uint64_t total = 0; /* as the kernel for one lane adds them */
        for (int i = 0; i < FRAME_KV_HEADS; i++) {
            total += totals_part(p[i]);
        }
        own = exchange_rounded(own + totals_value(total));
    }
}

template <class S, int W, int I>
DEV uint32_t lanes_gate_up(struct block &b, const struct crowd &crowd, struct held<S> &h, float eps)
{
    constexpr int UNITS = I / FRAME_BLOCKS;
    product<S, LANES>(b, h, vector_rows<LANES>(b, S::K), S::K);
    dev_bar();
    block_trace(b, 7);
    const uint32_t mark = lanes_mark(b, LANES_X_INNER);
    for (int t = b.thread; t < UNITS * crowd.n; t += FRAME_THREADS) {
        const int c = t / UNITS, unit = t % UNITS, row = unit / 8 * 16 + unit % 8;
        const float value = layer_gated(product_sum<S::ROWS>(b, c, row),
            product_sum<S::ROWS>(b, c, row + 8), product_scale(b, c, W, eps));
        exchange_put(lanes_at<LANES_X_INNER>(b) + c * I + b.index * UNITS + unit, value, mark);
    }
    return mark;
}

/* The block's part of the inner vectors -> the vector: all of it, or half where two blocks share a row tile. */
template <class S, int I>
DEV void lanes_inner(struct block &b, const struct crowd &crowd, uint32_t mark)
{
    constexpr int N = S::UNITS * FRAME_UNIT_K, CHUNKS = (S::UNITS + 3) / 4;
    constexpr int ONCE = LANES * CHUNKS > 16 ? 16 / CHUNKS : LANES;
    unsigned char *rows = vector_rows<LANES>(b, S::UNITS);
    const uint32_t *words = lanes_at<LANES_X_INNER>(b) + (N < I ? b.index % 2 * N : 0);
    const bool last = (CHUNKS - 1) * 4 + b.lane / 8 < S::UNITS; /* the last chunk may be a half */
#pragma unroll
    for (int first = 0; first < LANES; first += ONCE) {
        uint4 v[ONCE * CHUNKS];
        uint32_t wanted = 0;
        for (int i = 0; i < ONCE * CHUNKS; i++) {
            wanted |= (uint32_t)(first + i / CHUNKS < crowd.n && (i % CHUNKS < CHUNKS - 1 || last))
                      << i;
        }
        exchange_take4<ONCE * CHUNKS, CHUNKS>(
            b, words + first * I + vector_index(b, 0), 1024, wanted, mark, v, I);
#pragma unroll
        for (int i = 0; i < ONCE * CHUNKS; i++) {
            const float four[4] = {numeric_from_bits(v[i].x), numeric_from_bits(v[i].y),
                numeric_from_bits(v[i].z), numeric_from_bits(v[i].w)};
            vector_put<false>(b, rows, S::UNITS, first + i / CHUNKS, vector_unit(b, i % CHUNKS), four,
                i % CHUNKS < CHUNKS - 1 || last);
        }
    }
}

template <class S, int W, int I>
DEV void lanes_down(
    struct block &b, const struct crowd &crowd, struct held<S> &h, uint32_t inner_mark, float &own)
{
    lanes_inner<S, I>(b, crowd, inner_mark);
    block_trace(b, 8);
    product<S, LANES>(b, h, vector_rows<LANES>(b, S::UNITS), S::UNITS);
    dev_bar();
    block_trace(b, 9);
    float sum = 0;
    if constexpr (W == 1024) {
        sum = lanes_swap(b, crowd, NULL);
    } else if (lanes_owns<W>(b, crowd)) {
        sum = exchange_rounded(product_sum<16>(b, lanes_own_lane<W>(b), b.thread % 16));
    }
    own = exchange_rounded(own + sum);
}

/* ---- Attention ---- */

/* Rotary angles of each lane's own position; read after the next barrier. */
DEV void lanes_angles(struct block &b, const struct crowd &crowd, const float *freq)
{
    for (int t = b.thread; t < 64 * crowd.n; t += FRAME_THREADS) {
        float angle = (float)crowd.args->lane[t / 64].position * freq[t % 64];
        b.shared->cosine[t / 64][t % 64] = cosf(angle);
        b.shared->sine[t / 64][t % 64] = sinf(angle);
    }
}

/* What this block's lane, if it has one, mixes of the predictor's few keys. */
DEV uint32_t lanes_attend_predictor(struct block &b, const struct crowd &crowd,
    struct attend_kept &kept, const struct attend_norm &norm, uint32_t mark, int position)
{
    const uint32_t mixed_mark = lanes_mark(b, LANES_X_MIXED);
    const int at = b.kv_head * LANES + b.part; /* lanes fall to the first parts */
    if (b.part < crowd.n) {
        float mixed[1];
        attend_predictor<1>(
            b, kept, norm, lanes_at<LANES_X_QKV>(b) + at * FRAME_GROUP, mark, position, mixed);
        exchange_put(lanes_at<LANES_X_MIXED>(b) + at * 256 + b.thread, mixed[0], mixed_mark);
    }
    return mixed_mark;
}

/* The part of a lane's pages that this block has: the first part is another block's for each lane, for most lanes have
 * few. */
DEV int lanes_part(const struct block &b, int c)
{
    return (b.part + (FRAME_PARTS - 2) * c) % FRAME_PARTS;
}

DEV uint32_t *lanes_split_at(const struct block &b, int c)
{
    const int at = c * FRAME_BLOCKS + b.kv_head * FRAME_PARTS + lanes_part(b, c);
    return lanes_at<LANES_X_SPLIT>(b) + at * 2 * FRAME_SPLIT;
}

/* The lowest bit of a set, which it leaves. */
DEV int lanes_next(uint32_t &set)
{
    const int c = dev_popcount((set & (0 - set)) - 1);
    set &= set - 1;
    return c;
}

/* Queries of all lanes -> shared->placed, and the keys and values that this block keeps. A barrier must follow. */
DEV void lanes_place(
    struct block &b, const struct crowd &crowd, const struct attend_norm &norm, uint32_t mark)
{
    enum { EACH = (LANES + 1) / 2 };
    const int role = b.warp % 4;
    const uint32_t flip = mark - 1;
    const uint32_t *words =
        lanes_at<LANES_X_QKV>(b) + b.kv_head * LANES * FRAME_GROUP + role * FRAME_HEAD + 2 * b.lane;
    uint32_t wanted = 0, missing;
    uint2 v[EACH][2];
    for (int i = 0; i < EACH; i++) {
        const int c = b.warp / 4 + 2 * i;
        const bool mine =
            c < crowd.n &&
            (role < 2 || crowd.args->lane[c].position / CUDA_PAGE % FRAME_PARTS == lanes_part(b, c));
        wanted |= (uint32_t)mine << i;
    }
    missing = wanted;
    do {
        for (int i = 0; i < EACH; i++) {
            if (missing >> i & 1) {
                v[i][0] = dev_get2(words + (b.warp / 4 + 2 * i) * FRAME_GROUP);
                v[i][1] = dev_get2(words + (b.warp / 4 + 2 * i) * FRAME_GROUP + 64);
            }
        }
        for (int i = 0; i < EACH; i++) {
            const uint32_t ready =
                (v[i][0].x ^ flip) & (v[i][0].y ^ flip) & (v[i][1].x ^ flip) & (v[i][1].y ^ flip);
            missing &= ~((ready & 1) << i);
        }
    } while (missing && !block_is_late(b));
    dev_bar_warp();
    for (int i = 0; i < EACH; i++) {
        if (wanted >> i & 1) {
            const uint2 first = {v[i][0].x & ~1u, v[i][0].y & ~1u},
                        second = {v[i][1].x & ~1u, v[i][1].y & ~1u};
            attend_place_head(
                b, norm, b.args->weights.talker_eps, role, b.warp / 4 + 2 * i, first, second);
        }
    }
}

/* ONCE lanes whose part has keys -> LANES_X_SPLIT. Their first pages go side by side. */
template <int ONCE>
DEV void lanes_split(
    struct block &b, const struct crowd &crowd, const int (&lane)[ONCE], int layer, uint32_t mark)
{
    static_assert(ONCE * ATTEND_ALL_FLOATS * 4 <= FRAME_VECTOR_BYTES, "as many lanes at once");
    float *all = (float *)b.shared->vector;
    struct attend_ahead now[ONCE];
    struct attend_part part[ONCE];
#pragma unroll
    for (int i = 0; i < ONCE; i++) {
        const auto &of = crowd.args->lane[lane[i]];
        attend_ask(b, of.state, now[i], layer, lanes_part(b, lane[i]), of.position);
    }
#pragma unroll
    for (int i = 0; i < ONCE; i++) {
        const auto &of = crowd.args->lane[lane[i]];
        part[i] = attend_nothing();
        attend_fresh(b, of.state, now[i], lane[i], layer, lanes_part(b, lane[i]), of.position);
    }
#pragma unroll
    for (int k = 0; k < 2; k++) {
#pragma unroll
        for (int i = 0; i < ONCE; i++) {
            const int key = attend_key_of(b, lanes_part(b, lane[i]), k);
            attend_key(b, part[i], lane[i], now[i].k[k], now[i].v[k],
                key <= crowd.args->lane[lane[i]].position);
        }
    }
#pragma unroll
    for (int i = 0; i < ONCE; i++) {
        const auto &of = crowd.args->lane[lane[i]];
        const int page = lanes_part(b, lane[i]) + FRAME_PARTS;
        if (page * CUDA_PAGE <= of.position) {
            attend_ask(b, of.state, now[i], layer, page, of.position);
            attend_pages(b, of.state, now[i], part[i], lane[i], layer, page, of.position);
        }
        attend_note(b, part[i], all + i * ATTEND_ALL_FLOATS);
    }
    dev_bar();
#pragma unroll
    for (int i = 0; i < ONCE; i++) {
        attend_put_split(b, all + i * ATTEND_ALL_FLOATS, lanes_split_at(b, lane[i]), mark);
    }
    dev_bar(); /* before the memory is used again */
}

/* This block's pages of all lanes -> LANES_X_SPLIT; the mark. Words of a part without keys are read by nobody, but must
 * not stay behind their kind. */
DEV uint32_t lanes_splits(struct block &b, const struct crowd &crowd, int layer)
{
    const uint32_t mark = lanes_mark(b, LANES_X_SPLIT);
    uint32_t busy = 0;
    for (int c = 0; c < crowd.n; c++) {
        if (lanes_part(b, c) < attend_n_parts(crowd.args->lane[c].position)) {
            busy |= 1u << c;
            continue;
        }
        uint32_t *words = lanes_split_at(b, c);
        for (int i = b.thread; i < 2 * FRAME_SPLIT; i += FRAME_THREADS) {
            exchange_put(words + i, 0, mark);
        }
    }
    while (busy) {
        if (dev_popcount(busy) >= 4) {
            const int lane[4] = {
                lanes_next(busy), lanes_next(busy), lanes_next(busy), lanes_next(busy)};
            lanes_split<4>(b, crowd, lane, layer, mark);
        } else {
            const int lane[1] = {lanes_next(busy)};
            lanes_split<1>(b, crowd, lane, layer, mark);
        }
    }
    return mark;
}

DEV uint32_t lanes_attend_talker(struct block &b, const struct crowd &crowd,
    const struct attend_norm &norm, uint32_t mark, int layer)
{
    lanes_place(b, crowd, norm, mark);
    block_trace(b, 3);
    dev_bar();
    const uint32_t split_mark = lanes_splits(b, crowd, layer);
    const uint32_t mixed_mark = lanes_mark(b, LANES_X_MIXED);
    if (b.part < crowd.n) {
        const uint32_t *words = lanes_at<LANES_X_SPLIT>(b) +
                                (b.part * FRAME_BLOCKS + b.kv_head * FRAME_PARTS) * 2 * FRAME_SPLIT;
        const float mixed =
            attend_join(b, words, attend_n_parts(crowd.args->lane[b.part].position), split_mark);
        exchange_put(lanes_at<LANES_X_MIXED>(b) + (b.kv_head * LANES + b.part) * 256 + b.thread, mixed,
            mixed_mark);
    }
    return mixed_mark;
}

#endif
