/* SPDX-License-Identifier: Apache-2.0
 * The instructions of the tile unit (AMX), by names that a test may give a meaning of its own; and the shape of the
 * eight tiles. Included by tiles.h and packed_tiles.h. */
#ifndef CPU_KERNELS_TILE_UNIT_H
#define CPU_KERNELS_TILE_UNIT_H

#include <stdint.h>

#if !defined(TILE_LOAD)
#define TILE_ZERO(n) _tile_zero(n)
#define TILE_LOAD(n, p, row_bytes) _tile_loadd(n, p, row_bytes)
#define TILE_STORE(n, p, row_bytes) _tile_stored(n, p, row_bytes)
#define TILE_DOT(sums, a, b) _tile_dpbf16ps(sums, a, b)
#define TILE_DOT_SIGNED(sums, a, b) _tile_dpbssd(sums, a, b)   /* signed bytes by signed ones */
#define TILE_DOT_UNSIGNED(sums, a, b) _tile_dpbusd(sums, a, b) /* unsigned bytes by signed ones */
#define TILES_BEGIN(shape) _tile_loadconfig(shape)
#define TILES_END() _tile_release()
#endif

/* Compilers do not see that tiles are loaded from memory and stored there. */
#define TILE_MEMORY() __asm__ volatile("" : : : "memory")

struct tile_shape {
    uint8_t palette, start, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

#endif
