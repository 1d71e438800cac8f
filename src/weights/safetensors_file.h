/* SPDX-License-Identifier: Apache-2.0
 * The bytes of one safetensors file -> its tensors, in a list that several files may share. Used by the
 * tensor set and the writer only. */
#ifndef WEIGHTS_SAFETENSORS_FILE_H
#define WEIGHTS_SAFETENSORS_FILE_H

#include "base/json.h"
#include "base/memory.h"
#include "weights/safetensors.h"

/* The format's own bound on the header, and its key that is no tensor. */
enum { SAFETENSORS_HEADER_MAX = 100000000 };
#define SAFETENSORS_METADATA "__metadata__"

bool dtype_find(const char *name, enum dtype *type);
/* Bytes that type and dims ask for; false when a dim is negative or the product overflows. */
bool tensor_size(const struct tensor *tensor, size_t *bytes);

struct tensor_entry {
    struct tensor tensor; /* the name lies in the file's header */
    int file;             /* index of the file it is in */
};

struct tensor_list {
    struct tensor_entry *at;
    size_t n, capacity;
};

/* Appends the tensors of a file, after every check that design calls for: header inside the file,
 * types, shapes and byte ranges that agree, data that is covered once and without holes, aligned.
 * *header is the caller's (json_decref) and must outlive the tensors. */
utter_status safetensors_parse(struct tensor_list *list, json_t **header, const uint8_t *data,
    size_t size, int file, const char *what, utter_error *error);

/* What a file is that others take for a model's, and what to do: for a sentence in brackets. NULL: none of those. */
const char *safetensors_stranger(const uint8_t *data, size_t size);

#endif
