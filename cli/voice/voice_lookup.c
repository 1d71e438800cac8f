/* SPDX-License-Identifier: Apache-2.0
 * From a name to a voice. */
#include "cli/voice/voice_lookup.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/error.h"
#include "base/tables/nearest.h"
#include "cli/file_kind.h"
#include "cli/report.h"

static const char ending[] = ".voice";

static bool ends_as_voice(const char *path)
{
    size_t n = strlen(path), m = sizeof ending - 1;
    return n > m && strcmp(path + n - m, ending) == 0;
}

bool voice_folder(char *folder, size_t size, const struct settings *settings, int index)
{
    if (settings->voices.given && index-- == 0) {
        return snprintf(folder, size, "%s", settings->voices.text) < (int)size;
    }
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    if (index != 0) {
        return false;
    }
    /* The standard wants absolute paths and tells to ignore others. */
    if (data && data[0] == '/') {
        return snprintf(folder, size, "%s/utter/voices", data) < (int)size;
    }
    return home && home[0] == '/' &&
           snprintf(folder, size, "%s/.local/share/utter/voices", home) < (int)size;
}

/* NAME.voice in one of the folders. */
static bool find_named(char *path, size_t size, const struct settings *settings, const char *name)
{
    char folder[4096];
    for (int i = 0; voice_folder(folder, sizeof folder, settings, i); i++) {
        if (snprintf(path, size, "%s/%s%s", folder, name, ending) < (int)size &&
            access(path, F_OK) == 0) {
            return true;
        }
    }
    return false;
}

/* The voice file in the folders whose name is nearest: "did you mean NAME? " in out[size]. */
static const char *hint_of(char *out, size_t size, const struct settings *settings, const char *typed)
{
    char folder[4096], best[256] = "";
    struct nearest nearest = nearest_begin(typed);
    for (int i = 0; voice_folder(folder, sizeof folder, settings, i); i++) {
        DIR *list = opendir(folder);
        for (const struct dirent *file; list && (file = readdir(list));) {
            char name[256];
            if (!ends_as_voice(file->d_name)) {
                continue;
            }
            voice_stem(name, sizeof name, file->d_name);
            nearest_offer(&nearest, name);
            if (nearest.name == name) { /* which the next file takes the place of */
                snprintf(best, sizeof best, "%s", name);
                nearest.name = best;
            }
        }
        if (list) {
            closedir(list);
        }
    }
    return nearest_hint(&nearest, out, size);
}

static bool is_path(const char *typed)
{
    return strchr(typed, '/') || ends_as_voice(typed);
}

bool voice_file_find(char *path, size_t size, const struct settings *settings, const char *typed)
{
    return (!is_path(typed) && find_named(path, size, settings, typed)) ||
           (access(typed, F_OK) == 0 && snprintf(path, size, "%s", typed) < (int)size);
}

static utter_status find_path(
    char *path, size_t size, const struct settings *settings, const char *typed, utter_error *error)
{
    char folder[4096], hint[512];
    if (voice_file_find(path, size, settings, typed)) {
        return UTTER_OK;
    }
    if (is_path(typed) && snprintf(path, size, "%s", typed) < (int)size) {
        return UTTER_OK;
    }
    bool any = voice_folder(folder, sizeof folder, settings, 0);
    return error_set(error, UTTER_E_ARGUMENT,
        "unknown voice \"%s\": no %s%s in %s (%sutter voices lists what there is)", typed, typed,
        ending, any ? folder : "the search path, which is empty",
        hint_of(hint, sizeof hint, settings, typed));
}

bool voice_file_path(char *path, size_t size, const struct settings *settings, const char *typed)
{
    utter_error error = {0};
    utter_status status = find_path(path, size, settings, typed, &error);
    if (status) {
        fail_status(status, &error);
    }
    return status == UTTER_OK;
}

static bool is_preset(const utter_model *model, const char *name)
{
    const char *known;
    for (int i = 0; (known = model ? utter_model_voice_name(model, i) : NULL); i++) {
        if (strcasecmp(known, name) == 0) {
            return true;
        }
    }
    return false;
}

