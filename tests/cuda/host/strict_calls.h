/* SPDX-License-Identifier: Apache-2.0
 * Put in front of kernels that are compiled for the strict checker (-include): what they do by memcpy and its kin is
 * seen too. */
#ifndef TESTS_CUDA_HOST_STRICT_CALLS_H
#define TESTS_CUDA_HOST_STRICT_CALLS_H

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

void *strict_memcpy(void *to, const void *from, size_t bytes);
void *strict_memmove(void *to, const void *from, size_t bytes);
void *strict_memset(void *at, int value, size_t bytes);

#ifdef __cplusplus
}
#endif

#define memcpy(to, from, bytes) strict_memcpy(to, from, bytes)
#define memmove(to, from, bytes) strict_memmove(to, from, bytes)
#define memset(at, value, bytes) strict_memset(at, value, bytes)

#endif
