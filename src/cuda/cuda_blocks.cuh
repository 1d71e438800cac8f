/* SPDX-License-Identifier: Apache-2.0
 * Blocks of 8 x 8 bf16 from shared memory as operands of tensor cores. For kernels only. */
#ifndef CUDA_CUDA_BLOCKS_CUH
#define CUDA_CUDA_BLOCKS_CUH

#include "cuda/cuda_ptx.cuh"

/* Four blocks of 8 x 8 bf16 from shared memory, as ptx_mma wants b0 and b1 of two operands; thread l points at row
 * l % 8 of block l / 8. */
static __device__ __forceinline__ uint4 blocks_load(const uint4 *at)
{
    uint4 v;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"((uint32_t)__cvta_generic_to_shared(at)));
    return v;
}

/* The same, each block turned: for an operand whose columns lie beside each other. */
static __device__ __forceinline__ uint4 blocks_load_turned(const uint4 *at)
{
    uint4 v;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"((uint32_t)__cvta_generic_to_shared(at)));
    return v;
}

#endif
