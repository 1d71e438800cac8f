/* SPDX-License-Identifier: Apache-2.0
 * The set: files opened and mapped, their tensors sorted by name. Owns the maps and the headers, in
 * which the names lie. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "weights/safetensors_file.h"

struct set_file {
    struct file_map map; /* zero for a file in memory */
    size_t size;
    json_t *header;
    char *name; /* as it was given; of a shard, without the folder */
};

struct tensor_set {
    struct set_file *files;
    int n_files;
    struct tensor_list list;
};

void tensor_set_close(struct tensor_set **set)
{
    struct tensor_set *s = *set;
    *set = NULL;
    if (!s) {
        return;
    }
    for (int i = 0; i < s->n_files; i++) {
        json_decref(s->files[i].header);
        memory_free(s->files[i].name);
        file_map_close(&s->files[i].map);
    }
    memory_free(s->files);
    memory_free(s->list.at);
    memory_free(s);
}

/* An empty set with room for n_files; NULL when out of memory. */
static struct tensor_set *set_new(size_t n_files)
{
    struct tensor_set *s = memory_new(1, sizeof *s);
    if (s && !(s->files = memory_new(n_files, sizeof *s->files))) {
        memory_free(s);
        return NULL;
    }
    return s;
}

/* The next file of the set; what it already holds is freed with the set, also after a failure. */
static utter_status set_add(struct tensor_set *s, const char *name, const char *path, const void *data,
    size_t size, utter_error *error)
{
    struct set_file *f = &s->files[s->n_files++];
    f->name = memory_string(name);
    if (!f->name) {
        return error_memory(error, "a file name");
    }
    if (!data) {
        utter_status status = file_map_open(&f->map, path, error);
        if (status != UTTER_OK) {
            return status;
        }
        data = f->map.data;
        size = f->map.size;
    }
    f->size = size;
    return safetensors_parse(&s->list, &f->header, data, size, s->n_files - 1, path, error);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(
        ((const struct tensor_entry *)a)->tensor.name, ((const struct tensor_entry *)b)->tensor.name);
}

/* Sorts; a name must be there once. (Within one file the JSON reader has already seen to it.) */
static utter_status set_sort(struct tensor_set *s, utter_error *error)
{
    if (s->list.n) {
        qsort(s->list.at, s->list.n, sizeof *s->list.at, compare_names);
    }
    for (size_t i = 1; i < s->list.n; i++) {
        const struct tensor_entry *a = &s->list.at[i - 1], *b = &s->list.at[i];
        if (compare_names(a, b) == 0) {
            char shown[200], first[200], second[200];
            const char *x = s->files[a->file].name, *y = s->files[b->file].name;
            return error_set(error, UTTER_E_FILE, "tensor %s is in %s and in %s",
                error_quote(shown, sizeof shown, a->tensor.name, strlen(a->tensor.name)),
                error_quote(first, sizeof first, x, strlen(x)),
                error_quote(second, sizeof second, y, strlen(y)));
        }
    }
    return UTTER_OK;
}

/* A set of one file, mapped from `path` (data NULL) or in memory. */
static utter_status set_open_one(
    struct tensor_set **set, const char *path, const void *data, size_t size, utter_error *error)
{
    *set = set_new(1);
    if (!*set) {
        return error_memory(error, "the list of tensors");
    }
    utter_status status = set_add(*set, path, path, data, size, error);
    if (status == UTTER_OK) {
        status = set_sort(*set, error);
    }
    if (status != UTTER_OK) {
        tensor_set_close(set);
    }
    return status;
}

utter_status tensor_set_open_file(struct tensor_set **set, const char *path, utter_error *error)
{
    return set_open_one(set, path, NULL, 0, error);
}

utter_status tensor_set_open_memory(
    struct tensor_set **set, const void *data, size_t bytes, const char *what, utter_error *error)
{
    return set_open_one(set, what, data ? data : "", data ? bytes : 0, error);
}

/* ---- Shards ---- */

