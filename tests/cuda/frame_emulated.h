/* SPDX-License-Identifier: Apache-2.0
 * The frame kernel on a machine without a GPU: every thread of every block is a fiber of one thread of the host, and
 * what frame_device.cuh does with instructions is done here in C. Include before any header of the kernel, in one
 * file. Slow and exact: it shows wrong indices, missing barriers on the way of data, words that nobody writes, and
 * ring orders that differ, not races within a barrier. */
#ifndef TESTS_CUDA_FRAME_EMULATED_H
#define TESTS_CUDA_FRAME_EMULATED_H

#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <cuda_runtime_api.h>

#define CUDA_FRAME_DEVICE_CUH
#define UTTER_FRAME_EMULATED
#undef __global__
#undef __launch_bounds__
#undef __grid_constant__
#define __global__ static
#define __launch_bounds__(...)
#define __grid_constant__
#define DEV static inline
#define FRAME_PAIRS

#include "base/numeric.h"
#include "cuda/frame_plan.h"

enum { N_FIBER_THREADS = FRAME_ALL_THREADS, FIBER_STACK = 64 << 10, SHARED_LIMIT = 232448 };

struct emulated_warp {
    uint32_t in[2][32];
    int n, turn;
};

struct emulated_block {
    int n, turn, n_yes, n_yes_before; /* the barrier of the multiplying warps */
    int n_all, turn_all;
    int n_pair, turn_pair; /* of the first block of a pair */
    struct emulated_warp warps[N_FIBER_THREADS / 32];
    unsigned char *shared;
};

struct fiber {
    jmp_buf at;
    bool done;
    int block, thread;
};

static struct fiber *fibers, *fiber_now;
static struct emulated_block emulated_blocks[FRAME_BLOCKS];
static jmp_buf fiber_home;
static uint64_t fiber_turns;
static void (*fiber_body)(void);

static void fiber_yield(void)
{
    if (!_setjmp(fiber_now->at)) {
        _longjmp(fiber_home, 1);
    }
}

static void fiber_main(void)
{
    fiber_body();
    fiber_now->done = true;
    _longjmp(fiber_home, 1);
}

/* Runs `body` in all threads of all blocks until the last is done. */
static void fibers_run(void (*body)(void))
{
    const int n = FRAME_BLOCKS * N_FIBER_THREADS;
    static unsigned char *stacks;
    static ucontext_t home, start;
    fiber_body = body;
    if (!fibers) {
        fibers = (struct fiber *)calloc((size_t)n, sizeof *fibers);
        stacks = (unsigned char *)aligned_alloc(4096, (size_t)n * FIBER_STACK);
        for (int i = 0; i < FRAME_BLOCKS; i++) {
            emulated_blocks[i].shared = (unsigned char *)aligned_alloc(1024, 256 << 10);
        }
    }
    bool begun = false;
    for (int left = n; left > 0;) {
        left = 0;
        for (int i = 0; i < n; i++) {
            struct fiber *f = &fibers[i];
            if (!begun) {
                *f = (struct fiber){};
                f->block = i / N_FIBER_THREADS;
                f->thread = i % N_FIBER_THREADS;
            }
            if (f->done) {
                continue;
            }
            left++;
            fiber_now = f;
            if (!_setjmp(fiber_home)) {
                if (begun) {
                    _longjmp(f->at, 1);
                }
                getcontext(&start);
                start.uc_stack.ss_sp = stacks + (size_t)i * FIBER_STACK;
                start.uc_stack.ss_size = FIBER_STACK;
                start.uc_link = &home;
                makecontext(&start, fiber_main, 0);
                setcontext(&start);
            }
        }
        begun = true;
        fiber_turns++;
    }
}

static struct emulated_block *block_now(void)
{
    return &emulated_blocks[fiber_now->block];
}

static struct emulated_warp *warp_now(void)
{
    return &block_now()->warps[fiber_now->thread / 32];
}

DEV int dev_thread()
{
    return fiber_now->thread;
}
DEV int dev_block()
{
    return fiber_now->block;
}
DEV unsigned char *dev_shared()
{
    return block_now()->shared;
}
DEV uint64_t dev_clock()
{
    fiber_yield();
    return fiber_turns;
}

/* ---- Barriers ---- */

DEV void dev_bar_all()
{
    struct emulated_block *b = block_now();
    int turn = b->turn_all;
    if (++b->n_all == N_FIBER_THREADS) {
        b->n_all = 0;
        b->turn_all++;
    }
    while (b->turn_all == turn) {
        fiber_yield();
    }
}
DEV int dev_bar_count(bool yes)
{
    struct emulated_block *b = block_now();
    int turn = b->turn;
    b->n_yes += yes;
    if (++b->n == FRAME_THREADS) {
        b->n = 0;
        b->n_yes_before = b->n_yes;
        b->n_yes = 0;
        b->turn++;
    }
    while (b->turn == turn) {
        fiber_yield();
    }
    return b->n_yes_before;
}
DEV void dev_bar()
{
    dev_bar_count(false);
}

