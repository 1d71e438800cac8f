/* SPDX-License-Identifier: Apache-2.0
 * The kernels as 4 lanes with fused multiply-add, which every 64-bit Arm has. */
#if defined(__aarch64__)
#define KERN_TABLE kern_neon
#define KERN_NAME "neon"
#define KERN_NEON 1
#include "cpu/kernels/body.h"
#else
#include "cpu/kernels/kern.h" /* a file must hold something */
#endif
