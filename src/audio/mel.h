/* SPDX-License-Identifier: Apache-2.0
 * Log-mel features of a recording at 24 kHz, the input of the speaker encoder. All constants are the official
 * program's own; no config changes them. */
#ifndef AUDIO_MEL_H
#define AUDIO_MEL_H

#include "base/error.h"

enum {
    MEL_BANDS = 128,
    MEL_HOP = 256,
    MEL_MIN_SAMPLES = 1280, /* 5 frames: the speaker encoder mirrors 4 at each end */
};

/* n_samples (at least MEL_MIN_SAMPLES) -> *mels, [*n_mels][MEL_BANDS], n_samples / MEL_HOP of them; the caller's, to be
 * freed with memory_free. UTTER_E_ARGUMENT when the recording is too short. */
utter_status mel_features(
    float **mels, size_t *n_mels, const float *pcm, size_t n_samples, utter_error *error);

#endif
