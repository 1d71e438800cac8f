/* SPDX-License-Identifier: Apache-2.0
 * Resampling with soxr. Its own length is rounded; the official wrapper asks for the ceiling, and fills with a
 * zero (new memory is) or cuts where they differ. */
#include "audio/resample.h"

#include <math.h>
#include <soxr.h>
#include <string.h>

#include "base/memory.h"

utter_status resample(
    float **out, size_t *n_out, const float *in, size_t n, int from, int to, utter_error *error)
{
    *out = NULL;
    *n_out = 0;
    /* The ratio is rounded to a double first, as there: 6615 samples at 22,050 Hz become 7201, not 7200. */
    size_t length = from == to ? n : (size_t)ceil((double)n * ((double)to / (double)from));
    size_t room = length + 64, used = 0, made = 0;
    float *pcm = memory_new(room, sizeof *pcm);
    if (!pcm) {
        return error_memory(error, "a recording");
    }
    if (from == to) {
        memcpy(pcm, in, n * sizeof *pcm);
    } else {
        soxr_io_spec_t io = soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
        soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
        soxr_error_t failure =
            soxr_oneshot(from, to, 1, in, n, &used, pcm, room, &made, &io, &quality, NULL);
        if (failure) {
            memory_free(pcm);
            return error_set(error, UTTER_E_INTERNAL, "%d Hz to %d Hz: the resampler says: %s", from,
                to, soxr_strerror(failure));
        }
    }
    *out = pcm;
    *n_out = length;
    return UTTER_OK;
}
