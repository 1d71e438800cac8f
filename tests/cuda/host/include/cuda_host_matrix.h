/* SPDX-License-Identifier: Apache-2.0
 * The host's bodies of src/cuda/lib/ptx_matrix.cuh, which says what each does. */
#ifndef TESTS_CUDA_HOST_CUDA_HOST_MATRIX_H
#define TESTS_CUDA_HOST_CUDA_HOST_MATRIX_H

#include "tests/cuda/host/ptx/ptx.h"

static inline void ptx_mma(float (&d)[4], const uint4 &a, uint32_t b0, uint32_t b1)
{
    host_mma(d, &a, b0, b1);
}

static inline void ptx_mma_bytes(int32_t (&d)[4], const uint4 &a, uint32_t b0, uint32_t b1)
{
    host_mma_bytes(d, &a, b0, b1);
}

static inline void ptx_bytes_to_bf16(uint32_t bytes, uint32_t &low, uint32_t &high)
{
    float v[4];
    for (int i = 0; i < 4; i++) {
        v[i] = (float)(int8_t)(bytes >> 8 * i);
    }
    low = host_pack_bf16(v[0], v[1]);
    high = host_pack_bf16(v[2], v[3]);
}

static inline uint32_t ptx_nibbles_to_bf16(uint32_t two)
{
    return host_pack_bf16((float)(two & 15) - 8, (float)(two >> 16 & 15) - 8);
}

static inline uint4 ptx_blocks(const uint4 *at)
{
    uint4 v;
    host_blocks(at, false, &v);
    return v;
}

static inline uint4 ptx_blocks_transposed(const uint4 *at)
{
    uint4 v;
    host_blocks(at, true, &v);
    return v;
}

static inline void ptx_group_begin()
{
    host_group_begin();
}

static inline void ptx_group_end()
{
    host_group_end();
}

template <int N> static inline void ptx_group_wait(float (&)[N])
{
    host_group_wait();
}

template <int N>
static inline void ptx_group_mma(float (&d)[N], const uint4 &a, uint64_t b, uint32_t more)
{
    host_group_mma(d, 2 * N, &a, b, more != 0, false);
}

static inline void ptx_group_mma_transposed(float (&d)[64], const uint4 &a, uint64_t b, uint32_t more)
{
    host_group_mma(d, 128, &a, b, more != 0, true);
}

#endif
