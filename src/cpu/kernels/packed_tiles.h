/* SPDX-License-Identifier: Apache-2.0
 * Products of packed weights with many columns on tiles of 16 x 16 sums of bytes (AMX): prompts, and many lanes.
 * Included by packed.h.
 *
 * The same bits as with few columns: a code of 16 bits is 256 times a signed byte and an unsigned byte (one of 8 bits
 * is a signed byte alone), and what a group gives is an integer, however it is added. Groups then follow each other
 * as they do there. */
#include "base/minmax.h"
#include "cpu/kernels/tile_unit.h"

enum {
    BYTE_COLUMNS = 64, /* that share one pass over the weights */
    /* Of columns that are worked on together: what they need stays in the L2 cache */
    BYTE_GROUPS = 32,
    BYTE_TILE = 16, /* columns of a tile, and rows of a block */
    BYTE_FEW = 8,   /* columns, at most, for which half of a tile's sums are left alone */
    BYTE_LEAST = 5, /* columns for which a tile is worth while */
    BYTE_QUADS = PACK_GROUP / 4,
};

/* Sums are in tiles 0 and 1, or 5 and 6; columns in 2 and 3, weights in 4. */
static const struct tile_shape byte_shape = {.palette = 1,
    .row_bytes = {64, 64, 32, 32, 64, 64, 64},
    .rows = {16, 16, 16, 16, BYTE_QUADS, 16, 16}};

/* One group of BYTE_TILE columns: both bytes of the codes, and the scales. */
struct byte_columns {
    _Alignas(64) uint8_t high[BYTE_TILE][PACK_GROUP], low[BYTE_TILE][PACK_GROUP];
    float scales[BYTE_TILE];
};

struct byte_room {
    struct byte_columns x[BYTE_COLUMNS / BYTE_TILE][BYTE_GROUPS];
    _Alignas(64) int8_t w[BYTE_GROUPS][BYTE_QUADS][PACK_ROWS][4];
    _Alignas(64)
        int32_t sums[2][2][BYTE_TILE][PACK_ROWS]; /* of groups in turn: of high bytes, of low ones */
};

/* Group g of n columns from c on, and zeros in the places of others. */
KERN_INLINE void byte_columns_split(
    enum dtype type, struct byte_columns *to, const struct kern_rounded *x, int c, int n, int64_t g)
{
    memset((uint8_t *)to->high + n * PACK_GROUP, 0, (size_t)(BYTE_TILE - n) * sizeof to->high[0]);
    memset((uint8_t *)to->low + n * PACK_GROUP, 0, (size_t)(BYTE_TILE - n) * sizeof to->low[0]);
    memset(to->scales + n, 0, (size_t)(BYTE_TILE - n) * sizeof to->scales[0]);
    for (int i = 0; i < n; i++) {
        int64_t at = (c + i) * x->n_groups + g;
        to->scales[i] = x->scales[at];
        if (type == DTYPE_Q4) {
            memcpy(to->high[i], x->bytes + at * PACK_GROUP, sizeof to->high[i]);
            continue;
        }
        const int16_t *codes = x->codes + at * PACK_GROUP;
#if KERN_LANES == 16
        __m512i v = _mm512_loadu_si512(codes);
        _mm256_store_si256((__m256i *)(void *)to->low[i], _mm512_cvtepi16_epi8(v));
        _mm256_store_si256(
            (__m256i *)(void *)to->high[i], _mm512_cvtepi16_epi8(_mm512_srai_epi16(v, 8)));
#else
        for (int k = 0; k < PACK_GROUP; k++) {
            to->low[i][k] = (uint8_t)(codes[k] & 0xff);
            to->high[i][k] = (uint8_t)((uint16_t)codes[k] >> 8);
        }
#endif
    }
}

