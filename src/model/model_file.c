/* SPDX-License-Identifier: Apache-2.0
 * A model in one file: a sealed safetensors file with packed talker and predictor, the vocoder's matrices in F16, every
 * other tensor of the checkpoint as it was, and the configs and the vocabulary as tensors "file/NAME". Comes in: a
 * checkpoint folder, or such a file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/numeric.h"
#include "base/threads.h"
#include "model/model_parts.h"
#include "weights/checkpoint.h"
#include "weights/seal.h"

#define FORMAT "utter model"
enum { VERSION = 1 };

/* ---- Reading ---- */

bool model_file_is(const char *path)
{
    struct file_map map = {0};
    bool is = file_exists(path) && !file_is_folder(path) &&
              file_map_open(&map, path, NULL) == UTTER_OK && map.size > 8 && map.data[8] == '{';
    file_map_close(&map);
    return is;
}

utter_status model_file_check(const char *path, utter_error *error)
{
    struct tensor_set *set = NULL;
    utter_status status = tensor_set_open_file(&set, path, error);
    if (status) {
        return status;
    }
    const char *format = tensor_set_metadata(set, "format"),
               *version = tensor_set_metadata(set, "version");
    int number = version ? atoi(version) : 0;
    if (!format || strcmp(format, FORMAT) != 0) {
        status = error_set(error, UTTER_E_FILE,
            "%s: tensors without a model (give the checkpoint's folder, or a file that utter quantize "
            "made)",
            path);
    } else if (number != VERSION) {
        status = error_set(error, UTTER_E_FILE,
            "%s: a model file of version %d, and this program reads %d (%s)", path, number, VERSION,
            number > VERSION ? "it was made by a newer one: update this program" : "make it again");
    }
    tensor_set_close(&set);
    return status ? status : seal_check(path, error);
}

/* ---- Writing ---- */

static const char *const members[] = {"config.json", "generation_config.json",
    "preprocessor_config.json", "tokenizer_config.json", "vocab.json", "merges.txt",
    "speech_tokenizer/config.json", "alignment_heads.json"};
enum { N_MEMBERS = sizeof members / sizeof *members, MEMBER_LIMIT = 256 << 20 };

struct writing {
    struct tensor *tensors;
    size_t n;
    char *texts[N_MEMBERS];
    char names[N_MEMBERS][64];
};

static utter_status add_members(struct writing *w, const char *folder, utter_error *error)
{
    for (int i = 0; i < N_MEMBERS; i++) {
        char path[4096];
        size_t bytes = 0;
        utter_status status = file_join(path, sizeof path, folder, members[i], error);
        bool optional = strcmp(members[i], "preprocessor_config.json") == 0 ||
                        strcmp(members[i], "generation_config.json") == 0 ||
                        strcmp(members[i], "alignment_heads.json") == 0;
        if (!status && (file_exists(path) || !optional)) {
            status = file_read(path, MEMBER_LIMIT, &w->texts[i], &bytes, error);
        }
        if (status) {
            return status;
        }
        if (w->texts[i]) {
            snprintf(w->names[i], sizeof w->names[i], CHECKPOINT_FILE_PREFIX "%s", members[i]);
            w->tensors[w->n++] = (struct tensor){.name = w->names[i],
                .type = DTYPE_U8,
                .n_dims = 1,
                .dims = {(int64_t)bytes},
                .data = w->texts[i],
                .bytes = bytes};
        }
    }
    return UTTER_OK;
}

/* The tensor whose data a matrix has; NULL: there is none. An empty one may lie at the same place. */
static const struct tensor *tensor_of(const struct tensor_set *set, const struct weight *w)
{
    for (size_t i = 0; i < tensor_set_count(set); i++) {
        const struct tensor *t = tensor_set_at(set, i);
        if (t->data == w->data && t->bytes > 0) {
            return t;
        }
    }
    return NULL;
}

/* The same numbers in 16 bits, which the model owns; false: one of them does not fit, or *failed. */
static bool narrow(struct model *m, struct tensor *t, bool *failed)
{
    const float *values = t->data;
    int64_t n = (int64_t)(t->bytes / sizeof *values);
    if (!values_fit_f16(values, n)) {
        return false;
    }
    uint16_t *to = model_own(m, (size_t)n * sizeof *to);
    *failed = !to;
    for (int64_t i = 0; to && i < n; i++) {
        to[i] = f16_from_float(values[i]);
    }
    t->type = DTYPE_F16;
    t->data = to;
    t->bytes = (size_t)n * sizeof *to;
    return to != NULL;
}

