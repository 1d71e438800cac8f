/* SPDX-License-Identifier: Apache-2.0
 * Weights of 8 bits for the frame kernel, made from the bf16 tiles that are in device memory: the codes and scales of
 * weights/pack.c, number for number, in units of 16 rows by 256 columns. A unit is
 *   codes   8 tiles of 16 rows by 32 columns, 512 bytes each, in the order of the A operand of mma.m16n8k32: warp lane
 *           l finds in 16 bytes, with g = l / 4 and t = l % 4, columns 4 t .. 4 t + 3 of rows g and g + 8, then columns
 *           16 + 4 t .. of both
 *   scales  bf16 [8 tiles][8 rows g][2]: rows g and g + 8
 * and a row tile's units follow each other. */
#ifndef CUDA_PERSISTENT_FRAME_PACK_CUH
#define CUDA_PERSISTENT_FRAME_PACK_CUH

#include "base/numeric.h"
#include "cuda/lib/ptx.cuh"
#include "cuda/persistent/plan.h"

enum { PACK_COLUMNS = 32 };

/* Products and sums here are not made in one step: the numbers are to be those of the host. */

/* Element (row, k) of a bf16 row tile. */
NUMERIC_FN float pack_element(const uint16_t *row_tile, int row, int k)
{
    const int lane = row % 8 * 4 + k % 8 / 2, at = lane * 8 + k % 16 / 8 * 4 + row / 8 * 2 + k % 2;
    return bf16_to_float(row_tile[k / 16 * 256 + at]);
}

NUMERIC_FN float pack_round(float x, float inverse)
{
    float code = ptx_add(ptx_add(ptx_mul(x, inverse), 0x1.8p23f), -0x1.8p23f);
    return code < -127 ? -127 : code > 127 ? 127 : code;
}

/* The scale of a group: by codes of x * 127 / largest, then what fits these codes best. */
NUMERIC_FN uint16_t pack_scale(const float *x)
{
    float most = 0, zeros = 0, dot[4] = {0, 0, 0, 0}, square[4] = {0, 0, 0, 0};
    for (int i = 0; i < PACK_COLUMNS; i++) {
        float size = x[i] < 0 ? -x[i] : x[i];
        most = size > most ? size : most;
        zeros = ptx_add(zeros, ptx_mul(x[i], 0.0f));
    }
    if (zeros != 0) {
        return bf16_from_float(zeros);
    }
    if (most < 1e-30f) {
        return 0;
    }
    const float inverse = 127.0f / most;
    for (int i = 0; i < PACK_COLUMNS; i++) {
        const float code = pack_round(x[i], inverse);
        dot[i % 4] = ptx_add(dot[i % 4], ptx_mul(x[i], code));
        square[i % 4] = ptx_add(square[i % 4], ptx_mul(code, code));
    }
    const float all_dot = ptx_add(ptx_add(dot[0], dot[1]), ptx_add(dot[2], dot[3]));
    const float all_square = ptx_add(ptx_add(square[0], square[1]), ptx_add(square[2], square[3]));
    return all_dot > 0 && all_square > 0 ? bf16_from_float(all_dot / all_square) : 0;
}

/* Group `index` of a matrix of k_units units a row tile: 32 columns of one row. */
NUMERIC_FN void pack_place(unsigned char *to, const uint16_t *tiles, int k_units, int64_t index)
{
    const int row = (int)(index % 16);
    const int64_t group = index / 16, unit = group / 8; /* of all row tiles */
    const int64_t row_tile = unit / k_units;
    const int tile = (int)(group % 8), k = (int)(unit % k_units * FRAME_UNIT_K) + tile * PACK_COLUMNS;
    unsigned char *at = to + unit * FRAME_PACKED_BYTES;
    float x[PACK_COLUMNS];
    for (int i = 0; i < PACK_COLUMNS; i++) {
        x[i] = pack_element(tiles + row_tile * k_units * (FRAME_UNIT_K * 16), row, k + i);
    }
    const uint16_t scale = pack_scale(x);
    const float wide = bf16_to_float(scale), inverse = wide > 0 ? 1 / wide : 0;
    for (int i = 0; i < PACK_COLUMNS; i++) {
        const int lane = row % 8 * 4 + i % 16 / 4;
        at[tile * 512 + lane * 16 + i / 16 * 8 + row / 8 * 4 + i % 4] =
            (unsigned char)(int8_t)pack_round(x[i], inverse);
    }
    ((uint16_t *)(at + FRAME_CODES_BYTES))[tile * 16 + row % 8 * 2 + row / 8] = scale;
}

#endif