DEV void dev_more_registers()
{
}
DEV void dev_fewer_registers()
{
}

/* ---- In a warp: values of all lanes ---- */

static const uint32_t *warp_all(uint32_t mine)
{
    struct emulated_warp *w = warp_now();
    int turn = w->turn;
    uint32_t *in = w->in[turn % 2];
    in[fiber_now->thread % 32] = mine;
    if (++w->n == 32) {
        w->n = 0;
        w->turn++;
    }
    while (w->turn == turn) {
        fiber_yield();
    }
    return in;
}
DEV void dev_bar_warp()
{
    warp_all(0);
}
DEV float dev_xor(float v, int mask)
{
    return numeric_from_bits(warp_all(numeric_to_bits(v))[(fiber_now->thread % 32) ^ mask]);
}
DEV float dev_from(float v, int lane)
{
    return numeric_from_bits(warp_all(numeric_to_bits(v))[lane]);
}
DEV uint32_t dev_max(uint32_t v)
{
    const uint32_t *all = warp_all(v);
    for (int i = 0; i < 32; i++) {
        v = all[i] > v ? all[i] : v;
    }
    return v;
}
DEV uint32_t dev_ballot(bool yes)
{
    const uint32_t *all = warp_all(yes);
    uint32_t bits = 0;
    for (int i = 0; i < 32; i++) {
        bits |= all[i] << i;
    }
    return bits;
}
DEV uint32_t dev_sum(uint32_t v)
{
    const uint32_t *all = warp_all(v);
    v = 0;
    for (int i = 0; i < 32; i++) {
        v += all[i];
    }
    return v;
}
DEV int dev_first(uint32_t bits)
{
    return __builtin_ffs((int)bits) - 1;
}
DEV int dev_popcount(uint32_t bits)
{
    return __builtin_popcount(bits);
}
DEV uint32_t dev_min(uint32_t v)
{
    return ~dev_max(~v);
}
DEV uint32_t dev_add(uint32_t *at, uint32_t n)
{
    uint32_t before = *at;
    *at += n;
    return before;
}

/* ---- Words, copies ---- */

DEV void dev_put(uint32_t *at, uint32_t word)
{
    *at = word;
}
DEV uint32_t dev_get(const uint32_t *at)
{
    fiber_yield();
    return *at;
}
DEV uint2 dev_get2(const uint32_t *at)
{
    fiber_yield();
    return (uint2){at[0], at[1]};
}
DEV void dev_get4_if(uint32_t yes, const uint32_t *at, uint4 &v)
{
    fiber_yield();
    v = yes ? (uint4){at[0], at[1], at[2], at[3]} : v;
}
DEV void dev_get2_wide_if(uint32_t yes, const uint64_t *at, uint64_t (&v)[2])
{
    fiber_yield();
    v[0] = yes ? at[0] : v[0];
    v[1] = yes ? at[1] : v[1];
}
DEV void dev_add_wide(uint64_t *at, uint64_t n)
{
    *at += n;
}
DEV void dev_fence()
{
}
DEV void dev_prefetch(const void *)
{
}
DEV void dev_copy16(void *to, const void *from)
{
    memcpy(to, from, 16);
}
DEV void dev_copy_wait()
{
}
DEV uint32_t dev_lowest(uint32_t v)
{
    return v << 31;
}
DEV void dev_wait_for(uint32_t &)
{
}
DEV void dev_wait_for_wide(uint64_t &)
{
}
DEV void dev_sleep()
{
    fiber_yield();
}
DEV void dev_or(uint32_t *at, uint32_t bits)
{
    *at |= bits;
}
DEV void dev_fence_host()
{
}

/* Blocks of a pair. */
DEV void dev_pair_put(uint32_t *mine, uint32_t word)
{
    const struct emulated_block *other = &emulated_blocks[fiber_now->block ^ 1];
    *(uint32_t *)(other->shared + ((unsigned char *)mine - block_now()->shared)) = word;
}
DEV void dev_pair_get_if(uint32_t yes, const uint32_t *mine, uint32_t &v)
{
    fiber_yield();
    v = yes ? *mine : v;
}
DEV void dev_pair_put4(uint32_t *mine, int rank, const uint32_t (&words)[4])
{
    const struct emulated_block *of = &emulated_blocks[(fiber_now->block & ~1) + rank];
    memcpy(of->shared + ((unsigned char *)mine - block_now()->shared), words, sizeof words);
}
DEV uint32_t dev_pair_get(const uint32_t *mine)
{
    fiber_yield();
    return *mine;
}
DEV void dev_pair_bar(int n)
{
    struct emulated_block *b = &emulated_blocks[fiber_now->block & ~1];
    int turn = b->turn_pair;
    if (++b->n_pair == 2 * n) {
        b->n_pair = 0;
        b->turn_pair++;
    }
    while (b->turn_pair == turn) {
        fiber_yield();
    }
}

