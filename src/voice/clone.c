/* SPDX-License-Identifier: Apache-2.0
 * What a recording must be; a recording through the encoders of a backend -> codes, x-vector, voice. */
#include "voice/clone.h"

#include <math.h>
#include <stdio.h>

#include "audio/mel.h"
#include "base/memory.h"
#include "base/minmax.h"

/* ---- The recording ---- */

/* Less than this holds no voice; of what is shorter than a second, its level tells nothing. */
static const double least_seconds = 0.3, least_peak = 1e-3, least_range_db = 3.5, level_seconds = 1;
/* Recordings outside of these work, but rarely well. */
static const double short_seconds = 3, long_seconds = 30, quiet_db = -45, clipped_share = 0.001;

utter_status clone_check_recording(
    const char *what, const struct sound_heard *heard, utter_error *error)
{
    if (heard->seconds < least_seconds) {
        return error_set(error, UTTER_E_ARGUMENT,
            "%s: the recording is too short, %.2f s (5 to 15 s of speech make a voice)", what,
            heard->seconds);
    }
    if (heard->peak < least_peak) {
        return error_set(error, UTTER_E_ARGUMENT,
            "%s: the recording is silent (5 to 15 s of speech make a voice)", what);
    }
    return UTTER_OK;
}

/* How far the level of 40 ms goes up and down between about 80 and 1,000 Hz, where voices are loud: the dB from what
 * a tenth of the time is below to what a tenth is above. Speech with noise 5 dB louder has 4 and more, noise alone 2
 * to 3, and a hum none. */
static double level_range(const float *pcm, size_t n_samples, int rate)
{
    enum { LOW_RATE = 2000, WINDOW = LOW_RATE / 25, PER_DB = 4, N_LEVELS = 160 * PER_DB };
    size_t counts[N_LEVELS] = {0}, n = 0, step = (size_t)max(rate / LOW_RATE, 1);
    double slow = 0, squares = 0;
    int filled = 0, low = 0, high = N_LEVELS - 1;
    for (size_t i = 0; i + step <= n_samples; i += step) {
        double mean = 0;
        for (size_t k = i; k < i + step; k++) {
            mean += (double)pcm[k] / (double)step;
        }
        slow += 0.22 * (mean - slow);
        squares += (mean - slow) * (mean - slow);
        if (++filled == WINDOW) {
            double level = 10 * log10(squares / WINDOW + 1e-12) + 120;
            counts[(int)fmin(fmax(level * PER_DB, 0), N_LEVELS - 1)]++;
            n++;
            squares = filled = 0;
        }
    }
    for (size_t below = counts[low]; low < high && 10 * below < n; below += counts[low]) {
        low++;
    }
    for (size_t above = counts[high]; high > low && 10 * above < n; above += counts[high]) {
        high--;
    }
    return (double)(high - low) / PER_DB;
}

utter_status clone_check_speech(
    const char *what, const float *pcm, size_t n_samples, int rate, utter_error *error)
{
    if ((double)n_samples < level_seconds * rate ||
        level_range(pcm, n_samples, rate) >= least_range_db) {
        return UTTER_OK;
    }
    return error_set(error, UTTER_E_ARGUMENT,
        "%s: no speech is heard, only an even sound (5 to 15 s of speech make a voice)", what);
}

utter_status clone_check_samples(
    const float *pcm, size_t n_samples, int rate, double most_seconds, utter_error *error)
{
    struct sound_heard heard = {.seconds = (double)n_samples / rate};
    for (size_t i = 0; i < n_samples; i++) {
        if (!isfinite(pcm[i])) {
            return error_set(error, UTTER_E_ARGUMENT, "sample %zu of the recording is not a number", i);
        }
        heard.peak = max(heard.peak, (double)fabsf(pcm[i]));
    }
    if (heard.seconds > most_seconds) {
        return error_set(error, UTTER_E_ARGUMENT, "the recording is %.1f s long, more than %.1f s",
            heard.seconds, most_seconds);
    }
    utter_status status = clone_check_recording("samples", &heard, error);
    return status ? status : clone_check_speech("samples", pcm, n_samples, rate, error);
}

