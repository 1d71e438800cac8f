/* SPDX-License-Identifier: Apache-2.0
 * The kernels of neon.c, with dot products of bytes (FEAT_DotProd), for products with packed weights. */
#if defined(__aarch64__)
#define KERN_TABLE kern_dotprod
#define KERN_NAME "dotprod"
#define KERN_NEON 1
#include "cpu/kernels/body.h"
#else
#include "cpu/kernels/kern.h" /* a file must hold something */
#endif