/* One group of a block -> four columns of each row side by side. */
KERN_INLINE void byte_weights(enum dtype type, int8_t (*to)[PACK_ROWS][4], const uint8_t *codes)
{
#if KERN_LANES == 16
    if (type == DTYPE_Q8) {
        static const int16_t pairs_by_row[32] = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23,
            8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
        const __m512i order = _mm512_loadu_si512(pairs_by_row);
        KERN_UNROLL
        for (int q = 0; q < BYTE_QUADS; q++) {
            __m512i w = _mm512_loadu_si512(codes + q * 64);
            _mm512_store_si512(to[q], _mm512_permutexvar_epi16(order, w));
        }
    } else {
        const __m512i mask = _mm512_set1_epi8(15), eight = _mm512_set1_epi8(8);
        KERN_UNROLL
        for (int q = 0; q < BYTE_QUADS; q += 2) {
            __m512i w = _mm512_loadu_si512(codes + q * 32);
            __m512i high = _mm512_and_si512(_mm512_srli_epi16(w, 4), mask);
            _mm512_store_si512(to[q], _mm512_sub_epi8(_mm512_and_si512(w, mask), eight));
            _mm512_store_si512(to[q + 1], _mm512_sub_epi8(high, eight));
        }
    }
#else
    for (int i = 0; i < PACK_GROUP; i++) {
        for (int r = 0; r < PACK_ROWS; r++) {
            int pair = codes[(i / 2 * PACK_ROWS + r) * 2 + i % 2],
                nibble = codes[(i / 8 * PACK_ROWS + r) * 4 + i % 4] >> (i % 8 / 4 * 4) & 15;
            to[i / 4][r][i % 4] = (int8_t)(type == DTYPE_Q8 ? pair : nibble - 8);
        }
    }
#endif
}

/* What group g gives for a tile of columns, into the room's sums [odd]. */
KERN_INLINE void byte_group(
    enum dtype type, struct byte_room *room, const struct byte_columns *x, int64_t g, bool odd)
{
    const bool both = type == DTYPE_Q8;
    enum { W_ROW = 4 * PACK_ROWS, SUM_ROW = 4 * PACK_ROWS };
    TILE_LOAD(4, room->w[g], W_ROW);
    TILE_LOAD(2, x->high, PACK_GROUP);
    if (odd) {
        TILE_ZERO(5);
        TILE_DOT_SIGNED(5, 2, 4);
        TILE_STORE(5, room->sums[1][0], SUM_ROW);
    } else {
        TILE_ZERO(0);
        TILE_DOT_SIGNED(0, 2, 4);
        TILE_STORE(0, room->sums[0][0], SUM_ROW);
    }
    if (both) {
        TILE_LOAD(3, x->low, PACK_GROUP);
    }
    if (both && odd) {
        TILE_ZERO(6);
        TILE_DOT_UNSIGNED(6, 3, 4);
        TILE_STORE(6, room->sums[1][1], SUM_ROW);
    } else if (both) {
        TILE_ZERO(1);
        TILE_DOT_UNSIGNED(1, 3, 4);
        TILE_STORE(1, room->sums[0][1], SUM_ROW);
    }
    TILE_MEMORY();
}

enum { BYTE_VECTORS = PACK_ROWS / KERN_LANES };

/* out += the sums of one group, for the first `columns` columns. */
KERN_INLINE void byte_add(enum dtype type, int columns, vf (*out)[BYTE_VECTORS],
    int32_t (*const sums)[BYTE_TILE][PACK_ROWS], const struct byte_columns *x, const uint8_t *scales)
{
    KERN_UNROLL
    for (int v = 0; v < BYTE_VECTORS; v++) {
        vf scale = vf_bf16((const uint16_t *)(const void *)(scales + (ptrdiff_t)v * KERN_LANES * 2));
        KERN_UNROLL
        for (int c = 0; c < columns; c++) {
            vi sum, low;
            memcpy(&sum, sums[0][c] + v * KERN_LANES, sizeof sum);
            if (type == DTYPE_Q8) {
                memcpy(&low, sums[1][c] + v * KERN_LANES, sizeof low);
                sum = (sum << 8) + low;
            }
            vf both = scale * vf_set(x->scales[c]);
            out[c][v] = vf_fma(__builtin_convertvector(sum, vf), both, out[c][v]);
        }
    }
}

/* Groups g0 .. g0 + n_g of one block for `columns` columns, of which n are there; sums wait in y between them. `ahead`
 * lies a block further on and is asked for meanwhile. */
