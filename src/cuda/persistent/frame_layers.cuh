/* SPDX-License-Identifier: Apache-2.0
 * The steps of a layer, and behind them a stack, step by step. Between them the state x stands in
 * registers, the same in every block: warp lane l of warp w holds elements vector_index() and the three
 * behind it of each 1,024, in x[column][4 * chunk ..].
 *
 *   layer_qkv         reads x              writes FRAME_X_QKV    waits for nothing
 *   (attention)       reads FRAME_X_QKV    writes `mixed`        attend.cuh
 *   layer_o           reads `mixed`        adds to the totals    (zero since the layer before)
 *   layer_add_totals  reads the totals     x += O                waits for all blocks
 *   layer_gate_up     reads x              writes FRAME_X_INNER  waits for nothing
 *   layer_down        reads FRAME_X_INNER  writes FRAME_X_DOWN   waits for all blocks
 *   layer_add         reads FRAME_X_DOWN   x += down             waits for all blocks
 *
 * A warp waits for the words of its own columns, and a barrier stands behind each product: so behind a
 * product this block has words of all blocks. A norm's factor is applied behind the product, so that
 * the sum of squares needs no barrier. */
#ifndef CUDA_PERSISTENT_FRAME_LAYERS_CUH
#define CUDA_PERSISTENT_FRAME_LAYERS_CUH

#include "cuda/persistent/attend.cuh"
#include "cuda/persistent/product.cuh"

/* The products of a layer of width W with an inner vector of I, as a block has its share of them. */
template <bool PACKED, int W, int I> struct layer_shapes {
    typedef shape<PACKED, 2, W / 256, 0> qkv;
    typedef shape<PACKED, W / 256, 1, 0> o;
    typedef shape<PACKED, I / 1024, W / 256, 0> gate_up;
    typedef shape<PACKED, 1, W == 1024 ? I / 512 : I / 256, 0> down;
};

/* What one thread holds of a state of width W. */
#define LAYER_EACH(W) ((W) / 256)

/* Sums and products have the same roundings wherever they stand: that a lane's bits do not depend on the kernel that
 * makes them, fused steps are said, and what the compiler could fuse is kept from it. */
DEV float layer_squares(const float *e)
{
    return fmaf(e[0], e[0], dev_mul(e[1], e[1])) + fmaf(e[2], e[2], dev_mul(e[3], e[3]));
}

DEV void layer_times(const float *e, const float *weight, float (&v)[4])
{
    for (int i = 0; i < 4; i++) {
        v[i] = dev_mul(e[i], weight[i]);
    }
}

/* x times the norm's weight -> the vector; this thread's sums of squares, which the product adds up. */
template <bool PACKED, int W, int COLUMNS>
DEV void layer_put_vector(struct block &b, const float (&x)[COLUMNS][LAYER_EACH(W)],
    const float (&weight)[LAYER_EACH(W)], float (&squares)[COLUMNS])
{
    unsigned char *rows = vector_rows<COLUMNS>(b, W / FRAME_UNIT_K);
    for (int c = 0; c < COLUMNS; c++) {
        squares[c] = 0;
        for (int i = 0; i < LAYER_EACH(W); i += 4) {
            float v[4];
            const float *e = x[c] + i;
            layer_times(e, weight + i, v);
            squares[c] += layer_squares(e);
            vector_put<PACKED>(b, rows, W / FRAME_UNIT_K, c, vector_unit(b, i / 4), v, true);
        }
    }
}

/* Vectors as they are -> the vector: N elements from `first` chunk on. */
template <bool PACKED, int N, int EACH, int COLUMNS>
DEV void layer_put_plain(struct block &b, const float (&x)[COLUMNS][EACH], int first)
{
    unsigned char *rows = vector_rows<COLUMNS>(b, N / FRAME_UNIT_K);
    for (int c = 0; c < COLUMNS; c++) {
        for (int i = 0; i < N / 1024; i++) {
            float v[4];
            for (int j = 0; j < 4; j++) {
                v[j] = x[c][i * 4 + j];
                for (int k = 1; k <= (EACH - LAYER_EACH(N)) / 4; k++) { /* no run-time index */
                    v[j] = first == k ? x[c][(i + k) * 4 + j] : v[j];
                }
            }
            vector_put<PACKED>(b, rows, N / FRAME_UNIT_K, c, vector_unit(b, i), v, true);
        }
    }
}

/* This thread's elements of a vector of floats, of W. */
template <int W>
DEV void layer_read(const struct block &b, const float *from, float (&to)[LAYER_EACH(W)])
{
    for (int i = 0; i < LAYER_EACH(W); i += 4) {
        float4 v = *(const float4 *)(from + vector_index(b, i / 4));
        to[i] = v.x, to[i + 1] = v.y, to[i + 2] = v.z, to[i + 3] = v.w;
    }
}

