/* SPDX-License-Identifier: Apache-2.0
 * What CUDA C has in device code without an include, for kernels that the host's compiler builds: who a thread is,
 * barriers, shuffles and votes, atomic additions, arithmetic that is rounded as written, functions of the C library.
 * The host's cuda_runtime.h includes it; vector types and the words of declarations (__global__ ...) are there. */
#ifndef TESTS_CUDA_HOST_DEVICE_FUNCTIONS_H
#define TESTS_CUDA_HOST_DEVICE_FUNCTIONS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "tests/cuda/host/ptx/ptx.h"

/* ---- Who ---- */

/* A number that is asked for each time: members of the runtime's structures have these names too, so no macros. */
template <enum host_id ID> struct host_number {
    operator unsigned() const
    {
        return host_id(ID);
    }
};
template <enum host_id X, enum host_id Y, enum host_id Z> struct host_numbers {
    host_number<X> x;
    host_number<Y> y;
    host_number<Z> z;
};
inline constexpr host_numbers<HOST_THREAD_X, HOST_THREAD_Y, HOST_THREAD_Z> threadIdx;
inline constexpr host_numbers<HOST_BLOCK_X, HOST_BLOCK_Y, HOST_BLOCK_Z> blockIdx;
inline constexpr host_numbers<HOST_THREADS_X, HOST_THREADS_Y, HOST_THREADS_Z> blockDim;
inline constexpr host_numbers<HOST_BLOCKS_X, HOST_BLOCKS_Y, HOST_BLOCKS_Z> gridDim;
enum { warpSize = HOST_WARP };

/* ---- Barriers, order, time ---- */

static inline int host_all_threads()
{
    return (int)(blockDim.x * blockDim.y * blockDim.z);
}

static inline void __syncthreads()
{
    host_all_seen();
    host_block_barrier(0, host_all_threads(), false);
}

static inline int __syncthreads_count(int yes)
{
    host_all_seen();
    return host_block_barrier(0, host_all_threads(), yes != 0);
}

static inline int __syncthreads_or(int yes)
{
    return __syncthreads_count(yes) != 0;
}

static inline int __syncthreads_and(int yes)
{
    return __syncthreads_count(yes) == host_all_threads();
}

static inline void __syncwarp(uint32_t mask = 0xffffffffu)
{
    host_warp_sync(mask);
}

static inline void __threadfence_block()
{
    host_fence(STRICT_CTA);
}

static inline void __threadfence()
{
    host_fence(STRICT_GPU);
}

static inline void __threadfence_system()
{
    host_fence(STRICT_SYS);
}

/* Loops that look at nothing but the clock are there too: others run meanwhile. */
static inline long long clock64()
{
    host_yield();
    return (long long)host_clock();
}

static inline void __nanosleep(unsigned)
{
    host_yield();
}

[[noreturn]] static inline void __trap()
{
    host_trap("__trap");
}

/* ---- Shared memory ---- */

static inline size_t __cvta_generic_to_shared(const void *at)
{
    return host_shared_address(at);
}

static inline void *__cvta_shared_to_generic(size_t at)
{
    return host_shared_pointer((uint32_t)at, 1);
}

/* ---- A warp ---- */

static inline int host_lane()
{
    return (int)host_id(HOST_LANE);
}

template <typename T> static inline T host_shuffled(uint32_t mask, T v, int from)
{
    static_assert(sizeof(T) <= 8, "shuffles are of 4 and 8 bytes");
    host_shuffle(mask, &v, sizeof v, from);
    return v;
}

template <typename T> static inline T __shfl_sync(uint32_t mask, T v, int from)
{
    return host_shuffled(mask, v, from);
}

template <typename T> static inline T __shfl_xor_sync(uint32_t mask, T v, int flip)
{
    return host_shuffled(mask, v, host_lane() ^ flip);
}

template <typename T> static inline T __shfl_up_sync(uint32_t mask, T v, unsigned n)
{
    return host_shuffled(mask, v, host_lane() >= (int)n ? host_lane() - (int)n : host_lane());
}

template <typename T> static inline T __shfl_down_sync(uint32_t mask, T v, unsigned n)
{
    const int from = host_lane() + (int)n;
    return host_shuffled(mask, v, from < HOST_WARP ? from : host_lane());
}

