/* SPDX-License-Identifier: Apache-2.0
 * From the model's samples to what a client asked for: speed, rate, loudness, then a format, all as a stream. */
#ifndef SERVER_ENCODE_H
#define SERVER_ENCODE_H

#include <stdbool.h>
#include <stddef.h>

#include "server/protocol/wire.h"
#include "server/sound/samples.h"

/* One format more: here, in the list of names, and a row in encode_coder.c. */
enum encode_format {
    ENCODE_WAV,
    ENCODE_PCM,
    ENCODE_MP3,
    ENCODE_OPUS,
    ENCODE_FLAC,
    ENCODE_AAC,
    ENCODE_FORMATS
};
#define ENCODE_FORMAT_LIST "wav|pcm|mp3|opus|flac|aac" /* in the order of the enum */

struct encode_settings {
    enum encode_format format;
    double speed, volume; /* 1 is as it is */
    int sample_rate;      /* 0: the model's */
    enum samples samples; /* of wav and pcm */
    int bit_rate; /* of mp3 and opus, bits a second; 0: the usual. The coder takes the nearest that it has */
};

const char *encode_format_name(enum encode_format format);
const char *encode_content_type(enum encode_format format);
/* Whether the format has this rate; the reason otherwise. */
bool encode_check(const struct encode_settings *settings, char *why, size_t size);

struct encode;

/* NULL when out of memory. */
struct encode *encode_new(const struct encode_settings *settings, int model_rate);
/* WAV and FLAC begin with a length, which a stream does not know: in the bytes of a whole sound it is put right.
 * `n_samples`: encode_samples at its end, for FLAC. */
void encode_true_sizes(enum encode_format format, uint8_t *bytes, size_t n, uint64_t n_samples);
/* Adds what n samples give to `out`; `final` flushes everything. False when out of memory. */
bool encode_feed(struct encode *e, float *pcm, size_t n, bool final, struct wire_out *out);
void encode_free(struct encode *e); /* accepts NULL */
/* Whether the work is so small that it needs no thread of its own. */
bool encode_is_light(const struct encode *e);
int encode_rate(const struct encode *e);         /* of the output */
uint64_t encode_samples(const struct encode *e); /* of the output, so far */
/* Seconds of silence that a decoder puts in front: how much later a sound is heard than it went in. */
double encode_delay(const struct encode *e);

#endif
