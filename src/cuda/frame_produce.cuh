/* SPDX-License-Identifier: Apache-2.0
 * The warp that brings the weights: the pieces of this block in the order in which a frame consumes them, each as
 * soon as a slot of the ring is free. It waits for nothing else, so it runs ahead through exchanges, layers and
 * predictor steps. The order here and the order of the products in frame.cu are the same list. */
#ifndef CUDA_FRAME_PRODUCE_CUH
#define CUDA_FRAME_PRODUCE_CUH

#include "cuda/frame_block.cuh"

enum { PRODUCE_BYTES = 4096 }; /* of one copy */

/* Begins the copies of one piece. No more than n_ahead pieces are on their way at once, and copies keep a distance
 * in time: enough to keep the memory busy, and few enough that words of the exchange do not stand behind them.
 * False when the block has no more use for weights. */
DEV bool produce_piece(struct block &b, const unsigned char *from, uint64_t policy)
{
    uint32_t turns = 0;
    while (!dev_mbar_try(&b.shared->empty[b.slot], b.phase ^ 1)) {
        if (*(volatile uint32_t *)&b.shared->stop != 0 || block_is_late(b, turns, FRAME_RING_STUCK)) {
            return false;
        }
    }
    if (b.n_begun >= b.args->control.n_ahead) {
        ring_wait(b, b.shared->full, b.oldest, b.oldest_phase);
        ring_next(b, b.oldest, b.oldest_phase);
    } else {
        b.n_begun++;
    }
    dev_mbar_expect(&b.shared->full[b.slot], FRAME_PIECE_BYTES);
    for (int i = 0; i < FRAME_PIECE_BYTES; i += PRODUCE_BYTES) {
        while ((int64_t)(dev_clock() - b.next_copy) < 0) {
        }
        b.next_copy = dev_clock() + (uint64_t)b.args->control.pace;
        dev_bulk_copy(b.ring + b.slot * FRAME_PIECE_BYTES + i, from + i, PRODUCE_BYTES,
            &b.shared->full[b.slot], policy);
    }
    ring_next(b, b.slot, b.phase);
    return true;
}

/* This block's pieces of one matrix. */
DEV bool produce(
    struct block &b, enum frame_step step, const void *tiles, int rows, int cols, uint64_t policy)
{
    for (int i = 0; i < frame_n_runs(rows / 16); i++) {
        struct frame_run run = frame_run_at(step, rows / 16, cols / FRAME_PIECE_K, b.index, i);
        const unsigned char *from = (const unsigned char *)tiles +
                                    (size_t)run.row_tile * (cols / 16) * 512 +
                                    (size_t)run.k_piece * FRAME_PIECE_BYTES;
        for (int j = 0; j < run.n_pieces; j++) {
            if (!produce_piece(b, from + (size_t)j * FRAME_PIECE_BYTES, policy)) {
                return false;
            }
        }
    }
    return true;
}

DEV bool produce_layer(struct block &b, int i, int width, int inner, uint64_t policy)
{
    const struct frame_layer *layer = (const struct frame_layer *)b.shared->layers[i];
    return produce(b, FRAME_QKV, layer->qkv, 4096, width, policy) &&
           produce(b, FRAME_O, layer->o, width, FRAME_MIXED, policy) &&
           produce(b, FRAME_GATE_UP, layer->gate_up, 2 * inner, width, policy) &&
           produce(b, FRAME_DOWN, layer->down, width, inner, policy);
}

/* Everything of a frame. */
template <int W, int I> DEV bool produce_all(struct block &b)
{
    const auto &weights = b.args->weights;
    const uint32_t flags = b.args->control.flags;
    for (int i = 0; (flags & FRAME_STEP) && i < weights.n_talker; i++) {
        if (!produce_layer(b, i, W, I, b.policy)) {
            return false;
        }
    }
    if ((flags & FRAME_STEP) && !(flags & FRAME_NO_HEAD) &&
        !produce(b, FRAME_HEAD_ROWS, weights.talker_head, 3072, W, b.policy)) {
        return false;
    }
    for (int codebook = 1;
         !(flags & (FRAME_NO_HEAD | FRAME_NO_CODES)) && codebook < weights.n_codebooks; codebook++) {
        if (W != 1024 && !produce(b, FRAME_PROJECT, weights.projection, 1024, W, b.policy)) {
            return false;
        }
        for (int i = 0; i < weights.n_predictor; i++) {
            if (!produce_layer(b, weights.n_talker + i, 1024, 3072, b.policy)) {
                return false;
            }
        }
        if (!produce(b, FRAME_HEAD_ROWS, weights.heads[codebook - 1], 2048, 1024, b.policy)) {
            return false;
        }
    }
    return true;
}

/* Leaves when every copy that it began has arrived: nothing may write into the memory of a block that has gone. */
template <int W, int I> DEV void produce_frame(struct block &b)
{
    produce_all<W, I>(b);
    const int n_slots = b.args->control.n_slots;
    for (int i = 0; i < n_slots; i++) { /* the slot filled longest ago comes first */
        ring_wait(b, b.shared->full, b.slot, b.phase ^ 1);
        ring_next(b, b.slot, b.phase);
    }
}

#endif
