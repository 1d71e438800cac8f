/* SPDX-License-Identifier: Apache-2.0
 * Convolutions for the vocoder beside packed weights, on tiles of 16 x 16 sums (AMX). Contracts in cpu/kern.h, the
 * same as those of kern_whole.h, in whose place kern_body.h includes this.
 *
 * A weight of 16 bits is the exact sum of two bf16, of which the second is at most 1/128 of the first; an activation is
 * to 16 bits. Three of their four products are added in fp32, the fourth is below 2^-14 of the first. An activation
 * has its own exponent, so there are no scales and nothing to do between groups. A row of a tile is a moment of time,
 * so that every tile begins on a line of the cache and lies in one page, whatever the tap; each of its sums is one
 * chain over groups, taps, halves: no tile and no border of a call can be seen in it. */

#include "cpu/kern_tile_unit.h"

enum {
    WHOLE_WORDS = KERN_WHOLE_HALVES,
    WHOLE_BY_MOMENTS = 1,
    WHOLE_PAIRS = KERN_WHOLE_GROUP / 2,
    TILE =
        16, /* rows of a tile, and words of a row: half the outputs of a group, or the pairs of an input's */
    TILE_MOMENTS = 512, /* of time in a block: what weights are split for once */
    TILE_STEPS = 24,    /* groups times taps in a visit, at most */
    TILE_STEP = WHOLE_PAIRS * KERN_WHOLE_GROUP, /* words of a group and tap in memory */
};

static const struct tile_shape tile_shape = {.palette = 1,
    .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
    .rows = {TILE, TILE, TILE, TILE, TILE, TILE, TILE, TILE}};

/* Weights of both halves of the outputs for one group and tap, a row for each pair of inputs. */
struct tile_weights {
    _Alignas(64) int32_t high[2][WHOLE_PAIRS][TILE], low[2][WHOLE_PAIRS][TILE];
};

/* What one visit of a few steps (groups and taps) needs; 0 steps: there is no such visit. */
struct tile_visit {
    int step, n_steps;
    int64_t t;
    const int32_t *w; /* [n_steps][TILE_STEP] */
};

/* Weights of this visit and the next one in turns; sums wait between visits. */
struct tile_room {
    struct tile_weights weights[2][TILE_STEPS];
    _Alignas(64) float sums[TILE_MOMENTS / TILE][2][TILE][TILE];
};

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

/* Step i of a visit; what lies a visit further on is asked for. */
KERN_INLINE void tile_weights_split(struct tile_weights *to, const struct tile_visit *visit, int i)
{
    const int32_t *w = visit->w + i * TILE_STEP;
    KERN_UNROLL_SOME
    for (int p = 0; p < WHOLE_PAIRS; p++) {
        for (int k = 0; k < KERN_WHOLE_GROUP; k += KERN_LANES, w += KERN_LANES) {
            vi words;
            memcpy(&words, w, sizeof words);
            if (k % TILE == 0) {
                __builtin_prefetch(w + visit->n_steps * TILE_STEP);
            }
            tile_split(&to[i].high[k / TILE][p][k % TILE], &to[i].low[k / TILE][p][k % TILE], words);
        }
    }
}

/* ---- Products ---- */

/* One group and tap: sums of 16 moments in tiles 0 and 1 and, with `tiles` 2, of the next ones in 2 and 3. Activations
 * are in tiles 4 and 5, their rests behind them; weights in 6 and 7. */
KERN_INLINE void tiles_step(int tiles, const struct tile_weights *w, const int32_t *x)
{
    const size_t row = TILE * sizeof *x, x_row = WHOLE_WORDS * sizeof *x;
    const int32_t *later = x + TILE * WHOLE_WORDS;
    TILE_LOAD(4, x, x_row);
    TILE_LOAD(6, w->low[0], row);
    TILE_LOAD(7, w->low[1], row);
    TILE_DOT(0, 4, 6);
    TILE_DOT(1, 4, 7);
    if (tiles == 2) {
        TILE_LOAD(5, later, x_row);
        TILE_DOT(2, 5, 6);
        TILE_DOT(3, 5, 7);
    }
    TILE_LOAD(6, w->high[0], row);
    TILE_LOAD(7, w->high[1], row);
    TILE_DOT(0, 4, 6);
    TILE_DOT(1, 4, 7);
    if (tiles == 2) {
        TILE_DOT(2, 5, 6);
        TILE_DOT(3, 5, 7);
    }
    TILE_LOAD(4, x + WHOLE_PAIRS, x_row);
    TILE_DOT(0, 4, 6);
    TILE_DOT(1, 4, 7);
    if (tiles == 2) {
        TILE_LOAD(5, later + WHOLE_PAIRS, x_row);
        TILE_DOT(2, 5, 6);
        TILE_DOT(3, 5, 7);
    }
}

/* One visit's part of sums[0] and, with `tiles` 2, sums[1], of moments from t on. Meanwhile the weights of `next` are
 * split: other parts of the core do it while the tiles work. */
