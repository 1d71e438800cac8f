/* SPDX-License-Identifier: Apache-2.0
 * Convolutions for the vocoder beside packed weights, on tiles of 16 x 16 sums (AMX). Contracts in cpu/kern.h, the
 * same as those of kern_whole.h, in whose place kern_body.h includes this.
 *
 * A weight of 16 bits is the exact sum of two bf16, of which the second is at most 1/128 of the first; an activation is
 * to 16 bits. Three of their four products are added in fp32, the fourth is below 2^-14 of the first. An activation
 * has its own exponent, so there are no scales and nothing to do between groups. A column is a moment of
 * time, and each of its sums is one chain over groups, taps, halves: no tile and no border of a call can be seen in
 * it. */

#include "cpu/kern_tile_unit.h"

enum {
    WHOLE_WORDS = KERN_WHOLE_HALVES,
    WHOLE_PAIRS = KERN_WHOLE_GROUP / 2,
    TILE = 16, /* rows of a tile, and words of a row: one group of channels at one moment or output */
    TILE_MOMENTS = 512,                        /* of time in a block: what weights are split for once */
    TILE_STEP = WHOLE_PAIRS * KERN_WHOLE_ROWS, /* words of a tap in memory */
};

static const struct tile_shape tile_shape = {.palette = 1,
    .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
    .rows = {TILE, TILE, TILE, TILE, TILE, TILE, TILE, TILE}};

/* Weights of KERN_WHOLE_GROUP outputs for one group and tap, a row for each output. */
struct tile_weights {
    _Alignas(64) int32_t high[KERN_WHOLE_GROUP][TILE], low[KERN_WHOLE_GROUP][TILE];
};

/* What one visit of a few of the input's groups needs: a step for each group and tap. */
struct tile_visit {
    int o, g, n_steps; /* first output and group; 0 steps: there is no such visit */
    int64_t t;
    const int32_t *w; /* [KERN_WHOLE_GROUP / KERN_WHOLE_ROWS][n_steps][TILE_STEP] */
};

/* Weights of this visit and the next one in turns; sums wait between visits. */
struct tile_room {
    struct tile_weights weights[2][KERN_WHOLE_TAPS];
    _Alignas(64) float sums[TILE_MOMENTS / TILE][KERN_WHOLE_GROUP][TILE];
};

/* Where pair p of a group stands in a row of a tile: so rows of weights need no step across parts of a vector. */
KERN_INLINE int tile_place(int p)
{
    return p % 4 * 4 + p / 4;
}

/* ---- Weights ---- */

/* Two whole numbers of 16 bits in each word -> two bf16 in each of two words. */
KERN_INLINE void tile_split(int32_t *high, int32_t *low, vi words)
{
    vf a = __builtin_convertvector((words << 16) >> 16, vf),
       b = __builtin_convertvector(words >> 16, vf);
    vu a_high = (vu)a & 0xffff0000u, b_high = (vu)b & 0xffff0000u;
    vu a_low = (vu)(a - (vf)a_high),
       b_low = (vu)(b - (vf)b_high); /* of at most 8 bits: bf16 as they are */
    a_high = a_high >> 16 | b_high, a_low = a_low >> 16 | b_low;
    memcpy(high, &a_high, sizeof a_high);
    memcpy(low, &a_low, sizeof a_low);
}

/* [WHOLE_PAIRS][KERN_WHOLE_ROWS] words -> rows of the tile at o. */
KERN_INLINE void tile_rows(struct tile_weights *to, int o, const int32_t *w)
{
#if KERN_LANES == 16
    __m512i a = _mm512_loadu_si512(w), b = _mm512_loadu_si512(w + 16), c = _mm512_loadu_si512(w + 32),
            d = _mm512_loadu_si512(w + 48);
    __m512i ab = _mm512_unpacklo_epi32(a, b), cd = _mm512_unpacklo_epi32(c, d);
    tile_split(to->high[o], to->low[o], (vi)_mm512_unpacklo_epi64(ab, cd));
    tile_split(to->high[o + 1], to->low[o + 1], (vi)_mm512_unpackhi_epi64(ab, cd));
    ab = _mm512_unpackhi_epi32(a, b), cd = _mm512_unpackhi_epi32(c, d);
    tile_split(to->high[o + 2], to->low[o + 2], (vi)_mm512_unpacklo_epi64(ab, cd));
    tile_split(to->high[o + 3], to->low[o + 3], (vi)_mm512_unpackhi_epi64(ab, cd));
#else
    for (int r = 0; r < KERN_WHOLE_ROWS; r++) {
        int32_t row[TILE];
        for (int p = 0; p < WHOLE_PAIRS; p++) {
            row[tile_place(p)] = w[p * KERN_WHOLE_ROWS + r];
        }
        for (int i = 0; i < TILE; i += KERN_LANES) {
            vi words;
            memcpy(&words, row + i, sizeof words);
            tile_split(to->high[o + r] + i, to->low[o + r] + i, words);
        }
    }
#endif
}

