/* SPDX-License-Identifier: Apache-2.0
 * safetensors files -> checked tensor views. Comes in: paths. Goes out: an immutable set of named
 * tensors over mapped files, every offset checked before any is handed out. */
#ifndef WEIGHTS_SAFETENSORS_H
#define WEIGHTS_SAFETENSORS_H

#include "base/error.h"
#include "base/progress.h"

enum dtype {
    DTYPE_F32,
    DTYPE_BF16,
    DTYPE_F16,
    DTYPE_F64,
    DTYPE_I64,
    DTYPE_I32,
    DTYPE_I16,
    DTYPE_I8,
    DTYPE_U8,
    DTYPE_BOOL,
    DTYPE_U16,
    DTYPE_U32,
    DTYPE_U64,
    N_DTYPES,
    /* Packed weights (weights/pack.h): no types of a file. */
    DTYPE_Q8 = N_DTYPES,
    DTYPE_Q4
};
const char *dtype_name(enum dtype type); /* "BF16" */
size_t dtype_bytes(enum dtype type);

enum { TENSOR_MAX_DIMS = 8 };

struct tensor {
    const char *name;
    enum dtype type;
    int n_dims;
    int64_t dims[TENSOR_MAX_DIMS];
    const void *data; /* aligned as the file has it: at least to the element size is checked */
    size_t bytes;
};

struct tensor_set;

/* Opens one safetensors file. */
utter_status tensor_set_open_file(struct tensor_set **set, const char *path, utter_error *error);
/* Opens folder/model.safetensors or, if that is missing, the shards that
 * folder/model.safetensors.index.json names (plain names inside the folder; every tensor of the weight map must be
 * in the shard it is said to be in). */
utter_status tensor_set_open_folder(struct tensor_set **set, const char *folder, utter_error *error);
/* The same from memory that the caller keeps alive (tests, embedded files). */
utter_status tensor_set_open_memory(
    struct tensor_set **set, const void *data, size_t bytes, const char *what, utter_error *error);
void tensor_set_close(struct tensor_set **set);

const struct tensor *tensor_set_find(const struct tensor_set *set, const char *name); /* or NULL */
size_t tensor_set_count(const struct tensor_set *set);
const struct tensor *tensor_set_at(const struct tensor_set *set, size_t index); /* sorted by name */
/* A value of the file's __metadata__ (first file), or NULL. */
const char *tensor_set_metadata(const struct tensor_set *set, const char *key);
uint64_t tensor_set_bytes(const struct tensor_set *set); /* mapped file bytes */
/* True when a file has shrunk since it was opened: its tensors read as zeros there. */
bool tensor_set_damaged(const struct tensor_set *set);

/* Gives memory back that holds pages of the file between data and data + bytes; reading them reads the file again. */
void tensor_set_rest(const struct tensor_set *set, const void *data, size_t bytes);

/* ---- Writing ---- */

/* Writes a safetensors file (atomically), data from memory. In the file larger elements come first, so that
 * all are aligned, and otherwise the order given. `metadata` is pairs key, value, ..., NULL, or NULL. With
 * SEAL_KEY among the keys the file is sealed (weights/seal.h). */
utter_status tensor_file_write(const char *path, const struct tensor *tensors, size_t n,
    const char *const *metadata, utter_error *error);
/* The same, with `progress` (may be NULL) told of its last stage. */
utter_status tensor_file_write_told(const char *path, const struct tensor *tensors, size_t n,
    const char *const *metadata, struct progress *progress, utter_error *error);

#endif