KERN_INLINE void tile_sums(const struct kern_whole *c, int tiles, const struct tile_visit *visit,
    const struct tile_weights *w, int64_t t, float (*sums)[2][TILE][TILE],
    const struct tile_visit *next, struct tile_weights *next_w)
{
    const size_t row = TILE * sizeof(float);
    const int32_t *x = c->x + (visit->step / c->taps * c->x_stride + t) * WHOLE_WORDS;
    TILE_MEMORY();
    if (visit->step == 0) {
        TILE_ZERO(0);
        TILE_ZERO(1);
        TILE_ZERO(2);
        TILE_ZERO(3);
    } else {
        TILE_LOAD(0, sums[0][0], row);
        TILE_LOAD(1, sums[0][1], row);
        if (tiles == 2) {
            TILE_LOAD(2, sums[1][0], row);
            TILE_LOAD(3, sums[1][1], row);
        }
    }
    for (int i = 0, j = visit->step % c->taps; i < visit->n_steps; i++) {
        tiles_step(tiles, &w[i], x + (int64_t)j * c->dilation * WHOLE_WORDS);
        if (i < next->n_steps) {
            tile_weights_split(next_w, next, i);
        }
        if (++j == c->taps) {
            j = 0, x += WHOLE_WORDS * c->x_stride;
        }
    }
    TILE_STORE(0, sums[0][0], row);
    TILE_STORE(1, sums[0][1], row);
    if (tiles == 2) {
        TILE_STORE(2, sums[1][0], row);
        TILE_STORE(3, sums[1][1], row);
    }
    for (int i = visit->n_steps; i < next->n_steps; i++) {
        tile_weights_split(next_w, next, i);
    }
    TILE_MEMORY();
}

/* Sums -> y of the group of outputs from o on, moments t0 <= t < t1. */
static void tile_finish(
    const struct kern_whole *c, const struct tile_room *room, int o, int64_t t0, int64_t t1)
{
    for (int k = 0; k < KERN_WHOLE_GROUP; k += KERN_LANES) {
        vf scale = vf_load(c->w_scales + o + k), bias = vf_load(c->bias + o + k);
        for (int64_t t = t0; t < t1; t++) {
            const float *sum = room->sums[(t - t0) / TILE][k / TILE][(t - t0) % TILE] + k % TILE;
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
    const struct kern_whole *c, const int32_t *w, int64_t t, int step)
{
    int n_steps = c->n_groups * c->taps;
    if (step >= n_steps) {
        step = 0, t += TILE_MOMENTS;
    }
    if (t >= c->n_t) {
        return (struct tile_visit){0};
    }
    int n_visits = (n_steps + TILE_STEPS - 1) / TILE_STEPS, most = (n_steps + n_visits - 1) / n_visits;
    int n = n_steps - step < most ? n_steps - step : most;
    return (struct tile_visit){step, n, t, w + (int64_t)step * TILE_STEP};
}

/* Weights are read in the order in which they lie. */
static void whole(const struct kern_whole *c, int o0, int o1)
{
    static const struct tile_visit none = {0};
    const int32_t *words = c->w + (int64_t)o0 / KERN_WHOLE_GROUP * c->n_groups * c->taps * TILE_STEP;
    struct tile_room room;
    struct tile_weights *w = room.weights[0], *next_w = room.weights[1];
    struct tile_visit visit = tile_visit_at(c, words, 0, 0), next;
    (void)o1;
    for (int i = 0; i < visit.n_steps; i++) {
        tile_weights_split(w, &visit, i);
    }
    TILES_BEGIN(&tile_shape);
    for (; visit.n_steps; visit = next) {
        int64_t n_t = c->n_t - visit.t < TILE_MOMENTS ? c->n_t - visit.t : TILE_MOMENTS, t = 0;
        next = tile_visit_at(c, words, visit.t, visit.step + visit.n_steps);
        for (; n_t - t > TILE; t += 2 * TILE) {
            tile_sums(c, 2, &visit, w, visit.t + t, &room.sums[t / TILE], t ? &none : &next, next_w);
        }
        if (t < n_t) {
            tile_sums(c, 1, &visit, w, visit.t + t, &room.sums[t / TILE], t ? &none : &next, next_w);
        }
        if (visit.step + visit.n_steps == c->n_groups * c->taps) {
            tile_finish(c, &room, o0, visit.t, visit.t + n_t);
        }
        struct tile_weights *read = w;
        w = next_w, next_w = read;
    }
    TILES_END();
}

/* ---- Rounding ---- */

/* Half a moment through the snake, KERN_LANES channels from i on; as it is where there is none. */
KERN_INLINE vf whole_ready(const struct kern_whole_rounding *r, const float *x, int i)
{
    return r->a ? snake_lanes(vf_load(x + i), vf_load(r->a + i), vf_load(r->b + i)) : vf_load(x + i);
}

static void whole_round(const struct kern_whole_rounding *r, int64_t n)
{
    const float *x = r->x;
    int32_t *words = r->words;
    for (int64_t t = 0; t < n; t++, x += r->x_stride, words += WHOLE_WORDS) {
        for (int p = 0; p < WHOLE_PAIRS; p += KERN_LANES) {
            vf a = whole_ready(r, x, p), b = whole_ready(r, x, p + WHOLE_PAIRS);
            /* Cut off, not rounded: so what is no number stays none, here or in the rest. */
            vu a_high = (vu)a & 0xffff0000u, b_high = (vu)b & 0xffff0000u;
            vu a_low = (vu)(a - (vf)a_high) + 0x8000u, b_low = (vu)(b - (vf)b_high) + 0x8000u;
            a_high = a_high >> 16 | b_high, a_low = a_low >> 16 | (b_low & 0xffff0000u);
            memcpy(words + p, &a_high, sizeof a_high);
            memcpy(words + WHOLE_PAIRS + p, &a_low, sizeof a_low);
        }
    }
}
