/* SPDX-License-Identifier: Apache-2.0
 * Sound files in: wav, flac, ogg, opus, mp3 and what else libsndfile knows -> mono float samples. */
#ifndef AUDIO_SOUND_READ_H
#define AUDIO_SOUND_READ_H

#include "base/error.h"

/* What may be read at all. */
enum {
    SOUND_MIN_RATE = 8000,
    SOUND_MAX_RATE = 192000,
    SOUND_MAX_CHANNELS = 8,
    SOUND_MAX_BYTES = 64 << 20, /* of the file, by default */
    SOUND_MAX_SECONDS = 120,    /* by default */
};

struct sound_limits {
    size_t bytes;   /* of the file; 0: SOUND_MAX_BYTES */
    double seconds; /* 0: SOUND_MAX_SECONDS; enforced while it is decoded, whatever the header says */
    double from,
        to; /* only this part is kept, and held to `seconds`; `to` is 0 for the end of the file */
};

/* What was heard, before the rate was changed. */
struct sound_heard {
    int sample_rate, channels; /* of the file */
    double seconds;
    double peak;    /* of the mean of all channels; full scale is 1 */
    double rms_db;  /* of the same, in dB below full scale; -INFINITY for digital silence */
    double clipped; /* share of the samples, of any channel, at full scale (0.999 and above) */
};

/* The mean of all channels at `rate` (0: the rate of the file), as the official wrapper makes it. *pcm is
 * the caller's, to be freed with memory_free; *n_samples is at least 1; no sample is NaN or infinite.
 * `limits` and `heard` may be NULL. */
utter_status sound_read(float **pcm, size_t *n_samples, struct sound_heard *heard, const char *path,
    int rate, const struct sound_limits *limits, utter_error *error);

/* The same for a file that lies in memory; `what` names it in messages. */
utter_status sound_read_memory(float **pcm, size_t *n_samples, struct sound_heard *heard,
    const void *data, size_t bytes, const char *what, int rate, const struct sound_limits *limits,
    utter_error *error);

#endif
