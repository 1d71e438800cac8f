/* SPDX-License-Identifier: Apache-2.0
 * The host's bodies of src/cuda/lib/ptx.cuh, which says what each does. */
#ifndef TESTS_CUDA_HOST_CUDA_HOST_PLAIN_H
#define TESTS_CUDA_HOST_CUDA_HOST_PLAIN_H

#include "tests/cuda/host/ptx/ptx.h"

/* Every body of every kernel is there; which of them a card's code has is asked when it runs. */
#define PTX_GROUPS 1
#define PTX_MOVES 1
#define PTX_BULK 1
#define PTX_HALF_SLOTS (host_card()->code >= 120)
#define PTX_KEEPS (host_card()->code >= 120)

/* Signs in a kernel's body, which the engine finds among the program's symbols. */
#define PTX_NEEDS_GROUPS static char host_needs_90a __attribute__((used))
#define PTX_NEEDS_MOVES static char host_needs_family __attribute__((used))
#define PTX_PAIRS
#define PTX_IN_PAIRS static char host_in_pairs __attribute__((used))

#define PTX_DYNAMIC_SHARED(T, name, align) T *const name = (T *)host_dynamic_shared()

template <typename K> static inline const void *ptx_kernel(K *kernel)
{
    return host_kernel_address(kernel);
}

static inline uint32_t ptx_shared_at(const void *at)
{
    return host_shared_address(at);
}

static inline uint4 ptx_load_once(const void *at)
{
    uint4 v;
    host_read(at, &v, sizeof v, "ld.global.nc");
    return v;
}

static inline void ptx_prefetch(const void *at)
{
    host_prefetch(at);
}

static inline void ptx_wait_for_earlier()
{
    host_wait_for_earlier();
}

static inline void ptx_let_next_begin()
{
    host_let_next_begin();
}

template <typename T> static inline void ptx_need(T)
{
}

template <typename T> static inline void ptx_hold(T &)
{
}

static inline int ptx_thread()
{
    return (int)host_id(HOST_THREAD_X);
}

static inline bool ptx_one()
{
    return host_elect();
}

template <int N> static inline void ptx_registers_less()
{
    host_registers(N, false);
}

template <int N> static inline void ptx_registers_more()
{
    host_registers(N, true);
}

static inline uint32_t ptx_lowest(uint32_t v)
{
    return v << 31;
}

static inline float ptx_mul(float a, float b)
{
    return a * b;
}

static inline float ptx_add(float a, float b)
{
    return a + b;
}

static inline float ptx_reciprocal(float x)
{
    return host_reciprocal(x);
}

static inline float ptx_log2(float x)
{
    return host_log2(x);
}

static inline uint32_t pack_bf16(float low, float high)
{
    return host_pack_bf16(low, high);
}

/* For launch bounds, which the bench does not look at. */
#define PTX_OVERLAPS true
#define PTX_100_KB false

#endif
