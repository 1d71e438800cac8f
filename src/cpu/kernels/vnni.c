/* SPDX-License-Identifier: Apache-2.0
 * The kernels as 16 lanes with fused multiply-add, and with fused products of integers (AVX-512 VNNI). */
#if defined(__x86_64__)
#define KERN_TABLE kern_vnni
#define KERN_NAME "avx512vnni"
#include "cpu/kernels/body.h"
#else
#include "cpu/kernels/kern.h" /* a file must hold something */
#endif
