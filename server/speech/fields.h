/* SPDX-License-Identifier: Apache-2.0
 * The fields of a speech request: JSON in, checked values out. Pure. */
#ifndef SERVER_FIELDS_H
#define SERVER_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/tables/parameters.h"
#include "server/protocol/refusal.h"
#include "server/sound/encode.h"
#include "server/speech/field_table.h"

enum { FIELDS_MAX_KEYS = 256 };

/* What the served model allows. */
struct fields_model {
    const char *id;   /* its name for clients */
    const char *kind; /* "base", "custom_voice", "voice_design" */
    const char *const *languages;
    int n_languages;
    bool takes_instructions;
    enum encode_format default_format;
};

enum fields_streaming { FIELDS_RAW, FIELDS_SSE, FIELDS_WHOLE };
enum fields_cut { FIELDS_CUT_NONE, FIELDS_CUT_SENTENCE, FIELDS_CUT_CLAUSE };

/* Strings belong to the JSON object, which is kept, or to the program. */
struct fields {
    json_t *object;
    const char *input, *voice, *instructions, *language; /* language: one of the model, or NULL */
    size_t input_chars;
    struct encode_settings sound;
    enum fields_streaming streaming;
    enum fields_cut cut;              /* of a WebSocket session */
    int layout;                       /* utter_layout */
    int markup;                       /* UTTER_MARKUP_ */
    bool spell_out;                   /* numbers in words */
    bool carry;                       /* each piece goes on from the one before */
    double sampling[MOST_PARAMETERS]; /* of parameter_table, parameter_own: the model's */
    uint64_t seed;
    int max_frames;                   /* 0: no limit */
    const char *ref_audio, *ref_text; /* a voice for this request alone */
    bool x_vector_only;
    const char *voice_file;              /* made from ref_audio by the server; never from the request */
    bool words;                          /* which word is heard when is told */
    bool background;                     /* nobody waits for it */
    const char *model_hash, *voice_hash; /* of those that it was meant for, or NULL: any */
    int n_unknown;                       /* fields that nobody here knows */
};

enum fields_for { FIELDS_FOR_SPEECH, FIELDS_FOR_SESSION };

/* Checks all fields of `object`; those that are missing come from `defaults` (may be NULL). A session has no input.
 * fields_fini is due also when this refuses. */
bool fields_parse(struct fields *f, json_t *object, const json_t *defaults, enum fields_for what,
    const struct fields_model *model, struct refusal *refusal);
void fields_fini(struct fields *f);

#endif