KERN_INLINE void byte_tile(enum dtype type, struct byte_room *room, int columns,
    const struct byte_columns *x, float *y, int64_t y_stride, int64_t n_rows, int n,
    const uint8_t *scales, bool first, int64_t n_g, const uint8_t *ahead, size_t group_bytes)
{
    vf out[BYTE_TILE][BYTE_VECTORS];
    KERN_UNROLL
    for (int c = 0; c < columns; c++) {
        KERN_UNROLL
        for (int v = 0; v < BYTE_VECTORS; v++) {
            int64_t left = n_rows - v * KERN_LANES;
            const float *at = y + c * y_stride + v * KERN_LANES;
            out[c][v] = first || c >= n || left <= 0 ? (vf){0}
                        : left >= KERN_LANES         ? vf_load(at)
                                                     : vf_load_part(at, left);
        }
    }
    byte_group(type, room, &x[0], 0, false);
    for (int64_t g = 0; g < n_g; g += 2) {
        for (size_t line = 0; ahead && line < 2 * group_bytes; line += 64) {
            __builtin_prefetch(ahead + (size_t)g * group_bytes + line);
        }
        if (g + 1 < n_g) {
            byte_group(type, room, &x[g + 1], g + 1, true);
        }
        byte_add(type, columns, out, room->sums[0], &x[g], scales + g * PACK_ROWS * 2);
        if (g + 2 < n_g) {
            byte_group(type, room, &x[g + 2], g + 2, false);
        }
        if (g + 1 < n_g) {
            byte_add(type, columns, out, room->sums[1], &x[g + 1], scales + (g + 1) * PACK_ROWS * 2);
        }
    }
    KERN_UNROLL
    for (int c = 0; c < columns; c++) {
        KERN_UNROLL
        for (int v = 0; v < BYTE_VECTORS; v++) {
            int64_t left = n_rows - v * KERN_LANES;
            float *at = y + c * y_stride + v * KERN_LANES;
            if (c < n && left >= KERN_LANES) {
                vf_store(at, out[c][v]);
            } else if (c < n && left > 0) {
                vf_store_part(at, out[c][v], left);
            }
        }
    }
}

/* Columns c0 .. c0 + n, at most BYTE_COLUMNS, over groups g0 .. g0 + n_g, at most BYTE_GROUPS. */
KERN_INLINE void byte_stretch(enum dtype type, struct byte_room *room, float *y, int64_t y_stride,
    const struct weight *w, int64_t r0, int64_t r1, const struct kern_rounded *x, int c0, int n,
    int64_t g0, int64_t n_g)
{
    const size_t block_bytes = pack_block_bytes(type, w->cols), scale_bytes = pack_scale_bytes(w->cols);
    const size_t group_bytes = PACK_ROWS * PACK_GROUP / (type == DTYPE_Q8 ? 1 : 2);
    for (int m = 0; m * BYTE_TILE < n; m++) {
        int first = c0 + m * BYTE_TILE, n_m = min(n - m * BYTE_TILE, BYTE_TILE);
        for (int64_t g = 0; g < n_g; g++) {
            byte_columns_split(type, &room->x[m][g], x, first, n_m, g0 + g);
        }
    }
    for (int64_t r = r0; r < r1; r += PACK_ROWS) {
        const uint8_t *block = (const uint8_t *)w->data + (size_t)(r / PACK_ROWS) * block_bytes;
        const uint8_t *codes = block + scale_bytes + (size_t)g0 * group_bytes;
        const uint8_t *scales = block + (size_t)g0 * PACK_ROWS * 2;
        for (int64_t g = 0; g < n_g; g++) {
            byte_weights(type, room->w[g], codes + (size_t)g * group_bytes);
        }
        TILE_MEMORY();
        for (int m = 0; m * BYTE_TILE < n; m++) {
            const uint8_t *ahead = m == 0 ? codes + block_bytes : NULL;
            int n_m = n - m * BYTE_TILE;
            float *to = y + (c0 + m * BYTE_TILE) * y_stride + r;
            if (n_m > BYTE_FEW) {
                byte_tile(type, room, BYTE_TILE, room->x[m], to, y_stride, r1 - r, min(n_m, BYTE_TILE),
                    scales, g0 == 0, n_g, ahead, group_bytes);
            } else {
                byte_tile(type, room, BYTE_FEW, room->x[m], to, y_stride, r1 - r, n_m, scales, g0 == 0,
                    n_g, ahead, group_bytes);
            }
        }
    }
}

/* The first columns, in whole tiles or nearly so; how many. */
KERN_INLINE int packed_on_tiles(enum dtype type, float *y, int64_t y_stride, const struct weight *w,
    int64_t r0, int64_t r1, const struct kern_rounded *x, int n_c)
{
    int n = n_c % BYTE_TILE >= BYTE_LEAST ? n_c : n_c - n_c % BYTE_TILE;
    if (n == 0) {
        return 0;
    }
    struct byte_room room;
    TILES_BEGIN(&byte_shape);
    for (int c = 0; c < n; c += BYTE_COLUMNS) {
        int n_m = min(n - c, BYTE_COLUMNS);
        for (int64_t g = 0; g < x->n_groups; g += BYTE_GROUPS) {
            int64_t n_g = min(x->n_groups - g, BYTE_GROUPS);
            byte_stretch(type, &room, y, y_stride, w, r0, r1, x, c, n_m, g, n_g);
        }
    }
    TILES_END();
    return n;
}
