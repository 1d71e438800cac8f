/* SPDX-License-Identifier: Apache-2.0
 * libebur128. */
#include "book/loudness.h"

#include <ebur128.h>
#include <math.h>

#include "base/library.h"
#include "base/memory.h"

struct loudness {
    ebur128_state *state;
    __typeof__(&ebur128_init) init;
    __typeof__(&ebur128_destroy) destroy;
    __typeof__(&ebur128_add_frames_float) add_frames_float;
    __typeof__(&ebur128_loudness_global) loudness_global;
    __typeof__(&ebur128_true_peak) true_peak;
};

static bool load(struct loudness *l)
{
    const struct library_call calls[] = {{"ebur128_init", &l->init}, {"ebur128_destroy", &l->destroy},
        {"ebur128_add_frames_float", &l->add_frames_float},
        {"ebur128_loudness_global", &l->loudness_global}, {"ebur128_true_peak", &l->true_peak}};
    return library_load("libebur128.so.1", calls, sizeof calls / sizeof *calls);
}

bool loudness_is_here(void)
{
    struct loudness l;
    return load(&l);
}

struct loudness *loudness_new(int rate)
{
    struct loudness *l = memory_new(1, sizeof *l);
    if (l && load(l)) {
        l->state = l->init(
            1, (unsigned long)rate, EBUR128_MODE_I | EBUR128_MODE_TRUE_PEAK | EBUR128_MODE_HISTOGRAM);
    }
    if (l && !l->state) {
        memory_free(l);
        l = NULL;
    }
    return l;
}

bool loudness_add(struct loudness *l, const float *pcm, size_t n)
{
    return l->add_frames_float(l->state, pcm, n) == EBUR128_SUCCESS;
}

double loudness_gain(struct loudness *l, double lufs, double *short_lu)
{
    double is = -HUGE_VAL, peak = 0, most = pow(10, -1.0 / 20);
    *short_lu = 0;
    if (l->loudness_global(l->state, &is) != EBUR128_SUCCESS || !isfinite(is) ||
        l->true_peak(l->state, 0, &peak) != EBUR128_SUCCESS || peak <= 0) {
        return 1;
    }
    double gain = pow(10, (lufs - is) / 20);
    if (gain * peak > most) {
        *short_lu = 20 * log10(gain * peak / most);
        gain = most / peak;
    }
    return gain;
}

void loudness_free(struct loudness *l)
{
    if (l) {
        l->destroy(&l->state);
        memory_free(l);
    }
}
