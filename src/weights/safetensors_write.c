/* SPDX-License-Identifier: Apache-2.0
 * Tensors in memory -> a safetensors file. */
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/file.h"
#include "base/minmax.h"
#include "weights/safetensors_file.h"
#include "weights/seal.h"

static utter_status header_fails(
    utter_error *error, const char *path, const char *name, const char *reason)
{
    char shown[200], file[512];
    return error_set(error, UTTER_E_ARGUMENT, "%s: cannot write tensor %s: %s",
        error_quote(file, sizeof file, path, strlen(path)),
        error_quote(shown, sizeof shown, name, strlen(name)), reason);
}

/* {"dtype":..., "shape":[...], "data_offsets":[begin, end]}; NULL when out of memory. */
static json_t *tensor_info(const struct tensor *t, size_t begin)
{
    json_t *info = json_object(), *shape = json_array();
    int failed = json_object_set_new(info, "dtype", json_string(dtype_name(t->type)));
    for (int i = 0; i < t->n_dims; i++) {
        failed |= json_array_append_new(shape, json_integer(t->dims[i]));
    }
    failed |= json_object_set_new(info, "shape", shape);
    failed |= json_object_set_new(
        info, "data_offsets", json_pack("[I,I]", (json_int_t)begin, (json_int_t)(begin + t->bytes)));
    if (failed) {
        json_decref(info);
        return NULL;
    }
    return info;
}

/* Adds one tensor at *offset, which moves on. */
static utter_status header_add(
    json_t *header, const struct tensor *t, size_t *offset, const char *path, utter_error *error)
{
    size_t bytes, end;
    if (t->n_dims < 0 || t->n_dims > TENSOR_MAX_DIMS || !tensor_size(t, &bytes) || bytes != t->bytes ||
        !memory_add(*offset, bytes, &end)) {
        return header_fails(error, path, t->name, "its size is not that of its shape");
    }
    if (json_object_get(header, t->name) || strcmp(t->name, SAFETENSORS_METADATA) == 0) {
        return header_fails(error, path, t->name, "the name is taken");
    }
    json_t *info = tensor_info(t, *offset);
    if (!info || json_object_set_new(header, t->name, info) != 0) {
        return error_memory(error, "the header of a file");
    }
    *offset = end;
    return UTTER_OK;
}

/* Larger elements first, so that every tensor is aligned without holes. */
static const size_t element_sizes[] = {8, 4, 2, 1};
enum { N_ELEMENT_SIZES = sizeof element_sizes / sizeof element_sizes[0] };

static utter_status header_fill(json_t *header, const struct tensor *tensors, size_t n,
    const char *const *metadata, const char *path, utter_error *error)
{
    if (metadata) {
        json_t *pairs = json_object();
        int failed = 0;
        for (; metadata[0]; metadata += 2) {
            failed |= json_object_set_new(pairs, metadata[0], json_string(metadata[1]));
        }
        failed |= json_object_set_new(header, SAFETENSORS_METADATA, pairs);
        if (failed) {
            return error_memory(error, "the header of a file");
        }
    }
    size_t offset = 0;
    for (int s = 0; s < N_ELEMENT_SIZES; s++) {
        for (size_t i = 0; i < n; i++) {
            utter_status status = UTTER_OK;
            if (dtype_bytes(tensors[i].type) == element_sizes[s]) {
                status = header_add(header, &tensors[i], &offset, path, error);
            }
            if (status != UTTER_OK) {
                return status;
            }
        }
    }
    return UTTER_OK;
}

/* The file being written, and the hash of what was written so far. */
struct sealed_out {
    struct file_out *out;
    XXH64_state_t hash;
    size_t seal_at; /* of the digits; 0: the file wants no seal */
};

static utter_status sealed_write(
    struct sealed_out *s, const void *data, size_t bytes, utter_error *error)
{
    XXH64_update(&s->hash, data, bytes);
    return file_out_write(s->out, data, bytes, error);
}

