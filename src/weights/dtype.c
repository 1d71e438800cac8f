/* SPDX-License-Identifier: Apache-2.0
 * Element types of safetensors files: names and sizes. */
#include <string.h>

#include "weights/safetensors_file.h"

static const struct {
    const char *name;
    size_t bytes;
} dtypes[N_DTYPES] = {
    [DTYPE_F32] = {"F32", 4},
    [DTYPE_BF16] = {"BF16", 2},
    [DTYPE_F16] = {"F16", 2},
    [DTYPE_F64] = {"F64", 8},
    [DTYPE_I64] = {"I64", 8},
    [DTYPE_I32] = {"I32", 4},
    [DTYPE_I16] = {"I16", 2},
    [DTYPE_I8] = {"I8", 1},
    [DTYPE_U8] = {"U8", 1},
    [DTYPE_BOOL] = {"BOOL", 1},
    [DTYPE_U16] = {"U16", 2},
    [DTYPE_U32] = {"U32", 4},
    [DTYPE_U64] = {"U64", 8},
};

const char *dtype_name(enum dtype type)
{
    return dtypes[type].name;
}

size_t dtype_bytes(enum dtype type)
{
    return dtypes[type].bytes;
}

bool dtype_find(const char *name, enum dtype *type)
{
    for (int i = 0; i < N_DTYPES; i++) {
        if (strcmp(dtypes[i].name, name) == 0) {
            *type = (enum dtype)i;
            return true;
        }
    }
    return false;
}

bool tensor_size(const struct tensor *tensor, size_t *bytes)
{
    size_t n = dtype_bytes(tensor->type);
    for (int i = 0; i < tensor->n_dims; i++) {
        if (tensor->dims[i] < 0 || (uint64_t)tensor->dims[i] > SIZE_MAX ||
            !memory_multiply(n, (size_t)tensor->dims[i], &n)) {
            return false;
        }
    }
    *bytes = n;
    return true;
}
