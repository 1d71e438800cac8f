/* SPDX-License-Identifier: Apache-2.0
 * Products of bf16 as tensor cores make them, for one warp's mma and for the warps of a wgmma alike: the numbers that
 * a product's columns are added up in, in fp32 and in the order of k. A product of two bf16 has no rounding. */
#ifndef TESTS_CUDA_HOST_PTX_MATRIX_H
#define TESTS_CUDA_HOST_PTX_MATRIX_H

#include "tests/cuda/host/ptx.h"

/* Sums of eight columns; the compiler makes vector instructions of it where there are some. */
typedef float eight __attribute__((vector_size(32)));

/* A warp's operand a (four registers of each lane) as 16 rows of 16 numbers. */
void matrix_rows(uint32_t a[HOST_WARP][4], float rows[16][16]);
/* *sums += row * eight columns, whose numbers for each k lie `stride` floats apart. */
void matrix_product(const float row[16], const float *columns, int stride, eight *sums);

#endif
