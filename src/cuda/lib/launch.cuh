/* SPDX-License-Identifier: Apache-2.0
 * One way to launch the room's kernels: one parameter, and where the device can, the kernel may be put beside the one
 * in front of it before that one has ended (ptx.cuh). */
#ifndef CUDA_LIB_LAUNCH_CUH
#define CUDA_LIB_LAUNCH_CUH

#include "cuda/lib/ptx.cuh"

template <typename P>
static cudaError_t launch(void (*kernel)(P), dim3 grid, int n_threads, bool overlaps,
    cudaStream_t stream, const P &parameter, int shared_bytes = 0)
{
    cudaLaunchAttribute attribute;
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = dim3((unsigned)n_threads);
    config.dynamicSmemBytes = (size_t)shared_bytes;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = overlaps ? 1 : 0;
    return cudaLaunchKernelEx(&config, kernel, parameter);
}

/* As much of the L1 cache as shared memory as there can be. */
static inline cudaError_t prefer_shared(const void *kernel)
{
    return cudaFuncSetAttribute(
        kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
}

/* The sum of a value over all threads of a warp, the same in each of them. */
template <typename T> static __device__ __forceinline__ T warp_sum(T v)
{
    for (int step = 16; step > 0; step /= 2) {
        v += __shfl_xor_sync(0xffffffffu, v, step);
    }
    return v;
}

static __device__ __forceinline__ float bf16_value(uint16_t bits)
{
    return __uint_as_float((uint32_t)bits << 16);
}

#endif
