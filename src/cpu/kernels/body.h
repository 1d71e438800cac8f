/* SPDX-License-Identifier: Apache-2.0
 * Every kernel once, over the vector layer. plain.c, avx2.c and their like include this after
 * they have named the table (KERN_TABLE, KERN_NAME); the compiler flags of that file choose the lanes. */
#include "cpu/kernels/kern.h"
#include "cpu/kernels/vector.h"

#include "cpu/kernels/conv.h"
#include "cpu/kernels/encode.h"
#include "cpu/kernels/linear.h"
#include "cpu/kernels/packed.h"
#if defined(KERN_TILES)
#include "cpu/kernels/tiles.h"
#else
#include "cpu/kernels/integer.h"
#endif

const struct kern KERN_TABLE = {
    .name = KERN_NAME,
    .matmul_bf16 = matmul_bf16,
    .matmul_f16 = matmul_f16,
    .matmul_f32 = matmul_f32,
    .packed_q8 = packed_q8,
    .packed_q4 = packed_q4,
    .round_q8 = round_q8,
    .round_q4 = round_q4,
    .conv = conv,
    .upconv = upconv,
    .integer = integer,
    .integer_round = integer_round,
    .integer_words = INTEGER_WORDS,
    .integer_by_time = INTEGER_BY_TIME,
    .snake = snake,
    .norm = norm,
    .rotate = rotate,
    .silu_mul = silu_mul,
    .gelu = gelu,
    .attend = attend,
    .elu = elu,
    .nearest = nearest,
};
