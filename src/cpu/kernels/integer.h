/* SPDX-License-Identifier: Apache-2.0
 * Convolutions of integers, for the vocoder beside packed weights. Contracts in cpu/kernels/kern.h. Included by
 * body.h, behind packed.h (pairs) and conv.h (the snake).
 *
 * A lane holds one time step. Of a group of channels and a tap sums are of integers, the same in every
 * table; they are added in the order of groups, then taps, each with one fused step. So no tile and no border of a
 * call can be seen in the result. */

enum {
    INTEGER_WORDS = KERN_INTEGER_SCALED,
    INTEGER_BY_TIME = 0,
    INTEGER_PAIRS = KERN_INTEGER_GROUP / 2,
    INTEGER_VECTORS =
        KERN_LANES == 16 ? 4 : 2, /* of time beside KERN_INTEGER_ROWS outputs, as registers allow */
    INTEGER_TIME_STEPS = 128,     /* of time in a block */
};

KERN_INLINE pairs integer_load(const int32_t *p)
{
    pairs v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* total += what one group and one tap give: KERN_INTEGER_ROWS outputs, `vectors` * KERN_LANES time steps. */
KERN_INLINE void integer_step(int vectors, vf (*total)[INTEGER_VECTORS], const int32_t *w,
    const int32_t *x, int64_t x_stride, const float *scales)
{
    enum { LINE = 16, AHEAD = 512 }; /* in words: what is asked for while this step runs */
    for (int i = 0; i < INTEGER_PAIRS * KERN_INTEGER_ROWS; i += LINE) {
        __builtin_prefetch(w + AHEAD + i);
    }
    vi sum[KERN_INTEGER_ROWS][INTEGER_VECTORS];
    KERN_UNROLL
    for (int r = 0; r < KERN_INTEGER_ROWS; r++) {
        KERN_UNROLL
        for (int v = 0; v < vectors; v++) {
            sum[r][v] = (vi){0};
        }
    }
    KERN_UNROLL_SOME
    for (int p = 0; p < INTEGER_PAIRS; p++) {
        pairs xs[INTEGER_VECTORS];
        KERN_UNROLL
        for (int v = 0; v < vectors; v++) {
            xs[v] = integer_load(x + p * x_stride + v * KERN_LANES);
        }
        KERN_UNROLL
        for (int r = 0; r < KERN_INTEGER_ROWS; r++) {
            pairs ws = (pairs)(w[p * KERN_INTEGER_ROWS + r] - (vi){0});
            KERN_UNROLL
            for (int v = 0; v < vectors; v++) {
                sum[r][v] = pairs_dot(sum[r][v], ws, xs[v]);
            }
        }
    }
    KERN_UNROLL
    for (int v = 0; v < vectors; v++) {
        vf scale = vf_load(scales + v * KERN_LANES);
        KERN_UNROLL
        for (int r = 0; r < KERN_INTEGER_ROWS; r++) {
            total[r][v] = vf_fma(__builtin_convertvector(sum[r][v], vf), scale, total[r][v]);
        }
    }
}

/* Where output o, first of its KERN_INTEGER_ROWS, begins in the visit of n_g groups from g0 on, in groups of one
 * such. */
KERN_INLINE int64_t integer_place(int64_t o, int g0, int n_g, int n_groups)
{
    enum { TILES = KERN_INTEGER_GROUP / KERN_INTEGER_ROWS };
    return (o / KERN_INTEGER_GROUP * n_groups + g0) * TILES +
           o % KERN_INTEGER_GROUP / KERN_INTEGER_ROWS * n_g;
}

/* Groups g0 <= g < g1 for KERN_INTEGER_ROWS outputs from o on and time steps from t on, of which those before t1 are
 * wanted. The sums wait in y between calls. */
KERN_INLINE void integer_tile(
    const struct kern_integer *c, int vectors, int g0, int g1, int o, int64_t t, int64_t t1)
{
    vf total[KERN_INTEGER_ROWS][INTEGER_VECTORS];
    float *y = c->y + o * c->y_stride + t;
    bool whole = t1 - t >= vectors * KERN_LANES;
    KERN_UNROLL
    for (int r = 0; r < KERN_INTEGER_ROWS; r++) {
        KERN_UNROLL
        for (int v = 0; v < vectors; v++) {
            int64_t first = v * KERN_LANES;
            total[r][v] = g0 ? conv_load(y + r * c->y_stride + first, whole, t1 - t - first) : (vf){0};
        }
    }
    enum { STEP = INTEGER_PAIRS * KERN_INTEGER_ROWS };
    const int32_t *w = c->w + integer_place(o, g0, g1 - g0, c->n_groups) * c->taps * STEP;
    for (int g = g0; g < g1; g++) {
        const int32_t *x = c->x + g * INTEGER_WORDS * c->x_stride + t;
        const float *scales = (const float *)(const void *)(x + INTEGER_PAIRS * c->x_stride);
        for (int j = 0; j < c->taps; j++, w += STEP, x += c->dilation, scales += c->dilation) {
            integer_step(vectors, total, w, x, c->x_stride, scales);
        }
    }
    KERN_UNROLL
    for (int r = 0; r < KERN_INTEGER_ROWS; r++) {
        KERN_UNROLL
        for (int v = 0; v < vectors; v++) {
            int64_t first = v * KERN_LANES, left = t1 - t - first;
            vf out = total[r][v];
            if (g1 == c->n_groups) {
                out = vf_fma(out, vf_set(c->w_scales[o + r]), vf_set(c->bias[o + r]));
                if (c->residual) {
                    out += conv_load(c->residual + (o + r) * c->y_stride + t + first, whole, left);
                }
            }
            conv_store(y + r * c->y_stride + first, out, whole, left);
        }
    }
}

/* All time steps t0 <= t < t1. */
KERN_INLINE void integer_time_steps(
    const struct kern_integer *c, int g0, int g1, int o, int64_t t0, int64_t t1)
{
    int64_t t = t0;
    for (; INTEGER_VECTORS == 4 && t1 - t > 2 * KERN_LANES; t += 4 * KERN_LANES) {
        integer_tile(c, 4, g0, g1, o, t, t1);
    }
    for (; t1 - t > KERN_LANES; t += 2 * KERN_LANES) {
        integer_tile(c, 2, g0, g1, o, t, t1);
    }
    for (; t < t1; t += KERN_LANES) {
        integer_tile(c, 1, g0, g1, o, t, t1);
    }
}

/* Weights are read in the order in which they lie. */
static void integer(const struct kern_integer *c, int o0, int o1)
{
    int n_g = kern_integer_visit(c->taps);
    for (int o = o0; o < o1; o += KERN_INTEGER_GROUP) {
        for (int64_t t = 0; t < c->n_t; t += INTEGER_TIME_STEPS) {
            int64_t t1 = c->n_t - t < INTEGER_TIME_STEPS ? c->n_t : t + INTEGER_TIME_STEPS;
            for (int g = 0; g < c->n_groups; g += n_g) {
                int g1 = c->n_groups - g < n_g ? c->n_groups : g + n_g;
                for (int r = 0; r < KERN_INTEGER_GROUP; r += KERN_INTEGER_ROWS) {
                    integer_time_steps(c, g, g1, o + r, t, t1);
                }
            }
        }
    }
}

/* ---- Rounding ---- */

/* KERN_LANES time steps of one group, of which the first n are there. */
KERN_INLINE void integer_round_lanes(const struct kern_integer_rounding *r, int64_t t, int64_t n)
{
    vf x[KERN_INTEGER_GROUP], most = {0}, zeros = {0};
    bool full = n >= KERN_LANES;
    for (int i = 0; i < KERN_INTEGER_GROUP; i++) {
        vf v = conv_load(r->x + i * r->x_stride + t, full, n);
        x[i] = v = r->a ? snake_lanes(v, vf_set(r->a[i]), vf_set(r->b[i])) : v;
        most = vf_max(vf_abs(v), most);
        zeros += v * 0.0f;
    }
    vi good = (vi)(zeros == (vf){0}), some = (vi)(most > vf_set(1e-30f));
    vf inverse = vf_select(good & some, 32767.0f / most, (vf){0});
    vf scale = vf_select(some, most / 32767.0f, (vf){0});
    const float round = 0x1.8p23f; /* adding it rounds to an integer */
    float *words = (float *)(void *)(r->words + t);
    for (int i = 0; i < KERN_INTEGER_GROUP; i += 2) {
        vi first = (vi)(x[i] * inverse + round) - (vi)vf_set(round);
        vi second = (vi)(x[i + 1] * inverse + round) - (vi)vf_set(round);
        vi both = ((first & 0xffff) | (vi)((vu)second << 16)) & good;
        conv_store(words + i / 2 * r->stride, (vf)both, full, n);
    }
    conv_store(words + INTEGER_PAIRS * r->stride, vf_select(good, scale, zeros), full, n);
}

static void integer_round(const struct kern_integer_rounding *r, int64_t n)
{
    for (int64_t t = 0; t < n; t += KERN_LANES) {
        integer_round_lanes(r, t, n - t);
    }
}