/* Step i of a visit; what lies a visit further on is asked for. */
KERN_INLINE void tile_weights_split(struct tile_weights *to, const struct tile_visit *visit, int i)
{
    const int32_t *w = visit->w + i * TILE_STEP;
    for (int o = 0; o < KERN_WHOLE_GROUP; o += KERN_WHOLE_ROWS, w += visit->n_steps * TILE_STEP) {
        for (int k = 0; k < TILE_STEP; k += TILE) {
            __builtin_prefetch(w + visit->n_steps * KERN_WHOLE_GROUP * TILE + k);
        }
        tile_rows(&to[i], o, w);
    }
}

/* ---- Products ---- */

/* One group and tap: sums in tiles 0 and 1 and, with `tiles` 2, in 2 and 3 for the next moments. Weights are in tiles 4
 * and 5, activations in 6 and 7, the rests of these `low` words behind them. */
KERN_INLINE void tiles_step(int tiles, const struct tile_weights *w, const int32_t *x, int64_t x_stride)
{
    const size_t row = TILE * sizeof(int32_t), x_row = (size_t)x_stride * sizeof *x;
    const int32_t *low = x + WHOLE_PAIRS * x_stride;
    TILE_LOAD(4, w->low[0], row);
    TILE_LOAD(5, w->low[TILE], row);
    TILE_LOAD(6, x, x_row);
    TILE_DOT(0, 4, 6);
    TILE_DOT(1, 5, 6);
    if (tiles == 2) {
        TILE_LOAD(7, x + TILE, x_row);
        TILE_DOT(2, 4, 7);
        TILE_DOT(3, 5, 7);
    }
    TILE_LOAD(4, w->high[0], row);
    TILE_LOAD(5, w->high[TILE], row);
    TILE_DOT(0, 4, 6);
    TILE_DOT(1, 5, 6);
    if (tiles == 2) {
        TILE_DOT(2, 4, 7);
        TILE_DOT(3, 5, 7);
    }
    TILE_LOAD(6, low, x_row);
    TILE_DOT(0, 4, 6);
    TILE_DOT(1, 5, 6);
    if (tiles == 2) {
        TILE_LOAD(7, low + TILE, x_row);
        TILE_DOT(2, 4, 7);
        TILE_DOT(3, 5, 7);
    }
}

/* One visit's part of sums[0] and, with `tiles` 2, sums[1]; x: of its first group and moment. Meanwhile the weights of
 * `next` are split: other parts of the core do it while the tiles work. */
KERN_INLINE void tile_sums(const struct kern_whole *c, int tiles, const struct tile_visit *visit,
    const struct tile_weights *w, const int32_t *x, float (*sums)[KERN_WHOLE_GROUP][TILE],
    const struct tile_visit *next, struct tile_weights *next_w)
{
    const size_t row = TILE * sizeof(float);
    TILE_MEMORY();
    if (visit->g == 0) {
        TILE_ZERO(0);
        TILE_ZERO(1);
        TILE_ZERO(2);
        TILE_ZERO(3);
    } else {
        TILE_LOAD(0, sums[0][0], row);
        TILE_LOAD(1, sums[0][TILE], row);
        if (tiles == 2) {
            TILE_LOAD(2, sums[1][0], row);
            TILE_LOAD(3, sums[1][TILE], row);
        }
    }
    for (int i = 0, j = 0; i < visit->n_steps; i++) {
        tiles_step(tiles, &w[i], x + (int64_t)j * c->dilation, c->x_stride);
        if (i < next->n_steps) {
            tile_weights_split(next_w, next, i);
        }
        if (++j == c->taps) {
            j = 0, x += WHOLE_WORDS * c->x_stride;
        }
    }
    TILE_STORE(0, sums[0][0], row);
    TILE_STORE(1, sums[0][TILE], row);
    if (tiles == 2) {
        TILE_STORE(2, sums[1][0], row);
        TILE_STORE(3, sums[1][TILE], row);
    }
    for (int i = visit->n_steps; i < next->n_steps; i++) {
        tile_weights_split(next_w, next, i);
    }
    TILE_MEMORY();
}

