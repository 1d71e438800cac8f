/* SPDX-License-Identifier: Apache-2.0
 * The steps of a layer. Between them the state x stands in registers, the same in every block: element E * thread +
 * i of a column in x[column][i], E = width / 512.
 *
 *   layer_qkv      reads x                 writes FRAME_X_QKV     waits for nothing
 *   (attention)    reads FRAME_X_QKV       writes FRAME_X_MIXED   frame_attend.cuh
 *   layer_o        reads FRAME_X_MIXED     writes FRAME_X_O       waits for all blocks
 *   layer_gate_up  reads FRAME_X_O         writes FRAME_X_INNER   waits for all blocks; x += O
 *   layer_down     reads FRAME_X_INNER     writes FRAME_X_DOWN    waits for all blocks
 *   layer_add      reads FRAME_X_DOWN      x += down              waits for all blocks
 *
 * Rows are shared as frame_plan.h says. A norm's factor is applied behind the product, so that the sum of squares
 * needs no barrier of its own. */
#ifndef CUDA_FRAME_LAYERS_CUH
#define CUDA_FRAME_LAYERS_CUH

#include "cuda/frame_attend.cuh"
#include "cuda/frame_product.cuh"

/* True for the threads that hold elements of a state of width W: 4 each. */
template <int W> DEV bool layer_owner(const struct block &b)
{
    return b.thread * 4 < W;
}

/* x times the norm's weight -> the vector, and the sums of squares. Ends with a barrier. */
template <int W, int COLUMNS>
DEV void layer_put_vector(struct block &b, const float (&x)[COLUMNS][4], const float (&weight)[4])
{
    for (int c = 0; c < COLUMNS; c++) {
        float squares = 0;
        if (layer_owner<W>(b)) {
            squares = (x[c][0] * x[c][0] + x[c][1] * x[c][1]) + (x[c][2] * x[c][2] + x[c][3] * x[c][3]);
            vector_put2(b, W, c, b.thread * 4, x[c][0] * weight[0], x[c][1] * weight[1]);
            vector_put2(b, W, c, b.thread * 4 + 2, x[c][2] * weight[2], x[c][3] * weight[3]);
        }
        squares = dev_warp_sum(squares);
        if (b.lane == 0) {
            b.shared->squares[c][b.warp] = squares;
        }
    }
    dev_bar();
}

/* This thread's elements of a norm's weight; asked for before a wait, so that they are there after it. */
template <int W> DEV void layer_weight(const struct block &b, const float *norm, float (&weight)[4])
{
    if (layer_owner<W>(b)) {
        block_read4(norm + b.thread * 4, weight);
    }
}

/* x += words of a product with W rows. */
template <int W, int COLUMNS> DEV void layer_add(struct block &b, int kind, float (&x)[COLUMNS][4])
{
    constexpr int PARTS = W == 1024 ? 2 : 1; /* each row in two parts, 1,024 words apart */
    uint32_t mark = exchange_mark(b, kind);
    if (!layer_owner<W>(b)) {
        return;
    }
    uint4 v[COLUMNS * PARTS];
    int offset[COLUMNS * PARTS];
    for (int i = 0; i < COLUMNS * PARTS; i++) {
        offset[i] = i * W;
    }
    exchange_take4<COLUMNS * PARTS>(b, exchange_at(b, kind) + b.thread * 4, offset, mark, v);
    for (int i = 0; i < COLUMNS * PARTS; i += PARTS) {
        float *to = x[i / PARTS];
        uint4 first = v[i], second = v[i + PARTS - 1];
        to[0] += numeric_from_bits(first.x) + (PARTS == 2 ? numeric_from_bits(second.x) : 0);
        to[1] += numeric_from_bits(first.y) + (PARTS == 2 ? numeric_from_bits(second.y) : 0);
        to[2] += numeric_from_bits(first.z) + (PARTS == 2 ? numeric_from_bits(second.z) : 0);
        to[3] += numeric_from_bits(first.w) + (PARTS == 2 ? numeric_from_bits(second.w) : 0);
    }
}

/* N words of each column -> the vector. Ends with a barrier. */
template <int N, int STRIDE, int COLUMNS> DEV void layer_take_vector(struct block &b, int kind)
{
    constexpr int TURNS = (N + 2047) / 2048;
    uint32_t mark = exchange_mark(b, kind);
    const uint32_t *words = exchange_at(b, kind) + b.thread * 4;
    uint4 v[COLUMNS * TURNS];
    int offset[COLUMNS * TURNS];
    for (int i = 0; i < COLUMNS * TURNS; i++) {
        offset[i] = i % TURNS * 2048 + b.thread * 4 < N ? i / TURNS * STRIDE + i % TURNS * 2048 : -1;
    }
    exchange_take4<COLUMNS * TURNS>(b, words, offset, mark, v);
    for (int i = 0; i < COLUMNS * TURNS; i++) {
        const int k = i % TURNS * 2048 + b.thread * 4;
        if (k < N) {
            vector_put2(b, N, i / TURNS, k, numeric_from_bits(v[i].x), numeric_from_bits(v[i].y));
            vector_put2(b, N, i / TURNS, k + 2, numeric_from_bits(v[i].z), numeric_from_bits(v[i].w));
        }
    }
    dev_bar();
}

