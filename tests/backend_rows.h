/* SPDX-License-Identifier: Apache-2.0
 * Prompts and texts for tests of a backend's door, the same for every backend. */
#ifndef TESTS_BACKEND_ROWS_H
#define TESTS_BACKEND_ROWS_H

#include "model/backend.h"

enum { MAX_CODEBOOKS = 64 };

/* Rows of every kind. `kind` makes one prompt differ from another. */
static inline void make_rows(const struct config *c, int kind, struct row *rows, int n)
{
    static float vector[8192];
    static int32_t codes[MAX_CODEBOOKS];
    for (int i = 0; i < c->talker.width; i++) {
        vector[i] = (float)(i % 7) * 0.1f - 0.3f;
    }
    for (int i = 0; i < c->n_codebooks; i++) {
        codes[i] = (i * 5 + 1) % c->predictor_vocabulary;
    }
    for (int i = 0; i < n; i++) {
        int text = (i * 37 + kind * 11) % c->text_vocabulary;
        rows[i] = (struct row){.text = i % 5 == 0 ? c->tts_pad : text};
        rows[i].codec = (enum row_codec)(i % 4);
        rows[i].id = (i * 13 + kind) % c->codec_vocabulary;
        rows[i].vector = vector;
        rows[i].codes = codes;
        if (i % 11 == 10 && rows[i].codec != ROW_NONE) {
            rows[i].text = -1;
        }
    }
}

/* The text that joins frame t: real text with a gap in it, then padding. */
static inline int32_t text_of(const struct config *c, int kind, int t)
{
    return t < 4 && t != 1 ? (t * 91 + kind) % c->text_vocabulary : c->tts_pad;
}

#endif
