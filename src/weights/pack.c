/* SPDX-License-Identifier: Apache-2.0
 * Floats -> packed blocks and back. */
#include "weights/pack.h"

#include <math.h>
#include <string.h>

#include "base/minmax.h"
#include "base/numeric.h"

bool pack_is(enum dtype type)
{
    return type == DTYPE_Q8 || type == DTYPE_Q4;
}

int64_t pack_groups(int64_t cols)
{
    return (cols + PACK_GROUP - 1) / PACK_GROUP;
}

int64_t pack_blocks(int64_t rows)
{
    return (rows + PACK_ROWS - 1) / PACK_ROWS;
}

size_t pack_scale_bytes(int64_t cols)
{
    return ((size_t)pack_groups(cols) * PACK_ROWS * 2 + 63) & ~(size_t)63;
}

size_t pack_block_bytes(enum dtype type, int64_t cols)
{
    size_t codes = (size_t)pack_groups(cols) * PACK_ROWS * PACK_GROUP;
    return pack_scale_bytes(cols) + (type == DTYPE_Q8 ? codes : codes / 2);
}

/* ---- The scale of a group ---- */

typedef float lanes __attribute__((vector_size(16)));
enum { LANES = 4, VECTORS = PACK_GROUP / LANES };

struct fit {
    float dot, square; /* sums of x * code and of code * code */
};

static inline lanes round_lanes(lanes x, lanes low, lanes high)
{
    typedef int32_t whole __attribute__((vector_size(16)));
    const lanes round = {0x1.8p23f, 0x1.8p23f, 0x1.8p23f, 0x1.8p23f}; /* adding it rounds */
    lanes y = x + round - round;
    whole under = y<low, over = y> high;
    y = (lanes)(((whole)low & under) | ((whole)y & ~under));
    return (lanes)(((whole)high & over) | ((whole)y & ~over));
}

/* What codes of x * inverse, kept between low and high, have in common with x. */
static inline struct fit fit_group(const lanes *x, float inverse, float low, float high)
{
    lanes dot = {0}, square = {0}, least = {low, low, low, low}, most = {high, high, high, high};
    for (int i = 0; i < VECTORS; i++) {
        lanes code = round_lanes(x[i] * inverse, least, most);
        dot += x[i] * code;
        square += code * code;
    }
    return (struct fit){
        dot[0] + dot[1] + (dot[2] + dot[3]), square[0] + square[1] + (square[2] + square[3])};
}

/* For fixed codes the best scale is dot / square, and dot^2 / square is what it takes off the error. */
static float best_scale(const lanes *x, float most, enum dtype type)
{
    float scale = 0, gain = 0;
    /* The number of the largest magnitude goes to -8, or beside it: trials around that. */
    int n_trials = type == DTYPE_Q8 ? 1 : 14;
    for (int i = 0; i < n_trials; i++) {
        float reach = type == DTYPE_Q8 ? 127.0f : -9.0f + 0.2f * (float)i;
        struct fit f = type == DTYPE_Q8 ? fit_group(x, reach / fabsf(most), -127, 127)
                                        : fit_group(x, reach / most, -8, 7);
        if (f.square > 0 && f.dot * f.dot / f.square > gain) {
            gain = f.dot * f.dot / f.square;
            scale = f.dot / f.square;
        }
    }
    return scale;
}

