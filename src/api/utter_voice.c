/* SPDX-License-Identifier: Apache-2.0
 * Voices behind utter.h: presets, clones, files, mixtures; and recordings to codes. */
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "audio/sound_read.h"
#include "base/memory.h"
#include "text/chars.h"
#include "voice/clone.h"
#include "voice/voice_file.h"

utter_status utter_voice_preset(
    utter_voice **voice, const utter_model *model, const char *name, utter_error *error)
{
    utter_status status = api_need(voice && model && name ? voice : NULL, "an argument", error);
    return status ? status : voice_new_preset(voice, api_config(model), name, error);
}

utter_status api_need_text(const char *text, const char *what, utter_error *error)
{
    bool bad;
    size_t bytes = text ? strlen(text) : 0, n = bytes ? utf8_valid(text, bytes, &bad) : 0;
    return n == bytes ? UTTER_OK
                      : error_set(error, UTTER_E_ARGUMENT,
                            "the %s of a voice is not UTF-8: byte %zu (convert it)", what, n);
}

/* ---- Clones ---- */

void utter_clone_options_init_sized(utter_clone_options *options, size_t size)
{
    const utter_clone_options all = {.max_seconds = SOUND_MAX_SECONDS};
    api_init_sized(options, size, &all, sizeof all);
}

static utter_status clone_options(
    utter_clone_options *to, const utter_clone_options *from, utter_error *error)
{
    utter_clone_options_init(to);
    utter_status status =
        from ? api_copy_sized(to, sizeof *to, from, from->size, "utter_clone_options", error)
             : UTTER_OK;
    if (status == UTTER_OK && !(to->max_seconds > 0 && to->max_seconds <= 3600)) {
        status = error_set(
            error, UTTER_E_ARGUMENT, "max_seconds %g is not above 0 and at most 3600", to->max_seconds);
    }
    if (status == UTTER_OK &&
        !(to->from_seconds >= 0 && to->from_seconds <= 1e6 && to->to_seconds <= 1e6 &&
            (to->to_seconds == 0 || to->to_seconds > to->from_seconds))) {
        status = error_set(error, UTTER_E_ARGUMENT, "no part of a recording: from %g s to %g s",
            to->from_seconds, to->to_seconds);
    }
    if (status || (status = api_need_text(to->name, "name", error)) ||
        (status = api_need_text(to->transcript, "transcript", error))) {
        return status;
    }
    return api_need_text(to->language, "language", error);
}

/* The part of a path behind the last slash and before the last dot, as UTF-8 whatever its bytes are. */
static void stem_of(char *out, size_t size, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    size_t n = dot && dot > name ? (size_t)(dot - name) : strlen(name);
    error_quote(out, size, name, n);
}

static utter_status make_clone(utter_voice **voice, utter_model *model, const float *pcm, size_t n,
    const utter_clone_options *o, const char *name, const char *provenance, utter_error *error)
{
    struct clone_request request = {o->name ? o->name : name, o->transcript, o->language, provenance,
        o->progress, o->progress_user};
    utter_status status = engine_check(&model->engine, error);
    if (status) {
        return status;
    }
    status = clone_voice(voice, model->engine.context.ops, model->engine.context.backend,
        model->engine.context.model, pcm, n, &request, error);
    return engine_keep_failure(&model->engine, status, error);
}

utter_status utter_voice_clone(utter_voice **voice, utter_model *model, const char *sound_path,
    const utter_clone_options *options, utter_recording *heard, utter_error *error)
{
    utter_clone_options o;
    struct sound_heard h;
    float *pcm = NULL;
    size_t n;
    char name[256], provenance[512];
    utter_status status = api_need(voice && model && sound_path ? voice : NULL, "an argument", error);
    if (status) {
        return status;
    }
    *voice = NULL;
    struct sound_limits limits = {0};
    if ((status = clone_options(&o, options, error))) {
        return status;
    }
    limits.seconds = o.max_seconds;
    limits.from = o.from_seconds;
    limits.to = o.to_seconds;
    if ((status = clone_check(model->engine.context.model, o.transcript != NULL, error)) ||
        (status = sound_read(
             &pcm, &n, &h, sound_path, api_config(model)->codec.sample_rate, &limits, error))) {
        return status;
    }
    if (heard) {
        utter_recording full = {
            heard->size, h.sample_rate, h.channels, h.seconds, h.peak, h.rms_db, h.clipped};
        status = api_copy_sized(heard, heard->size, &full, sizeof full, "utter_recording", error);
    }
    if (status == UTTER_OK) {
        status = clone_check_recording(sound_path, &h, error);
    }
    if (status == UTTER_OK) {
        status = clone_check_speech(sound_path, pcm, n, api_config(model)->codec.sample_rate, error);
    }
    if (status == UTTER_OK) {
        clone_note_recording(&h, model->engine.log, model->engine.log_user);
        stem_of(name, sizeof name, sound_path);
        snprintf(provenance, sizeof provenance, "cloned from %s, %.2f s at %d Hz, by utter %s", name,
            h.seconds, h.sample_rate, utter_version_text());
        status = make_clone(voice, model, pcm, n, &o, name, provenance, error);
    }
    memory_free(pcm);
    return status;
}

