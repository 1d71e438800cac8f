/* SPDX-License-Identifier: Apache-2.0
 * Words that threads and blocks tell each other, in an order: loads and stores past the L1 cache,
 * fences, barriers of some of a block's threads, clusters. For kernels only; two bodies, as ptx.cuh
 * says. A word, of the size that it is loaded and stored with, is always whole. */
#ifndef CUDA_LIB_PTX_ORDER_CUH
#define CUDA_LIB_PTX_ORDER_CUH

#include "cuda/lib/ptx.cuh"

#ifdef UTTER_CUDA_HOST
#include <cuda_host_order.h>
#else

/* ---- From block to block, through the L2 cache ---- */

static __device__ __forceinline__ void ptx_store(uint32_t *at, uint32_t word)
{
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(at), "r"(word) : "memory");
}

static __device__ __forceinline__ void ptx_store(uint64_t *at, uint64_t word)
{
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(at), "l"(word) : "memory");
}

/* Two words of 8 bytes beside each other. */
static __device__ __forceinline__ void ptx_store_two(uint64_t *at, uint64_t first, uint64_t second)
{
    asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1,%2};" ::"l"(at), "l"(first), "l"(second)
                 : "memory");
}

static __device__ __forceinline__ uint32_t ptx_load(const uint32_t *at)
{
    uint32_t v;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(at) : "memory");
    return v;
}

static __device__ __forceinline__ uint64_t ptx_load(const uint64_t *at)
{
    uint64_t v;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(at) : "memory");
    return v;
}

/* Two words beside each other. */
static __device__ __forceinline__ uint2 ptx_load_two(const uint32_t *at)
{
    uint2 v;
    asm volatile("ld.relaxed.gpu.global.v2.u32 {%0,%1}, [%2];"
                 : "=r"(v.x), "=r"(v.y)
                 : "l"(at)
                 : "memory");
    return v;
}

/* Four words where `yes`, without a branch: v stays as it is elsewhere. */
static __device__ __forceinline__ void ptx_load_four_if(uint32_t yes, const uint32_t *at, uint4 &v)
{
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %5, 0; "
                 "@p ld.relaxed.gpu.global.v4.u32 {%0,%1,%2,%3}, [%4]; }"
                 : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w)
                 : "l"(at), "r"(yes)
                 : "memory");
}

/* The same with two words of 8 bytes. */
static __device__ __forceinline__ void ptx_load_two_if(
    uint32_t yes, const uint64_t *at, uint64_t (&v)[2])
{
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %3, 0; "
                 "@p ld.relaxed.gpu.global.v2.u64 {%0,%1}, [%2]; }"
                 : "+l"(v[0]), "+l"(v[1])
                 : "l"(at), "r"(yes)
                 : "memory");
}

/* Four floats at a border of 16 bytes, of which the first n are of a result: others may write the rest meanwhile. */
static __device__ __forceinline__ float4 ptx_load_first_floats(const float *at, int n)
{
    (void)n; /* for the bench, which watches what is read */
    return *(const float4 *)at;
}

/* A number that several blocks find alike: each stores it, and reads its own or another's, which is the same. */
static __device__ __forceinline__ void ptx_store_alike(float *at, float value)
{
    *at = value;
}

static __device__ __forceinline__ float ptx_load_alike(const float *at)
{
    return *at;
}

/* What this thread has done comes before what others do behind ptx_follows with the same address, since they do it with
 * what was computed from this thread's words: for the bench, to which words that are loaded order nothing. */
static __device__ __forceinline__ void ptx_leads_to(const void *)
{
}

static __device__ __forceinline__ void ptx_follows(const void *)
{
}

/* What comes after it sees what came before the addition of ptx_add_last that made this word. */
static __device__ __forceinline__ uint32_t ptx_load_first(const uint32_t *at)
{
    uint32_t v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(at) : "memory");
    return v;
}

/* Adds 1, after all that this thread has done or has seen of others. */
static __device__ __forceinline__ void ptx_add_last(uint32_t *at)
{
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(at) : "memory");
}

static __device__ __forceinline__ void ptx_add_to(uint64_t *at, uint64_t n)
{
    asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(at), "l"(n) : "memory");
}

/* All earlier writes of this thread are seen by other blocks before any later one. */
static __device__ __forceinline__ void ptx_fence()
{
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

/* ---- Some threads of a block ---- */

/* Barrier number ID of a block, of N threads. */
template <int ID, int N> static __device__ __forceinline__ void ptx_some_barrier()
{
    asm volatile("bar.sync %0, %1;" ::"n"(ID), "n"(N) : "memory");
}

/* The same; how many of them said yes. */
template <int ID, int N> static __device__ __forceinline__ int ptx_some_count(bool yes)
{
    int n;
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %1, 0; bar.red.popc.u32 %0, %2, %3, p; }"
                 : "=r"(n)
                 : "r"((int)yes), "n"(ID), "n"(N)
                 : "memory");
    return n;
}

/* ---- A cluster ---- */

/* The same place in the shared memory of another block of the cluster. */
static __device__ __forceinline__ uint32_t ptx_cluster_map(uint32_t at, uint32_t rank)
{
    uint32_t there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank));
    return there;
}

/* A barrier of all threads of the cluster's blocks. */
static __device__ __forceinline__ void ptx_cluster_barrier()
{
    asm volatile("barrier.cluster.arrive.release;\n"
                 "barrier.cluster.wait.acquire;" ::
                     : "memory");
}

/* The same by whole warps, without those that have left. */
static __device__ __forceinline__ void ptx_cluster_barrier_warps()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}

/* A word -> the place of `mine` in the other block of a cluster of two. */
static __device__ __forceinline__ void ptx_cluster_store_other(uint32_t *mine, uint32_t word)
{
    uint32_t at;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(at)
                 : "r"(ptx_shared_at(mine)), "r"((int)blockIdx.x % 2 ^ 1));
    asm volatile("st.relaxed.cluster.shared::cluster.u32 [%0], %1;" ::"r"(at), "r"(word) : "memory");
}

/* Four words, each of which is whole -> the place of `mine` in block `rank`. */
static __device__ __forceinline__ void ptx_cluster_store_four(
    uint32_t *mine, int rank, const uint32_t (&words)[4])
{
    uint32_t at;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(at)
                 : "r"(ptx_shared_at(mine)), "r"(rank));
    asm volatile("st.relaxed.cluster.shared::cluster.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(at),
                 "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
                 : "memory");
}

/* A word of this block's memory that another one writes. */
static __device__ __forceinline__ uint32_t ptx_cluster_load(const uint32_t *mine)
{
    uint32_t v;
    asm volatile("ld.relaxed.cluster.shared::cta.u32 %0, [%1];"
                 : "=r"(v)
                 : "r"(ptx_shared_at(mine))
                 : "memory");
    return v;
}

/* The same where `yes`, without a branch: v stays as it is elsewhere. */
static __device__ __forceinline__ void ptx_cluster_load_if(
    uint32_t yes, const uint32_t *mine, uint32_t &v)
{
    asm volatile(
        "{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.relaxed.cluster.shared::cta.u32 %0, [%1]; }"
        : "+r"(v)
        : "r"(ptx_shared_at(mine)), "r"(yes)
        : "memory");
}

#endif

#endif
