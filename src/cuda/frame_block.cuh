/* SPDX-License-Identifier: Apache-2.0
 * What every step of the frame kernel stands on: a thread's view of its block, the ring that brings weights, the
 * exchange of words between blocks, and a vector on its way into a product.
 *
 * A word of the exchange is a float whose lowest bit is a mark: a reader knows by it that the word is the one it
 * waits for, so data and signal are one. A kind of words changes its mark each time it is written; between two
 * writes of one kind lies an exchange that all blocks have finished, so nobody still waits for the words before. */
#ifndef CUDA_FRAME_BLOCK_CUH
#define CUDA_FRAME_BLOCK_CUH

#include "base/numeric.h"
#include "cuda/frame_args.h"
#include "cuda/frame_device.cuh"

struct block {
    const struct frame_args *args;
    struct frame_shared *shared;
    unsigned char *ring;
    int thread, warp, lane; /* thread: of the multiplying ones */
    int index, kv_head, part;
    int set;        /* of words: which pass this is */
    uint32_t marks; /* a bit for each kind of each set */
    int slot;       /* of the ring: the next piece's */
    uint32_t phase;
    uint64_t deadline;
    uint64_t policy, next_copy; /* these are the producer's: */
    int n_begun, oldest;        /* copies on their way, and the slot of the oldest */
    uint32_t oldest_phase;
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
DEV bool block_is_late(struct block &b, uint32_t &turns, uint32_t why)
{
    turns++;
    if (turns % 256 != 0) {
        return *(volatile uint32_t *)&b.shared->dead != 0;
    }
    if (dev_clock() > b.deadline) {
        *(volatile uint32_t *)&b.shared->dead = 1;
        dev_or(b.args->control.error, why);
        return true;
    }
    return false;
}

/* Notes when thread 0 of block 0 has come to a place, in a build that asks for it. */
DEV void block_trace(struct block &b, int place)
{
#ifdef FRAME_TRACED
    if (b.index == 0 && b.thread == 0 && b.args->control.trace && b.n_trace < FRAME_TRACE) {
        b.args->control.trace[b.n_trace++] = dev_clock() << 8 | (uint64_t)place;
    }
#else
    (void)b;
    (void)place;
#endif
}

/* ---- The ring ---- */

DEV void ring_wait(struct block &b, uint64_t *bars, int slot, uint32_t parity)
{
    uint32_t turns = 0;
    while (!dev_mbar_try(&bars[slot], parity) && !block_is_late(b, turns, FRAME_RING_STUCK)) {
    }
}

DEV void ring_next(const struct block &b, int &slot, uint32_t &phase)
{
    if (++slot == b.args->control.n_slots) {
        slot = 0;
        phase ^= 1;
    }
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

DEV uint32_t *exchange_at(const struct block &b, int kind)
{
    return b.args->scratch.words + b.set * frame_kind_at(FRAME_N_KINDS) + frame_kind_at(kind);
}

DEV void exchange_put(uint32_t *at, float value, uint32_t mark)
{
    dev_put(at, (numeric_to_bits(value) & ~1u) | mark);
}

DEV bool exchange_ready(uint4 v, uint32_t mark)
{
    return (((v.x ^ mark) | (v.y ^ mark) | (v.z ^ mark) | (v.w ^ mark)) & 1) == 0;
}

/* Waits for one word, or two or four neighbouring ones, of this mark. */
DEV float exchange_take(struct block &b, const uint32_t *at, uint32_t mark)
{
    uint32_t turns = 0, v;
    do {
        v = dev_get(at);
    } while ((v & 1) != mark && !block_is_late(b, turns, FRAME_LATE));
    return numeric_from_bits(v);
}

/* The same for N times two neighbouring words, `stride` apart: all are on their way at once. */
template <int N>
DEV void exchange_take2(struct block &b, const uint32_t *at, int stride, uint32_t mark, uint2 (&v)[N])
{
    uint32_t turns = 0;
    bool ready;
    do {
        ready = true;
        for (int i = 0; i < N; i++) {
            v[i] = dev_get2(at + i * stride);
        }
        for (int i = 0; i < N; i++) {
            ready = ready && (((v[i].x ^ mark) | (v[i].y ^ mark)) & 1) == 0;
        }
    } while (!ready && !block_is_late(b, turns, FRAME_LATE));
}

/* And for four neighbouring words at each offset; a negative offset: none there. */
template <int N>
DEV void exchange_take4(
    struct block &b, const uint32_t *at, const int (&offset)[N], uint32_t mark, uint4 (&v)[N])
{
    uint32_t turns = 0;
    bool ready;
    do {
        ready = true;
        for (int i = 0; i < N; i++) {
            if (offset[i] >= 0) {
                v[i] = dev_get4(at + offset[i]);
            }
        }
        for (int i = 0; i < N; i++) {
            ready = ready && (offset[i] < 0 || exchange_ready(v[i], mark));
        }
    } while (!ready && !block_is_late(b, turns, FRAME_LATE));
}

/* ---- The vector of a product ---- */

/* Stride in bytes between the rows of a vector of n elements: row 2 c is the upper part of column c, 2 c + 1 what
 * is left. */
DEV int vector_stride(int n)
{
    return n * 2 + FRAME_VECTOR_PAD;
}

/* Puts elements k and k + 1 (k even) of a column where the product reads them: chunks of 32 elements; in each, a
 * thread of a warp finds its 8 elements of two tiles in 16 consecutive bytes. */
DEV void vector_put2(const struct block &b, int n, int column, int k, float v0, float v1)
{
    unsigned char *row = b.shared->vector + column * 2 * vector_stride(n);
    int at = k / 32 * 64 + k % 8 / 2 * 16 + k / 16 % 2 * 8 + k / 8 % 2 * 4;
    uint32_t upper = pack_bf16(v0, v1);
    *(uint32_t *)(row + at) = upper;
    *(uint32_t *)(row + vector_stride(n) + at) =
        pack_bf16(v0 - numeric_from_bits(upper << 16), v1 - numeric_from_bits(upper & 0xffff0000u));
}

#endif
