/* SPDX-License-Identifier: Apache-2.0
 * Named, shape-checked access to a tensor set that reports every mismatch together. */
#ifndef WEIGHTS_BIND_H
#define WEIGHTS_BIND_H

#include "weights/safetensors.h"

/* A matrix or higher tensor that is used where it lies in the file: row-major, BF16 or F32 or F16; or packed blocks of
 * one (weights/pack.h), Q8 or Q4. */
struct weight {
    const void *data;
    enum dtype type; /* DTYPE_BF16, DTYPE_F32, DTYPE_F16, DTYPE_Q8 or DTYPE_Q4 */
    int64_t rows;    /* dims[0] */
    int64_t cols;    /* product of the other dims */
};

struct bind {
    const struct tensor_set *set;
    const char *file; /* shown in the report: "model.safetensors" */
    int n_problems, n_shown;
    char *report; /* the first n_shown problems; freed by bind_finish */
    size_t report_bytes;
    bool out_of_memory;
};

void bind_begin(struct bind *b, const struct tensor_set *set, const char *file);
/* A tensor with exactly these dims (n_dims of them); `index` >= 0 replaces the first "{}" in `name`, `index2`
 * the second; pass -1 where there is none. On a mismatch it is noted and an empty weight comes back. */
struct weight bind_weight(
    struct bind *b, const char *name, int index, int index2, int n_dims, const int64_t *dims);
/* A matrix as bind_weight has it, or as packed blocks under the same name. */
struct weight bind_linear(
    struct bind *b, const char *name, int index, int index2, int64_t rows, int64_t cols);
/* The same as fp32 values in new memory (memory_new; the caller frees), whatever the type in the file:
 * for norms, biases and other small vectors. NULL on mismatch. */
float *bind_vector(struct bind *b, const char *name, int index, int index2, int64_t n);
/* A tensor that must not be there: the first of one layer more than the config says. */
void bind_no_more(struct bind *b, const char *name, int index);
/* UTTER_E_MODEL with "N tensors do not fit: name: want BF16 [..], have ..; ..." (all of them, cut at the size of the
 * error text with "and N more"); frees the report. UTTER_OK when all fitted. */
utter_status bind_finish(struct bind *b, utter_error *error);

#endif
