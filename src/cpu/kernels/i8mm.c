/* SPDX-License-Identifier: Apache-2.0
 * The kernels of neon.c, with dot products of bytes with and without a sign (FEAT_I8MM), for products with packed
 * weights. */
#if defined(__aarch64__)
#define KERN_TABLE kern_i8mm
#define KERN_NAME "i8mm"
#define KERN_NEON 1
#include "cpu/kernels/body.h"
#else
#include "cpu/kernels/kern.h" /* a file must hold something */
#endif