utter_status utter_voice_clone_samples(utter_voice **voice, utter_model *model, const float *pcm,
    size_t n_samples, const utter_clone_options *options, utter_error *error)
{
    utter_clone_options o;
    char provenance[128];
    utter_status status =
        api_need(voice && model && pcm && n_samples ? voice : NULL, "an argument", error);
    if (status) {
        return status;
    }
    *voice = NULL;
    if ((status = clone_options(&o, options, error))) {
        return status;
    }
    const int rate = api_config(model)->codec.sample_rate;
    if ((status = clone_check_samples(pcm, n_samples, rate, o.max_seconds, error))) {
        return status;
    }
    snprintf(provenance, sizeof provenance, "cloned from %.2f s of samples, by utter %s",
        (double)n_samples / rate, utter_version_text());
    return make_clone(voice, model, pcm, n_samples, &o, "clone", provenance, error);
}

/* ---- Files and mixtures ---- */

utter_status utter_voice_save(const utter_voice *voice, const char *path, utter_error *error)
{
    utter_status status = api_need(voice && path ? voice : NULL, "voice or path", error);
    return status ? status : voice_save(voice, path, error);
}

utter_status utter_voice_load(utter_voice **voice, const char *path, utter_error *error)
{
    utter_status status = api_need(voice && path ? voice : NULL, "voice or path", error);
    return status ? status : voice_load(voice, path, error);
}

/* "mixed from ann 0.7, bob 0.3, by utter ..." */
static utter_status describe_mix(utter_voice *mixed, const utter_voice *const *voices,
    const double *weights, size_t n, utter_error *error)
{
    char text[1024], part[128];
    size_t at = (size_t)snprintf(text, sizeof text, "mixed from ");
    for (size_t i = 0; i < n && at < sizeof text - 200; i++) {
        error_quote(part, sizeof part, voices[i]->name, strlen(voices[i]->name));
        at += (size_t)snprintf(text + at, sizeof text - at, "%s %g, ", part, weights[i]);
    }
    snprintf(text + at, sizeof text - at, "by utter %s", utter_version_text());
    return voice_describe(mixed, NULL, text, error);
}

utter_status utter_voice_mix(utter_voice **voice, const utter_voice *const *voices,
    const double *weights, size_t n, const char *name, utter_error *error)
{
    utter_status status =
        api_need(voice && voices && weights && name ? voice : NULL, "an argument", error);
    if (voice) {
        *voice = NULL;
    }
    if (status || (status = api_need_text(name, "name", error))) {
        return status;
    }
    if ((status = voice_new_mix(voice, voices, weights, n, name, error)) == UTTER_OK &&
        (status = describe_mix(*voice, voices, weights, n, error))) {
        voice_free(voice);
    }
    return status;
}

utter_status utter_voice_fits(const utter_voice *voice, const utter_model *model, utter_error *error)
{
    utter_status status = api_need(voice && model ? voice : NULL, "voice or model", error);
    return status ? status : voice_fits(voice, model->engine.context.model, error);
}

utter_status utter_voice_get_info(const utter_voice *v, utter_voice_info *info)
{
    if (!v || !info) {
        return UTTER_E_ARGUMENT;
    }
    utter_voice_info full = {info->size, (utter_voice_kind)v->kind, v->name, v->language, v->transcript,
        v->provenance, v->width, v->vector, v->n_frames, v->n_codebooks, v->codes};
    return api_copy_sized(info, info->size, &full, sizeof full, "utter_voice_info", NULL);
}

const char *utter_voice_name(const utter_voice *voice)
{
    return voice ? voice->name : NULL;
}

void utter_voice_free(utter_voice **voice)
{
    if (voice) {
        voice_free(voice);
    }
}

/* ---- Codes ---- */

utter_status utter_codec_encode(utter_model *model, const char *sound_path, int32_t **codes,
    size_t *n_frames, utter_progress_fn *progress, void *user, utter_error *error)
{
    float *pcm = NULL;
    size_t n;
    utter_status status =
        api_need(model && sound_path && codes && n_frames ? model : NULL, "an argument", error);
    if (status) {
        return status;
    }
    *codes = NULL;
    if ((status = engine_check(&model->engine, error)) ||
        (status = sound_read(
             &pcm, &n, NULL, sound_path, api_config(model)->codec.sample_rate, NULL, error))) {
        return status;
    }
    status = clone_codes(codes, n_frames, model->engine.context.ops, model->engine.context.backend,
        model->engine.context.model, pcm, n, progress, user, error);
    memory_free(pcm);
    return engine_keep_failure(&model->engine, status, error);
}
