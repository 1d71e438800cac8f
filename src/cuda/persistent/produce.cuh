/* SPDX-License-Identifier: Apache-2.0
 * The warp that brings the weights: the units of this block in the order in which a frame consumes them, each as
 * soon as a slot of the ring is free. It waits for nothing else, so it runs ahead through exchanges, layers and
 * predictor steps. The order here and the order of the products in persistent.cuh are the same list. */
#ifndef CUDA_PERSISTENT_PRODUCE_CUH
#define CUDA_PERSISTENT_PRODUCE_CUH

#include "cuda/persistent/block.cuh"

struct producer {
    uint64_t policy, next_copy;
    int n_begun, oldest; /* slots on their way, and the oldest of them */
    uint32_t oldest_phase;
};

/* Waits until the next slot is free and no more than n_ahead are on their way. False when the block has no more use
 * for weights: in a lost frame slots are free before their copies have come, and none begins over one under way. */
DEV bool produce_slot(struct block &b, struct producer &p, uint32_t bytes)
{
    while (!ring_try(b, b.shared->empty, b.slot, b.phase ^ 1)) {
        if (*(volatile uint32_t *)&b.shared->stop != 0 || block_is_late(b)) {
            return false;
        }
    }
    if (p.n_begun >= b.args->control.n_ahead) {
        while (!ring_try(b, b.shared->full, p.oldest, p.oldest_phase)) {
            if (block_is_late(b)) {
                return false;
            }
        }
        ring_next(b, p.oldest, p.oldest_phase);
    } else {
        p.n_begun++;
    }
    dev_mbar_expect(&b.shared->full[b.slot], bytes);
    return true;
}

/* Begins a copy into the slot. Copies keep a distance in time: enough of them to keep the memory busy, and few enough
 * that words of the exchange do not stand behind them. */
DEV void produce_copy(struct block &b, struct producer &p, int at, const unsigned char *from, int bytes)
{
    while ((int64_t)(dev_clock() - p.next_copy) < 0) {
    }
    p.next_copy = dev_clock() + (uint64_t)b.args->control.copy_clocks;
    dev_bulk_copy(b.ring + b.slot * b.args->control.slot_bytes + at, from, (uint32_t)bytes,
        &b.shared->full[b.slot], p.policy);
}

/* This block's units of one matrix. */
template <bool PACKED>
DEV bool produce(
    struct block &b, struct producer &p, enum frame_step step, const void *tiles, int rows, int cols)
{
    constexpr int UNIT = PACKED ? FRAME_PACKED_BYTES : FRAME_UNIT_BYTES;
    constexpr int COPY = PACKED ? UNIT : UNIT / 2;
    const int per_slot = frame_slot_units(PACKED, PTX_HALF_SLOTS);
    const int n_runs = frame_n_runs(step, rows / 16), k_units = cols / FRAME_UNIT_K;
    int left = 0, in_slot = 0;
    for (int i = 0; i < n_runs; i++) {
        left += frame_run_at(step, rows / 16, k_units, b.index, i).n_units;
    }
    for (int i = 0; i < n_runs; i++) {
        const struct frame_run run = frame_run_at(step, rows / 16, k_units, b.index, i);
        const unsigned char *from =
            (const unsigned char *)tiles + ((size_t)run.row_tile * k_units + (size_t)run.unit) * UNIT;
        for (int j = 0; j < run.n_units; j++, from += UNIT) {
            if (in_slot == 0 &&
                !produce_slot(b, p, (uint32_t)((left < per_slot ? left : per_slot) * UNIT))) {
                return false;
            }
            for (int at = 0; at < UNIT; at += COPY) {
                produce_copy(b, p, in_slot * UNIT + at, from + at, COPY);
            }
            left--;
            if (++in_slot == per_slot || left == 0) {
                in_slot = 0;
                ring_next(b, b.slot, b.phase);
            }
        }
    }
    return true;
}

template <bool PACKED>
DEV bool produce_layer(struct block &b, struct producer &p, int i, int width, int inner)
{
    const struct frame_layer *layer = (const struct frame_layer *)b.shared->layers[i];
    return produce<PACKED>(b, p, FRAME_QKV, layer->qkv, 4096, width) &&
           produce<PACKED>(b, p, FRAME_O, layer->o, width, FRAME_MIXED) &&
           produce<PACKED>(b, p, FRAME_GATE_UP, layer->gate_up, 2 * inner, width) &&
           produce<PACKED>(b, p, FRAME_DOWN, layer->down, width, inner);
}

/* What comes next is read `again` in this frame, or not: where the L2 cache holds all such weights they stay there, the
 * others leave it first. */
DEV void produce_again(const struct block &b, struct producer &p, bool again)
{
    if (PTX_KEEPS) {
        p.policy = dev_policy(again && b.args->control.keeps);
    }
}

/* Everything of a frame. */
template <int W, int I, bool TALKER, bool PREDICTOR>
DEV bool produce_all(struct block &b, struct producer &p)
{
    const auto &weights = b.args->weights;
    const uint32_t flags = b.args->control.flags;
    for (int i = 0; (flags & FRAME_STEP) && i < weights.n_talker; i++) {
        if (!produce_layer<TALKER>(b, p, i, W, I)) {
            return false;
        }
    }
    if ((flags & FRAME_STEP) && !(flags & FRAME_NO_HEAD) &&
        !produce<TALKER>(b, p, FRAME_HEAD_ROWS, weights.talker_head, 3072, W)) {
        return false;
    }
    for (int codebook = 1;
         !(flags & (FRAME_NO_HEAD | FRAME_NO_CODES)) && codebook < weights.n_codebooks; codebook++) {
        produce_again(b, p, true);
        if (W != 1024 && !produce<PREDICTOR>(b, p, FRAME_PROJECT, weights.projection, 1024, W)) {
            return false;
        }
        for (int i = 0; i < weights.n_predictor; i++) {
            if (!produce_layer<PREDICTOR>(b, p, weights.n_talker + i, 1024, 3072)) {
                return false;
            }
        }
        produce_again(b, p, false);
        if (!produce<PREDICTOR>(b, p, FRAME_HEAD_ROWS, weights.heads[codebook - 1], 2048, 1024)) {
            return false;
        }
    }
    return true;
}

DEV struct producer produce_begin()
{
    return (struct producer){dev_policy(false), 0, 0, 0, 0};
}

/* Leaves when every copy that it began has arrived, in a lost frame too: nothing may write into the memory of a
 * block that has gone. */
DEV void produce_end(const struct block &b, struct producer &p)
{
    for (; p.n_begun > 0; p.n_begun--) {
        while (!dev_mbar_try(&b.shared->full[p.oldest], p.oldest_phase)) {
        }
        ring_next(b, p.oldest, p.oldest_phase);
    }
}

template <int W, int I, bool TALKER, bool PREDICTOR> DEV void produce_frame(struct block &b)
{
    struct producer p = produce_begin();
    produce_all<W, I, TALKER, PREDICTOR>(b, p);
    produce_end(b, p);
}

#endif
