/* SPDX-License-Identifier: Apache-2.0
 * The fields of a speech request, as data: fields.c checks requests by this table, and /openapi.json is written from
 * it. The sampling parameters are fields, too, with a table of their own (base/tables/parameters.h). */
#ifndef SERVER_FIELD_TABLE_H
#define SERVER_FIELD_TABLE_H

#include <stdbool.h>

enum {
    FIELDS_MAX_INPUT = 100000, /* characters: about two hours */
    FIELDS_MAX_INSTRUCTIONS = 4096,
    FIELDS_MAX_FRAMES = 1000000,
};

/* What a value is. */
enum field_kind {
    FIELD_IS_TEXT,
    FIELD_IS_NUMBER,
    FIELD_IS_INTEGER,
    FIELD_IS_FLAG,
    FIELD_IS_WORD,
    FIELD_IS_VOICE
};

/* In the order of the documents. */
enum field {
    FIELD_INPUT,
    FIELD_VOICE,
    FIELD_SPEAKER,
    FIELD_MODEL,
    FIELD_RESPONSE_FORMAT,
    FIELD_SPEED,
    FIELD_VOLUME,
    FIELD_SAMPLE_RATE,
    FIELD_SAMPLE_FORMAT,
    FIELD_BIT_RATE,
    FIELD_STREAM_FORMAT,
    FIELD_STREAM,
    FIELD_INSTRUCTIONS,
    FIELD_LANGUAGE,
    FIELD_LANG_CODE,
    FIELD_MARKUP,
    FIELD_SPELL_OUT,
    FIELD_CARRY,
    FIELD_SEED,
    FIELD_MAX_NEW_TOKENS,
    FIELD_NON_STREAMING_MODE,
    FIELD_TASK_TYPE,
    FIELD_REF_AUDIO,
    FIELD_REF_TEXT,
    FIELD_X_VECTOR_ONLY_MODE,
    FIELD_SPLIT_GRANULARITY,
    FIELD_WORD_TIMESTAMPS,
    FIELD_BACKGROUND,
    FIELD_MODEL_HASH,
    FIELD_VOICE_HASH,
    FIELD_SPEAKER_EMBEDDING,
    FIELD_REFERENCES,
    FIELD_INITIAL_CODEC_CHUNK_FRAMES,
    FIELD_STREAM_AUDIO,
    N_FIELDS
};

struct field_row {
    const char *name;
    enum field_kind kind;
    double low, high;     /* of a number; of a text, the most characters, 0: no bound of its own */
    const char *words;    /* of a word: a|b|c */
    const char *fallback; /* as JSON, where a default can be named; NULL: it cannot */
    bool session_only;    /* in the configuration of a session alone */
    const char *about;    /* for those who write requests; NULL: taken, and refused or without effect */
};

extern const struct field_row field_table[N_FIELDS];

#endif
