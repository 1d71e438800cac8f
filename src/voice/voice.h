/* SPDX-License-Identifier: Apache-2.0
 * Who speaks. A voice never changes after it is made; it is shared by counting. */
#ifndef VOICE_VOICE_H
#define VOICE_VOICE_H

#include "model/model.h"

enum voice_kind {
    VOICE_PRESET, /* a row of the talker's code table */
    VOICE_VECTOR, /* cloned: an x-vector */
    VOICE_CONTEXT /* cloned: an x-vector, and a recording's codes with its transcript */
};

struct utter_voice {
    int n_users; /* atomic */
    char *name;
    enum voice_kind kind;
    int preset;     /* VOICE_PRESET: index into the config's voices */
    float *vector;  /* else [width] */
    int width;      /* of the talker that the voice fits */
    int32_t *codes; /* VOICE_CONTEXT: [n_frames][n_codebooks] */
    int n_frames, n_codebooks;
    char *transcript; /* VOICE_CONTEXT: what the recording says */
    uint64_t codec;   /* VOICE_CONTEXT: fingerprint of the codec whose codes they are */
    char *language;   /* the recording's, or NULL */
    char *provenance; /* where the voice comes from, for people; or NULL */
};

/* A preset voice by name, any case. */
utter_status voice_new_preset(
    utter_voice **voice, const struct config *config, const char *name, utter_error *error);
/* A cloned voice; the arrays are copied. codes NULL (n_frames 0): an x-vector voice, without transcript. Otherwise the
 * transcript must say something. */
utter_status voice_new_clone(utter_voice **voice, const char *name, const float *vector, int width,
    const int32_t *codes, int n_frames, int n_codebooks, const char *transcript, utter_error *error);
/* Sets what is for people; the strings are copied, NULL leaves one out. */
utter_status voice_describe(
    utter_voice *voice, const char *language, const char *provenance, utter_error *error);
/* The weighted mean of the x-vectors of n >= 1 cloned voices of one width. */
utter_status voice_new_mix(utter_voice **voice, const utter_voice *const *voices, const double *weights,
    size_t n, const char *name, utter_error *error);
/* UTTER_E_ARGUMENT with the reason when the voice does not fit a model. */
utter_status voice_fits(const utter_voice *voice, const struct model *model, utter_error *error);
utter_voice *voice_share(const utter_voice *voice);
void voice_free(utter_voice **voice); /* gives one share back; accepts NULL */

#endif
