/* SPDX-License-Identifier: Apache-2.0
 * Convolutions for the vocoder beside packed weights, on tiles of 16 x 16 sums (AMX). Contracts in kern.h, the
 * same as those of integer.h, in whose place body.h includes this.
 *
 * Weights are bf16, and so are activations; where a convolution is fine, what an activation leaves is a second bf16
 * and counts too, which is 16 bits of it. Each number has its own exponent, so there are no scales and nothing to do
 * between groups; sums are fp32.
 *
 * A row of a tile is a time step: every tile begins on a line of the cache and lies in one page or two, whatever
 * the tap. Each of its sums is one chain over groups, taps, halves: no tile and no border of a call can be seen in
 * it. */

#include "base/minmax.h"
#include "cpu/kernels/tile_unit.h"

enum {
    INTEGER_WORDS = KERN_INTEGER_HALVES,
    INTEGER_BY_TIME = 1,
    INTEGER_PAIRS = KERN_INTEGER_GROUP / 2,
    TILE = 16, /* rows of a tile, and words of a row: half the outputs of a group, or its pairs */
    TILE_TIME_STEPS = 512, /* of time in a block: what weights are fetched for once */
    /* Groups times taps in a visit, at most: their weights take half of the L1 cache */
    TILE_STEPS = 12,
    TILE_LINE = 16,                                 /* words of a line of the cache */
    TILE_STEP = INTEGER_PAIRS * KERN_INTEGER_GROUP, /* words of a group and tap in memory */
};

static const struct tile_shape tile_shape = {.palette = 1,
    .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
    .rows = {TILE, TILE, TILE, TILE, TILE, TILE, TILE, TILE}};

/* What one visit of a few steps (groups and taps) needs; 0 steps: there is no such visit. */
struct tile_visit {
    int step, n_steps;
    int64_t t;
    const int32_t *w; /* [n_steps][TILE_STEP] */
};

/* ---- Products ---- */

/* Sums of 16 time steps are in tiles 0 and 1 and, with `tiles` 2, of the next ones in 2 and 3; activations in 4 and 5,
 * weights in 6 and 7. One group and tap: */
KERN_INLINE void tiles_dot(int tiles)
{
    TILE_DOT(0, 4, 6);
    TILE_DOT(1, 4, 7);
    if (tiles == 2) {
        TILE_DOT(2, 5, 6);
        TILE_DOT(3, 5, 7);
    }
}

/* `rest`: of x, or NULL. */
KERN_INLINE void tiles_step(int tiles, const int32_t *w, const int32_t *x, const int32_t *rest)
{
    const size_t row = TILE * sizeof *x, w_row = KERN_INTEGER_GROUP * sizeof *w;
    TILE_LOAD(4, x, row);
    if (tiles == 2) {
        TILE_LOAD(5, x + TILE * INTEGER_PAIRS, row);
    }
    TILE_LOAD(6, w, w_row);
    TILE_LOAD(7, w + TILE, w_row);
    tiles_dot(tiles);
    if (rest) {
        TILE_LOAD(4, rest, row);
        if (tiles == 2) {
            TILE_LOAD(5, rest + TILE * INTEGER_PAIRS, row);
        }
        tiles_dot(tiles);
    }
}

KERN_INLINE void tiles_begin(int tiles, bool first, float (*sums)[2][TILE][TILE])
{
    const size_t row = TILE * sizeof(float);
    if (first) {
        TILE_ZERO(0);
        TILE_ZERO(1);
        TILE_ZERO(2);
        TILE_ZERO(3);
        return;
    }
    TILE_LOAD(0, sums[0][0], row);
    TILE_LOAD(1, sums[0][1], row);
    if (tiles == 2) {
        TILE_LOAD(2, sums[1][0], row);
        TILE_LOAD(3, sums[1][1], row);
    }
}

KERN_INLINE void tiles_end(int tiles, float (*sums)[2][TILE][TILE])
{
    const size_t row = TILE * sizeof(float);
    TILE_STORE(0, sums[0][0], row);
    TILE_STORE(1, sums[0][1], row);
    if (tiles == 2) {
        TILE_STORE(2, sums[1][0], row);
        TILE_STORE(3, sums[1][1], row);
    }
}

/* One visit's part of sums[0] and, with `tiles` 2, sums[1], of time steps from t on. With `ask` weights a visit further
 * on are asked for meanwhile: behind the last ones of a group of outputs lie the first ones of the next group. */
KERN_INLINE void tile_sums(const struct kern_integer *c, int tiles, const struct tile_visit *visit,
    int64_t t, float (*sums)[2][TILE][TILE], bool ask)
{
    const int32_t *x = c->x + visit->step / c->taps * c->x_stride * INTEGER_WORDS + t * INTEGER_PAIRS;
    TILE_MEMORY();
    tiles_begin(tiles, visit->step == 0, sums);
    for (int i = 0, j = visit->step % c->taps; i < visit->n_steps; i++) {
        const int32_t *moved = x + (int64_t)j * c->dilation * INTEGER_PAIRS,
                      *w = visit->w + i * TILE_STEP;
        tiles_step(tiles, w, moved, c->fine ? moved + c->x_stride * INTEGER_PAIRS : NULL);
        for (int k = 0; ask && k < TILE_STEP; k += TILE_LINE) {
            __builtin_prefetch(w + visit->n_steps * TILE_STEP + k, 0, 2);
        }
        if (++j == c->taps) {
            j = 0, x += INTEGER_WORDS * c->x_stride;
        }
    }
    tiles_end(tiles, sums);
    TILE_MEMORY();
}

