/* SPDX-License-Identifier: Apache-2.0
 * Log-mel features: mirrored ends, Hann window, Fourier transform, amplitudes, Slaney filters, logarithm.
 * The transform is made in double: a band that holds nothing but rounding errors of a float transform would
 * differ by its own size, and the logarithm shows that. */
#include "audio/mel.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"

enum {
    LOG_SIZE = 10,
    SIZE = 1 << LOG_SIZE,
    BINS = SIZE / 2 + 1,
    EDGE = (SIZE - MEL_HOP) / 2, /* mirrored on each side */
    RATE = 24000,
};

static const double pi = 3.14159265358979323846, root_floor = 1e-9;
static const float least = 1e-5f;

struct mel {
    float window[SIZE];
    double cosine[SIZE / 2], sine[SIZE / 2]; /* of -2 pi k / SIZE */
    double re[SIZE], im[SIZE];
    double amplitude[BINS];
    float filters[MEL_BANDS][BINS];
    int first[MEL_BANDS], end[MEL_BANDS]; /* bins where a filter is not 0 */
};

/* Slaney's scale: straight below 1000 Hz (15 mel), then 27 mel for each factor of 6.4. */
static double hz_of(double mel)
{
    return mel < 15 ? mel * 200 / 3 : 1000 * exp((mel - 15) * log(6.4) / 27);
}

/* Where filter b begins, which is where the one before it is highest, and the one before that ends. */
static double edge(int b)
{
    double top = 15 + log(RATE / 2 / 1000.0) / (log(6.4) / 27);
    return hz_of(top * b / (MEL_BANDS + 1));
}

static void make_filters(struct mel *m)
{
    for (int b = 0; b < MEL_BANDS; b++) {
        double low = edge(b), middle = edge(b + 1), high = edge(b + 2), area = 2 / (high - low);
        m->first[b] = BINS;
        for (int k = 0; k < BINS; k++) {
            double f = (double)k * RATE / SIZE, up = (f - low) / (middle - low),
                   down = (high - f) / (high - middle);
            float triangle = (float)fmax(0, fmin(up, down));
            m->filters[b][k] = (float)((double)triangle * area);
            if (triangle > 0) {
                m->first[b] = min(k, m->first[b]);
                m->end[b] = k + 1;
            }
        }
    }
}

static struct mel *mel_new(void)
{
    struct mel *m = memory_new(1, sizeof *m);
    for (int i = 0; m && i < SIZE; i++) {
        m->window[i] = (float)(0.5 - 0.5 * cos(2 * pi * i / SIZE));
        if (i < SIZE / 2) {
            m->cosine[i] = cos(2 * pi * i / SIZE);
            m->sine[i] = -sin(2 * pi * i / SIZE);
        }
    }
    if (m) {
        make_filters(m);
    }
    return m;
}

/* In place; the input stands in bit-reversed order. */
static void transform(struct mel *m)
{
    for (int half = 1; half < SIZE; half *= 2) {
        for (int begin = 0; begin < SIZE; begin += 2 * half) {
            for (int i = 0; i < half; i++) {
                int turn = i * (SIZE / 2 / half), p = begin + i, q = p + half;
                double re = m->re[q] * m->cosine[turn] - m->im[q] * m->sine[turn],
                       im = m->re[q] * m->sine[turn] + m->im[q] * m->cosine[turn];
                m->re[q] = m->re[p] - re, m->im[q] = m->im[p] - im;
                m->re[p] += re, m->im[p] += im;
            }
        }
    }
}

static int reversed(int i)
{
    int r = 0;
    for (int bit = 0; bit < LOG_SIZE; bit++) {
        r = r << 1 | (i >> bit & 1);
    }
    return r;
}

/* Sample i of the recording, mirrored at both ends. */
static float sample_at(const float *pcm, int64_t n, int64_t i)
{
    return pcm[i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i];
}

static void frame(struct mel *m, const float *pcm, int64_t n, int64_t begin, float *out)
{
    for (int i = 0; i < SIZE; i++) {
        m->re[reversed(i)] = (double)(sample_at(pcm, n, begin + i) * m->window[i]);
    }
    memset(m->im, 0, sizeof m->im);
    transform(m);
    for (int k = 0; k < BINS; k++) {
        m->amplitude[k] = sqrt(m->re[k] * m->re[k] + m->im[k] * m->im[k] + root_floor);
    }
    for (int b = 0; b < MEL_BANDS; b++) {
        double sum = 0;
        for (int k = m->first[b]; k < m->end[b]; k++) {
            sum += (double)m->filters[b][k] * m->amplitude[k];
        }
        out[b] = logf(fmaxf((float)sum, least));
    }
}

utter_status mel_features(
    float **mels, size_t *n_mels, const float *pcm, size_t n_samples, utter_error *error)
{
    *mels = NULL;
    *n_mels = 0;
    if (n_samples < MEL_MIN_SAMPLES) {
        return error_set(error, UTTER_E_ARGUMENT,
            "a recording of %.3f s is too short for the speaker encoder, which needs %.3f s",
            (double)n_samples / RATE, (double)MEL_MIN_SAMPLES / RATE);
    }
    size_t n = n_samples / MEL_HOP;
    struct mel *m = mel_new();
    float *out = memory_new(n, MEL_BANDS * sizeof *out);
    if (!m || !out) {
        memory_free(m);
        memory_free(out);
        return error_memory(error, "the features of a recording");
    }
    for (size_t t = 0; t < n; t++) {
        frame(m, pcm, (int64_t)n_samples, (int64_t)(t * MEL_HOP) - EDGE, out + t * MEL_BANDS);
    }
    memory_free(m);
    *mels = out;
    *n_mels = n;
    return UTTER_OK;
}
