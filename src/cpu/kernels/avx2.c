/* SPDX-License-Identifier: Apache-2.0
 * The kernels as 8 lanes with fused multiply-add. */
#if defined(__x86_64__)
#define KERN_TABLE kern_avx2
#define KERN_NAME "avx2"
#include "cpu/kernels/body.h"
#else
#include "cpu/kernels/kern.h" /* a file must hold something */
#endif
