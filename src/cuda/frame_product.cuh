/* SPDX-License-Identifier: Apache-2.0
 * Reads: a vector in shared memory, pieces of weights from the ring. Writes: shared->sums.
 * Shares: rows among blocks as frame_plan.h says; of each piece every warp takes two tiles (32 columns), so that
 * a row's sum is spread over the warps; product_sum adds them in the order of the warps.
 * Waits for: the vector (a barrier before), each piece's mbarrier. A barrier must follow before sums are read. */
#ifndef CUDA_FRAME_PRODUCT_CUH
#define CUDA_FRAME_PRODUCT_CUH

#include "cuda/frame_block.cuh"

/* One piece's two tiles of this warp, once they are there. */
DEV void product_load(struct block &b, int slot, uint32_t phase, uint4 (&tile)[2])
{
    ring_wait(b, b.shared->full, slot, phase);
    const unsigned char *at = b.ring + slot * FRAME_PIECE_BYTES + b.warp * 1024 + b.lane * 16;
    tile[0] = dev_load16(at);
    tile[1] = dev_load16(at + 512);
}

/* sums[column][warp][row of this block] for ROW_TILES row tiles in all and K_PIECES pieces of 512 columns; n:
 * elements of the vector. */
template <int ROW_TILES, int K_PIECES, int COLUMNS> DEV void product(struct block &b)
{
    constexpr int WHOLE = ROW_TILES / FRAME_BLOCKS, RUNS = WHOLE + (ROW_TILES % FRAME_BLOCKS != 0);
    constexpr int PIECES = WHOLE * K_PIECES + (RUNS - WHOLE) * (K_PIECES / 2);
    constexpr int N_VECTORS = WHOLE > 0 ? K_PIECES : K_PIECES / 2,
                  STRIDE = K_PIECES * 1024 + FRAME_VECTOR_PAD;
    static_assert(COLUMNS * 2 * STRIDE <= FRAME_VECTOR_BYTES, "the vector does not fit");
    static_assert(COLUMNS * FRAME_WARPS * RUNS * 16 * 4 <= FRAME_SUM_BYTES, "the sums do not fit");
    const int group = b.lane / 4, quarter = b.lane % 4;
    const bool mine = group < 2 * COLUMNS;
    const unsigned char *vector = b.shared->vector + group * STRIDE + b.warp * 64 + quarter * 16;
    const unsigned char *half = vector + b.index % 2 * (K_PIECES / 2) * 1024;
    const uint4 zero = {0, 0, 0, 0};
    uint4 v[N_VECTORS];
    for (int j = 0; j < N_VECTORS; j++) {
        v[j] = mine ? dev_load16((WHOLE > 0 ? vector : half) + j * 1024) : zero;
    }
    float d[RUNS][2][4] = {};
    uint4 tile[2], next[2];
    int slot = b.slot;
    uint32_t phase = b.phase;
    product_load(b, slot, phase, tile);
#pragma unroll
    for (int i = 0; i < PIECES; i++) {
        const int run = i < WHOLE * K_PIECES ? i / K_PIECES : WHOLE;
        const int j = i < WHOLE * K_PIECES ? i % K_PIECES : i - WHOLE * K_PIECES;
        ring_next(b, slot, phase);
        if (i + 1 < PIECES) {
            product_load(b, slot, phase, next);
        }
        uint4 x = v[j];
        if (WHOLE > 0 && run == WHOLE) {
            x = mine ? dev_load16(half + j * 1024) : zero;
        }
        dev_mma(d[run][0], tile[0], x.x, x.y);
        dev_mma(d[run][1], tile[1], x.z, x.w);
        dev_bar_warp();
        if (b.lane == 0) {
            dev_mbar_arrive(&b.shared->empty[b.slot]);
        }
        b.slot = slot;
        b.phase = phase;
        tile[0] = next[0];
        tile[1] = next[1];
    }
    if (quarter < COLUMNS) { /* both parts of column `quarter` stand in this thread */
        float *sums = b.shared->sums + (quarter * FRAME_WARPS + b.warp) * (RUNS * 16) + group;
        for (int run = 0; run < RUNS; run++) {
            sums[run * 16] = (d[run][0][0] + d[run][0][1]) + (d[run][1][0] + d[run][1][1]);
            sums[run * 16 + 8] = (d[run][0][2] + d[run][0][3]) + (d[run][1][2] + d[run][1][3]);
        }
    }
}

/* The sum of one of this block's ROWS rows. */
template <int ROWS> DEV float product_sum(const struct block &b, int column, int row)
{
    const float *sums = b.shared->sums + column * FRAME_WARPS * ROWS + row;
    float sum = 0;
#pragma unroll
    for (int warp = 0; warp < FRAME_WARPS; warp++) {
        sum += sums[warp * ROWS];
    }
    return sum;
}

/* What a norm multiplies its column with: the product had the vector before it. n 0: no norm, 1. */
DEV float product_scale(const struct block &b, int column, int n, float eps)
{
    if (n == 0) {
        return 1.0f;
    }
    float sum = 0;
#pragma unroll
    for (int warp = 0; warp < FRAME_WARPS; warp++) {
        sum += b.shared->squares[column][warp];
    }
    return 1.0f / sqrtf(sum / (float)n + eps);
}

/* Rows of a result, times the norm's factor, plus bias -> the exchange: whole row tiles in the order of the blocks,
 * the left-over rows behind them as two halves of the sum. */
template <int ROW_TILES, int COLUMNS>
DEV void product_put(const struct block &b, int kind, int norm_n, float eps, const float *bias)
{
    constexpr int WHOLE = ROW_TILES / FRAME_BLOCKS, RUNS = WHOLE + (ROW_TILES % FRAME_BLOCKS != 0);
    constexpr int ROWS = RUNS * 16, WORDS = RUNS * FRAME_BLOCKS * 16;
    static_assert(ROWS * COLUMNS <= FRAME_THREADS, "one thread a row");
    uint32_t mark = exchange_next(b, kind);
    if (b.thread >= ROWS * COLUMNS) {
        return;
    }
    const int column = b.thread / ROWS, row = b.thread % ROWS;
    int word = b.index * WHOLE * 16 + row, of = word;
    if (row >= WHOLE * 16) {
        of = WHOLE * FRAME_BLOCKS * 16 + b.index / 2 * 16 + row - WHOLE * 16;
        word = of + b.index % 2 * (FRAME_BLOCKS / 2 * 16);
    }
    float value = product_sum<ROWS>(b, column, row) * product_scale(b, column, norm_n, eps);
    if (bias && (row < WHOLE * 16 || b.index % 2 == 0)) {
        value += bias[of];
    }
    exchange_put(exchange_at(b, kind) + column * WORDS + word, value, mark);
}

#endif
