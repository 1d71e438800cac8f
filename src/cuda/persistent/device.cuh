/* SPDX-License-Identifier: Apache-2.0
 * The instructions that the frame kernel is made of: barriers of the multiplying warps, sums and votes in a warp,
 * bulk copies with their mbarriers, and words that other blocks read. Nothing else in the kernel is more than plain
 * C. */
#ifndef CUDA_PERSISTENT_DEVICE_CUH
#define CUDA_PERSISTENT_DEVICE_CUH

#include "cuda/lib/ptx_copy.cuh"
#include "cuda/lib/ptx_matrix.cuh"
#include "cuda/lib/ptx_order.cuh"
#include "cuda/persistent/plan.h"

#define DEV static __device__ __forceinline__

DEV int dev_thread()
{
    return (int)threadIdx.x;
}

DEV int dev_block()
{
    return (int)blockIdx.x;
}

/* The block's memory, at an address that comes out of an instruction: else the compiler makes it anew wherever it is
 * used, with a special register that is waited for each time. By all threads of a warp. */
DEV unsigned char *dev_shared()
{
    PTX_DYNAMIC_SHARED(unsigned char, frame_shared_bytes, 1024);
    const uint32_t at = ptx_shared_at(frame_shared_bytes);
    return (unsigned char *)__cvta_shared_to_generic(__shfl_sync(0xffffffffu, at, 0));
}

DEV uint64_t dev_clock()
{
    return (uint64_t)clock64();
}

/* Half a microsecond. */
DEV void dev_sleep()
{
    __nanosleep(500);
}

/* ---- Barriers: all threads of the block; the multiplying warps ---- */

DEV void dev_bar_all()
{
    __syncthreads();
}

DEV void dev_bar()
{
    ptx_some_barrier<1, FRAME_THREADS>();
}

/* A barrier that counts the threads that said yes. */
DEV int dev_bar_count(bool yes)
{
    return ptx_some_count<1, FRAME_THREADS>(yes);
}

DEV void dev_bar_warp()
{
    __syncwarp();
}

/* Registers go from the four warps that hardly need any to those that multiply: 8 times 232 and 4 times 40 make the 12
 * times 168 that all begin with. In code for 12.x the warp that brings the weights of several lanes would spill with
 * 40, and those that multiply do not with 224. */
template <bool OF_LANES> DEV void dev_more_registers()
{
    if (OF_LANES && PTX_HALF_SLOTS) {
        ptx_registers_more<224>();
    } else {
        ptx_registers_more<232>();
    }
}

template <bool OF_LANES> DEV void dev_fewer_registers()
{
    if (OF_LANES && PTX_HALF_SLOTS) {
        ptx_registers_less<56>();
    } else {
        ptx_registers_less<40>();
    }
}

/* ---- In a warp ---- */

DEV float dev_xor(float v, int mask)
{
    return __shfl_xor_sync(0xffffffffu, v, mask);
}

DEV float dev_from(float v, int lane)
{
    return __shfl_sync(0xffffffffu, v, lane);
}

DEV uint32_t dev_max(uint32_t v)
{
    return __reduce_max_sync(0xffffffffu, v);
}

DEV uint32_t dev_min(uint32_t v)
{
    return __reduce_min_sync(0xffffffffu, v);
}

DEV uint32_t dev_sum(uint32_t v)
{
    return __reduce_add_sync(0xffffffffu, v);
}

/* The lanes that said yes, a bit each. */
DEV uint32_t dev_ballot(bool yes)
{
    return __ballot_sync(0xffffffffu, yes);
}

DEV int dev_popcount(uint32_t bits)
{
    return __popc(bits);
}

DEV int dev_first(uint32_t bits)
{
    return __ffs((int)bits) - 1;
}

/* Adds to a counter in shared memory; what it was. */
DEV uint32_t dev_add(uint32_t *at, uint32_t n)
{
    return atomicAdd(at, n);
}

/* ---- Words that other blocks read: past the L1 cache, each 4 bytes whole ---- */

DEV void dev_put(uint32_t *at, uint32_t word)
{
    ptx_store(at, word);
}

DEV uint32_t dev_get(const uint32_t *at)
{
    return ptx_load(at);
}

DEV uint2 dev_get2(const uint32_t *at)
{
    return ptx_load_two(at);
}

/* Four words where `yes`, without a branch: v stays as it is elsewhere. */
DEV void dev_get4_if(uint32_t yes, const uint32_t *at, uint4 &v)
{
    ptx_load_four_if(yes, at, v);
}

/* Two words of 8 bytes, each whole. */
DEV void dev_get2_wide_if(uint32_t yes, const uint64_t *at, uint64_t (&v)[2])
{
    ptx_load_two_if(yes, at, v);
}

DEV void dev_put2_wide(uint64_t *at, uint64_t first, uint64_t second)
{
    ptx_store_two(at, first, second);
}

DEV void dev_add_wide(uint64_t *at, uint64_t n)
{
    ptx_add_to(at, n);
}

/* All earlier writes of this thread are seen by other blocks before any later one. */
DEV void dev_fence()
{
    ptx_fence();
}

/* 16 bytes to the block's memory, seen by this thread behind dev_copy_wait. */
DEV void dev_copy16(void *to, const void *from)
{
    ptx_copy(to, from, false);
}

