/* SPDX-License-Identifier: Apache-2.0
 * Put in front of kernels that are compiled for the strict checker (-include): what functions of the library write
 * for them is seen too. */
#ifndef TESTS_CUDA_HOST_STRICT_STRICT_CALLS_H
#define TESTS_CUDA_HOST_STRICT_STRICT_CALLS_H

#include <math.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

void *strict_memcpy(void *to, const void *from, size_t bytes);
void *strict_memmove(void *to, const void *from, size_t bytes);
void *strict_memset(void *at, int value, size_t bytes);
void strict_sincosf(float x, float *sine, float *cosine);

#ifdef __cplusplus
}
#endif

#define memcpy(to, from, bytes) strict_memcpy(to, from, bytes)
#define memmove(to, from, bytes) strict_memmove(to, from, bytes)
#define sincosf(x, sine, cosine) strict_sincosf(x, sine, cosine)
#define memset(at, value, bytes) strict_memset(at, value, bytes)

#endif