void clone_note_recording(const struct sound_heard *h, utter_log_fn *log, void *user)
{
    char line[160];
    if (!log) {
        return;
    }
    if (h->seconds < short_seconds) {
        snprintf(line, sizeof line,
            "the recording is short, %.1f s; 5 to 15 s of speech make a better voice", h->seconds);
        log(user, line);
    }
    if (h->seconds > long_seconds) {
        snprintf(line, sizeof line,
            "the recording is long, %.1f s; 5 to 15 s are enough and start faster", h->seconds);
        log(user, line);
    }
    if (h->rms_db < quiet_db) {
        snprintf(line, sizeof line, "the recording is very quiet, %.0f dB: is there speech in it?",
            h->rms_db);
        log(user, line);
    }
    if (h->clipped > clipped_share) {
        snprintf(line, sizeof line, "%.1f%% of the recording is clipped; record it less loud",
            100 * h->clipped);
        log(user, line);
    }
}

/* ---- Through the encoders ---- */

utter_status clone_codes(int32_t **codes, size_t *n_frames, const struct backend_ops *ops,
    struct backend *backend, const struct model *model, const float *pcm, size_t n_samples,
    backend_progress_fn *progress, void *user, utter_error *error)
{
    const struct config *c = model->config;
    size_t samples = (size_t)c->codec.frame_samples, capacity = n_samples / samples + 1;
    *n_frames = 0;
    *codes = memory_new(capacity * (size_t)c->n_codebooks, sizeof **codes);
    if (!*codes) {
        return error_memory(error, "codes");
    }
    utter_status status =
        ops->encode(backend, pcm, n_samples, *codes, capacity, n_frames, progress, user, error);
    if (status) {
        memory_free(*codes);
        *codes = NULL;
    }
    return status;
}

static utter_status clone_vector(float **vector, const struct backend_ops *ops, struct backend *backend,
    const struct model *model, const float *pcm, size_t n_samples, utter_error *error)
{
    float *mels = NULL;
    size_t n_mels;
    utter_status status = mel_features(&mels, &n_mels, pcm, n_samples, error);
    if (status) {
        return status;
    }
    *vector = memory_new((size_t)model->config->speaker_width, sizeof **vector);
    status =
        *vector ? ops->speaker(backend, mels, n_mels, *vector, error) : error_memory(error, "x-vector");
    memory_free(mels);
    return status;
}

utter_status clone_check(const struct model *model, bool with_codes, utter_error *error)
{
    const struct config *c = model->config;
    if (c->kind != UTTER_MODEL_BASE || !model->has_speaker) {
        return error_set(error, UTTER_E_ARGUMENT,
            "this %s model cannot clone voices: it has no speaker encoder (take a Base model)",
            c->kind_name);
    }
    if (with_codes && !model->has_encoder) {
        return error_set(error, UTTER_E_ARGUMENT,
            "the codec of this model has no encoder (clone without a transcript)");
    }
    return UTTER_OK;
}

utter_status clone_voice(utter_voice **voice, const struct backend_ops *ops, struct backend *backend,
    const struct model *model, const float *pcm, size_t n_samples, const struct clone_request *r,
    utter_error *error)
{
    float *vector = NULL;
    int32_t *codes = NULL;
    size_t n_frames = 0;
    *voice = NULL;
    utter_status status = clone_check(model, r->transcript != NULL, error);
    if (status || (status = clone_vector(&vector, ops, backend, model, pcm, n_samples, error))) {
        goto done;
    }
    if (r->transcript && (status = clone_codes(&codes, &n_frames, ops, backend, model, pcm, n_samples,
                              r->progress, r->progress_user, error))) {
        goto done;
    }
    status = voice_new_clone(voice, r->name, vector, model->config->speaker_width, codes, (int)n_frames,
        model->config->n_codebooks, r->transcript, error);
    if (status == UTTER_OK) {
        (*voice)->codec = codes ? model->codec_fingerprint : 0;
        status = voice_describe(*voice, r->language, r->provenance, error);
    }
done:
    if (status && *voice) {
        voice_free(voice);
    }
    memory_free(vector);
    memory_free(codes);
    return status;
}