/* x += words of a product with W rows, in PARTS parts of a sum. */
template <int KIND, int W, int PARTS, int COLUMNS>
DEV void layer_add(struct block &b, float (&x)[COLUMNS][LAYER_EACH(W)])
{
    const uint32_t mark = exchange_mark(b, KIND), *words = exchange_at<KIND>(b);
    for (int c = 0; c < COLUMNS; c++) {
        for (int i = 0; i < LAYER_EACH(W); i += 4) {
            uint4 v[PARTS];
            exchange_take4<PARTS>(
                b, words + c * PARTS * W + vector_index(b, i / 4), W, (1u << PARTS) - 1, mark, v);
            for (int n = PARTS; n > 1; n /= 2) { /* neighbours, and their sums */
                for (int p = 0; p < n / 2; p++) {
                    v[p] = exchange_sum(v[2 * p], v[2 * p + 1]);
                }
            }
            x[c][i] = exchange_rounded(x[c][i] + numeric_from_bits(v[0].x));
            x[c][i + 1] = exchange_rounded(x[c][i + 1] + numeric_from_bits(v[0].y));
            x[c][i + 2] = exchange_rounded(x[c][i + 2] + numeric_from_bits(v[0].z));
            x[c][i + 3] = exchange_rounded(x[c][i + 3] + numeric_from_bits(v[0].w));
        }
    }
}

/* x += the totals of the output projection. */
template <int W, int COLUMNS>
DEV void layer_add_totals(struct block &b, float (&x)[COLUMNS][LAYER_EACH(W)])
{
    constexpr int N = W / 512;
    const uint64_t *words = totals_of(b) + frame_total_at(vector_index(b, 0));
    for (int c = 0; c < COLUMNS; c++) {
        uint64_t v[N][2];
        totals_take<N>(b, words + c * W, v);
        for (int i = 0; i < N; i++) {
            x[c][2 * i] = exchange_rounded(x[c][2 * i] + totals_value(v[i][0]));
            x[c][2 * i + 1] = exchange_rounded(x[c][2 * i + 1] + totals_value(v[i][1]));
        }
    }
}

template <class S, int W, int COLUMNS>
DEV void layer_qkv(struct block &b, struct held<S> &h, const float (&squares)[COLUMNS], float eps)
{
    product<S, COLUMNS>(b, h, vector_rows<COLUMNS>(b, S::K), S::K, squares);
    dev_bar();
    const uint32_t next = exchange_next(b, FRAME_X_QKV);
    if (b.thread < S::ROWS * COLUMNS) {
        const int column = b.thread / S::ROWS, row = b.thread % S::ROWS;
        float value = product_sum<S::ROWS>(b, column, row) * product_scale(b, column, W, eps);
        exchange_put(exchange_at<FRAME_X_QKV>(b) +
                         (b.kv_head * FRAME_MAX_COLUMNS + column) * FRAME_GROUP + b.part * 32 + row,
            value, next);
    }
    totals_release(b);
}

/* mixed: this thread's dimension, 32 * warp + warp lane, of the two heads of the block. */
template <class S, int W, int COLUMNS>
DEV void layer_o(struct block &b, struct held<S> &h, const float (&mixed)[COLUMNS])
{
    unsigned char *rows = vector_rows<COLUMNS>(b, 1);
    for (int c = 0; c < COLUMNS; c++) {
        float v[4];
        for (int i = 0; i < 4; i++) {
            v[i] = dev_from(exchange_rounded(mixed[c]), b.lane % 8 * 4 + i);
        }
        vector_put<S::PACKED>(b, rows, 1, c, 0, v, b.lane < 8);
    }
    product<S, COLUMNS>(b, h, rows, 1);
    dev_bar();
    block_trace(b, 5);
    totals_turn(b);
    if (b.thread < S::ROWS * COLUMNS) {
        const int column = b.thread / S::ROWS, row = b.thread % S::ROWS;
        dev_add_wide(totals_of(b) + column * W + frame_total_at(b.part * S::ROWS + row),
            totals_part(exchange_rounded(product_sum<S::ROWS>(b, column, row))));
    }
}

/* silu(gate) * up, both still without the norm's factor. */
DEV float layer_gated(float gate, float up, float scale)
{
    gate = dev_mul(gate, scale);
    return dev_mul(dev_divide(gate, 1.0f + dev_exp(-gate)), dev_mul(up, scale));
}

