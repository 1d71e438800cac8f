/* SPDX-License-Identifier: Apache-2.0
 * The host's bodies of src/cuda/lib/ptx_order.cuh, which says what each does. */
#ifndef TESTS_CUDA_HOST_CUDA_HOST_ORDER_H
#define TESTS_CUDA_HOST_CUDA_HOST_ORDER_H

#include "tests/cuda/host/ptx/ptx.h"

static inline void ptx_store(uint32_t *at, uint32_t word)
{
    host_store_word(at, &word, sizeof word);
}

static inline void ptx_store(uint64_t *at, uint64_t word)
{
    host_store_word(at, &word, sizeof word);
}

static inline void ptx_store_two(uint64_t *at, uint64_t first, uint64_t second)
{
    host_store_word(at, &first, sizeof first);
    host_store_word(at + 1, &second, sizeof second);
}

static inline uint32_t ptx_load(const uint32_t *at)
{
    uint32_t v;
    host_load_words(at, &v, sizeof v, sizeof v);
    return v;
}

static inline uint64_t ptx_load(const uint64_t *at)
{
    uint64_t v;
    host_load_words(at, &v, sizeof v, sizeof v);
    return v;
}

static inline uint2 ptx_load_two(const uint32_t *at)
{
    uint2 v;
    host_load_words(at, &v, sizeof v, sizeof *at);
    return v;
}

static inline void ptx_load_four_if(uint32_t yes, const uint32_t *at, uint4 &v)
{
    if (yes) {
        host_load_words(at, &v, sizeof v, sizeof *at);
    }
}

static inline void ptx_load_two_if(uint32_t yes, const uint64_t *at, uint64_t (&v)[2])
{
    if (yes) {
        host_load_words(at, v, sizeof v, sizeof *at);
    }
}

static inline float4 ptx_load_first_floats(const float *at, int n)
{
    float4 v;
    host_load_first(at, &v, n < 4 ? (size_t)n * sizeof *at : sizeof v, sizeof v);
    return v;
}

static inline void ptx_store_alike(float *at, float value)
{
    host_store_alike(at, &value, sizeof value);
}

static inline float ptx_load_alike(const float *at)
{
    float value;
    host_load_alike(at, &value, sizeof value);
    return value;
}

static inline void ptx_leads_to(const void *what)
{
    strict_release_to(what);
}

static inline void ptx_follows(const void *what)
{
    strict_acquire_from(what);
}

static inline uint32_t ptx_load_first(const uint32_t *at)
{
    return host_load_acquire(at);
}

static inline void ptx_add_last(uint32_t *at)
{
    host_atomic_add(at, 1, STRICT_RELEASE);
}

static inline void ptx_add_to(uint64_t *at, uint64_t n)
{
    host_atomic_add_wide(at, n, STRICT_RELAXED);
}

static inline void ptx_fence()
{
    host_fence(STRICT_GPU);
}

template <int ID, int N> static inline void ptx_some_barrier()
{
    host_some_barrier(ID, N, false);
}

template <int ID, int N> static inline int ptx_some_count(bool yes)
{
    return host_some_barrier(ID, N, yes);
}

static inline uint32_t ptx_cluster_map(uint32_t at, uint32_t rank)
{
    return host_cluster_map(at, (int)rank);
}

static inline void ptx_cluster_barrier()
{
    host_cluster_barrier();
}

static inline void ptx_cluster_barrier_warps()
{
    host_cluster_barrier();
}

static inline void ptx_cluster_store_other(uint32_t *mine, uint32_t word)
{
    host_cluster_store(mine, (int)host_id(HOST_BLOCK_X) % 2 ^ 1, &word, 1);
}

static inline void ptx_cluster_store_four(uint32_t *mine, int rank, const uint32_t (&words)[4])
{
    host_cluster_store(mine, rank, words, 4);
}

static inline uint32_t ptx_cluster_load(const uint32_t *mine)
{
    return host_cluster_load(mine);
}

static inline void ptx_cluster_load_if(uint32_t yes, const uint32_t *mine, uint32_t &v)
{
    if (yes) {
        v = host_cluster_load(mine);
    }
}

#endif
