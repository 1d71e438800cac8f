/* SPDX-License-Identifier: Apache-2.0
 * The profiler's switches; there is no profiler on the host bench. */
#ifndef TESTS_CUDA_HOST_CUDA_PROFILER_API_H
#define TESTS_CUDA_HOST_CUDA_PROFILER_API_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);

#ifdef __cplusplus
}
#endif

#endif
