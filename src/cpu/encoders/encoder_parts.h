/* SPDX-License-Identifier: Apache-2.0
 * The three parts of the codec's encoder: convolutions (encoder_wave.c), transformer
 * (encoder_stack.c), quantizer (encoder_codes.c). Rows are time steps: [time steps][channels]. */
#ifndef CPU_ENCODERS_ENCODER_PARTS_H
#define CPU_ENCODERS_ENCODER_PARTS_H

#include "cpu/encoders/encoder.h"
#include "cpu/encoders/encoder_conv.h"

/* What all parts work with. */
struct encoder_run {
    const struct model *model;
    const struct kern *kern;
    struct pool *pool;
    backend_progress_fn *progress; /* NULL: nobody asks */
    void *user;
    utter_error *error;
};

/* UTTER_E_CANCELLED when the caller does not want the rest; `done` of 1 is all. */
utter_status encoder_report(const struct encoder_run *run, double done);

/* n_samples (at least 1) samples -> x[encoder_positions][width]. Works in blocks with the past carried along:
 * the same numbers as in one piece, in memory that does not grow with the recording. */
size_t encoder_positions(const struct config *config, size_t n_samples);
utter_status encoder_wave(const struct encoder_run *run, const float *pcm, size_t n_samples, float *x);
/* All layers over x[n][width], in place. */
utter_status encoder_stack(const struct encoder_run *run, float *x, int64_t n);
/* Of x[n], in the official program's order, because that decides between codes that are nearly as near. */
float encoder_sum_of_squares(const float *x, int n);
/* Halves the rate and looks the codes up: x[n][width] -> codes[ceil(n / 2)][n_codebooks]. */
utter_status encoder_codes(const struct encoder_run *run, const float *x, int64_t n, int32_t *codes);

#endif