utter_status voice_find(utter_voice **voice, const utter_model *model, const struct settings *settings,
    const char *typed, utter_error *error)
{
    char path[4096 + 256];
    *voice = NULL;
    /* Before any file is looked for: that can take as long as a tenth of a millisecond. */
    if (!is_path(typed) && is_preset(model, typed)) {
        return utter_voice_preset(voice, model, typed, error);
    }
    bool named = is_path(typed) || find_named(path, sizeof path, settings, typed);
    /* Everybody's first try. */
    if ((is_path(typed) || !named) && file_kind(typed) == FILE_SOUND) {
        return error_set(error, UTTER_E_ARGUMENT,
            "%s: a recording, and no voice yet (utter clone -m BASE %s -o NAME.voice makes one of it)",
            typed, typed);
    }
    if (!named && strchr(typed, '.')) {
        return error_set(error, UTTER_E_ARGUMENT,
            "%s: no such file, and no voice has this name (utter voices lists what there is)", typed);
    }
    /* What is neither is an unknown preset where the model has some: the message lists them. */
    if (!named && model && utter_model_voice_name(model, 0)) {
        return utter_voice_preset(voice, model, typed, error);
    }
    utter_status status = find_path(path, sizeof path, settings, typed, error);
    return status ? status : utter_voice_load(voice, path, error);
}

int voice_lookup(
    utter_voice **voice, const utter_model *model, const struct settings *settings, const char *typed)
{
    utter_error error = {0};
    utter_status status = voice_find(voice, model, settings, typed, &error);
    return status ? fail_status(status, &error) : 0;
}

void voice_stem(char *name, size_t size, const char *path)
{
    const char *slash = strrchr(path, '/'), *from = slash ? slash + 1 : path;
    size_t n = strlen(from) - (ends_as_voice(from) ? sizeof ending - 1 : 0);
    snprintf(name, size, "%.*s", (int)n, from);
}

static void identity_of_info(char hex[IDENTITY_SIZE], const utter_voice_info *info)
{
    char vector[IDENTITY_SIZE] = "", codes[IDENTITY_SIZE] = "", kind[16] = "none";
    if (info) {
        snprintf(kind, sizeof kind, "%d", (int)info->kind);
        identity_of_bytes(
            vector, info->x_vector, info->x_vector ? (size_t)info->width * sizeof *info->x_vector : 0);
        size_t n_codes = info->codes ? (size_t)info->n_frames * (size_t)info->n_codebooks : 0;
        identity_of_bytes(codes, info->codes, n_codes * sizeof *info->codes);
    }
    const bool preset = info && info->kind == UTTER_VOICE_PRESET;
    identity_of_texts(hex, (const char *const[]){kind, preset && info->name ? info->name : "", vector,
                               codes, info && info->transcript ? info->transcript : "", NULL});
}

void voice_identity(char hex[IDENTITY_SIZE], const utter_voice *voice)
{
    utter_voice_info info = {.size = sizeof info};
    bool known = voice && utter_voice_get_info(voice, &info) == UTTER_OK;
    identity_of_info(hex, known ? &info : NULL);
}

void voice_identity_preset(char hex[IDENTITY_SIZE], const char *name)
{
    const utter_voice_info info = {.size = sizeof info, .kind = UTTER_VOICE_PRESET, .name = name};
    identity_of_info(hex, name ? &info : NULL);
}

utter_status voice_called_identity(
    char hex[IDENTITY_SIZE], const char *spoken, const struct settings *settings, utter_error *error)
{
    static const char tag[] = "[voice:";
    char path[PATH_MAX], name[256], file[IDENTITY_SIZE];
    utter_status status = UTTER_OK;
    for (const char *at = spoken; status == UTTER_OK && (at = strstr(at, tag));) {
        at += sizeof tag - 1;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, "]\n"), at);
        if (voice_file_find(path, sizeof path, settings, name)) {
            status = identity_of_file(file, path, error);
            identity_of_texts(hex, (const char *const[]){hex, name, file, NULL});
        }
    }
    return status;
}
