/* SPDX-License-Identifier: Apache-2.0
 * Files of a checkpoint, from its folder or from inside its one safetensors file. Comes in: a path. Goes out: the
 * bytes. */
#include "weights/checkpoint.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/memory.h"
#include "weights/safetensors_file.h"

/* The length of the part of `path` that is a file and not a folder, where the name of a member stands behind it;
 * 0: there is none. */
static size_t container_length(const char *path)
{
    char part[PATH_MAX];
    size_t n = strlen(path);
    if (n >= sizeof part) {
        return 0;
    }
    memcpy(part, path, n + 1);
    for (char *slash = strrchr(part, '/'); slash && slash > part; slash = strrchr(part, '/')) {
        *slash = 0;
        if (file_exists(part)) {
            return file_is_folder(part) ? 0 : (size_t)(slash - part);
        }
    }
    return 0;
}

/* *at: where the member lies in the mapped file; NULL when the file has no such member, or is no such file. */
static utter_status find_member(
    const struct file_map *map, const char *name, const uint8_t **at, size_t *bytes, utter_error *error)
{
    char key[PATH_MAX + sizeof CHECKPOINT_FILE_PREFIX];
    struct bytes in = bytes_of(map->data, map->size);
    uint64_t header_bytes = bytes_number(&in, 8);
    const uint8_t *header =
        header_bytes <= SAFETENSORS_HEADER_MAX ? bytes_take(&in, header_bytes) : NULL;
    json_t *root = NULL;
    *at = NULL;
    utter_status status = in.short_read || !header ? UTTER_E_FILE
                                                   : json_text(&root, (const char *)header,
                                                         header_bytes, JSON_LARGE, name, NULL);
    if (status) {
        return status == UTTER_E_MEMORY ? error_memory(error, name) : UTTER_OK;
    }
    memcpy(key, CHECKPOINT_FILE_PREFIX, sizeof CHECKPOINT_FILE_PREFIX);
    memcpy(key + sizeof CHECKPOINT_FILE_PREFIX - 1, name, strlen(name) + 1);
    const json_t *range = json_object_get(json_object_get(root, key), "data_offsets");
    json_int_t begin = json_integer_value(json_array_get(range, 0));
    json_int_t end = json_integer_value(json_array_get(range, 1));
    if (json_array_size(range) == 2 && begin >= 0 && end >= begin && (uint64_t)end <= bytes_left(&in)) {
        *at = in.at + begin;
        *bytes = (size_t)(end - begin);
    }
    json_decref(root);
    return UTTER_OK;
}

/* *at: the data of the member that `path` names, in *map, which the caller closes; NULL: there is none. */
static utter_status member_open(
    struct file_map *map, const char *path, const uint8_t **at, size_t *bytes, utter_error *error)
{
    size_t n = container_length(path);
    *at = NULL;
    if (n == 0) {
        return UTTER_OK;
    }
    char *container = memory_string_n(path, n);
    utter_status status = container ? file_map_open(map, container, error) : error_memory(error, path);
    memory_free(container);
    return status ? status : find_member(map, path + n + 1, at, bytes, error);
}

/* Like file_read, of a member only; UTTER_OK with *text NULL: there is none. */
static utter_status member_read(
    const char *path, size_t limit, char **text, size_t *bytes, utter_error *error)
{
    size_t found = 0;
    const uint8_t *at;
    struct file_map map = {0};
    *text = NULL;
    utter_status status = member_open(&map, path, &at, &found, error);
    if (!status && at && found > limit) {
        status = file_too_large(error, path, limit);
    } else if (!status && at) {
        *text = memory_string_n((const char *)at, found);
        *bytes = found;
        status = *text ? UTTER_OK : error_memory(error, path);
    }
    file_map_close(&map);
    return status;
}

bool checkpoint_exists(const char *path)
{
    size_t bytes;
    const uint8_t *at;
    struct file_map map = {0};
    bool exists = file_exists(path) || (member_open(&map, path, &at, &bytes, NULL) == UTTER_OK && at);
    file_map_close(&map);
    return exists;
}

utter_status checkpoint_missing(const char *path, utter_error *error)
{
    return error_set(error, UTTER_E_FILE,
        "%s: is not there: a part of the model is missing (utter pull brings all of a released one)",
        path);
}

utter_status checkpoint_read(
    const char *path, size_t limit, char **text, size_t *bytes, utter_error *error)
{
    utter_status status = member_read(path, limit, text, bytes, error);
    if (status || *text) {
        return status;
    }
    return file_exists(path) || errno != ENOENT ? file_read(path, limit, text, bytes, error)
                                                : checkpoint_missing(path, error);
}

utter_status checkpoint_json(
    json_t **root, const char *path, size_t limit, size_t most_values, utter_error *error)
{
    char *text;
    size_t bytes;
    *root = NULL;
    utter_status status = checkpoint_read(path, limit, &text, &bytes, error);
    if (status == UTTER_OK) {
        status = json_text(root, text, bytes, most_values, path, error);
    }
    memory_free(text);
    return status;
}