template <class S, int W, int I, int COLUMNS>
DEV void layer_gate_up(struct block &b, struct held<S> &h, const float (&squares)[COLUMNS], float eps)
{
    constexpr int UNITS = I / FRAME_BLOCKS;
    product<S, COLUMNS>(b, h, vector_rows<COLUMNS>(b, S::K), S::K, squares);
    dev_bar();
    block_trace(b, 7);
    const uint32_t next = exchange_next(b, FRAME_X_INNER);
    if (b.thread < UNITS * COLUMNS) {
        const int column = b.thread / UNITS, unit = b.thread % UNITS, row = unit / 8 * 16 + unit % 8;
        const float value = layer_gated(product_sum<S::ROWS>(b, column, row),
            product_sum<S::ROWS>(b, column, row + 8), product_scale(b, column, W, eps));
        exchange_put(exchange_at<FRAME_X_INNER>(b) + column * I + b.index * UNITS + unit, value, next);
    }
    totals_await(b);
}

/* The block's part of the inner vector: all of it, or half where two blocks share a row tile. */
template <class S, int W, int I, int COLUMNS> DEV void layer_down(struct block &b, struct held<S> &h)
{
    constexpr int N = S::UNITS * FRAME_UNIT_K, CHUNKS = (S::UNITS + 3) / 4;
    unsigned char *rows = vector_rows<COLUMNS>(b, S::UNITS);
    const uint32_t mark = exchange_mark(b, FRAME_X_INNER);
    const uint32_t *words = exchange_at<FRAME_X_INNER>(b) + (N < I ? b.index % 2 * N : 0);
    const bool last = (CHUNKS - 1) * 4 + b.lane / 8 < S::UNITS; /* the last chunk may be a half */
    for (int c = 0; c < COLUMNS; c++) {
        uint4 v[CHUNKS];
        exchange_take4<CHUNKS>(b, words + c * I + vector_index(b, 0), 1024,
            (1u << (CHUNKS - 1)) - 1 + ((uint32_t)last << (CHUNKS - 1)), mark, v);
        for (int i = 0; i < CHUNKS; i++) {
            const float four[4] = {numeric_from_bits(v[i].x), numeric_from_bits(v[i].y),
                numeric_from_bits(v[i].z), numeric_from_bits(v[i].w)};
            vector_put<S::PACKED>(
                b, rows, S::UNITS, c, vector_unit(b, i), four, i < CHUNKS - 1 || last);
        }
    }
    block_trace(b, 8);
    product<S, COLUMNS>(b, h, rows, S::UNITS);
    dev_bar();
    block_trace(b, 9);
    const uint32_t next = exchange_next(b, FRAME_X_DOWN);
    if (b.thread < 16 * COLUMNS) {
        const int column = b.thread / 16, row = b.thread % 16;
        uint32_t *to =
            exchange_at<FRAME_X_DOWN>(b) +
            (N < I ? (column * 2 + b.index % 2) * W + b.index / 2 * 16 : column * W + b.index * 16);
        exchange_put(to + row, product_sum<16>(b, column, row), next);
    }
}

/* A head of 2,048 rows behind its norm: its words follow the blocks. What the first 16 threads of warp 0 gave comes
 * back, in the other half again. */
template <class S>
DEV float layer_head(struct block &b, struct held<S> &h, const float (&squares)[1], float eps)
{
    product<S, 1>(b, h, vector_rows<1>(b, S::K), S::K, squares);
    dev_bar();
    const uint32_t next = exchange_next(b, FRAME_X_SCORES);
    float score = 0;
    if (b.warp == 0) {
        score = product_sum<16>(b, 0, b.lane % 16) * product_scale(b, 0, S::K * FRAME_UNIT_K, eps);
        if (b.lane < 16) {
            exchange_put(exchange_at<FRAME_X_SCORES>(b) + b.index * 16 + b.lane, score, next);
        }
    }
    return score;
}

/* Where row `row` of a block stands among the words of a head of 3,072 rows: whole row tiles in the order of the
 * blocks, then halves of the sums of what is left over. */
DEV int layer_head_word(const struct block &b, int row)
{
    return row < 16 ? b.index * 16 + row : 2048 + b.index % 2 * 1024 + b.index / 2 * 16 + row - 16;
}

template <class S> DEV void layer_head_halves(struct block &b, struct held<S> &h)
{
    product<S, 1>(b, h, vector_rows<1>(b, S::K), S::K);
    dev_bar();
    const uint32_t next = exchange_next(b, FRAME_X_SCORES);
    if (b.thread < S::ROWS) {
        exchange_put(exchange_at<FRAME_X_SCORES>(b) + layer_head_word(b, b.thread),
            product_sum<S::ROWS>(b, 0, b.thread), next);
    }
}

