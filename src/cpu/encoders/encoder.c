/* SPDX-License-Identifier: Apache-2.0
 * A recording through the three parts of the codec's encoder. */
#include "cpu/encoders/encoder.h"

#include <math.h>

#include "base/memory.h"
#include "cpu/encoders/encoder_parts.h"

size_t cpu_encoder_frames(const struct config *config, size_t n_samples)
{
    size_t frame = (size_t)config->codec.frame_samples;
    return n_samples / frame + (n_samples % frame != 0);
}

size_t encoder_positions(const struct config *config, size_t n_samples)
{
    size_t step = (size_t)config->codec.frame_samples / 2;
    return n_samples / step + (n_samples % step != 0);
}

utter_status encoder_report(const struct encoder_run *run, double done)
{
    if (run->progress && !run->progress(run->user, done)) {
        return error_set(run->error, UTTER_E_CANCELLED, "encoding of the recording was stopped");
    }
    return UTTER_OK;
}

utter_status cpu_encode(const struct model *model, const struct kern *kern, struct pool *pool,
    const float *pcm, size_t n_samples, int32_t *codes, backend_progress_fn *progress, void *user,
    utter_error *error)
{
    struct encoder_run run = {model, kern, pool, progress, user, error};
    size_t n = encoder_positions(model->config, n_samples),
           width = (size_t)model->config->codec.encoder.stack.width;
    float *x = memory_new(n, width * sizeof *x);
    if (!x) {
        return error_memory(error, "the encoder");
    }
    utter_status status = encoder_wave(&run, pcm, n_samples, x);
    if (!status) {
        status = encoder_stack(&run, x, (int64_t)n);
    }
    for (size_t i = 0; !status && i < n * width; i++) {
        if (!isfinite(x[i])) {
            status = error_set(error, UTTER_E_NUMBER,
                "the encoder came to a value that is not a number (damaged weights?)");
        }
    }
    if (!status) {
        status = encoder_codes(&run, x, (int64_t)n, codes);
    }
    memory_free(x);
    return status;
}