DEV void dev_copy_wait()
{
    ptx_copy_wait_all();
}

/* The line of 128 bytes -> the L2 cache. */
DEV void dev_prefetch(const void *at)
{
    ptx_prefetch(at);
}

/* Not 0 where the lowest bit is 1, by an instruction: the compiler takes a sum of many such bits apart into
 * predicates, which wait for each other. */
DEV uint32_t dev_lowest(uint32_t v)
{
    return ptx_lowest(v);
}

/* Nothing that looks at v is moved in front of this: else the compiler looks at the first of several words before it
 * asks for the second. */
DEV void dev_wait_for(uint32_t &v)
{
    ptx_hold(v);
}

DEV void dev_wait_for_wide(uint64_t &v)
{
    ptx_hold(v);
}

DEV void dev_or(uint32_t *at, uint32_t bits)
{
    atomicOr(at, bits);
}

/* All earlier writes of this thread are seen by the host before any later one. */
DEV void dev_fence_host()
{
    __threadfence_system();
}

/* ---- mbarriers and bulk copies ---- */

DEV void dev_mbar_init(uint64_t *bar, int n)
{
    ptx_barrier_begin(bar, (uint32_t)n);
}

DEV void dev_mbar_ready()
{
    ptx_barriers_ready();
}

DEV void dev_mbar_arrive(uint64_t *bar)
{
    ptx_arrive(bar);
}

/* What this thread has read of shared memory before is read before copies that a later arrival allows write there. */
DEV void dev_fence_copies()
{
    ptx_copies_follow();
}

DEV void dev_mbar_expect(uint64_t *bar, uint32_t bytes)
{
    ptx_expect(ptx_shared_at(bar), bytes);
}

/* True when the phase of this parity has ended; may wait a little. */
DEV bool dev_mbar_try(uint64_t *bar, uint32_t parity)
{
    return ptx_has_ended(bar, parity);
}

/* The same in a loop that also ends when the word `over` is not 0: then nobody waits for phases any more. */
DEV bool dev_mbar_try_unless(uint64_t *bar, uint32_t parity, const uint32_t *over)
{
    return ptx_has_ended_unless(bar, parity, over);
}

/* `keep`: the bytes are read again soon, so other data should leave the L2 cache before them. */
DEV uint64_t dev_policy(bool keep)
{
    return ptx_policy(keep);
}

DEV void dev_bulk_copy(void *to, const void *from, uint32_t bytes, uint64_t *bar, uint64_t policy)
{
    ptx_bulk_copy_by(to, from, bytes, bar, policy);
}

/* ---- Two neighbouring blocks, in kernels that are launched as clusters of two: one writes the other's memory ----
 * */

/* The word -> the place of `mine` in the other block. */
DEV void dev_pair_put(uint32_t *mine, uint32_t word)
{
    ptx_cluster_store_other(mine, word);
}

DEV uint32_t dev_pair_get(const uint32_t *mine)
{
    return ptx_cluster_load(mine);
}

/* The same where `yes`, without a branch: v stays as it is elsewhere. */
DEV void dev_pair_get_if(uint32_t yes, const uint32_t *mine, uint32_t &v)
{
    ptx_cluster_load_if(yes, mine, v);
}

/* Four words -> the place of `mine` in block `rank` of the two, which may be this one; each word is whole. */
DEV void dev_pair_put4(uint32_t *mine, int rank, const uint32_t (&words)[4])
{
    ptx_cluster_store_four(mine, rank, words);
}

/* All threads of both that have not left; n: of each. */
DEV void dev_pair_bar(int n)
{
    (void)n;
    ptx_cluster_barrier_warps();
}

/* ---- Memory of the block, 16 bytes at once ---- */

DEV uint4 dev_load16(const unsigned char *shared)
{
    return *(const uint4 *)shared;
}

DEV void dev_mma(float (&d)[4], const uint4 &a, uint32_t b0, uint32_t b1)
{
    ptx_mma(d, a, b0, b1);
}

/* d += a b, a 16 x 32 and b 32 x 8 of signed bytes in the instruction's order, d 16 x 8 in 32 bits. */
DEV void dev_mma_bytes(int32_t (&d)[4], const uint4 &a, uint32_t b0, uint32_t b1)
{
    ptx_mma_bytes(d, a, b0, b1);
}

/* A product that is not fused with a sum, whatever stands around it. */
DEV float dev_mul(float a, float b)
{
    return __fmul_rn(a, b);
}

/* Math whose last bits may differ from the host's. */
DEV float dev_divide(float a, float b)
{
    return __fdividef(a, b); /* 0 for b from 2^126 on */
}

/* To the nearest whole number. */
DEV int64_t dev_round(float x)
{
    return __float2ll_rn(x);
}

/* To 2^-21 of the result or of 1, what is larger; x from 2^-126 on. Without a way around smaller ones, which would
 * be a branch, so several go side by side. */
DEV float dev_log(float x)
{
    return ptx_log2(x) * 0x1.62e43p-1f;
}

/* To 2^-23 of the result. */
DEV float dev_reciprocal(float x)
{
    return ptx_reciprocal(x);
}

DEV float dev_rsqrt(float x)
{
    return rsqrtf(x);
}

DEV float dev_exp(float x)
{
    return expf(x);
}

#endif
