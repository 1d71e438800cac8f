/* SPDX-License-Identifier: Apache-2.0
 * Ranges for a profiler's picture; nobody looks at them on the host bench, but they must be closed as often as they
 * are opened (runtime_device.c). */
#ifndef TESTS_CUDA_HOST_NVTOOLSEXT_H
#define TESTS_CUDA_HOST_NVTOOLSEXT_H

#ifdef __cplusplus
extern "C" {
#endif

int nvtxRangePushA(const char *name);
int nvtxRangePop(void);

#ifdef __cplusplus
}
#endif

#endif
