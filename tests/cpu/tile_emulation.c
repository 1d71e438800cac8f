/* SPDX-License-Identifier: Apache-2.0
 * Eight tiles of 16 x 16 words in plain C, with the sums in the order that the manual gives, for each thread; and the
 * table of kernels on them. It is compiled once for all programs that use it: kernels take longest. */
#include "tests/cpu/tile_emulation.h"

#include <stdint.h>
#include <string.h>

/* What only turns tiles into tiles touches no memory of a kernel: a sanitizer makes it slow and finds nothing. */
#define ON_TILES __attribute__((no_sanitize("address", "undefined")))

enum { TILE_SIDE = 16 };
static _Thread_local uint32_t emulated_tiles[8][TILE_SIDE][TILE_SIDE];
_Thread_local int emulated_begun;

static _Thread_local uint8_t emulated_shape
    [64]; /* as the unit takes it: 16 lengths of rows from byte 16 on, 16 counts of rows */

ON_TILES static size_t emulated_row_bytes(int n)
{
    return (size_t)(emulated_shape[16 + 2 * n] | emulated_shape[17 + 2 * n] << 8);
}

ON_TILES static size_t emulated_rows(int n)
{
    return emulated_shape[48 + n];
}

static void emulated_begin(const void *shape)
{
    emulated_begun++;
    memcpy(emulated_shape, shape, sizeof emulated_shape);
}

static void emulated_load(int n, const void *p, size_t row_bytes)
{
    memset(emulated_tiles[n], 0, sizeof emulated_tiles[n]);
    for (size_t i = 0; i < emulated_rows(n); i++) {
        memcpy(emulated_tiles[n][i], (const char *)p + i * row_bytes, emulated_row_bytes(n));
    }
}

static void emulated_store(int n, void *p, size_t row_bytes)
{
    for (size_t i = 0; i < emulated_rows(n); i++) {
        memcpy((char *)p + i * row_bytes, emulated_tiles[n][i], emulated_row_bytes(n));
    }
}

/* One of the two bf16 of a word. */
ON_TILES static float emulated_half(uint32_t word, int i)
{
    uint32_t bits = i ? word & 0xffff0000u : word << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

ON_TILES static void emulated_dot(int sums, int a, int b)
{
    for (int r = 0; r < TILE_SIDE; r++) {
        for (int c = 0; c < TILE_SIDE; c++) {
            float sum[2] = {0}, total;
            for (int k = 0; k < TILE_SIDE; k++) {
                for (int i = 0; i < 2; i++) {
                    /* Of two bf16 the product is exact in fp32: this is a fused step. */
                    sum[i] += emulated_half(emulated_tiles[a][r][k], i) *
                              emulated_half(emulated_tiles[b][k][c], i);
                }
            }
            memcpy(&total, &emulated_tiles[sums][r][c], sizeof total);
            total += sum[0] + sum[1];
            memcpy(&emulated_tiles[sums][r][c], &total, sizeof total);
        }
    }
}

/* Four bytes of a word; those of the first factor may have no sign. */
ON_TILES static void emulated_dot_bytes(int sums, int a, int b, int is_signed)
{
    for (size_t r = 0; r < emulated_rows(a); r++) {
        for (size_t c = 0; c < emulated_row_bytes(b) / 4; c++) {
            for (size_t k = 0; k < emulated_rows(b) && k < emulated_row_bytes(a) / 4; k++) {
                for (int i = 0; i < 4; i++) {
                    int32_t x = (int32_t)(emulated_tiles[a][r][k] >> (8 * i) & 0xff);
                    int8_t w = (int8_t)(emulated_tiles[b][k][c] >> (8 * i) & 0xff);
                    x = is_signed ? (int8_t)x : x;
                    emulated_tiles[sums][r][c] += (uint32_t)(x * w);
                }
            }
        }
    }
}

#define TILE_ZERO(n) memset(emulated_tiles[n], 0, sizeof emulated_tiles[n])
#define TILE_LOAD(n, p, row_bytes) emulated_load(n, p, row_bytes)
#define TILE_STORE(n, p, row_bytes) emulated_store(n, p, row_bytes)
#define TILE_DOT(sums, a, b) emulated_dot(sums, a, b)
#define TILE_DOT_SIGNED(sums, a, b) emulated_dot_bytes(sums, a, b, 1)
#define TILE_DOT_UNSIGNED(sums, a, b) emulated_dot_bytes(sums, a, b, 0)
#define TILES_BEGIN(shape) emulated_begin(shape)
#define TILES_END() ((void)emulated_begun--)

#define KERN_TABLE tiles_emulated
#define KERN_NAME "emulated"
#define KERN_TILES
#include "cpu/kernels/body.h"