/* codes[PACK_GROUP], which are 0, of n (1 ..) numbers; returns the scale as bf16. */
static uint16_t pack_group(int8_t *codes, enum dtype type, const float *from, int64_t n)
{
    lanes x[VECTORS] = {{0}};
    float most = 0, zeros = 0;
    memcpy(x, from, (size_t)n * sizeof *from);
    for (int64_t i = 0; i < n; i++) {
        most = fabsf(from[i]) > fabsf(most) ? from[i] : most;
        zeros += from[i] * 0;
    }
    if (zeros != 0) {
        return bf16_from_float(NAN);
    }
    uint16_t scale = fabsf(most) < 1e-30f ? 0 : bf16_from_float(best_scale(x, most, type));
    float inverse = bf16_to_float(scale) != 0 ? 1 / bf16_to_float(scale) : 0;
    float low = type == DTYPE_Q8 ? -127 : -8, high = type == DTYPE_Q8 ? 127 : 7;
    for (int i = 0; i < VECTORS; i++) {
        lanes code =
            round_lanes(x[i] * inverse, (lanes){low, low, low, low}, (lanes){high, high, high, high});
        for (int j = 0; j < LANES; j++) {
            codes[i * LANES + j] = (int8_t)code[j];
        }
    }
    return scale;
}

/* ---- Blocks ---- */

/* Where the code of column k (of a group) of row r stands in a group: a byte, or a word and a shift. */
static size_t place_q8(int r, int k)
{
    return (size_t)(k / 2 * PACK_ROWS + r) * 2 + (size_t)(k % 2);
}

static size_t place_q4(int r, int k, int *shift)
{
    *shift = 4 * (k % 8 / 2);
    return (size_t)(k / 8 * PACK_ROWS + r) * 2 + (size_t)(k % 2);
}

static void put_group(uint8_t *group, enum dtype type, int r, const int8_t *codes)
{
    for (int k = 0; k < PACK_GROUP; k++) {
        if (type == DTYPE_Q8) {
            group[place_q8(r, k)] = (uint8_t)codes[k];
        } else {
            int shift;
            uint8_t *word = group + 2 * place_q4(r, k, &shift);
            word[shift / 8] |= (uint8_t)((codes[k] + 8) << shift % 8);
        }
    }
}

void pack_block(void *out, enum dtype type, const float *rows, int64_t n_rows, int64_t cols)
{
    size_t scale_bytes = pack_scale_bytes(cols);
    size_t group_bytes = PACK_ROWS * PACK_GROUP / (type == DTYPE_Q8 ? 1 : 2);
    uint8_t *scales = out, *group = scales + scale_bytes;
    memset(out, 0, pack_block_bytes(type, cols));
    for (int64_t g = 0; g < pack_groups(cols); g++, group += group_bytes) {
        int64_t first = g * PACK_GROUP, n = min(cols - first, PACK_GROUP);
        for (int r = 0; r < PACK_ROWS; r++) {
            int8_t codes[PACK_GROUP] = {0};
            uint16_t scale = 0;
            if (r < n_rows) {
                scale = pack_group(codes, type, rows + r * cols + first, n);
            }
            uint8_t *at = scales + (size_t)(g * PACK_ROWS + r) * 2;
            at[0] = (uint8_t)scale;
            at[1] = (uint8_t)(scale >> 8);
            put_group(group, type, r, codes);
        }
    }
}

void pack_row(const void *blocks, enum dtype type, int64_t cols, int64_t row, float *out)
{
    const uint8_t *block =
        (const uint8_t *)blocks + (size_t)(row / PACK_ROWS) * pack_block_bytes(type, cols);
    const uint8_t *codes = block + pack_scale_bytes(cols);
    size_t group_bytes = PACK_ROWS * PACK_GROUP / (type == DTYPE_Q8 ? 1 : 2);
    int r = (int)(row % PACK_ROWS);
    for (int64_t i = 0; i < cols; i++) {
        int64_t g = i / PACK_GROUP;
        int k = (int)(i % PACK_GROUP), shift;
        const uint8_t *group = codes + (size_t)g * group_bytes,
                      *s = block + (size_t)(g * PACK_ROWS + r) * 2;
        int code;
        if (type == DTYPE_Q8) {
            code = (int8_t)group[place_q8(r, k)];
        } else {
            const uint8_t *word = group + 2 * place_q4(r, k, &shift);
            code = (word[shift / 8] >> shift % 8 & 15) - 8;
        }
        out[i] = (float)code * bf16_to_float((uint16_t)(s[0] | s[1] << 8));
    }
}