/* The norm behind the last layer: x becomes its result. */
template <int W>
DEV void layer_last_norm(
    struct block &b, float (&x)[1][LAYER_EACH(W)], const float (&weight)[LAYER_EACH(W)], float eps)
{
    float squares = 0;
    for (int i = 0; i < LAYER_EACH(W); i += 4) {
        squares += layer_squares(x[0] + i);
    }
    squares = dev_warp_sum(squares);
    if (b.lane == 0) {
        b.shared->squares[0][b.warp] = squares;
    }
    dev_bar();
    const float scale = product_scale(b, 0, W, eps);
    for (int i = 0; i < LAYER_EACH(W); i++) {
        x[0][i] = dev_mul(weight[i], dev_mul(x[0][i], scale));
    }
    dev_bar(); /* before squares are written again */
}

/* ---- A stack ---- */

DEV const struct frame_layer *frame_layer_of(const struct block &b, int i)
{
    return (const struct frame_layer *)b.shared->layers[i];
}

/* All layers of a stack for COLUMNS neighbouring positions, the first of them `position`; what the last one adds is
 * still on its way (frame_last). Their angles stand in shared memory. norm: becomes the weights of the one behind
 * them, `after`: whatever a layer reads beside its products is asked for a step before. */
template <int W, int I, int COLUMNS, bool TALKER, bool PACKED>
DEV void frame_layers(struct block &b, float (&x)[COLUMNS][LAYER_EACH(W)], int position,
    const float *after, float (&norm)[LAYER_EACH(W)])
{
    typedef layer_shapes<PACKED, W, I> shapes;
    const auto &weights = b.args->weights;
    const int first = TALKER ? 0 : weights.n_talker,
              n = TALKER ? weights.n_talker : weights.n_predictor;
    const float eps = TALKER ? weights.talker_eps : weights.predictor_eps;
    float post_norm[LAYER_EACH(W)], squares[COLUMNS], mixed[COLUMNS];
    float *page = TALKER && b.part * CUDA_PAGE <= position ? attend_page(b.args->state, b.part) : NULL;
    layer_read<W>(b, frame_layer_of(b, first)->input_norm, norm);
    for (int i = 0; i < n; i++) {
        const struct frame_layer *layer = frame_layer_of(b, first + i);
        struct held<typename shapes::qkv> for_qkv;
        struct held<typename shapes::o> for_o;
        struct held<typename shapes::gate_up> for_gate_up;
        struct held<typename shapes::down> for_down;
        struct attend_kept kept;
        struct attend_norm head_norm = attend_norm_of(b, layer);
        layer_read<W>(b, layer->post_norm, post_norm);
        if (TALKER) {
            attend_bring(b, page, i, b.part, position);
        }
        product_hold(b, for_qkv);
        if (i > 0) {
            layer_add<FRAME_X_DOWN, W, W == 1024 ? 2 : 1>(b, x); /* waits for all blocks */
        }
        block_trace(b, 1);
        layer_put_vector<PACKED, W>(b, x, norm, squares);
        layer_qkv<typename shapes::qkv, W, COLUMNS>(b, for_qkv, squares, eps);
        block_trace(b, 2);
        attend_norm_here(head_norm);
        if (!TALKER) {
            attend_recall(b, kept, i, position);
        }
        product_hold(b, for_o);
        const uint32_t mark = exchange_mark(b, FRAME_X_QKV);
        const uint32_t *heads =
            exchange_at<FRAME_X_QKV>(b) + b.kv_head * FRAME_MAX_COLUMNS * FRAME_GROUP;
        if constexpr (TALKER) { /* the kv head's blocks, twice */
            mixed[0] = attend_talker(b, page, head_norm, heads, mark, i, position);
        } else { /* the kv head's blocks */
            attend_predictor(b, kept, head_norm, heads, mark, position, mixed);
        }
        layer_o<typename shapes::o, W>(b, for_o, mixed);
        if (!TALKER) {
            attend_keep_keys<COLUMNS>(b, kept, position);
        }
        product_hold(b, for_gate_up);
        layer_add_totals<W>(b, x); /* all blocks */
        block_trace(b, 6);
        layer_put_vector<PACKED, W>(b, x, post_norm, squares);
        layer_gate_up<typename shapes::gate_up, W, I, COLUMNS>(b, for_gate_up, squares, eps);
        layer_read<W>(b, i + 1 < n ? frame_layer_of(b, first + i + 1)->input_norm : after, norm);
        product_hold(b, for_down);
        layer_down<typename shapes::down, W, I, COLUMNS>(b, for_down); /* all blocks */
    }
}

/* The end of the last layer. */
template <int W, int COLUMNS> DEV void frame_last(struct block &b, float (&x)[COLUMNS][LAYER_EACH(W)])
{
    layer_add<FRAME_X_DOWN, W, W == 1024 ? 2 : 1>(b, x); /* all blocks */
    block_trace(b, 11);
}

#endif