static inline uint32_t __ballot_sync(uint32_t mask, int yes)
{
    return host_ballot(mask, yes != 0);
}

static inline int __all_sync(uint32_t mask, int yes)
{
    return host_ballot(mask, yes != 0) == mask;
}

static inline int __any_sync(uint32_t mask, int yes)
{
    return host_ballot(mask, yes != 0) != 0;
}

static inline uint32_t __reduce_add_sync(uint32_t mask, uint32_t v)
{
    return host_reduce(mask, v, HOST_ADD);
}

static inline int __reduce_add_sync(uint32_t mask, int v)
{
    return (int)host_reduce(mask, (uint32_t)v, HOST_ADD);
}

static inline uint32_t __reduce_min_sync(uint32_t mask, uint32_t v)
{
    return host_reduce(mask, v, HOST_MIN);
}

static inline int __reduce_min_sync(uint32_t mask, int v)
{
    return (int)host_reduce(mask, (uint32_t)v, HOST_MIN_SIGNED);
}

static inline uint32_t __reduce_max_sync(uint32_t mask, uint32_t v)
{
    return host_reduce(mask, v, HOST_MAX);
}

static inline int __reduce_max_sync(uint32_t mask, int v)
{
    return (int)host_reduce(mask, (uint32_t)v, HOST_MAX_SIGNED);
}

/* ---- Memory ---- */

template <typename T> static inline T __ldg(const T *at)
{
    T v;
    host_read(at, &v, sizeof v, "__ldg");
    return v;
}

template <typename T> static inline T __ldcg(const T *at)
{
    T v;
    host_read(at, &v, sizeof v, "__ldcg");
    return v;
}

static inline uint32_t atomicAdd(uint32_t *at, uint32_t n)
{
    return host_atomic_add(at, n, STRICT_RELAXED);
}

static inline int atomicAdd(int *at, int n)
{
    return (int)host_atomic_add((uint32_t *)at, (uint32_t)n, STRICT_RELAXED);
}

static inline unsigned long long atomicAdd(unsigned long long *at, unsigned long long n)
{
    return host_atomic_add_wide((uint64_t *)at, n, STRICT_RELAXED);
}

static inline uint32_t atomicOr(uint32_t *at, uint32_t bits)
{
    return host_atomic_or(at, bits);
}

/* ---- Bits ---- */

static inline float __uint_as_float(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint32_t __float_as_uint(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static inline float __int_as_float(int bits)
{
    return __uint_as_float((uint32_t)bits);
}

static inline int __float_as_int(float f)
{
    return (int)__float_as_uint(f);
}

static inline int __popc(uint32_t bits)
{
    return __builtin_popcount(bits);
}

static inline int __ffs(int bits)
{
    return __builtin_ffs(bits);
}

static inline int __clz(int bits)
{
    return bits ? __builtin_clz((unsigned)bits) : 32;
}

/* ---- Arithmetic: the bench is built without fused products and sums ---- */

static inline float __fmul_rn(float a, float b)
{
    return a * b;
}

static inline float __fadd_rn(float a, float b)
{
    return a + b;
}

static inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}

static inline float __fsqrt_rn(float a)
{
    return sqrtf(a);
}

static inline float __fdiv_rn(float a, float b)
{
    return a / b;
}

static inline float __fdividef(float a, float b)
{
    return host_divide(a, b);
}

static inline long long __float2ll_rn(float x)
{
    return llrintf(x);
}

static inline float rsqrtf(float x)
{
    return 1.0f / sqrtf(x);
}

#define HOST_MIN_MAX(T)                                                                                \
    static inline T min(T a, T b)                                                                      \
    {                                                                                                  \
        return b < a ? b : a;                                                                          \
    }                                                                                                  \
    static inline T max(T a, T b)                                                                      \
    {                                                                                                  \
        return a < b ? b : a;                                                                          \
    }
HOST_MIN_MAX(int)
HOST_MIN_MAX(unsigned)
HOST_MIN_MAX(long)
HOST_MIN_MAX(unsigned long)
HOST_MIN_MAX(long long)
HOST_MIN_MAX(unsigned long long)
#undef HOST_MIN_MAX

static inline float min(float a, float b)
{
    return fminf(a, b);
}

static inline float max(float a, float b)
{
    return fmaxf(a, b);
}

#endif