/* Sums -> y of the group of outputs from o on, time steps t0 <= t < t1. */
static void tile_finish(
    const struct kern_integer *c, float (*sums)[2][TILE][TILE], int o, int64_t t0, int64_t t1)
{
    for (int k = 0; k < KERN_INTEGER_GROUP; k += KERN_LANES) {
        vf scale = vf_load(c->w_scales + o + k), bias = vf_load(c->bias + o + k);
        for (int64_t t = t0; t < t1; t++) {
            const float *sum = sums[(t - t0) / TILE][k / TILE][(t - t0) % TILE] + k % TILE;
            vf out = vf_fma(vf_load(sum), scale, bias);
            if (c->residual) {
                out += vf_load(c->residual + t * c->y_stride + k);
            }
            vf_store(c->y + t * c->y_stride + k, out);
        }
    }
}

/* The visit at (t, step), or the first one after it that there is. `w` are the weights of the group of outputs. */
static struct tile_visit tile_visit_at(
    const struct kern_integer *c, const int32_t *w, int64_t t, int step)
{
    int n_steps = c->n_groups * c->taps;
    if (step >= n_steps) {
        step = 0, t += TILE_TIME_STEPS;
    }
    if (t >= c->n_t) {
        return (struct tile_visit){0};
    }
    int n_visits = (n_steps + TILE_STEPS - 1) / TILE_STEPS, most = (n_steps + n_visits - 1) / n_visits;
    int n = min(n_steps - step, most);
    return (struct tile_visit){step, n, t, w + (int64_t)step * TILE_STEP};
}

/* Weights are read in the order in which they lie. */
static void integer(const struct kern_integer *c, int o0, int o1)
{
    const int32_t *w = c->w + (int64_t)o0 / KERN_INTEGER_GROUP * c->n_groups * c->taps * TILE_STEP;
    _Alignas(64) float sums[TILE_TIME_STEPS / TILE][2][TILE][TILE]; /* they wait here between visits */
    struct tile_visit visit = tile_visit_at(c, w, 0, 0);
    (void)o1;
    TILES_BEGIN(&tile_shape);
    for (; visit.n_steps; visit = tile_visit_at(c, w, visit.t, visit.step + visit.n_steps)) {
        int64_t n_t = min(c->n_t - visit.t, TILE_TIME_STEPS), t = 0;
        for (; n_t - t > TILE; t += 2 * TILE) {
            tile_sums(c, 2, &visit, visit.t + t, &sums[t / TILE], t == 0);
        }
        if (t < n_t) {
            tile_sums(c, 1, &visit, visit.t + t, &sums[t / TILE], t == 0);
        }
        if (visit.step + visit.n_steps == c->n_groups * c->taps) {
            tile_finish(c, sums, o0, visit.t, visit.t + n_t);
        }
    }
    TILES_END();
}

/* ---- Rounding ---- */

/* KERN_LANES channels of a time step from i on through the snake; as they are where there is none. */
KERN_INLINE vf integer_ready(const struct kern_integer_rounding *r, const float *x, int i)
{
    return r->a ? snake_lanes(vf_load(x + i), vf_load(r->a + i), vf_load(r->b + i)) : vf_load(x + i);
}

/* To the nearest bf16, in the upper half of a lane; what is no number stays none. */
KERN_INLINE vu integer_nearest(vf x)
{
    vu bits = (vu)vf_select((vi)(x == x), (vf)((vu)x + 0x8000u), (vf)vu_set(0x7fc00000u));
    return bits & 0xffff0000u;
}

static void integer_round(const struct kern_integer_rounding *r, int64_t n)
{
    const float *x = r->x;
    int32_t *words = r->words;
    for (int64_t t = 0; t < n; t++, x += r->x_stride, words += INTEGER_PAIRS) {
        for (int p = 0; p < INTEGER_PAIRS; p += KERN_LANES) {
            vf a = integer_ready(r, x, p), b = integer_ready(r, x, p + INTEGER_PAIRS);
            /* With a rest cut off, not rounded: so what is no number stays none, here or in the rest. */
            vu a_high = r->fine ? (vu)a & 0xffff0000u : integer_nearest(a);
            vu b_high = r->fine ? (vu)b & 0xffff0000u : integer_nearest(b),
               both = a_high >> 16 | b_high;
            memcpy(words + p, &both, sizeof both);
            if (r->fine) {
                vu a_low = (vu)(a - (vf)a_high) + 0x8000u, b_low = (vu)(b - (vf)b_high) + 0x8000u;
                both = a_low >> 16 | (b_low & 0xffff0000u);
                memcpy(words + r->stride * INTEGER_PAIRS + p, &both, sizeof both);
            }
        }
    }
}
