/* SPDX-License-Identifier: Apache-2.0
 * Effects, and then one codec library for each format. */
#include "server/sound/encode.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "effects/effects.h"
#include "server/sound/encode_parts.h"

bool encode_check(const struct encode_settings *s, char *why, size_t size)
{
    static const int rates[] = {8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000};
    bool found = encode_has_any_rate(s->format) || s->sample_rate == 0;
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        found = found || s->sample_rate == rates[i];
    }
    if (!found) {
        snprintf(why, size,
            "%s has 8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100 and 48000 only",
            encode_format_name(s->format));
    } else if (s->samples != SAMPLES_S16 && encode_is_coded(s->format)) {
        snprintf(why, size, "%s has no kinds of samples, only wav and pcm have",
            encode_format_name(s->format));
        found = false;
    }
    return found;
}

struct encode {
    struct encode_settings settings;
    struct effects *effects;
    bool begun;
    uint64_t n_samples;
    struct encode_coder *coder; /* NULL: samples as they are */
};

int encode_rate(const struct encode *e)
{
    return effects_rate(e->effects);
}

uint64_t encode_samples(const struct encode *e)
{
    return e->n_samples;
}

double encode_delay(const struct encode *e)
{
    return (double)encode_delay_samples(e->settings.format) / encode_rate(e);
}

bool encode_is_light(const struct encode *e)
{
    return effects_are_light(e->effects) && !e->coder;
}

struct encode *encode_new(const struct encode_settings *settings, int model_rate)
{
    struct encode *e = memory_new(1, sizeof *e);
    if (!e) {
        return NULL;
    }
    e->settings = *settings;
    e->effects = effects_new(
        &(struct effects_settings){settings->speed, settings->volume, settings->sample_rate},
        model_rate);
    bool good = e->effects != NULL;
    if (good && encode_is_coded(settings->format)) {
        e->coder = encode_coder_new(settings, effects_rate(e->effects));
        good = e->coder != NULL;
    }
    if (!good) {
        encode_free(e);
        return NULL;
    }
    return e;
}

void encode_free(struct encode *e)
{
    if (e) {
        effects_free(e->effects);
        encode_coder_free(e->coder);
        memory_free(e);
    }
}

void encode_true_sizes(enum encode_format format, uint8_t *bytes, size_t n, uint64_t n_samples)
{
    /* "fLaC", the head of the first block, then STREAMINFO: its last 36 bits in front of the MD5 are the samples. */
    enum { HEADER = 44, FLAC_SAMPLES = 4 + 4 + 13, FLAC_BITS = 36 };
    if (format == ENCODE_FLAC && n > FLAC_SAMPLES + 5 && n_samples >> FLAC_BITS == 0) {
        bytes[FLAC_SAMPLES] = (uint8_t)((bytes[FLAC_SAMPLES] & 0xF0) | n_samples >> 32);
        for (int i = 1; i < 5; i++) {
            bytes[FLAC_SAMPLES + i] = (uint8_t)(n_samples >> (32 - 8 * i));
        }
    }
    /* What is longer than its header can tell goes on to the end, as in a stream. */
    for (int i = 0; format == ENCODE_WAV && n >= HEADER && i < 4; i++) {
        bytes[4 + i] = (uint8_t)(min(n - 8, UINT32_MAX) >> 8 * i);
        bytes[HEADER - 4 + i] = (uint8_t)(min(n - HEADER, UINT32_MAX) >> 8 * i);
    }
}

bool encode_feed(struct encode *e, float *pcm, size_t n, bool final, struct wire_out *out)
{
    if (!effects_feed(e->effects, &pcm, &n, final)) {
        return false;
    }
    e->n_samples += n;
    if (e->settings.format == ENCODE_WAV && !e->begun && (n > 0 || final)) {
        samples_put_wav(out, e->settings.samples, encode_rate(e));
        e->begun = true;
    }
    if (e->coder) {
        return encode_coder_feed(e->coder, pcm, n, final, out);
    }
    samples_put(out, e->settings.samples, pcm, n);
    return !out->failed;
}
