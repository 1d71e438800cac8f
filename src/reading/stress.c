/* SPDX-License-Identifier: Apache-2.0
 * The extra level decays as it does in pieces of the built-in voices: +1.9, +1.0, +0.4 and 0.0 dB in their first half
 * seconds, medians of 167 pieces. */
#include "reading/stress.h"

#include <math.h>

#include "base/minmax.h"

/* early_s: where the stress is measured, early_part of its height on the average there. The rest of the piece begins at
 * rest_s and is looked at until most_s. decay_s: in which the stress falls to 1/e. */
static const double early_s = 0.5, early_part = 0.715, rest_s = 1.5, most_s = 8, decay_s = 0.7;
static const double most_db = 4; /* of a piece's first sample, whatever was measured */
static const float loud = 0.004f;
enum { MEAN_OF = 32 };

struct range {
    size_t early, rest, most; /* in samples */
};

void stress_begin(struct stress *s, bool even)
{
    s->at = s->n_early = s->n_rest = 0;
    s->early = s->rest = 0;
    s->even = even && s->db > 0;
}

static void measure(struct stress *s, const struct range *r, float x)
{
    if (fabsf(x) <= loud) {
        return;
    }
    if (s->at < r->early) {
        s->early += (double)x * (double)x;
        s->n_early++;
    } else if (s->at > r->rest) {
        s->rest += (double)x * (double)x;
        s->n_rest++;
    }
}

void stress_take(struct stress *s, float *pcm, size_t n)
{
    enum { HOLD = 32 }; /* samples with one gain */
    const struct range range = {
        (size_t)(early_s * s->rate), (size_t)(rest_s * s->rate), (size_t)(most_s * s->rate)};
    double height = min(s->db / early_part, most_db);
    float gain = 1;
    for (size_t i = 0; i < n && s->at < range.most; i++) {
        if (s->at == 0 && fabsf(pcm[i]) <= loud) {
            continue;
        }
        measure(s, &range, pcm[i]);
        if (s->even && (i == 0 || s->at % HOLD == 0)) {
            size_t held = s->at - s->at % HOLD;
            gain = (float)pow(10, -height / 20 * exp(-(double)held / s->rate / decay_s));
        }
        pcm[i] *= gain;
        s->at++;
    }
}

void stress_end(struct stress *s)
{
    if (s->n_early > 0 && s->n_rest > (size_t)s->rate / 2) {
        double db = 10 * log10(s->early / (double)s->n_early * (double)s->n_rest / s->rest);
        s->n = min(s->n + 1, MEAN_OF);
        s->db += (db - s->db) / (s->n + 1); /* as if one before had none */
    }
}