/* Sums -> y of outputs o .. o + KERN_WHOLE_GROUP, moments t0 <= t < t1. */
static void tile_finish(
    const struct kern_whole *c, const struct tile_room *room, int o, int64_t t0, int64_t t1)
{
    for (int r = o; r < o + KERN_WHOLE_GROUP; r++) {
        vf scale = vf_set(c->w_scales[r]), bias = vf_set(c->bias[r]);
        for (int64_t t = t0; t < t1; t += KERN_LANES) {
            const float *sum = room->sums[(t - t0) / TILE][r - o] + (t - t0) % TILE;
            bool full = t1 - t >= KERN_LANES;
            vf out = vf_fma(vf_load(sum), scale, bias);
            if (c->residual) {
                out += conv_load(c->residual + r * c->y_stride + t, full, t1 - t);
            }
            conv_store(c->y + r * c->y_stride + t, out, full, t1 - t);
        }
    }
}

/* The visit at (o, t, g), or the first one after it that there is below output o1. */
static struct tile_visit tile_visit_at(const struct kern_whole *c, int o, int64_t t, int g, int o1)
{
    int most = kern_whole_visit(c->taps);
    if (g >= c->n_groups) {
        g = 0, t += TILE_MOMENTS;
    }
    if (t >= c->n_t) {
        t = 0, o += KERN_WHOLE_GROUP;
    }
    if (o >= o1) {
        return (struct tile_visit){0};
    }
    int n_g = c->n_groups - g < most ? c->n_groups - g : most;
    const int32_t *w = c->w + kern_whole_place(o, g, n_g, c->n_groups) * c->taps * TILE_STEP;
    return (struct tile_visit){o, g, n_g * c->taps, t, w};
}

/* Weights are read in the order in which they lie. */
static void whole(const struct kern_whole *c, int o0, int o1)
{
    static const struct tile_visit none = {0};
    struct tile_room room;
    struct tile_weights *w = room.weights[0], *next_w = room.weights[1];
    struct tile_visit visit = tile_visit_at(c, o0, 0, 0, o1), next;
    for (int i = 0; i < visit.n_steps; i++) {
        tile_weights_split(w, &visit, i);
    }
    TILES_BEGIN(&tile_shape);
    for (; visit.n_steps; visit = next) {
        int n_g = visit.n_steps / c->taps;
        int64_t n_t = c->n_t - visit.t < TILE_MOMENTS ? c->n_t - visit.t : TILE_MOMENTS, t = 0;
        const int32_t *x = c->x + (int64_t)visit.g * WHOLE_WORDS * c->x_stride + visit.t;
        next = tile_visit_at(c, visit.o, visit.t, visit.g + n_g, o1);
        for (; n_t - t > TILE; t += 2 * TILE) {
            tile_sums(c, 2, &visit, w, x + t, &room.sums[t / TILE], t ? &none : &next, next_w);
        }
        if (t < n_t) {
            tile_sums(c, 1, &visit, w, x + t, &room.sums[t / TILE], t ? &none : &next, next_w);
        }
        if (visit.g + n_g == c->n_groups) {
            tile_finish(c, &room, visit.o, visit.t, visit.t + n_t);
        }
        struct tile_weights *read = w;
        w = next_w, next_w = read;
    }
    TILES_END();
}

/* ---- Rounding ---- */

/* KERN_LANES moments of one group, of which the first n are there. */
KERN_INLINE void whole_round_lanes(const struct kern_whole_rounding *r, int64_t t, int64_t n)
{
    bool full = n >= KERN_LANES;
    for (int p = 0; p < WHOLE_PAIRS; p++) {
        vu high[2], low[2];
        for (int i = 0; i < 2; i++) {
            int channel = 2 * p + i;
            vf x = conv_load(r->x + channel * r->x_stride + t, full, n);
            x = r->a ? snake_lanes(x, r->a[channel], r->b[channel]) : x;
            /* Cut off, not rounded: so what is no number stays none, here or in the rest. */
            high[i] = (vu)x & 0xffff0000u;
            low[i] = (vu)(x - (vf)high[i]) + 0x8000u;
        }
        float *words = (float *)(void *)(r->words + tile_place(p) * r->stride + t);
        conv_store(words, (vf)(high[0] >> 16 | high[1]), full, n);
        conv_store(
            words + WHOLE_PAIRS * r->stride, (vf)(low[0] >> 16 | (low[1] & 0xffff0000u)), full, n);
    }
}

static void whole_round(const struct kern_whole_rounding *r, int64_t n)
{
    for (int64_t t = 0; t < n; t += KERN_LANES) {
        whole_round_lanes(r, t, n - t);
    }
}
