/* SPDX-License-Identifier: Apache-2.0
 * Rows and codes -> the talker's input vectors. */
#ifndef CPU_STACK_EMBED_H
#define CPU_STACK_EMBED_H

#include "cpu/kernels/kern.h"
#include "model/model.h"
#include "model/row.h"

struct cpu_embed {
    const struct model *model;
    const struct kern *kern;
    struct pool *pool;
    int n_columns;    /* rows that go through the text projection at once */
    float *text;      /* [n_columns][text width]: rows of the text table, */
    float *middle;    /* [n_columns][text width]: after the first layer, */
    float *projected; /* [n_columns][talker width]: and after the second */
    float *sum;       /* [talker width] */
    /* [talker width]: the projected padding text, which most frames add; NULL until it is known */
    float *pad;
};

utter_status cpu_embed_init(struct cpu_embed *e, const struct model *model, const struct kern *kern,
    struct pool *pool, int n_columns, utter_error *error);
void cpu_embed_fini(struct cpu_embed *e);

/* x[n][talker width] = the vectors of n rows, n <= n_columns. */
void cpu_embed_rows(struct cpu_embed *e, const struct row *rows, int n, float *x);

/* out[talker width] = row `code` of the table of `codebook`: 0 the talker's, others the predictor's. */
void cpu_embed_code(const struct model *model, int codebook, int32_t code, float *out);

#endif
