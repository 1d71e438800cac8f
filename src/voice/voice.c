/* SPDX-License-Identifier: Apache-2.0
 * Makes voices (preset, clone, mix), checks that one fits a model, counts who holds it. */
#include "voice/voice.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/tables/nearest.h"

/* "serena, vivian, ..." in out[size]. */
static const char *voice_list(char *out, size_t size, const struct config *config)
{
    size_t at = 0;
    out[0] = 0;
    for (int i = 0; i < config->n_voices && at + 1 < size; i++) {
        at += (size_t)snprintf(out + at, size - at, "%s%s", i ? ", " : "", config->voices[i].name);
    }
    return out;
}

utter_status voice_new_preset(
    utter_voice **voice, const struct config *config, const char *name, utter_error *error)
{
    char quoted[96], hint[128], known[2048];
    *voice = NULL;
    int index = config_find(config->voices, config->n_voices, name);
    if (index < 0) {
        error_quote(quoted, sizeof quoted, name, strlen(name));
        if (config->n_voices == 0) {
            return error_set(error, UTTER_E_ARGUMENT,
                "unknown voice \"%s\": this %s model has no preset voices%s", quoted, config->kind_name,
                config->kind == UTTER_MODEL_VOICE_DESIGN ? " (describe one with the instruction)" : "");
        }
        struct nearest nearest = nearest_begin(name);
        for (int i = 0; i < config->n_voices; i++) {
            nearest_offer(&nearest, config->voices[i].name);
        }
        return error_set(error, UTTER_E_ARGUMENT, "unknown voice \"%s\" (%sknown: %s)", quoted,
            nearest_hint(&nearest, hint, sizeof hint), voice_list(known, sizeof known, config));
    }
    utter_voice *v = memory_new(1, sizeof *v);
    char *copy = memory_string(config->voices[index].name);
    if (!v || !copy) {
        memory_free(v);
        memory_free(copy);
        return error_memory(error, "voice");
    }
    *v = (utter_voice){.n_users = 1, .name = copy, .kind = VOICE_PRESET, .preset = index};
    *voice = v;
    return UTTER_OK;
}

static void *copy_of(const void *data, size_t n, size_t size)
{
    void *copy = data ? memory_new(n, size) : NULL;
    if (copy) {
        memcpy(copy, data, n * size);
    }
    return copy;
}

utter_status voice_new_clone(utter_voice **voice, const char *name, const float *vector, int width,
    const int32_t *codes, int n_frames, int n_codebooks, const char *transcript, utter_error *error)
{
    *voice = NULL;
    if (codes && (!transcript || !transcript[strspn(transcript, " \t\r\n")])) {
        return error_set(
            error, UTTER_E_ARGUMENT, "a voice with codes needs the transcript of its recording");
    }
    utter_voice *v = memory_new(1, sizeof *v);
    if (!v) {
        return error_memory(error, "voice");
    }
    *v = (utter_voice){
        .n_users = 1, .kind = codes ? VOICE_CONTEXT : VOICE_VECTOR, .preset = -1, .width = width};
    v->name = memory_string(name);
    v->vector = copy_of(vector, (size_t)width, sizeof *vector);
    bool complete = v->name && v->vector;
    if (codes) {
        v->n_frames = n_frames;
        v->n_codebooks = n_codebooks;
        v->codes = copy_of(codes, (size_t)n_frames * (size_t)n_codebooks, sizeof *codes);
        v->transcript = memory_string(transcript);
        complete = complete && v->codes && v->transcript;
    }
    if (!complete) {
        voice_free(&v);
        return error_memory(error, "voice");
    }
    *voice = v;
    return UTTER_OK;
}

utter_status voice_describe(
    utter_voice *v, const char *language, const char *provenance, utter_error *error)
{
    v->language = language ? memory_string(language) : NULL;
    v->provenance = provenance ? memory_string(provenance) : NULL;
    bool complete = (!language || v->language) && (!provenance || v->provenance);
    return complete ? UTTER_OK : error_memory(error, "voice");
}