template <int W, int COLUMNS>
DEV void layer_qkv(struct block &b, const float (&x)[COLUMNS][4], const float (&weight)[4], float eps)
{
    layer_put_vector<W, COLUMNS>(b, x, weight);
    product<256, W / FRAME_PIECE_K, COLUMNS>(b);
    dev_bar();
    const uint32_t next = exchange_next(b, FRAME_X_QKV);
    if (b.thread < 32 * COLUMNS) {
        const int column = b.thread / 32, row = b.thread % 32;
        float value = product_sum<32>(b, column, row) * product_scale(b, column, W, eps);
        exchange_put(exchange_at(b, FRAME_X_QKV) +
                         (b.kv_head * FRAME_MAX_COLUMNS + column) * FRAME_GROUP + b.part * 32 + row,
            value, next);
    }
}

template <int W, int COLUMNS> DEV void layer_o(struct block &b)
{
    layer_take_vector<FRAME_MIXED, FRAME_MIXED, COLUMNS>(b, FRAME_X_MIXED);
    block_trace(b, 4);
    product<W / 16, FRAME_MIXED / FRAME_PIECE_K, COLUMNS>(b);
    dev_bar();
    product_put<W / 16, COLUMNS>(b, FRAME_X_O, 0, 0, NULL);
    block_trace(b, 5);
}

template <int W, int I, int COLUMNS>
DEV void layer_gate_up(struct block &b, float (&x)[COLUMNS][4], const float (&weight)[4], float eps)
{
    constexpr int TILES = I / 8, UNITS = I / FRAME_BLOCKS, ROWS = 2 * UNITS;
    layer_add<W, COLUMNS>(b, FRAME_X_O, x);
    block_trace(b, 6);
    layer_put_vector<W, COLUMNS>(b, x, weight);
    block_trace(b, 7);
    product<TILES, W / FRAME_PIECE_K, COLUMNS>(b);
    dev_bar();
    block_trace(b, 8);
    const uint32_t next = exchange_next(b, FRAME_X_INNER);
    if (b.thread < UNITS * COLUMNS) {
        const int column = b.thread / UNITS, unit = b.thread % UNITS, row = unit / 8 * 16 + unit % 8;
        const float scale = product_scale(b, column, W, eps);
        const float gate = product_sum<ROWS>(b, column, row) * scale;
        const float up = product_sum<ROWS>(b, column, row + 8) * scale;
        exchange_put(exchange_at(b, FRAME_X_INNER) + column * I + b.index * UNITS + unit,
            gate / (1.0f + dev_exp(-gate)) * up, next);
    }
}

template <int W, int I, int COLUMNS> DEV void layer_down(struct block &b)
{
    layer_take_vector<I, I, COLUMNS>(b, FRAME_X_INNER);
    block_trace(b, 9);
    product<W / 16, I / FRAME_PIECE_K, COLUMNS>(b);
    dev_bar();
    product_put<W / 16, COLUMNS>(b, FRAME_X_DOWN, 0, 0, NULL);
}

/* The norm behind the last layer: x becomes its result. Ends with a barrier. */
template <int W>
DEV void layer_last_norm(struct block &b, float (&x)[1][4], const float (&weight)[4], float eps)
{
    float squares = (x[0][0] * x[0][0] + x[0][1] * x[0][1]) + (x[0][2] * x[0][2] + x[0][3] * x[0][3]);
    squares = dev_warp_sum(layer_owner<W>(b) ? squares : 0);
    if (b.lane == 0) {
        b.shared->squares[0][b.warp] = squares;
    }
    dev_bar();
    const float scale = product_scale(b, 0, W, eps);
    for (int i = 0; i < 4; i++) {
        x[0][i] = weight[i] * (x[0][i] * scale);
    }
    dev_bar(); /* before squares are written again */
}

/* Vectors as they are -> the vector. Ends with a barrier. */
template <int W, int COLUMNS> DEV void layer_put_plain(struct block &b, const float (&x)[COLUMNS][4])
{
    for (int c = 0; c < COLUMNS && layer_owner<W>(b); c++) {
        vector_put2(b, W, c, b.thread * 4, x[c][0], x[c][1]);
        vector_put2(b, W, c, b.thread * 4 + 2, x[c][2], x[c][3]);
    }
    dev_bar();
}

#endif
