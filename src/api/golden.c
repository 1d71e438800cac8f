/* SPDX-License-Identifier: Apache-2.0
 * Reads a golden file, and tells whether a folder is the checkpoint that it was made from. */
#include "api/golden.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

static utter_status read_metadata(struct golden *g, const char *path, utter_error *error)
{
    const char *version = tensor_set_metadata(g->set, "utter_golden"),
               *cases = tensor_set_metadata(g->set, "cases");
    const char *checkpoint = tensor_set_metadata(g->set, "checkpoint");
    if (!version || !cases || !checkpoint) {
        return error_set(
            error, UTTER_E_FILE, "%s: not a golden file (tools/oracle/golden.py writes one)", path);
    }
    if (strcmp(version, "1") != 0) {
        return error_set(error, UTTER_E_FILE,
            "%s: version %.20s of the golden format (this program knows 1)", path, version);
    }
    json_t *root = NULL;
    utter_status status = json_text(
        &root, checkpoint, strlen(checkpoint), JSON_SMALL, "checkpoint of the golden file", error);
    if (status) {
        return status;
    }
    struct json_fields f = {root, "checkpoint of the golden file", error, UTTER_OK};
    g->kind = memory_string(json_need_string(&f, "kind"));
    g->files = json_incref((json_t *)json_take_object(&f, "files"));
    json_decref(root);
    if (f.status) {
        return f.status;
    }
    if (!g->kind) {
        return error_memory(error, "golden file");
    }
    status = json_text(&g->cases, cases, strlen(cases), JSON_LARGE, "cases of the golden file", error);
    if (status == UTTER_OK && !json_is_array(g->cases)) {
        return error_set(error, UTTER_E_FILE, "%s: its cases are no list", path);
    }
    return status;
}

utter_status golden_open(struct golden *golden, const char *path, utter_error *error)
{
    memset(golden, 0, sizeof *golden);
    utter_status status = tensor_set_open_file(&golden->set, path, error);
    if (status == UTTER_OK) {
        status = read_metadata(golden, path, error);
    }
    if (status) {
        golden_close(golden);
    }
    return status;
}

void golden_close(struct golden *golden)
{
    json_decref(golden->cases);
    json_decref(golden->files);
    memory_free(golden->kind);
    tensor_set_close(&golden->set);
    memset(golden, 0, sizeof *golden);
}

/* FNV-1a of the first and the last 64 KB, or of a small file once. */
static uint64_t hash_edges(const struct file_map *map)
{
    enum { EDGE = 65536 };
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < map->size; i++) {
        if (i == EDGE && map->size > 2 * EDGE) {
            i = map->size - EDGE;
        }
        h = (h ^ map->data[i]) * 1099511628211u;
    }
    return h;
}

static bool is_same_file(const char *folder, const char *name, const json_t *entry)
{
    char path[4096], edges[17];
    struct file_map map;
    const char *want = json_string_value(json_object_get(entry, "edges"));
    if (!want || file_join(path, sizeof path, folder, name, NULL) || file_map_open(&map, path, NULL)) {
        return false;
    }
    snprintf(edges, sizeof edges, "%016llx", (unsigned long long)hash_edges(&map));
    bool same = (json_int_t)map.size == json_integer_value(json_object_get(entry, "bytes")) &&
                strcmp(edges, want) == 0;
    file_map_close(&map);
    return same;
}

size_t golden_same_files(
    const struct golden *golden, const char *folder, size_t *n_files, const char **other)
{
    size_t n_same = 0;
    const char *name;
    json_t *entry;
    *n_files = json_object_size(golden->files);
    *other = NULL;
    json_object_foreach(golden->files, name, entry)
    {
        bool same = is_same_file(folder, name, entry);
        n_same += same;
        *other = same || *other ? *other : name;
    }
    return n_same;
}

size_t golden_count(const struct golden *golden)
{
    return json_array_size(golden->cases);
}

const struct tensor *golden_tensor(
    const struct golden *golden, const char *name, const char *what, int index)
{
    char full[256];
    if (index < 0) {
        snprintf(full, sizeof full, "%s/%s", name, what);
    } else {
        snprintf(full, sizeof full, "%s/%s.%d", name, what, index);
    }
    return tensor_set_find(golden->set, full);
}

static utter_status read_speak(struct golden_case *c, struct json_fields *f)
{
    c->text = json_need_string(f, "text");
    c->text_bytes = strlen(c->text);
    c->language = json_take_string(f, "language", "auto");
    c->speaker = json_take_string(f, "speaker", NULL);
    c->instruct = json_take_string(f, "instruct", NULL);
    c->layout =
        strcmp(json_need_string(f, "layout"), "stream") == 0 ? UTTER_LAYOUT_STREAM : UTTER_LAYOUT_FULL;
    c->repetition_penalty = (float)json_need_number(f, "repetition_penalty", 1e-3, 1e3);
    c->max_frames = (int)json_need_int(f, "max_frames", 1, 1 << 20);
    const json_t *reference = json_take_object(f, "reference");
    if (reference) {
        struct json_fields r = {reference, f->where, f->error, UTTER_OK};
        c->is_clone = true;
        c->transcript = json_take_string(&r, "transcript", NULL);
    }
    c->ends = strcmp(json_need_string(f, "finish"), "eos") == 0;
    return f->status;
}

