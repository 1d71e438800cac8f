/* SPDX-License-Identifier: Apache-2.0
 * The kernels of avx2.c, with fused products of integers (AVX-VNNI): machines without 512-bit registers. */
#if defined(__x86_64__)
#define KERN_TABLE kern_avxvnni
#define KERN_NAME "avxvnni"
#include "cpu/kernels/body.h"
#else
#include "cpu/kernels/kern.h" /* a file must hold something */
#endif
