/* SPDX-License-Identifier: Apache-2.0
 * Products of bf16 as tensor cores make them, for one warp's mma and for the warps of a wgmma alike: the numbers that
 * a product's columns are added up in, in fp32 and in the order of k. A product of two bf16 has no rounding. */
#ifndef TESTS_CUDA_HOST_PTX_PTX_MATRIX_H
#define TESTS_CUDA_HOST_PTX_PTX_MATRIX_H

#include "tests/cuda/host/ptx/ptx.h"

/* A warp's operand a (four registers of each lane) as 16 rows of 16 numbers. */
void matrix_rows(uint32_t a[HOST_WARP][4], float rows[16][16]);
/* sums += rows * columns, of n columns (whole eights); numbers of a k, and sums of a row, lie beside each other. */
void matrix_product(float rows[16][16], const float *columns, int n, float *sums);

#endif
