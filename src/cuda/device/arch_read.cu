/* SPDX-License-Identifier: Apache-2.0
 * What this thread's device and the code for it can do: the one place that asks the runtime. */
#include "cuda/device/arch_read.h"

#include "cuda/lib/ptx.cuh"

namespace {

/* Never launched, only asked for: each has shared memory only in code of its kind, because the runtime tells the
 * version of a kernel's code without the letter behind it. The first: for sm_90a; the second: also for a family. */
__global__ void groups_kernel(int *to)
{
#if PTX_GROUPS
    PTX_NEEDS_GROUPS;
    __shared__ int sign[1];
    sign[0] = (int)threadIdx.x;
    __syncthreads();
    *to = sign[0];
#endif
}

__global__ void moves_kernel(int *to)
{
#if PTX_MOVES
    PTX_NEEDS_MOVES;
    __shared__ int sign[1];
    sign[0] = (int)threadIdx.x;
    __syncthreads();
    *to = sign[0];
#endif
}

} // namespace

cudaError_t cuda_arch_read(
    struct cuda_arch *arch, const struct cudaDeviceProp *properties, const struct cuda_arch *as)
{
    cudaFuncAttributes code = {}, moves = {};
    cudaError_t result = cudaFuncGetAttributes(&code, groups_kernel);
    result = result ? result : cudaFuncGetAttributes(&moves, moves_kernel);
    if (result != cudaSuccess) {
        return result;
    }
    *arch = cuda_arch{};
    arch->capability = cuda_arch_capability(properties);
    /* Where the driver has translated portable code, the first is what it was written for, which says what it holds. */
    arch->code = code.ptxVersion < code.binaryVersion ? code.ptxVersion : code.binaryVersion;
    arch->n_sms = properties->multiProcessorCount;
    arch->block_shared = properties->sharedMemPerBlockOptin;
    arch->sm_shared = properties->sharedMemPerMultiprocessor;
    arch->l2_bytes = (size_t)properties->l2CacheSize;
    cuda_arch_derive(arch, code.sharedSizeBytes > 0    ? CUDA_CODE_90A
                           : moves.sharedSizeBytes > 0 ? CUDA_CODE_FAMILY
                                                       : CUDA_CODE_PLAIN);
    if (as) {
        cuda_arch_limit(arch, as);
    }
    return cudaSuccess;
}
