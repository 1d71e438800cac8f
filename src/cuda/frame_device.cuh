/* SPDX-License-Identifier: Apache-2.0
 * The instructions that the frame kernel is made of: barriers of the multiplying warps, sums and votes in a warp,
 * bulk copies with their mbarriers, and words that other blocks read. Nothing else in the kernel is more than plain
 * C, so that a test can run it on the host with another file in place of this. */
#ifndef CUDA_FRAME_DEVICE_CUH
#define CUDA_FRAME_DEVICE_CUH

#include "cuda/cuda_ptx.cuh"
#include "cuda/frame_plan.h"

#define DEV static __device__ __forceinline__
/* A kernel whose blocks go in clusters of two, where there are clusters. */
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define FRAME_PAIRS __cluster_dims__(2, 1, 1)
#else
#define FRAME_PAIRS
#endif

DEV int dev_thread()
{
    return (int)threadIdx.x;
}

DEV int dev_block()
{
    return (int)blockIdx.x;
}

/* The block's memory, at an address that comes out of an instruction: else the compiler makes it anew wherever it is
 * used, with a special register that is waited for each time. By all lanes of a warp. */
DEV unsigned char *dev_shared()
{
    extern __shared__ __align__(1024) unsigned char frame_shared_bytes[];
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(frame_shared_bytes);
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
    asm volatile("bar.sync 1, %0;" ::"n"((int)FRAME_THREADS) : "memory");
}

/* A barrier that counts the threads that said yes. */
DEV int dev_bar_count(bool yes)
{
    int n;
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %1, 0; bar.red.popc.u32 %0, 1, %2, p; }"
                 : "=r"(n)
                 : "r"((int)yes), "n"((int)FRAME_THREADS)
                 : "memory");
    return n;
}

DEV void dev_bar_warp()
{
    __syncwarp();
}

/* Registers go from the four warps that hardly need any to those that multiply. */
DEV void dev_more_registers()
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
#endif
}

DEV void dev_fewer_registers()
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
#endif
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

/* ---- Words that other blocks read: past the first cache, each 4 bytes whole ---- */

DEV void dev_put(uint32_t *at, uint32_t word)
{
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(at), "r"(word) : "memory");
}

DEV uint32_t dev_get(const uint32_t *at)
{
    uint32_t v;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(at) : "memory");
    return v;
}

DEV uint2 dev_get2(const uint32_t *at)
{
    uint2 v;
    asm volatile("ld.relaxed.gpu.global.v2.u32 {%0,%1}, [%2];"
                 : "=r"(v.x), "=r"(v.y)
                 : "l"(at)
                 : "memory");
    return v;
}

/* Four words where `yes`, without a branch: v stays as it is elsewhere. */
DEV void dev_get4_if(uint32_t yes, const uint32_t *at, uint4 &v)
{
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %5, 0; "
                 "@p ld.relaxed.gpu.global.v4.u32 {%0,%1,%2,%3}, [%4]; }"
                 : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w)
                 : "l"(at), "r"(yes)
                 : "memory");
}

/* Two words of 8 bytes, each whole. */
DEV void dev_get2_wide_if(uint32_t yes, const uint64_t *at, uint64_t (&v)[2])
{
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %3, 0; "
                 "@p ld.relaxed.gpu.global.v2.u64 {%0,%1}, [%2]; }"
                 : "+l"(v[0]), "+l"(v[1])
                 : "l"(at), "r"(yes)
                 : "memory");
}

DEV void dev_add_wide(uint64_t *at, uint64_t n)
{
    asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(at), "l"(n) : "memory");
}

/* All earlier writes of this thread are seen by other blocks before any later one. */
DEV void dev_fence()
{
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

DEV uint32_t dev_at_shared(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* 16 bytes to the block's memory, seen by this thread behind dev_copy_wait. */
DEV void dev_copy16(void *to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(dev_at_shared(to)), "l"(from)
                 : "memory");
}

DEV void dev_copy_wait()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* The line of 128 bytes -> the second cache. */
DEV void dev_prefetch(const void *at)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
}

/* Not 0 where the lowest bit is 1, by an instruction: the compiler takes a sum of many such bits apart into predicates,
 * which wait for each other. */
