/* SPDX-License-Identifier: Apache-2.0
 * CUDA C++ as the host bench compiles it with the host's compiler: the words that mark kernels and device functions,
 * the launches that know the types of a kernel's parameters, and the functions of the device (device_functions.h). */
#ifndef TESTS_CUDA_HOST_CUDA_RUNTIME_H
#define TESTS_CUDA_HOST_CUDA_RUNTIME_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
#include <string.h>

#include <type_traits>
#include <utility>

#include "tests/cuda/host/host.h"

/* ---- Words ---- */

#define __host__
#define __device__
#define __global__
#define __grid_constant__
#ifdef HOST_COUNTED /* what is always inlined has no lines of its own to be counted */
#define __forceinline__ inline
#else
#define __forceinline__ inline __attribute__((always_inline))
#endif
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __restrict__ __restrict
#ifndef __shared__
#define __shared__ static
#endif

/* ---- Kernels and their parameters ---- */

/* As host_kernel_add, for all threads of the host, and once only. */
extern "C" void host_kernel_register(const struct host_kernel *kernel);

/* Where the parameters of a kernel lie in one piece of memory: each at its alignment, as on a GPU. */
template <class... P> struct host_parameters {
    static constexpr int N = (int)sizeof...(P);

    static constexpr size_t place(int i)
    {
        constexpr size_t sizes[] = {sizeof(P)..., 0}, aligns[] = {alignof(P)..., 1};
        size_t at = 0;
        for (int k = 0; k <= i; k++) {
            at = (at + aligns[k] - 1) / aligns[k] * aligns[k];
            at += k < i ? sizes[k] : 0;
        }
        return at;
    }

    /* Not the kernel's own doing, and so strict does not look. */
    template <size_t... I>
    __attribute__((no_sanitize_thread)) static void call_at(
        void (*kernel)(P...), char *args, std::index_sequence<I...>)
    {
        (void)args;
        kernel(*(std::remove_const_t<P> *)(args + place((int)I))...);
    }

    __attribute__((no_sanitize_thread)) static void call(const void *code, void *args)
    {
        call_at((void (*)(P...))code, (char *)args, std::index_sequence_for<P...>());
    }
};

/* The same as a table. No variable of a function: those of kernels' files are taken for shared memory (symbols.c). */
template <class L, class I> struct host_parameter_table;
template <class... P, size_t... I>
struct host_parameter_table<host_parameters<P...>, std::index_sequence<I...>> {
    static constexpr struct host_parameter ALL[] = {
        {host_parameters<P...>::place((int)I), sizeof(P)}..., {0, 0}};
};

/* The address by which the runtime knows a kernel; whoever hands one to the runtime takes it from here. */
template <class... P> static inline const void *host_kernel_address(void (*kernel)(P...))
{
    using parameters = host_parameters<P...>;
    static_assert((std::is_trivially_copyable_v<P> && ...), "parameters are copied byte by byte");
    static_assert(parameters::place(parameters::N) <= 32764, "a launch has no room for more");
    struct host_kernel k = {};
    k.code = (const void *)kernel;
    k.call = parameters::call;
    k.args_bytes = parameters::place(parameters::N);
    k.n_parameters = parameters::N;
    k.parameters = host_parameter_table<parameters, std::index_sequence_for<P...>>::ALL;
    host_kernel_register(&k);
    return k.code;
}

/* ---- The runtime's functions for kernels with a type ---- */

template <class... P>
static inline cudaError_t host_launch_converted(
    const cudaLaunchConfig_t *config, void (*kernel)(P...), std::remove_const_t<P>... args)
{
    void *list[] = {(void *)&args..., nullptr};
    return cudaLaunchKernelExC(config, host_kernel_address(kernel), list);
}

template <class... P, class... A>
static inline cudaError_t cudaLaunchKernelEx(
    const cudaLaunchConfig_t *config, void (*kernel)(P...), A &&...args)
{
    static_assert(sizeof...(P) == sizeof...(A), "one argument for each parameter");
    return host_launch_converted<P...>(config, kernel, std::forward<A>(args)...);
}

template <class... P>
static inline cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(P...), dim3 grid, dim3 block,
    void **args, size_t shared_bytes = 0, cudaStream_t stream = nullptr)
{
    return cudaLaunchCooperativeKernel(
        host_kernel_address(kernel), grid, block, args, shared_bytes, stream);
}

template <class... P>
static inline cudaError_t cudaFuncSetAttribute(
    void (*kernel)(P...), cudaFuncAttribute attribute, int value)
{
    return cudaFuncSetAttribute(host_kernel_address(kernel), attribute, value);
}

template <class... P>
static inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, void (*kernel)(P...))
{
    return cudaFuncGetAttributes(attributes, host_kernel_address(kernel));
}

template <class... P>
static inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(
    int *n, void (*kernel)(P...), int threads, size_t shared_bytes)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        n, host_kernel_address(kernel), threads, shared_bytes);
}

template <class T> static inline cudaError_t cudaMalloc(T **at, size_t bytes)
{
    return cudaMalloc((void **)at, bytes);
}

template <class T> static inline cudaError_t cudaHostAlloc(T **at, size_t bytes, unsigned flags)
{
    return cudaHostAlloc((void **)at, bytes, flags);
}

#include "tests/cuda/host/include/device_functions.h"

#endif
#endif
