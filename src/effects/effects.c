/* SPDX-License-Identifier: Apache-2.0
 * sonic for the speed, which keeps the pitch; soxr for the rate. */
#include "effects/effects.h"

#include <sonic.h>
#include <soxr.h>

#include "base/memory.h"

struct effects {
    int rate; /* of what comes out */
    float volume;
    sonicStream speed; /* NULL: as it is */
    soxr_t resampler;  /* NULL: the rate that comes in */
    float *stretched, *resampled;
    size_t stretched_room, resampled_room;
};

int effects_rate(const struct effects *e)
{
    return e->rate;
}

bool effects_are_light(const struct effects *e)
{
    return !e->speed && !e->resampler;
}

struct effects *effects_new(const struct effects_settings *settings, int rate)
{
    struct effects *e = memory_new(1, sizeof *e);
    if (!e) {
        return NULL;
    }
    e->rate = settings->sample_rate ? settings->sample_rate : rate;
    e->volume = (float)settings->volume;
    bool good = true;
    if (settings->speed < 1 || settings->speed > 1) {
        e->speed = sonicCreateStream(rate, 1);
        good = e->speed != NULL;
        if (good) {
            sonicSetSpeed(e->speed, (float)settings->speed);
        }
    }
    if (good && e->rate != rate) {
        soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
        e->resampler = soxr_create(rate, e->rate, 1, NULL, NULL, &quality, NULL);
        good = e->resampler != NULL;
    }
    if (!good) {
        effects_free(e);
        return NULL;
    }
    return e;
}

void effects_free(struct effects *e)
{
    if (e) {
        if (e->speed) {
            sonicDestroyStream(e->speed);
        }
        soxr_delete(e->resampler);
        memory_free(e->stretched);
        memory_free(e->resampled);
        memory_free(e);
    }
}

enum { STRETCH_BYTES = 64 << 10 };

static bool make_room(float **buffer, size_t *room, size_t n)
{
    if (n > *room) {
        float *grown = memory_resize(*buffer, *room, n, sizeof **buffer);
        if (!grown) {
            return false;
        }
        *buffer = grown;
        *room = n;
    }
    return true;
}

/* pcm[n] -> e->stretched; *n becomes its length. */
static bool stretch(struct effects *e, float **pcm, size_t *n, bool final)
{
    /* sonic goes on where it finds no memory, and reads what it has not got: it is not called without. */
    void *spare = memory_plain_new(STRETCH_BYTES + 16 * *n * sizeof **pcm);
    memory_plain_free(spare);
    if (!spare) {
        return false;
    }
    if ((*n && !sonicWriteFloatToStream(e->speed, *pcm, (int)*n)) ||
        (final && !sonicFlushStream(e->speed))) {
        return false;
    }
    size_t there = (size_t)sonicSamplesAvailable(e->speed);
    if (!make_room(&e->stretched, &e->stretched_room, there + 1)) {
        return false;
    }
    *n = (size_t)sonicReadFloatFromStream(e->speed, e->stretched, (int)there);
    *pcm = e->stretched;
    return true;
}

static bool resample(struct effects *e, float **pcm, size_t *n, bool final)
{
    /* What the filter still holds comes out in the last call: a second of room is far more than it keeps. */
    size_t room = *n * 7 + 256 + (final ? (size_t)e->rate : 0), total = 0, done, used;
    if (!make_room(&e->resampled, &e->resampled_room, room)) {
        return false;
    }
    const float *in = *pcm;
    for (size_t left = *n; left > 0; left -= used, in += used) {
        if (soxr_process(e->resampler, in, left, &used, e->resampled + total, room - total, &done)) {
            return false;
        }
        total += done;
        if (used == 0) {
            return false;
        }
    }
    while (final) {
        if (soxr_process(e->resampler, NULL, 0, NULL, e->resampled + total, room - total, &done)) {
            return false;
        }
        total += done;
        final = done > 0;
    }
    *pcm = e->resampled;
    *n = total;
    return true;
}

bool effects_feed(struct effects *e, float **pcm, size_t *n, bool final)
{
    if ((e->speed && !stretch(e, pcm, n, final)) || (e->resampler && !resample(e, pcm, n, final))) {
        return false;
    }
    for (size_t i = 0; i < *n && (e->volume < 1 || e->volume > 1); i++) {
        float x = (*pcm)[i] * e->volume;
        (*pcm)[i] = x > 1 ? 1 : x < -1 ? -1 : x;
    }
    return true;
}
