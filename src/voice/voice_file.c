/* SPDX-License-Identifier: Apache-2.0
 * Writes and reads voice files; what is wrong with one is named. */
#include "voice/voice_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/file.h"
#include "weights/seal.h"

/* What this program writes; it reads this version and all before it. */
#define VOICE_VERSION "1"

enum { MAX_FRAMES = 1 << 16, MAX_WIDTH = 1 << 16, MAX_HEADER = 1 << 20, MAX_BYTES = 64 << 20 };

utter_status voice_save(const utter_voice *v, const char *path, utter_error *error)
{
    char codec[SEAL_DIGITS + 1] = "";
    if (v->kind == VOICE_PRESET) {
        return error_set(error, UTTER_E_ARGUMENT,
            "the preset voice \"%s\" lives in its model and cannot be saved", v->name);
    }
    seal_digits(codec, v->codec);
    struct tensor tensors[] = {
        {"x_vector", DTYPE_F32, 1, {v->width}, v->vector, (size_t)v->width * sizeof *v->vector},
        {"codes", DTYPE_I32, 2, {v->n_frames, v->n_codebooks}, v->codes,
            (size_t)v->n_frames * (size_t)v->n_codebooks * sizeof *v->codes},
    };
    const char *metadata[] = {"utter_voice", VOICE_VERSION, SEAL_KEY, SEAL_EMPTY, "name", v->name,
        "provenance", v->provenance ? v->provenance : "", "language",
        v->language ? v->language : "auto", "codec", codec, v->codes ? "transcript" : NULL,
        v->transcript, NULL};
    return tensor_file_write(path, tensors, v->codes ? 2 : 1, metadata, error);
}

static utter_status broken(const char *path, const char *what, utter_error *error)
{
    return error_set(error, UTTER_E_FILE, "%s: not a usable voice file: %s", path, what);
}

static utter_status check_version(const struct tensor_set *set, const char *path, utter_error *error)
{
    const char *version = tensor_set_metadata(set, "utter_voice");
    if (!version) {
        return broken(path, "it holds no voice", error);
    }
    if (strcmp(version, VOICE_VERSION) != 0) {
        return error_set(error, UTTER_E_FILE,
            "%s: voice format \"%.20s\", and this program knows %s (%s)", path, version, VOICE_VERSION,
            atoi(version) > atoi(VOICE_VERSION) ? "it was made by a newer one: update utter"
                                                : "clone it again");
    }
    return UTTER_OK;
}

static bool all_finite(const float *values, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(values[i])) {
            return false;
        }
    }
    return true;
}

static bool is_fingerprint(const char *digits)
{
    return strlen(digits) == SEAL_DIGITS && strspn(digits, "0123456789abcdef") == SEAL_DIGITS;
}

static utter_status read_voice(
    utter_voice **voice, const struct tensor_set *set, const char *path, utter_error *error)
{
    const char *name = tensor_set_metadata(set, "name"),
               *transcript = tensor_set_metadata(set, "transcript");
    const char *codec = tensor_set_metadata(set, "codec");
    const struct tensor *vector = tensor_set_find(set, "x_vector"),
                        *codes = tensor_set_find(set, "codes");
    if (!name || !vector || vector->type != DTYPE_F32 || vector->n_dims != 1 || vector->dims[0] < 1 ||
        vector->dims[0] > MAX_WIDTH || !all_finite(vector->data, vector->dims[0])) {
        return broken(path, "its name or its x-vector is missing or wrong", error);
    }
    if (codes && (codes->type != DTYPE_I32 || codes->n_dims != 2 || codes->dims[0] < 1 ||
                     codes->dims[0] > MAX_FRAMES || codes->dims[1] < 1 ||
                     codes->dims[1] > CONFIG_MAX_CODEBOOKS || !transcript)) {
        return broken(path, "its codes or its transcript are missing or wrong", error);
    }
    if (codes && (!codec || !is_fingerprint(codec))) {
        return broken(path, "it does not say which codec made its codes", error);
    }
    utter_error refused;
    utter_status status =
        voice_new_clone(voice, name, vector->data, (int)vector->dims[0], codes ? codes->data : NULL,
            codes ? (int)codes->dims[0] : 0, codes ? (int)codes->dims[1] : 0, transcript, &refused);
    if (status == UTTER_E_ARGUMENT) { /* what is wrong for a caller is wrong with this file */
        return broken(path, refused.text, error);
    }
    if (status) {
        return error_set(error, status, "%s", refused.text);
    }
    (*voice)->codec = codec ? strtoull(codec, NULL, 16) : 0;
    /* What was not said when the file was written stands there as "auto" and "". */
    const char *language = tensor_set_metadata(set, "language"),
               *provenance = tensor_set_metadata(set, "provenance");
    status = voice_describe(*voice, language && strcmp(language, "auto") ? language : NULL,
        provenance && *provenance ? provenance : NULL, error);
    if (status) {
        voice_free(voice);
    }
    return status;
}

/* A header takes many times its size when it is read, and a voice's is small. */
static utter_status check_header(const struct file_map *map, const char *path, utter_error *error)
{
    struct bytes b = bytes_of(map->data, map->size);
    return bytes_number(&b, 8) > MAX_HEADER ? broken(path, "its header is too large", error) : UTTER_OK;
}

/* The file is opened once: what is read is what was checked, whatever becomes of its name meanwhile. */
utter_status voice_load(utter_voice **voice, const char *path, utter_error *error)
{
    struct tensor_set *set = NULL;
    struct file_map map = {0};
    *voice = NULL;
    utter_status status = file_map_open(&map, path, error);
    if (!status && map.size > MAX_BYTES) { /* before gigabytes are hashed */
        status = broken(path, "it is larger than any voice", error);
    }
    if (!status && !(status = seal_check_map(&map, path, error)) &&
        !(status = check_header(&map, path, error)) &&
        !(status = tensor_set_open_memory(&set, map.data, map.size, path, error)) &&
        !(status = check_version(set, path, error))) {
        status = read_voice(voice, set, path, error);
    }
    if (status == UTTER_OK && file_map_damaged(&map)) {
        voice_free(voice);
        status = broken(path, "it became shorter as it was read", error);
    }
    tensor_set_close(&set);
    file_map_close(&map);
    return status;
}
