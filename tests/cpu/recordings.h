/* SPDX-License-Identifier: Apache-2.0
 * The recordings of tools/oracle/recordings.py, the same bits: whole numbers, and one rounding for each
 * operation. */
#ifndef TESTS_CPU_RECORDINGS_H
#define TESTS_CPU_RECORDINGS_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDING_SEGMENTS = 5 };

static inline uint64_t recording_hash(uint64_t seed, uint64_t index)
{
    uint64_t z = seed * 0xD1342543DE82EF95u + index * 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (z ^ z >> 31) >> 40;
}

static inline double recording_noise(uint64_t seed, uint64_t i)
{
    return (double)recording_hash(seed, i) / 8388608.0 - 1.0;
}

static inline double recording_sine(uint64_t phase)
{
    double t = (double)(int32_t)(uint32_t)phase / 2147483648.0;
    t = t > 0.5 ? 1.0 - t : t < -0.5 ? -1.0 - t : t;
    double u = t * t, s = -0.00737043094571435;
    s = s * u + 0.0821458866111282;
    s = s * u + -0.599264529320792;
    s = s * u + 2.55016403987735;
    s = s * u + -5.16771278004997;
    s = s * u + 3.14159265358979;
    return s * t;
}

static inline uint64_t recording_turn(uint64_t hz, uint64_t rate)
{
    return (hz << 32) / rate;
}

/* The number that the segment of sample i has drawn. */
static inline uint64_t recording_segment(
    uint64_t seed, uint64_t rate, uint64_t i, uint64_t low, uint64_t high)
{
    return low + recording_hash(seed, i / (rate / RECORDING_SEGMENTS)) * (high - low) / 16777216;
}

static inline double recording_place(uint64_t rate, uint64_t i)
{
    uint64_t length = rate / RECORDING_SEGMENTS;
    return (double)(i % length) / (double)length;
}

static inline double recording_sines(uint64_t seed, uint64_t rate, uint64_t i)
{
    double x = 0.001 * recording_noise(seed, i);
    for (uint64_t k = 0; k < 3; k++) {
        uint64_t hz = 80 + recording_hash(seed, 1000 + k) * 3000 / 16777216;
        x = x + 0.3 / (double)(k + 1) * recording_sine(i * recording_turn(hz, rate));
    }
    return x;
}

static inline double recording_clipped(uint64_t seed, uint64_t rate, uint64_t i)
{
    double x = 4.0 * recording_sines(seed, rate, i);
    return x < -1.0 ? -1.0 : x > 1.0 ? 1.0 : x;
}

static inline double recording_chirp(uint64_t seed, uint64_t rate, uint64_t i)
{
    uint64_t bend = i * (i - 1) / 2 * (recording_turn(700, rate) / rate);
    return 0.4 * recording_sine(recording_turn(50, rate) * i + bend) + 0.002 * recording_noise(seed, i);
}

/* `sums` are the phases so far, at first 0; samples come in order. */
static inline double recording_music(uint64_t seed, uint64_t rate, uint64_t i, uint64_t sums[4])
{
    double x = 0.0005 * recording_noise(seed, i), place = recording_place(rate, i);
    for (uint64_t voice = 0; voice < 4; voice++) {
        sums[voice] += recording_turn(recording_segment(seed * 7 + voice, rate, i, 110, 880), rate);
        x = x + 0.15 * (1.0 - place) * recording_sine(sums[voice]);
    }
    return x;
}

static inline double recording_speech(uint64_t seed, uint64_t rate, uint64_t i, uint64_t *sum)
{
    static const uint64_t limits[3][2] = {{250, 900}, {900, 2300}, {2300, 3500}};
    uint64_t pitch = recording_segment(seed, rate, i, 90, 220);
    double place = recording_place(rate, i), envelope = 4.0 * place * (1.0 - place), formants[3],
           wind = recording_noise(seed, i), voiced = 0;
    bool hiss = recording_segment(seed * 5 + 4, rate, i, 0, 4) == 0;
    for (uint64_t k = 0; k < 3; k++) {
        formants[k] = (double)recording_segment(seed * 5 + 1 + k, rate, i, limits[k][0], limits[k][1]);
    }
    *sum += recording_turn(pitch, rate);
    for (uint64_t h = 1; h < 17; h++) {
        double level = 0;
        for (int k = 0; k < 3; k++) {
            double away = ((double)(pitch * h) - formants[k]) / 90.0;
            level = level + 1.0 / (1.0 + away * away);
        }
        voiced = voiced + level / (double)h * recording_sine(*sum * h);
    }
    return envelope * (hiss ? 0.1 * wind : 0.3 * voiced) + 0.0003 * wind;
}

/* n samples, to be freed with free(). */
static inline float *recording_make(const char *kind, uint64_t seed, uint64_t rate, size_t n)
{
    float *pcm = malloc((n ? n : 1) * sizeof *pcm);
    uint64_t sums[4] = {0};
    assert(pcm);
    for (uint64_t i = 0; i < n; i++) {
        double x = 0;
        if (strcmp(kind, "sines") == 0) {
            x = recording_sines(seed, rate, i);
        } else if (strcmp(kind, "clipped") == 0) {
            x = recording_clipped(seed, rate, i);
        } else if (strcmp(kind, "chirp") == 0) {
            x = recording_chirp(seed, rate, i);
        } else if (strcmp(kind, "music") == 0) {
            x = recording_music(seed, rate, i, sums);
        } else if (strcmp(kind, "speech") == 0) {
            x = recording_speech(seed, rate, i, sums);
        } else if (strcmp(kind, "loud_noise") == 0) {
            x = 0.2 * recording_noise(seed, i);
        } else if (strcmp(kind, "hush") == 0) {
            x = 0.00001 * recording_noise(seed, i);
        } else if (strcmp(kind, "clicks") == 0) {
            x = (i % (rate / 10) == 0 ? 0.9 : 0.0) + 0.0005 * recording_noise(seed, i);
        } else {
            assert(strcmp(kind, "silence") == 0);
        }
        pcm[i] = (float)x;
    }
    return pcm;
}

#endif
