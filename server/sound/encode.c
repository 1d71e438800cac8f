/* SPDX-License-Identifier: Apache-2.0
 * sonic for the speed, soxr for the rate, and one codec library for each format. */
#include "server/sound/encode.h"

#include <math.h>
#include <sonic.h>
#include <soxr.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "server/sound/encode_parts.h"

static const struct {
    const char *name, *content_type;
} formats[] = {{"wav", "audio/wav"}, {"pcm", "audio/pcm"}, {"mp3", "audio/mpeg"}, {"opus", "audio/ogg"},
    {"flac", "audio/flac"}, {"aac", "audio/aac"}};

const char *encode_format_list(void)
{
    return "wav|pcm|mp3|opus|flac|aac";
}

const char *encode_format_name(enum encode_format format)
{
    return formats[format].name;
}

const char *encode_content_type(enum encode_format format)
{
    return formats[format].content_type;
}

bool encode_check(const struct encode_settings *s, char *why, size_t size)
{
    static const int rates[] = {8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000};
    bool coded = s->format == ENCODE_MP3 || s->format == ENCODE_AAC;
    bool found = !coded || s->sample_rate == 0;
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        found = found || s->sample_rate == rates[i];
    }
    if (!found) {
        snprintf(why, size,
            "%s has 8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100 and 48000 only",
            encode_format_name(s->format));
    } else if (s->samples != SAMPLES_S16 && s->format != ENCODE_WAV && s->format != ENCODE_PCM) {
        snprintf(why, size, "%s has no kinds of samples, only wav and pcm have",
            encode_format_name(s->format));
        found = false;
    }
    return found;
}

struct encode {
    struct encode_settings settings;
    int rate;          /* of the output */
    sonicStream speed; /* NULL: as it is */
    soxr_t resampler;  /* NULL: the model's rate */
    float *stretched, *resampled;
    size_t stretched_room, resampled_room;
    bool begun;
    struct encode_coder *coder; /* mp3, opus, flac, aac */
};

int encode_rate(const struct encode *e)
{
    return e->rate;
}

bool encode_is_light(const struct encode *e)
{
    return !e->speed && !e->resampler && !e->coder;
}

struct encode *encode_new(const struct encode_settings *settings, int model_rate)
{
    struct encode *e = memory_new(1, sizeof *e);
    if (!e) {
        return NULL;
    }
    e->settings = *settings;
    e->rate = settings->sample_rate ? settings->sample_rate : model_rate;
    bool good = true;
    if (settings->speed < 1 || settings->speed > 1) {
        e->speed = sonicCreateStream(model_rate, 1);
        good = e->speed != NULL;
        if (good) {
            sonicSetSpeed(e->speed, (float)settings->speed);
        }
    }
    if (good && e->rate != model_rate) {
        soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
        e->resampler = soxr_create(model_rate, e->rate, 1, NULL, NULL, &quality, NULL);
        good = e->resampler != NULL;
    }
    if (good && settings->format != ENCODE_WAV && settings->format != ENCODE_PCM) {
        e->coder = encode_coder_new(settings, e->rate);
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
        if (e->speed) {
            sonicDestroyStream(e->speed);
        }
        soxr_delete(e->resampler);
        encode_coder_free(e->coder);
        memory_free(e->stretched);
        memory_free(e->resampled);
        memory_free(e);
    }
}

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
static bool stretch(struct encode *e, float **pcm, size_t *n, bool final)
{
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

static bool resample(struct encode *e, float **pcm, size_t *n, bool final)
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

void encode_true_sizes(enum encode_format format, uint8_t *bytes, size_t n)
{
    enum { HEADER = 44 };
    for (int i = 0; format == ENCODE_WAV && n >= HEADER && i < 4; i++) {
        bytes[4 + i] = (uint8_t)((n - 8) >> 8 * i);
        bytes[HEADER - 4 + i] = (uint8_t)((n - HEADER) >> 8 * i);
    }
}

bool encode_feed(struct encode *e, float *pcm, size_t n, bool final, struct wire_out *out)
{
    if ((e->speed && !stretch(e, &pcm, &n, final)) || (e->resampler && !resample(e, &pcm, &n, final))) {
        return false;
    }
    float volume = (float)e->settings.volume;
    for (size_t i = 0; i < n && (volume < 1 || volume > 1); i++) {
        float x = pcm[i] * volume;
        pcm[i] = x > 1 ? 1 : x < -1 ? -1 : x;
    }
    if (e->settings.format == ENCODE_WAV && !e->begun && (n > 0 || final)) {
        samples_put_wav(out, e->settings.samples, e->rate);
        e->begun = true;
    }
    if (e->coder) {
        return encode_coder_feed(e->coder, pcm, n, final, out);
    }
    samples_put(out, e->settings.samples, pcm, n);
    return !out->failed;
}