DEV uint32_t dev_lowest(uint32_t v)
{
    uint32_t top;
    asm volatile("shl.b32 %0, %1, 31;" : "=r"(top) : "r"(v));
    return top;
}

/* Nothing that looks at v is moved in front of this: else the compiler looks at the first of several words before it
 * asks for the second. */
DEV void dev_wait_for(uint32_t &v)
{
    asm volatile("" : "+r"(v)::"memory");
}

DEV void dev_wait_for_wide(uint64_t &v)
{
    asm volatile("" : "+l"(v)::"memory");
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
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(dev_at_shared(bar)), "r"(n)
                 : "memory");
}

DEV void dev_mbar_ready()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

DEV void dev_mbar_arrive(uint64_t *bar)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(dev_at_shared(bar)) : "memory");
}

/* What this thread has read of shared memory before is read before copies that a later arrival allows write there. */
DEV void dev_fence_copies()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

DEV void dev_mbar_expect(uint64_t *bar, uint32_t bytes)
{
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(dev_at_shared(bar)), "r"(bytes)
        : "memory");
}

/* True when the phase of this parity has ended; may wait a little. */
DEV bool dev_mbar_try(uint64_t *bar, uint32_t parity)
{
    uint32_t done;
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(dev_at_shared(bar)), "r"(parity)
        : "memory");
    return done != 0;
}

/* `keep`: the bytes are read again soon, so other data should leave the second cache before them. */
DEV uint64_t dev_policy(bool keep)
{
    uint64_t policy;
    if (keep) {
        asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    } else {
        asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    }
    return policy;
}

DEV void dev_bulk_copy(void *to, const void *from, uint32_t bytes, uint64_t *bar, uint64_t policy)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%0], [%1], %2, "
                 "[%3], %4;" ::"r"(dev_at_shared(to)),
                 "l"(from), "r"(bytes), "r"(dev_at_shared(bar)), "l"(policy)
                 : "memory");
}

/* ---- Two neighbouring blocks, in kernels that are launched as clusters of two: one writes the other's memory ---- */

/* The word -> the place of `mine` in the other block. */
DEV void dev_pair_put(uint32_t *mine, uint32_t word)
{
    uint32_t at;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(at)
                 : "r"(dev_at_shared(mine)), "r"(dev_block() % 2 ^ 1));
    asm volatile("st.relaxed.cluster.shared::cluster.u32 [%0], %1;" ::"r"(at), "r"(word) : "memory");
}

DEV uint32_t dev_pair_get(const uint32_t *mine)
{
    uint32_t v;
    asm volatile("ld.relaxed.cluster.shared::cta.u32 %0, [%1];"
                 : "=r"(v)
                 : "r"(dev_at_shared(mine))
                 : "memory");
    return v;
}

/* The same where `yes`, without a branch: v stays as it is elsewhere. */
DEV void dev_pair_get_if(uint32_t yes, const uint32_t *mine, uint32_t &v)
{
    asm volatile(
        "{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.relaxed.cluster.shared::cta.u32 %0, [%1]; }"
        : "+r"(v)
        : "r"(dev_at_shared(mine)), "r"(yes)
        : "memory");
}

/* Four words -> the place of `mine` in block `rank` of the two, which may be this one; each word is whole. */
DEV void dev_pair_put4(uint32_t *mine, int rank, const uint32_t (&words)[4])
{
    uint32_t at;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(at)
                 : "r"(dev_at_shared(mine)), "r"(rank));
    asm volatile("st.relaxed.cluster.shared::cluster.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(at),
                 "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
                 : "memory");
}

/* All threads of both that have not left; n: of each. */
DEV void dev_pair_bar(int n)
{
    (void)n;
    asm volatile("barrier.cluster.arrive.release.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
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
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
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

/* To 2^-21 of the result or of 1, what is larger; x from 2^-126 on. Without a way around smaller ones, which would be a
 * branch, so several go side by side. */
DEV float dev_log(float x)
{
    float power;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
    return power * 0x1.62e43p-1f;
}

/* To 2^-23 of the result. */
DEV float dev_reciprocal(float x)
{
    float v;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(v) : "f"(x));
    return v;
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
