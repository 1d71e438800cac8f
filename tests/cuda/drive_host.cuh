/* SPDX-License-Identifier: Apache-2.0
 * What the programs share that check the host bench's runtime: how a result is told, two kernels, a launch. */
#ifndef TESTS_CUDA_DRIVE_HOST_CUH
#define TESTS_CUDA_DRIVE_HOST_CUH

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cuda/host/runtime/runtime.h"
#include "tests/cuda/host/thread.h"
#include <cuda_runtime.h>

static int n_passed, n_failed;

__attribute__((format(printf, 2, 3))) static void result(bool good, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    printf("%s ", good ? "ok  " : "FAIL");
    vprintf(format, list);
    printf("\n");
    fflush(stdout);
    va_end(list);
    n_passed += good;
    n_failed += !good;
}

namespace {

struct task {
    char before; /* so that the pointers lie at an odd place */
    const int *from;
    int *to;
    int n, add;
};

__device__ int place()
{
    return (int)(blockIdx.x * blockDim.x + threadIdx.x);
}

__global__ void add_kernel(const __grid_constant__ struct task t)
{
    for (int i = place(); i < t.n; i += (int)(gridDim.x * blockDim.x)) {
        t.to[i] = t.from[i] + t.add;
    }
}

__global__ void three_kernel(char a, int *to, short b)
{
    to[0] = a + b;
}

template <class... P, class... A>
cudaError_t go(void (*kernel)(P...), int blocks, int threads, size_t shared, cudaStream_t stream,
    const cudaLaunchAttribute *attribute, A... args)
{
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute copy = attribute ? *attribute : cudaLaunchAttribute{};
    config.gridDim = dim3((unsigned)blocks);
    config.blockDim = dim3((unsigned)threads);
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = &copy;
    config.numAttrs = attribute != nullptr;
    return cudaLaunchKernelEx(&config, kernel, args...);
}

int *device_ints(int n)
{
    int *at = nullptr;
    return cudaMalloc(&at, (size_t)n * sizeof *at) == cudaSuccess ? at : nullptr;
}

int *pinned_ints(int n)
{
    int *at = nullptr;
    return cudaHostAlloc(&at, (size_t)n * sizeof *at, cudaHostAllocMapped) == cudaSuccess ? at
                                                                                          : nullptr;
}

cudaStream_t new_stream(unsigned flags)
{
    cudaStream_t s = nullptr;
    return cudaStreamCreateWithFlags(&s, flags) == cudaSuccess ? s : nullptr;
}

} // namespace

#endif
