/* SPDX-License-Identifier: Apache-2.0
 * Random values that any machine and any number of threads make alike: Philox4x32-10 with the tensor's name as key
 * and (element / 2, seed) as counter, integer arithmetic, then one float product and one float sum. */
#include <math.h>
#include <string.h>

#include "base/numeric.h"
#include "tools/maker/maker.h"

/* The sum of four 16-bit uniforms less its mean has this standard deviation: 65536 / sqrt(3). */
static const float normal_sum_deviation = 37837.226562f;

static uint64_t name_hash(const char *name) /* FNV-1a */
{
    uint64_t h = 14695981039346656037u;
    for (; *name; name++) {
        h = (h ^ (uint8_t)*name) * 1099511628211u;
    }
    return h;
}

/* Approximately normal in +-3.46 deviations. */
static inline int32_t normal_sum(uint32_t a, uint32_t b)
{
    return (int32_t)((a & 0xffff) + (a >> 16) + (b & 0xffff) + (b >> 16)) - 2 * 65535;
}

static void draw(const struct planned *t, uint64_t seed, int64_t begin, int64_t n, float *out)
{
    uint64_t hash = name_hash(t->name);
    const uint32_t key[2] = {(uint32_t)hash, (uint32_t)(hash >> 32)};
    float step = t->fill == FILL_NORMAL ? t->scale / normal_sum_deviation : t->scale / 16777216.0f;
    for (int64_t pair = begin / 2; 2 * pair < begin + n; pair++) {
        uint32_t counter[4] = {(uint32_t)pair, (uint32_t)(pair >> 32), (uint32_t)seed,
            (uint32_t)(seed >> 32)},
                 r[4];
        philox(counter, key, r);
        for (int half = 0; half < 2; half++) {
            int64_t i = 2 * pair + half - begin;
            if (i >= 0 && i < n) {
                int32_t v = t->fill == FILL_NORMAL ? normal_sum(r[2 * half], r[2 * half + 1])
                                                   : (int32_t)(r[2 * half] >> 8);
                out[i] = t->mean + (float)v * step;
            }
        }
    }
}

static bool touches(const struct change *c, int64_t row, int64_t column)
{
    bool in_row = c->row_step ? row >= c->row && (row - c->row) % c->row_step == 0 : row == c->row;
    return in_row && (c->column < 0 || c->column == column);
}

/* A head that is one in the first half of its dimensions, turned by the rotary angles of a position. */
static float turned(int64_t row, int64_t head, float position)
{
    int64_t half = head / 2, pair = row % half;
    double angle = (double)position * pow(MAKER_ROPE_THETA, -(double)pair / (double)half);
    return (float)(row < half ? cos(angle) : sin(angle));
}

static void apply(const struct planned *t, uint64_t seed, const struct change *c, int64_t begin,
    int64_t n, float *out)
{
    int64_t columns = planned_count(t) / t->dims[0];
    for (int64_t i = 0; i < n; i++) {
        int64_t row = (begin + i) / columns - c->row;
        if (c->kind == CHANGE_TURN && row >= 0 && row < c->row_step) {
            out[i] = (begin + i) % columns == c->column ? turned(row, c->row_step, c->value) : 0;
        }
    }
    for (int64_t i = 0; i < n && c->kind != CHANGE_TURN; i++) {
        if (!touches(c, (begin + i) / columns, (begin + i) % columns)) {
            continue;
        }
        if (c->kind == CHANGE_SET) {
            out[i] = c->value;
        } else if (c->kind == CHANGE_SCALE) {
            out[i] *= c->value;
        } else {
            draw(t, seed, begin + i - columns, 1, &out[i]);
        }
    }
}

void values_make(const struct planned *tensor, uint64_t seed, int64_t begin, int64_t n, float *out)
{
    draw(tensor, seed, begin, n, out);
    for (int i = 0; i < tensor->n_changes; i++) {
        apply(tensor, seed, &tensor->changes[i], begin, n, out);
    }
}
