/* SPDX-License-Identifier: Apache-2.0
 * Eight tiles of 16 x 16 words in plain C, with the sums in the order that the manual gives: for a machine that has
 * none. Include before cpu/kern_body.h, with KERN_TILES. */
#ifndef TESTS_CPU_TILE_EMULATION_H
#define TESTS_CPU_TILE_EMULATION_H

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { TILE_SIDE = 16 };
static uint32_t emulated_tiles[8][TILE_SIDE][TILE_SIDE];
static int emulated_begun; /* how many times more than ended */

static void emulated_load(int n, const void *p, size_t row_bytes)
{
    for (size_t i = 0; i < TILE_SIDE; i++) {
        memcpy(emulated_tiles[n][i], (const char *)p + i * row_bytes, sizeof emulated_tiles[n][i]);
    }
}

static void emulated_store(int n, void *p, size_t row_bytes)
{
    for (size_t i = 0; i < TILE_SIDE; i++) {
        memcpy((char *)p + i * row_bytes, emulated_tiles[n][i], sizeof emulated_tiles[n][i]);
    }
}

/* One of the two bf16 of a word. */
static float emulated_half(uint32_t word, int i)
{
    uint32_t bits = i ? word & 0xffff0000u : word << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void emulated_dot(int sums, int a, int b)
{
    for (int r = 0; r < TILE_SIDE; r++) {
        for (int c = 0; c < TILE_SIDE; c++) {
            float sum[2] = {0}, total;
            for (int k = 0; k < TILE_SIDE; k++) {
                for (int i = 0; i < 2; i++) {
                    sum[i] = fmaf(emulated_half(emulated_tiles[a][r][k], i),
                        emulated_half(emulated_tiles[b][k][c], i), sum[i]);
                }
            }
            memcpy(&total, &emulated_tiles[sums][r][c], sizeof total);
            total += sum[0] + sum[1];
            memcpy(&emulated_tiles[sums][r][c], &total, sizeof total);
        }
    }
}

#define TILE_ZERO(n) memset(emulated_tiles[n], 0, sizeof emulated_tiles[n])
#define TILE_LOAD(n, p, row_bytes) emulated_load(n, p, row_bytes)
#define TILE_STORE(n, p, row_bytes) emulated_store(n, p, row_bytes)
#define TILE_DOT(sums, a, b) emulated_dot(sums, a, b)
#define TILES_BEGIN(shape) ((void)(shape), (void)emulated_begun++)
#define TILES_END() ((void)emulated_begun--)

#endif
