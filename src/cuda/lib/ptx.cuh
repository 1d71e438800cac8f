/* SPDX-License-Identifier: Apache-2.0
 * Instructions that have no name in CUDA C, and what the compiler is told that differs between kinds of GPUs. For
 * kernels only; the products, copies and orders among them have files of their own (ptx_matrix.cuh,
 * ptx_copy.cuh, ptx_order.cuh).
 *
 * Each of these files has two bodies: one for GPUs, and one of the test bench that runs kernels on the host
 * (tests/cuda/host), which asks for it by UTTER_CUDA_HOST. No other file of this room knows of that. */
#ifndef CUDA_LIB_PTX_CUH
#define CUDA_LIB_PTX_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#ifdef UTTER_CUDA_HOST
#include <cuda_host_plain.h>
#else

/* 1 in code for sm_90a alone: products by four warps together (wgmma). */
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define PTX_GROUPS 1
#else
#define PTX_GROUPS 0
#endif

/* 1 in that and in code for a family of later GPUs (100f, 110f, 120f): registers from warp to warp (setmaxnreg). */
#if PTX_GROUPS || defined(__CUDA_ARCH_FAMILY_SPECIFIC__)
#define PTX_MOVES 1
#else
#define PTX_MOVES 0
#endif

/* 1 in code for GPUs that copy in bulk and put blocks in clusters; and where launches are compiled. */
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define PTX_BULK 1
#else
#define PTX_BULK 0
#endif

/* True in code for GPUs on which a kernel may begin before the one in front of it has ended. */
#define PTX_OVERLAPS (PTX_BULK != 0)

/* True in code for GPUs whose multiprocessors have 100 KB of shared memory (8.6, 8.9, 12.x). */
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200)
#define PTX_100_KB true
#else
#define PTX_100_KB false
#endif

/* True in code for GPUs whose blocks have 99 KB of shared memory, and bulk copies (12.x): rings have slots of half the
 * size (struct cuda_arch has the same). */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1200
#define PTX_HALF_SLOTS true
#else
#define PTX_HALF_SLOTS false
#endif

/* True in code for GPUs whose L2 cache may hold the weights of a stack (12.x). A B200's could too, but is two halves,
 * and nobody has measured what such marks do there. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1200
#define PTX_KEEPS true
#else
#define PTX_KEEPS false
#endif

/* Of a kernel whose blocks go in clusters of two, where there are clusters; and in its body, for the bench. */
#if PTX_BULK
#define PTX_PAIRS __cluster_dims__(2, 1, 1)
#else
#define PTX_PAIRS
#endif
#define PTX_IN_PAIRS

/* In the body of a kernel that has one only where PTX_GROUPS, or PTX_MOVES, is 1: the bench knows by it. */
#define PTX_NEEDS_GROUPS
#define PTX_NEEDS_MOVES

/* The block's dynamic shared memory as an array `name` of T at a multiple of `align`. */
#define PTX_DYNAMIC_SHARED(T, name, align)                                                             \
    extern __shared__ __align__(align)                                                                 \
    T name[]

/* A kernel as launches and settings know it. */
template <typename K> static inline const void *ptx_kernel(K *kernel)
{
    return (const void *)kernel;
}

/* The 32 bits by which instructions know a place in shared memory. */
static __device__ __forceinline__ uint32_t ptx_shared_at(const void *at)
{
    return (uint32_t)__cvta_generic_to_shared(at);
}

/* 16 bytes that nobody writes meanwhile and that are read once: they take no place in the L1 cache. */
static __device__ __forceinline__ uint4 ptx_load_once(const void *at)
{
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(at));
    return v;
}

/* The line of 128 bytes -> the L2 cache. */
static __device__ __forceinline__ void ptx_prefetch(const void *at)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
}

/* Waits until the kernels that this one depends on have ended and all that they wrote can be seen. Every kernel of
 * the room calls it before it reads or writes anything that is not a weight. */
static __device__ __forceinline__ void ptx_wait_for_earlier()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* From here on the next kernel may be put beside this one. */
static __device__ __forceinline__ void ptx_let_next_begin()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* Parameters that a kernel uses late, fetched now: those of a new launch lie in memory that no cache has seen. */
static __device__ __forceinline__ void ptx_need(const void *pointer)
{
    asm volatile("" ::"l"(pointer));
}

static __device__ __forceinline__ void ptx_need(int64_t value)
{
    asm volatile("" ::"l"(value));
}

static __device__ __forceinline__ void ptx_need(int value)
{
    asm volatile("" ::"r"(value));
}

/* Nothing that looks at v is moved in front of this: else the compiler looks at the first of several words before it
 * asks for the second. */
static __device__ __forceinline__ void ptx_hold(uint32_t &v)
{
    asm volatile("" : "+r"(v)::"memory");
}

static __device__ __forceinline__ void ptx_hold(uint64_t &v)
{
    asm volatile("" : "+l"(v)::"memory");
}

/* This thread, read anew: what follows from it is not kept in registers. */
static __device__ __forceinline__ int ptx_thread()
{
    int me;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(me));
    return me;
}

/* True in one thread of a warp, all of which come here; unlike a comparison with threadIdx.x it lets the compiler know
 * that there is only one. */
static __device__ __forceinline__ bool ptx_one()
{
    uint32_t one;
    asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(one));
    return one != 0;
}

/* Each thread has N registers from here on: fewer, so that other warps can take them, or more. All four warps of a team
 * call it together. Nothing where PTX_MOVES is 0. */
template <int N> static __device__ __forceinline__ void ptx_registers_less()
{
#if PTX_MOVES
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
#endif
}

template <int N> static __device__ __forceinline__ void ptx_registers_more()
{
#if PTX_MOVES
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
#endif
}

/* Not 0 where the lowest bit is 1, by an instruction: the compiler takes a sum of many such bits apart into
 * predicates, which wait for each other. */
static __device__ __forceinline__ uint32_t ptx_lowest(uint32_t v)
{
    uint32_t top;
    asm volatile("shl.b32 %0, %1, 31;" : "=r"(top) : "r"(v));
    return top;
}

/* Products and sums that are not made in one step with others, whatever stands around them; on the host too. */
static __host__ __device__ __forceinline__ float ptx_mul(float a, float b)
{
#ifdef __CUDA_ARCH__
    return __fmul_rn(a, b);
#else
    return a * b;
#endif
}

static __host__ __device__ __forceinline__ float ptx_add(float a, float b)
{
#ifdef __CUDA_ARCH__
    return __fadd_rn(a, b);
#else
    return a + b;
#endif
}

/* 1 / x to 2^-23 of the result; numbers below 2^-126 count as 0. */
static __device__ __forceinline__ float ptx_reciprocal(float x)
{
    float v;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(v) : "f"(x));
    return v;
}

/* The logarithm to base 2, to 2^-21 of the result or of 1, what is larger; x from 2^-126 on. Without a way around
 * smaller ones, which would be a branch, so several go side by side. */
static __device__ __forceinline__ float ptx_log2(float x)
{
    float power;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
    return power;
}

/* The two bf16 of one register; `low` stands in the lower half. Rounded to nearest even. */
static __device__ __forceinline__ uint32_t pack_bf16(float low, float high)
{
    uint32_t packed;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
}

#endif

#endif
