/* SPDX-License-Identifier: Apache-2.0
 * The kernels as 16 lanes with fused multiply-add. */
#if defined(__x86_64__)
#define KERN_TABLE kern_avx512
#define KERN_NAME "avx512"
#include "cpu/kernels/body.h"
#else
#include "cpu/kernels/kern.h" /* a file must hold something */
#endif