static utter_status read_sound(struct golden_case *c, struct json_fields *f)
{
    const json_t *sound = json_take_object(f, "sound");
    if (!sound || f->status) {
        return f->status;
    }
    struct json_fields s = {sound, f->where, f->error, UTTER_OK};
    c->n_samples = (size_t)json_need_int(&s, "n", 0, INT64_MAX / 8);
    c->stride = (size_t)json_need_int(&s, "stride", 1, 1 << 30);
    c->rms = json_need_number(&s, "rms", 0, 1e6);
    c->official_chunks = strcmp(json_need_string(&s, "rule"), "official_chunks") == 0;
    return s.status;
}

static bool is_shape(const struct tensor *t, enum dtype type, int64_t rows, int64_t cols)
{
    return !t || (t->type == type && t->dims[0] == rows && t->n_dims == (cols < 0 ? 1 : 2) &&
                     (cols < 0 || t->dims[1] == cols));
}

/* Optional, of the same length as its fp32 counterpart. */
static bool is_like(const struct tensor *fp64, const struct tensor *fp32)
{
    return !fp64 || (fp32 && is_shape(fp64, DTYPE_F32, fp32->dims[0], -1));
}

static utter_status find_tensors(
    const struct golden *g, struct golden_case *c, int n_codebooks, utter_error *error)
{
    c->ids = golden_tensor(g, c->name, "ids", -1);
    c->codes = golden_tensor(g, c->name, "codes", -1);
    c->margins = golden_tensor(g, c->name, "margins", -1);
    c->prompt = golden_tensor(g, c->name, "prompt", -1);
    c->hidden = golden_tensor(g, c->name, "hidden", -1);
    c->logits = golden_tensor(g, c->name, "logits", -1);
    c->predictor_logits = golden_tensor(g, c->name, "sub_logits", -1);
    c->samples = golden_tensor(g, c->name, "samples", -1);
    c->strided = golden_tensor(g, c->name, "strided", -1);
    c->samples_fp64 = golden_tensor(g, c->name, "samples_fp64", -1);
    c->strided_fp64 = golden_tensor(g, c->name, "strided_fp64", -1);
    c->vector = golden_tensor(g, c->name, "x_vector", -1);
    c->reference = golden_tensor(g, c->name, "reference_codes", -1);
    bool cloned =
        !c->is_clone ||
        (c->vector && is_shape(c->vector, DTYPE_F32, c->vector->dims[0], -1) &&
            !c->transcript == !c->reference &&
            is_shape(c->reference, DTYPE_I32, c->reference ? c->reference->dims[0] : 0, n_codebooks));
    if (!cloned || !c->codes || (!c->is_decode && (!c->ids || !c->margins)) ||
        !is_shape(c->codes, DTYPE_I32, c->n_frames, n_codebooks) ||
        !is_shape(c->margins, DTYPE_F32, c->n_frames, n_codebooks) ||
        (c->ids && c->ids->type != DTYPE_I32) || (c->ids && c->ids->n_dims != 1) ||
        (c->samples && !is_shape(c->samples, DTYPE_F32, c->samples->dims[0], -1)) ||
        (c->strided && !is_shape(c->strided, DTYPE_F32, c->strided->dims[0], -1)) ||
        !is_like(c->samples_fp64, c->samples) || !is_like(c->strided_fp64, c->strided)) {
        return error_set(error, UTTER_E_FILE,
            "golden case %s: its ids, codes, margins or samples are missing or misshapen", c->name);
    }
    return UTTER_OK;
}

utter_status golden_case(const struct golden *golden, size_t index, int n_codebooks,
    struct golden_case *out, utter_error *error)
{
    struct json_fields f = {
        json_array_get(golden->cases, index), "case of the golden file", error, UTTER_OK};
    memset(out, 0, sizeof *out);
    out->name = json_need_string(&f, "name");
    out->is_decode = strcmp(json_need_string(&f, "kind"), "decode") == 0;
    out->n_frames = (int)json_need_int(&f, "frames", 0, 1 << 20);
    if (f.status || (!out->is_decode && read_speak(out, &f)) || read_sound(out, &f)) {
        return error_set(error, UTTER_E_FILE, "golden file: case %zu is broken", index);
    }
    return find_tensors(golden, out, n_codebooks, error);
}
