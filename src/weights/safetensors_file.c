/* SPDX-License-Identifier: Apache-2.0
 * One safetensors file: 8 bytes of header length, a JSON header, the data. Nothing here trusts the file. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/json.h"
#include "weights/safetensors_file.h"

/* The file being read; names for errors are made printable once. */
struct reader {
    const uint8_t *data; /* the first byte after the header */
    size_t data_bytes;
    int file;
    const char *what;
    utter_error *error;
};

static utter_status tensor_fails(const struct reader *r, const char *name, const char *reason)
{
    char shown[200];
    return error_set(r->error, UTTER_E_FILE, "%s: tensor %s: %s", r->what,
        error_quote(shown, sizeof shown, name, strlen(name)), reason);
}

static utter_status read_dtype(const struct reader *r, struct tensor *t, const json_t *info)
{
    const char *name = json_string_value(json_object_get(info, "dtype"));
    if (!name) {
        return tensor_fails(r, t->name, "no dtype");
    }
    if (!dtype_find(name, &t->type)) {
        char shown[40];
        return error_set(r->error, UTTER_E_FILE, "%s: tensor %s: dtype %s is not known here", r->what,
            t->name, error_quote(shown, sizeof shown, name, strlen(name)));
    }
    return UTTER_OK;
}

static utter_status read_shape(const struct reader *r, struct tensor *t, const json_t *info)
{
    const json_t *shape = json_object_get(info, "shape");
    if (!json_is_array(shape)) {
        return tensor_fails(r, t->name, "no shape");
    }
    if (json_array_size(shape) > TENSOR_MAX_DIMS) {
        return tensor_fails(r, t->name, "more than 8 dimensions");
    }
    t->n_dims = (int)json_array_size(shape);
    for (int i = 0; i < t->n_dims; i++) {
        const json_t *dim = json_array_get(shape, (size_t)i);
        if (!json_is_integer(dim) || json_integer_value(dim) < 0) {
            return tensor_fails(r, t->name, "a dimension is not a whole number from 0 up");
        }
        t->dims[i] = json_integer_value(dim);
    }
    return UTTER_OK;
}

static utter_status read_range(const struct reader *r, struct tensor *t, const json_t *info)
{
    const json_t *range = json_object_get(info, "data_offsets");
    const json_t *first = json_array_get(range, 0), *last = json_array_get(range, 1);
    if (json_array_size(range) != 2 || !json_is_integer(first) || !json_is_integer(last)) {
        return tensor_fails(r, t->name, "no data_offsets");
    }
    json_int_t begin = json_integer_value(first), end = json_integer_value(last);
    if (begin < 0 || end < begin || (uint64_t)end > r->data_bytes) {
        return error_set(r->error, UTTER_E_FILE,
            "%s: tensor %s: bytes %" PRId64 " to %" PRId64
            " of %zu bytes of data (is the file cut short?)",
            r->what, t->name, (int64_t)begin, (int64_t)end, r->data_bytes);
    }
    t->data = r->data + begin;
    t->bytes = (size_t)(end - begin);
    size_t wanted;
    if (!tensor_size(t, &wanted)) {
        return tensor_fails(r, t->name, "the dimensions are too large");
    }
    if (wanted != t->bytes) {
        return error_set(r->error, UTTER_E_FILE,
            "%s: tensor %s: type and shape take %zu bytes, data_offsets give %zu", r->what, t->name,
            wanted, t->bytes);
    }
    if (t->bytes && (uintptr_t)t->data % dtype_bytes(t->type) != 0) {
        return error_set(r->error, UTTER_E_FILE,
            "%s: tensor %s: its data is not aligned to its %zu-byte elements "
            "(write the file again with a current safetensors library)",
            r->what, t->name, dtype_bytes(t->type));
    }
    return UTTER_OK;
}

static utter_status list_add(
    struct tensor_list *list, const struct tensor_entry *entry, utter_error *error)
{
    if (list->n == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 512;
        struct tensor_entry *at = memory_resize(list->at, list->n, capacity, sizeof *at);
        if (!at) {
            return error_memory(error, "the list of tensors");
        }
        list->at = at;
        list->capacity = capacity;
    }
    list->at[list->n++] = *entry;
    return UTTER_OK;
}

