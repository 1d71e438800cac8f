/* SPDX-License-Identifier: Apache-2.0
 * The prompt as data: one row for each talker position. Every mode (both layouts, instructions, preset,
 * designed and cloned voices) is a way to write rows; nothing after prompt/ knows modes. */
#ifndef MODEL_ROW_H
#define MODEL_ROW_H

#include <stdint.h>

enum row_codec {
    ROW_NONE,   /* text alone */
    ROW_ID,     /* + row `id` of the talker's code table */
    ROW_VECTOR, /* + vector[talker width] */
    ROW_CODES,  /* + the sum of the embeddings of codes[n_codebooks] */
};

struct row {
    int32_t text; /* text token id, -1: none */
    int32_t id;   /* ROW_ID */
    enum row_codec codec;
    const float *vector;  /* ROW_VECTOR, borrowed */
    const int32_t *codes; /* ROW_CODES, borrowed */
};

#endif
