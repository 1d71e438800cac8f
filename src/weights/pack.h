/* SPDX-License-Identifier: Apache-2.0
 * Packed weights: a matrix as integers of 8 or 4 bits, with one scale for every PACK_GROUP numbers of a
 * row. Comes in: rows of floats. Goes out: blocks that a kernel reads from the first byte to the last.
 *
 * A block holds PACK_ROWS rows; rows and columns that the matrix lacks are zeros. In a block:
 *   scales  bf16 [n_groups][PACK_ROWS], filled up with zeros to a multiple of 64 bytes
 *   codes   Q8: int8 [n_groups][PACK_GROUP / 2][PACK_ROWS][2]
 *           Q4: 16-bit words, low byte first, [n_groups][PACK_GROUP / 8][PACK_ROWS][2]; bits 4 i .. 4 i + 3 of
 *           word [g][q][r][e] are 8 + the code of column 32 g + 8 q + 2 i + e of row r
 * and weight = code * scale, codes -127 .. 127 or -8 .. 7. In a file a packed matrix is a tensor U32
 * [n_blocks][words of a block] under its own name. */
#ifndef WEIGHTS_PACK_H
#define WEIGHTS_PACK_H

#include "weights/safetensors.h"

enum { PACK_ROWS = 16, PACK_GROUP = 32 };

bool pack_is(enum dtype type); /* DTYPE_Q8 or DTYPE_Q4 */
int64_t pack_groups(int64_t cols);
/* Bytes of the scales of a block, and of a block. */
size_t pack_scale_bytes(int64_t cols);
size_t pack_block_bytes(enum dtype type, int64_t cols);
int64_t pack_blocks(int64_t rows);

/* One block of n_rows (1 .. PACK_ROWS) rows of floats, [n_rows][cols]. The scale of a group is the one of least
 * squares among several trials; a group with a NaN gets the scale NaN. `out` holds
 * pack_block_bytes bytes. */
void pack_block(void *out, enum dtype type, const float *rows, int64_t n_rows, int64_t cols);
/* One row of packed blocks as floats: out[cols]. */
void pack_row(const void *blocks, enum dtype type, int64_t cols, int64_t row, float *out);

#endif