/* The vocoder's matrices behind the packed ones. One that does not fit into 16 bits, or that has another type in the
 * checkpoint, goes with all the rest as it is. */
static utter_status add_narrow(struct writing *w, struct model *m, utter_error *error)
{
    bool failed = false;
    size_t most = MODEL_VOCODER_MATRICES(m->config->codec.stack.n_layers);
    struct weight **list = memory_new(most, sizeof *list);
    int n = list ? model_vocoder_matrices(m, list) : 0;
    for (int i = 0; i < n && !failed; i++) {
        const struct tensor *from = tensor_of(m->codec_tensors, list[i]);
        struct tensor to = from ? *from : (struct tensor){0};
        if (from && from->type == DTYPE_F32 && narrow(m, &to, &failed)) {
            w->tensors[w->n++] = to;
        }
    }
    memory_free(list);
    return list && !failed ? UTTER_OK : error_memory(error, "the vocoder's matrices");
}

static bool is_listed(const struct tensor *tensors, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(tensors[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Packs the model; the packed matrices come first, in the order in which they are read, then those in 16 bits, then all
 * the rest. */
static utter_status add_tensors(
    struct writing *w, struct model *m, enum dtype type, struct progress *progress, utter_error *error)
{
    struct weight **list;
    int n, n_narrow;
    utter_status status = model_packable(m, &list, &n, &n_narrow, error);
    for (int i = 0; !status && i < n; i++) {
        w->tensors[i].name = tensor_of(m->tensors, list[i])->name;
    }
    if (status || (status = model_pack_told(m, type, 0, progress, error))) {
        memory_free(list);
        return status;
    }
    for (int i = 0; i < n; i++) {
        struct tensor *t = &w->tensors[i];
        t->type = DTYPE_U32;
        t->n_dims = 2;
        t->dims[0] = pack_blocks(list[i]->rows);
        t->dims[1] = (int64_t)(pack_block_bytes(list[i]->type, list[i]->cols) / 4);
        t->data = list[i]->data;
        t->bytes = matrix_bytes(list[i]);
    }
    memory_free(list);
    w->n = (size_t)n;
    if ((status = add_narrow(w, m, error))) {
        return status;
    }
    size_t n_changed = w->n;
    const struct tensor_set *const sets[] = {m->tensors, m->codec_tensors};
    for (int s = 0; s < 2; s++) {
        for (size_t i = 0; i < tensor_set_count(sets[s]); i++) {
            const struct tensor *t = tensor_set_at(sets[s], i);
            if (!is_listed(w->tensors, n_changed, t->name)) {
                w->tensors[w->n++] = *t;
            }
        }
    }
    return UTTER_OK;
}

utter_status model_file_write(struct model *m, const char *folder, enum dtype type, const char *path,
    struct progress *progress, utter_error *error)
{
    struct writing w = {0};
    char version[16];
    size_t most = tensor_set_count(m->tensors) + tensor_set_count(m->codec_tensors) + N_MEMBERS;
    if (m->packed_file) {
        return error_set(error, UTTER_E_ARGUMENT,
            "%s: it is packed already (pack the checkpoint that it was made from)", folder);
    }
    snprintf(version, sizeof version, "%d", VERSION);
    w.tensors = memory_new(most, sizeof *w.tensors);
    utter_status status = w.tensors ? add_tensors(&w, m, type, progress, error)
                                    : error_memory(error, "the list of tensors");
    if (!status) {
        status = add_members(&w, folder, error);
    }
    if (!status) {
        const char *const metadata[] = {"format", FORMAT, "version", version, "weights",
            weights_name(type), SEAL_KEY, SEAL_EMPTY, NULL};
        status = tensor_file_write_told(path, w.tensors, w.n, metadata, progress, error);
    }
    for (int i = 0; i < N_MEMBERS; i++) {
        memory_free(w.texts[i]);
    }
    memory_free(w.tensors);
    return status;
}
