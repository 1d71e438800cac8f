/* SPDX-License-Identifier: Apache-2.0
 * Failures that a test plants with HOST_FAULT in the environment, one or several with commas between them:
 *   cudaMalloc:3          the third call fails once; cudaMalloc:3+ from the third on
 *   any:120               the 120th call of all; any:120+
 *   cudaMalloc:3:cudaErrorUnknown    with this error instead of the usual one of the call
 *   launch:2=lost         the second launch ends at once without having run; launch:2=hangs never ends
 *   device:40=gone        from the 40th call on the device is not there any more
 *   memory=100000000      bytes of device memory that there are
 *   driver=12020          the driver knows CUDA 12.2, and cannot be used; driver=0: there is none
 *   mode=3                the GPU's enum cudaComputeMode; another process has it
 *   each:7                at each seventh call the program parts: in a child that call fails, as any:N would have
 *                         it, and the child goes on to its end; the program waits for it, and goes on as if nothing
 *                         had been. each:7-900: up to the 900th. each:7+, each:7:cudaErrorUnknown as above.
 *                         HOST_FAULT_LOG=FILE gets a line for each child: `140 cudaMalloc exit 0`, `... signal 11`,
 *                         or `... late` after HOST_FAULT_SECONDS (600)
 * HOST_FAULT_ONCE=FILE: only in the first program that comes to a failure, which makes this file.
 * HOST_FAULT_FROM=FILE: calls count, and fail, from the moment on that FILE is there.
 * HOST_COUNT_CALLS=FILE: at its end the program writes there how often each was called, as lines `cudaMalloc 12`,
 * with `any` and `launch` among them, so that a test can plant each. */
#ifndef TESTS_CUDA_HOST_RUNTIME_FAULTS_H
#define TESTS_CUDA_HOST_RUNTIME_FAULTS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Every function of the runtime that may fail, with the error that it fails with if nothing else is planted. */
#define HOST_CALLS(CALL)                                                                               \
    CALL(cudaDriverGetVersion, cudaErrorUnknown)                                                       \
    CALL(cudaGetDeviceCount, cudaErrorNoDevice)                                                        \
    CALL(cudaGetDevice, cudaErrorUnknown)                                                              \
    CALL(cudaSetDevice, cudaErrorDevicesUnavailable)                                                   \
    CALL(cudaGetDeviceProperties, cudaErrorUnknown)                                                    \
    CALL(cudaDeviceGetAttribute, cudaErrorUnknown)                                                     \
    CALL(cudaDeviceSynchronize, cudaErrorLaunchFailure)                                                \
    CALL(cudaMemGetInfo, cudaErrorUnknown)                                                             \
    CALL(cudaStreamCreate, cudaErrorUnknown)                                                           \
    CALL(cudaStreamCreateWithFlags, cudaErrorUnknown)                                                  \
    CALL(cudaStreamDestroy, cudaErrorLaunchFailure)                                                    \
    CALL(cudaStreamQuery, cudaErrorLaunchFailure)                                                      \
    CALL(cudaStreamSynchronize, cudaErrorLaunchFailure)                                                \
    CALL(cudaLaunchHostFunc, cudaErrorUnknown)                                                         \
    CALL(cudaEventCreate, cudaErrorUnknown)                                                            \
    CALL(cudaEventCreateWithFlags, cudaErrorUnknown)                                                   \
    CALL(cudaEventDestroy, cudaErrorLaunchFailure)                                                     \
    CALL(cudaEventRecord, cudaErrorUnknown)                                                            \
    CALL(cudaEventQuery, cudaErrorLaunchFailure)                                                       \
    CALL(cudaEventSynchronize, cudaErrorLaunchFailure)                                                 \
    CALL(cudaEventElapsedTime, cudaErrorNotReady)                                                      \
    CALL(cudaMalloc, cudaErrorMemoryAllocation)                                                        \
    CALL(cudaFree, cudaErrorLaunchFailure)                                                             \
    CALL(cudaHostAlloc, cudaErrorMemoryAllocation)                                                     \
    CALL(cudaFreeHost, cudaErrorLaunchFailure)                                                         \
    CALL(cudaHostGetDevicePointer, cudaErrorUnknown)                                                   \
    CALL(cudaMemcpy, cudaErrorLaunchFailure)                                                           \
    CALL(cudaMemcpyAsync, cudaErrorUnknown)                                                            \
    CALL(cudaMemcpy2DAsync, cudaErrorUnknown)                                                          \
    CALL(cudaMemset, cudaErrorUnknown)                                                                 \
    CALL(cudaMemsetAsync, cudaErrorUnknown)                                                            \
    CALL(cudaFuncSetAttribute, cudaErrorUnknown)                                                       \
    CALL(cudaFuncGetAttributes, cudaErrorUnknown)                                                      \
    CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor, cudaErrorUnknown)                              \
    CALL(cudaLaunchKernelExC, cudaErrorLaunchOutOfResources)                                           \
    CALL(cudaLaunchCooperativeKernel, cudaErrorCooperativeLaunchTooLarge)                              \
    CALL(cudaStreamBeginCapture, cudaErrorUnknown)                                                     \
    CALL(cudaStreamEndCapture, cudaErrorStreamCaptureInvalidated)                                      \
    CALL(cudaGraphInstantiate, cudaErrorMemoryAllocation)                                              \
    CALL(cudaGraphLaunch, cudaErrorUnknown)                                                            \
    CALL(cudaGraphExecDestroy, cudaErrorUnknown)                                                       \
    CALL(cudaGraphDestroy, cudaErrorUnknown)                                                           \
    CALL(cudaProfilerStart, cudaErrorUnknown)                                                          \
    CALL(cudaProfilerStop, cudaErrorUnknown)

#define HOST_CALL_ENUM(name, error) CALL_##name,
enum host_call { HOST_CALLS(HOST_CALL_ENUM) HOST_N_CALLS };
#undef HOST_CALL_ENUM

/* Counts a call; cudaSuccess, or the failure that is planted for it. */
cudaError_t fault_of_call(enum host_call call);
const char *fault_call_name(enum host_call call);
/* Counts a launch. */
enum fault_launch { FAULT_NONE, FAULT_LOST, FAULT_HANGS };
enum fault_launch fault_of_launch(void);
/* The device memory that is planted; 0: none. */
uint64_t fault_memory(void);
/* The planted driver's version; -1: none is planted. */
int fault_driver(void);
/* The planted compute mode; 0: none. */
int fault_mode(void);

/* The name of each error of cuda_runtime_api.h; cudaErrorUnknown's of a number that it has not. */
const char *fault_error_name(cudaError_t error);

#ifdef __cplusplus
}
#endif

#endif