static utter_status check_mix(
    const utter_voice *const *voices, const double *weights, size_t n, utter_error *error)
{
    for (size_t i = 0; i < n; i++) {
        if (!voices[i] || voices[i]->kind == VOICE_PRESET) {
            return error_set(error, UTTER_E_ARGUMENT, "only cloned voices can be mixed%s%s",
                voices[i] ? ", not " : "", voices[i] ? voices[i]->name : "");
        }
        if (voices[i]->width != voices[0]->width) {
            return error_set(error, UTTER_E_ARGUMENT,
                "the voices \"%s\" and \"%s\" fit models of different widths, %d and %d",
                voices[0]->name, voices[i]->name, voices[0]->width, voices[i]->width);
        }
        if (!(weights[i] > 0 && weights[i] <= 1e6)) {
            return error_set(error, UTTER_E_ARGUMENT,
                "the weight %g of \"%s\" is not above 0 and at most 1e6", weights[i], voices[i]->name);
        }
    }
    return n ? UTTER_OK : error_set(error, UTTER_E_ARGUMENT, "no voices to mix");
}

utter_status voice_new_mix(utter_voice **voice, const utter_voice *const *voices, const double *weights,
    size_t n, const char *name, utter_error *error)
{
    double sum = 0;
    *voice = NULL;
    utter_status status = check_mix(voices, weights, n, error);
    if (status || (status = voice_new_clone(
                       voice, name, voices[0]->vector, voices[0]->width, NULL, 0, 0, NULL, error))) {
        return status;
    }
    for (size_t i = 0; i < n; i++) {
        sum += weights[i];
    }
    for (int k = 0; k < (*voice)->width; k++) {
        double mixed = 0;
        for (size_t i = 0; i < n; i++) {
            mixed += weights[i] / sum * (double)voices[i]->vector[k];
        }
        (*voice)->vector[k] = (float)mixed;
    }
    return UTTER_OK;
}

utter_status voice_fits(const utter_voice *v, const struct model *model, utter_error *error)
{
    const struct config *c = model->config;
    if (v->kind == VOICE_PRESET) {
        bool known = v->preset < c->n_voices && strcmp(c->voices[v->preset].name, v->name) == 0;
        return known ? UTTER_OK
                     : error_set(error, UTTER_E_ARGUMENT,
                           "the voice \"%s\" is a preset of another model", v->name);
    }
    if (c->kind != UTTER_MODEL_BASE) {
        return error_set(error, UTTER_E_ARGUMENT, "cloned voices need a base model, this is a %s model",
            c->kind_name);
    }
    if (v->width != c->talker.width) {
        return error_set(error, UTTER_E_ARGUMENT,
            "the voice \"%s\" was made for a model of width %d, this one has %d (clone it again)",
            v->name, v->width, c->talker.width);
    }
    if (v->codes && v->n_codebooks != c->n_codebooks) {
        return error_set(error, UTTER_E_ARGUMENT,
            "the voice \"%s\" has %d codebooks, this model %d (clone it again)", v->name,
            v->n_codebooks, c->n_codebooks);
    }
    if (v->codes && v->codec && v->codec != model->codec_fingerprint) {
        return error_set(error, UTTER_E_ARGUMENT,
            "the voice \"%s\" holds codes of another codec than this model's (clone it again)",
            v->name);
    }
    for (int i = 0; v->codes && i < v->n_frames * v->n_codebooks; i++) {
        if (v->codes[i] < 0 || v->codes[i] >= c->codec.codebook_size) {
            return error_set(error, UTTER_E_ARGUMENT,
                "the voice \"%s\" holds the code %d, this model has 0..%d", v->name, v->codes[i],
                c->codec.codebook_size - 1);
        }
    }
    return UTTER_OK;
}

utter_voice *voice_share(const utter_voice *voice)
{
    utter_voice *v = (utter_voice *)voice; /* the count is not part of what a voice is */
    if (v) {
        __atomic_add_fetch(&v->n_users, 1, __ATOMIC_RELAXED);
    }
    return v;
}

void voice_free(utter_voice **voice)
{
    utter_voice *v = *voice;
    if (v && __atomic_sub_fetch(&v->n_users, 1, __ATOMIC_ACQ_REL) == 0) {
        memory_free(v->name);
        memory_free(v->vector);
        memory_free(v->codes);
        memory_free(v->transcript);
        memory_free(v->language);
        memory_free(v->provenance);
        memory_free(v);
    }
    *voice = NULL;
}
