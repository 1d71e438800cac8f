/* SPDX-License-Identifier: Apache-2.0
 * The kernels of vnni.c, but the vocoder's convolutions beside packed weights, which are products of bf16 on
 * tiles (AMX). */
#if defined(__x86_64__)
#define KERN_TABLE kern_amx
#define KERN_NAME "amx"
#define KERN_TILES
#include "cpu/kernels/body.h"
#else
#include "cpu/kernels/kern.h" /* a file must hold something */
#endif