/* By place in the file; an empty tensor before a full one that begins with it. */
static int compare_places(const void *a, const void *b)
{
    const struct tensor *x = &((const struct tensor_entry *)a)->tensor;
    const struct tensor *y = &((const struct tensor_entry *)b)->tensor;
    if (x->data != y->data) {
        return (const uint8_t *)x->data < (const uint8_t *)y->data ? -1 : 1;
    }
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Every byte of the data must belong to exactly one tensor. */
static utter_status check_tiling(const struct reader *r, struct tensor_entry *entries, size_t n)
{
    const uint8_t *at = r->data;
    if (n) {
        qsort(entries, n, sizeof *entries, compare_places);
    }
    for (size_t i = 0; i < n; i++) {
        const uint8_t *begin = entries[i].tensor.data;
        if (begin != at) {
            return tensor_fails(r, entries[i].tensor.name,
                begin < at ? "its data overlaps another tensor" : "unused bytes before its data");
        }
        at = begin + entries[i].tensor.bytes;
    }
    if ((size_t)(at - r->data) != r->data_bytes) {
        return error_set(r->error, UTTER_E_FILE, "%s: %zu bytes after the last tensor", r->what,
            r->data_bytes - (size_t)(at - r->data));
    }
    return UTTER_OK;
}

static utter_status check_metadata(const struct reader *r, const json_t *metadata)
{
    const char *key;
    json_t *value;
    if (!json_is_object(metadata)) {
        return error_set(
            r->error, UTTER_E_FILE, "%s: " SAFETENSORS_METADATA " is not an object", r->what);
    }
    json_object_foreach((json_t *)metadata, key, value)
    {
        if (!json_is_string(value)) {
            return error_set(r->error, UTTER_E_FILE,
                "%s: " SAFETENSORS_METADATA " holds a value that is no string", r->what);
        }
    }
    return UTTER_OK;
}

static utter_status read_tensor(
    const struct reader *r, struct tensor_list *list, const char *name, const json_t *info)
{
    struct tensor_entry entry = {.file = r->file, .tensor = {.name = name}};
    utter_status status;
    if (!json_is_object(info)) {
        return tensor_fails(r, name, "its entry is not an object");
    }
    if ((status = read_dtype(r, &entry.tensor, info)) != UTTER_OK ||
        (status = read_shape(r, &entry.tensor, info)) != UTTER_OK ||
        (status = read_range(r, &entry.tensor, info)) != UTTER_OK) {
        return status;
    }
    return list_add(list, &entry, r->error);
}

const char *safetensors_stranger(const uint8_t *data, size_t size)
{
    static const struct {
        const char *begins, *what;
    } strangers[] = {
        {"GGUF",
            "a GGUF file, which other programs read: take the checkpoint's folder, or a file of utter "
            "quantize"},
        {"version https://git-lfs",
            "a pointer of Git LFS in place of the file: git lfs pull brings it"},
        {"<!DOCTYPE", "a page of the web in place of the file: download it again"},
    };
    for (size_t i = 0; data && i < sizeof strangers / sizeof *strangers; i++) {
        size_t n = strlen(strangers[i].begins);
        if (size >= n && memcmp(data, strangers[i].begins, n) == 0) {
            return strangers[i].what;
        }
    }
    return NULL;
}

utter_status safetensors_parse(struct tensor_list *list, json_t **header, const uint8_t *data,
    size_t size, int file, const char *what, utter_error *error)
{
    char shown[512];
    struct reader r = {
        .file = file, .what = error_quote(shown, sizeof shown, what, strlen(what)), .error = error};
    struct bytes in = bytes_of(data, size);
    uint64_t header_bytes = bytes_number(&in, 8);
    const char *stranger = safetensors_stranger(data, size);
    *header = NULL;
    if (stranger) {
        return error_set(error, UTTER_E_FILE, "%s: no safetensors file (%s)", r.what, stranger);
    }
    if (in.short_read || header_bytes > bytes_left(&in)) {
        return error_set(error, UTTER_E_FILE,
            "%s: the header does not fit into the file (is it cut short, or no safetensors file?)",
            r.what);
    }
    if (header_bytes > SAFETENSORS_HEADER_MAX) {
        return error_set(error, UTTER_E_FILE, "%s: the header is larger than %d bytes", r.what,
            SAFETENSORS_HEADER_MAX);
    }
    const char *text = (const char *)bytes_take(&in, (size_t)header_bytes);
    if (header_bytes == 0 || text[0] != '{') {
        return error_set(error, UTTER_E_FILE,
            "%s: the header does not begin with { (is it a safetensors file?)", r.what);
    }
    r.data = in.at;
    r.data_bytes = bytes_left(&in);
    utter_status status = json_text(header, text, (size_t)header_bytes, JSON_LARGE, what, error);
    size_t first = list->n;
    const char *name;
    json_t *info;
    json_object_foreach(*header, name, info)
    {
        if (status != UTTER_OK) {
            return status;
        }
        status = strcmp(name, SAFETENSORS_METADATA) == 0 ? check_metadata(&r, info)
                                                         : read_tensor(&r, list, name, info);
    }
    return status != UTTER_OK ? status
                              : check_tiling(&r, list->at ? list->at + first : NULL, list->n - first);
}