/* Puts the hash where zeros were hashed, and completes the file. */
static utter_status sealed_close(struct sealed_out *s, utter_error *error)
{
    char digits[SEAL_DIGITS];
    seal_digits(digits, XXH64_digest(&s->hash));
    utter_status status =
        s->seal_at ? file_out_patch(s->out, s->seal_at, digits, SEAL_DIGITS, error) : UTTER_OK;
    if (status) {
        file_out_abort(&s->out);
        return status;
    }
    return file_out_close(&s->out, error);
}

/* The length, the header and the spaces that end it at a multiple of 64: packed weights are read in whole lines. */
static utter_status header_write(
    struct sealed_out *out, const json_t *header, bool sealed, utter_error *error)
{
    size_t bytes = json_dumpb(header, NULL, 0, JSON_COMPACT), size = (bytes + 8 + 63) & ~(size_t)63;
    char *text = bytes ? memory_new(size, 1) : NULL;
    if (!text || json_dumpb(header, text + 8, bytes, JSON_COMPACT) != bytes) {
        memory_free(text);
        return error_memory(error, "the header of a file");
    }
    for (int i = 0; i < 8; i++) {
        text[i] = (char)((uint64_t)(size - 8) >> (8 * i) & 0xff);
    }
    memset(text + 8 + bytes, ' ', size - 8 - bytes);
    out->seal_at = sealed ? seal_find(text, size) : 0;
    utter_status status = sealed_write(out, text, size, error);
    memory_free(text);
    return status;
}

/* A part at a time, so that the work is told of, and stopped, also within a large tensor. */
static utter_status tensor_write(
    struct sealed_out *out, const struct tensor *t, struct progress *progress, utter_error *error)
{
    enum { MOST_AT_ONCE = 8 << 20 };
    utter_status status = UTTER_OK;
    for (size_t at = 0; at < t->bytes && !status; at += MOST_AT_ONCE) {
        size_t bytes = min(t->bytes - at, (size_t)MOST_AT_ONCE);
        status = sealed_write(out, (const char *)t->data + at, bytes, error);
        if (!status) {
            status = progress_add(progress, (double)bytes, error);
        }
    }
    return status;
}

/* The stage of the work that is left. */
static void begin_writing(struct progress *progress, const struct tensor *tensors, size_t n)
{
    double bytes = 0;
    for (size_t i = 0; i < n; i++) {
        bytes += (double)tensors[i].bytes;
    }
    if (progress) {
        progress_begin(progress, 1 - progress->from - progress->share, bytes);
    }
}

utter_status tensor_file_write(const char *path, const struct tensor *tensors, size_t n,
    const char *const *metadata, utter_error *error)
{
    return tensor_file_write_told(path, tensors, n, metadata, NULL, error);
}

utter_status tensor_file_write_told(const char *path, const struct tensor *tensors, size_t n,
    const char *const *metadata, struct progress *progress, utter_error *error)
{
    struct sealed_out out = {0};
    bool sealed = false;
    json_t *header = json_object();
    for (size_t i = 0; metadata && metadata[i]; i += 2) {
        sealed |= strcmp(metadata[i], SEAL_KEY) == 0;
    }
    XXH64_reset(&out.hash, 0);
    utter_status status = header ? header_fill(header, tensors, n, metadata, path, error)
                                 : error_memory(error, "the header of a file");
    if (status == UTTER_OK) {
        status = file_out_open(&out.out, path, error);
    }
    if (status == UTTER_OK) {
        status = header_write(&out, header, sealed, error);
    }
    begin_writing(progress, tensors, n);
    for (int s = 0; s < N_ELEMENT_SIZES; s++) {
        for (size_t i = 0; i < n && status == UTTER_OK; i++) {
            if (dtype_bytes(tensors[i].type) == element_sizes[s]) {
                status = tensor_write(&out, &tensors[i], progress, error);
            }
        }
    }
    json_decref(header);
    if (status == UTTER_OK) {
        return sealed_close(&out, error);
    }
    file_out_abort(&out.out);
    return status;
}