/* A name that stays inside its folder. */
static bool is_plain_name(const char *name)
{
    return name[0] && !strchr(name, '/') && !strchr(name, '\\') && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

static int compare_strings(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The shard names that the map uses, each once and sorted, in names[*n]; room for the map's size. */
static utter_status shard_names(
    const json_t *map, const char *index_path, const char **names, size_t *n, utter_error *error)
{
    const char *tensor;
    json_t *value;
    size_t n_all = 0;
    json_object_foreach((json_t *)map, tensor, value)
    {
        const char *name = json_string_value(value);
        if (!name || !is_plain_name(name)) {
            char shown[200];
            return error_set(error, UTTER_E_FILE,
                "%s: tensor %s: its file must be a plain name inside the folder", index_path,
                error_quote(shown, sizeof shown, tensor, strlen(tensor)));
        }
        names[n_all++] = name;
    }
    if (n_all) {
        qsort(names, n_all, sizeof *names, compare_strings);
    }
    *n = 0;
    for (size_t i = 0; i < n_all; i++) {
        if (*n == 0 || strcmp(names[*n - 1], names[i]) != 0) {
            names[(*n)++] = names[i];
        }
    }
    return *n ? UTTER_OK : error_set(error, UTTER_E_FILE, "%s: weight_map is empty", index_path);
}

static const struct tensor_entry *entry_find(const struct tensor_set *s, const char *name)
{
    struct tensor_entry key = {.tensor = {.name = name}};
    return s->list.n ? bsearch(&key, s->list.at, s->list.n, sizeof key, compare_names) : NULL;
}

/* Every tensor of the map must be in the file that the map says. */
static utter_status check_map(
    const struct tensor_set *s, const json_t *map, const char *index_path, utter_error *error)
{
    const char *tensor;
    json_t *value;
    json_object_foreach((json_t *)map, tensor, value)
    {
        const struct tensor_entry *entry = entry_find(s, tensor);
        const char *file = json_string_value(value);
        if (!entry || strcmp(s->files[entry->file].name, file) != 0) {
            char shown[200], where[200];
            return error_set(error, UTTER_E_FILE,
                "%s: tensor %s is not in %s (is the download complete?)", index_path,
                error_quote(shown, sizeof shown, tensor, strlen(tensor)),
                error_quote(where, sizeof where, file, strlen(file)));
        }
    }
    return UTTER_OK;
}

static utter_status open_shards(struct tensor_set **set, const char *folder, const json_t *map,
    const char *index_path, utter_error *error)
{
    const char **names = memory_new(json_object_size(map), sizeof *names);
    size_t n = 0;
    utter_status status =
        names ? shard_names(map, index_path, names, &n, error) : error_memory(error, "the shard names");
    if (status == UTTER_OK && !(*set = set_new(n))) {
        status = error_memory(error, "the list of tensors");
    }
    for (size_t i = 0; i < n && status == UTTER_OK; i++) {
        char path[PATH_MAX];
        status = file_join(path, sizeof path, folder, names[i], error);
        if (status == UTTER_OK) {
            status = set_add(*set, names[i], path, NULL, 0, error);
        }
    }
    memory_free(names);
    if (status == UTTER_OK) {
        status = set_sort(*set, error);
    }
    if (status == UTTER_OK) {
        status = check_map(*set, map, index_path, error);
    }
    if (status != UTTER_OK) {
        tensor_set_close(set);
    }
    return status;
}

utter_status tensor_set_open_folder(struct tensor_set **set, const char *folder, utter_error *error)
{
    char path[PATH_MAX], shown[512];
    *set = NULL;
    utter_status status = file_join(path, sizeof path, folder, "model.safetensors", error);
    if (status != UTTER_OK) {
        return status;
    }
    if (file_exists(path)) {
        return tensor_set_open_file(set, path, error);
    }
    status = file_join(path, sizeof path, folder, "model.safetensors.index.json", error);
    if (status != UTTER_OK) {
        return status;
    }
    error_quote(shown, sizeof shown, folder, strlen(folder));
    if (!file_exists(path)) {
        return error_set(error, UTTER_E_FILE,
            "%s: holds no model.safetensors and no model.safetensors.index.json: a part of the model "
            "is "
            "missing (utter pull brings all of a released one)",
            shown);
    }
    json_t *index;
    status = json_file(&index, path, SAFETENSORS_HEADER_MAX, JSON_LARGE, error);
    if (status != UTTER_OK) {
        return status;
    }
    error_quote(shown, sizeof shown, path, strlen(path));
    struct json_fields fields = {.object = index, .where = shown, .error = error};
    const json_t *map = json_need_object(&fields, "weight_map");
    status = map ? open_shards(set, folder, map, shown, error) : fields.status;
    json_decref(index);
    return status;
}

/* ---- Questions ---- */

const struct tensor *tensor_set_find(const struct tensor_set *set, const char *name)
{
    const struct tensor_entry *entry = entry_find(set, name);
    return entry ? &entry->tensor : NULL;
}

size_t tensor_set_count(const struct tensor_set *set)
{
    return set->list.n;
}

const struct tensor *tensor_set_at(const struct tensor_set *set, size_t index)
{
    return &set->list.at[index].tensor;
}

const char *tensor_set_metadata(const struct tensor_set *set, const char *key)
{
    return json_string_value(
        json_object_get(json_object_get(set->files[0].header, SAFETENSORS_METADATA), key));
}

uint64_t tensor_set_bytes(const struct tensor_set *set)
{
    uint64_t bytes = 0;
    for (int i = 0; i < set->n_files; i++) {
        bytes += set->files[i].size;
    }
    return bytes;
}

void tensor_set_rest(const struct tensor_set *set, const void *data, size_t bytes)
{
    for (int i = 0; i < set->n_files; i++) {
        file_map_rest(&set->files[i].map, data, bytes);
    }
}

bool tensor_set_damaged(const struct tensor_set *set)
{
    for (int i = 0; i < set->n_files; i++) {
        if (file_map_damaged(&set->files[i].map)) {
            return true;
        }
    }
    return false;
}