/* An mbarrier: phase in the lowest bit, bytes that are missing in 31, arrivals that are missing in 16, and as many
 * as there were at first. */
static void mbar_change(uint64_t *bar, int arrivals, int64_t bytes)
{
    uint64_t all = *bar >> 48, missing = (*bar >> 32 & 0xffff) - (uint64_t)arrivals, phase = *bar & 1;
    int64_t left = (int64_t)(*bar >> 1 & 0x7fffffff) + bytes;
    if (missing == 0 && left == 0) {
        missing = all;
        phase ^= 1;
    }
    *bar = all << 48 | missing << 32 | (uint64_t)left << 1 | phase;
}
DEV void dev_mbar_init(uint64_t *bar, int n)
{
    *bar = (uint64_t)n << 48 | (uint64_t)n << 32;
}
DEV void dev_mbar_ready()
{
}
DEV void dev_mbar_arrive(uint64_t *bar)
{
    mbar_change(bar, 1, 0);
}
DEV void dev_fence_copies()
{
}
DEV void dev_mbar_expect(uint64_t *bar, uint32_t bytes)
{
    mbar_change(bar, 1, bytes);
}
DEV bool dev_mbar_try(uint64_t *bar, uint32_t parity)
{
    if ((*bar & 1) != parity) {
        return true;
    }
    fiber_yield();
    return false;
}
DEV uint64_t dev_policy(bool)
{
    return 0;
}
DEV void dev_bulk_copy(void *to, const void *from, uint32_t bytes, uint64_t *bar, uint64_t)
{
    memcpy(to, from, bytes);
    mbar_change(bar, 0, -(int64_t)bytes);
}
DEV uint4 dev_load16(const unsigned char *shared)
{
    return *(const uint4 *)shared;
}
DEV float dev_mul(float a, float b)
{
    return a * b;
}
DEV float dev_divide(float a, float b)
{
    return a / b;
}
DEV float dev_log(float x)
{
    return logf(x);
}
DEV float dev_reciprocal(float x)
{
    return 1.0f / x;
}
DEV int64_t dev_round(float x)
{
    return llrintf(x);
}
DEV float dev_rsqrt(float x)
{
    return 1.0f / sqrtf(x);
}
DEV float dev_exp(float x)
{
    return expf(x);
}

/* ---- The tensor cores: all lanes bring their registers, each computes its four results ---- */

struct emulated_mma {
    uint4 a[32];
    uint32_t b0[32], b1[32];
};
static struct emulated_mma *mma_all(const uint4 &a, uint32_t b0, uint32_t b1)
{
    static struct emulated_mma of[FRAME_BLOCKS][N_FIBER_THREADS / 32][2];
    struct emulated_mma *all = &of[fiber_now->block][fiber_now->thread / 32][warp_now()->turn % 2];
    int lane = fiber_now->thread % 32;
    all->a[lane] = a;
    all->b0[lane] = b0;
    all->b1[lane] = b1;
    warp_all(0);
    return all;
}
static float half_of(uint32_t two, int which)
{
    return numeric_from_bits(which ? two & 0xffff0000u : two << 16);
}
DEV void dev_mma(float (&d)[4], const uint4 &a, uint32_t b0, uint32_t b1)
{
    const struct emulated_mma *all = mma_all(a, b0, b1);
    int lane = fiber_now->thread % 32;
    for (int i = 0; i < 4; i++) {
        int row = lane / 4, col = lane % 4 * 2 + i % 2;
        float sum = d[i];
        for (int k = 0; k < 16; k++) {
            uint4 regs = all->a[row * 4 + k % 8 / 2];
            uint32_t two = i < 2 ? (k < 8 ? regs.x : regs.z) : (k < 8 ? regs.y : regs.w);
            uint32_t from = col * 4 + k % 8 / 2;
            sum += half_of(two, k % 2) * half_of(k < 8 ? all->b0[from] : all->b1[from], k % 2);
        }
        d[i] = sum;
    }
}

DEV void dev_mma_bytes(int32_t (&d)[4], const uint4 &a, uint32_t b0, uint32_t b1)
{
    const struct emulated_mma *all = mma_all(a, b0, b1);
    int lane = fiber_now->thread % 32;
    for (int i = 0; i < 4; i++) {
        int row = lane / 4, col = lane % 4 * 2 + i % 2;
        for (int k = 0; k < 32; k++) {
            uint4 regs = all->a[row * 4 + k % 16 / 4];
            uint32_t four = i < 2 ? (k < 16 ? regs.x : regs.z) : (k < 16 ? regs.y : regs.w);
            uint32_t from = (uint32_t)(col * 4 + k % 16 / 4);
            uint32_t with = k < 16 ? all->b0[from] : all->b1[from];
            d[i] += (int8_t)(four >> k % 4 * 8) * (int8_t)(with >> k % 4 * 8);
        }
    }
}

DEV uint32_t pack_bf16(float low, float high)
{
    return bf16_from_float(low) | (uint32_t)bf16_from_float(high) << 16;
}

#endif
