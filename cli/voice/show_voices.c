/* SPDX-License-Identifier: Apache-2.0
 * utter voices: the presets of a model, the voice files on the search path, and what one file holds. */
#include <dirent.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli/model/checkpoint.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/voice/voice_lookup.h"

static const double frame_s = 0.08; /* of the model family */

static utter_voice_info info_of(const utter_voice *voice)
{
    utter_voice_info info = {.size = sizeof info};
    utter_voice_get_info(voice, &info);
    return info;
}

static const char *kind_text(const utter_voice_info *info)
{
    return info->kind == UTTER_VOICE_CONTEXT ? "context" : "vector";
}

static const char *size_text(int width)
{
    return width == 1024 ? " (0.6B)" : width == 2048 ? " (1.7B)" : "";
}

/* ---- Lists ---- */

/* What a list is made of: lines, or a JSON array. */
struct list {
    json_t *files; /* NULL: lines */
    int n;
};

static void list_file(struct list *list, const char *path)
{
    utter_voice *voice = NULL;
    utter_error error = {0};
    utter_voice_load(&voice, path, &error);
    utter_voice_info info = voice ? info_of(voice) : (utter_voice_info){0};
    char name[256], seconds[48] = "x-vector";
    voice_stem(name, sizeof name, path);
    if (!list->files && list->n == 0) {
        printf("\nvoice files\n");
    }
    if (list->files && voice) {
        json_array_append_new(
            list->files, json_pack("{s:o,s:o,s:s,s:s,s:i,s:i}", "path", json_name(path), "voice",
                             json_name(name), "name", info.name, "kind", kind_text(&info), "width",
                             info.width, "frames", info.n_frames));
    } else if (list->files) {
        json_array_append_new(list->files, json_pack("{s:o,s:o,s:s}", "path", json_name(path), "voice",
                                               json_name(name), "error", error.text));
    } else if (voice) {
        if (info.n_frames) {
            snprintf(seconds, sizeof seconds, "%.1f s in context", frame_s * info.n_frames);
        }
        put_line("%-16s %-18s width %d%s  %s", name, seconds, info.width, size_text(info.width), path);
    } else {
        put_line("%-16s not usable: %s", name, error.text);
    }
    list->n++;
    utter_voice_free(&voice);
}

static int is_voice_file(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && dot != entry->d_name && strcmp(dot, ".voice") == 0;
}

/* 0, or an exit code after a message: a folder that was asked for must be there. */
static int list_folder(struct list *list, const char *folder, bool must_exist)
{
    struct dirent **entries = NULL;
    int n = scandir(folder, &entries, is_voice_file, alphasort);
    for (int i = 0; i < n; i++) {
        char path[4096 + 300];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        list_file(list, path);
        free(entries[i]);
    }
    free(entries);
    return n < 0 && must_exist ? fail(1, "%s: is no folder that can be read", folder) : 0;
}

static int list_files(struct list *list, const struct settings *settings)
{
    char folder[4096];
    int code = 0;
    for (int i = 0; code == 0 && voice_folder(folder, sizeof folder, settings, i); i++) {
        code = list_folder(list, folder, settings->voices.given && i == 0);
    }
    return code;
}

static void print_presets(const utter_model *model, const utter_model_info *info)
{
    if (info->n_voices == 0) {
        put_line("no preset voices: this is a %s model", info->kind_name);
    }
    for (int i = 0; i < info->n_voices; i++) {
        const char *dialect = utter_model_voice_dialect(model, i);
        put_line("%s%s%s%s", utter_model_voice_name(model, i), dialect ? "  (Chinese: " : "",
            dialect ? dialect : "", dialect ? ")" : "");
    }
    char languages[1024] = "";
    for (int i = 0; i < info->n_languages; i++) {
        size_t at = strlen(languages);
        snprintf(languages + at, sizeof languages - at, ", %s", utter_model_language_name(model, i));
    }
    putchar('\n');
    put_line("languages: auto%s", languages);
}

static json_t *presets_json(const utter_model *model, const utter_model_info *info)
{
    json_t *voices = json_array(), *languages = json_array();
    for (int i = 0; i < info->n_voices; i++) {
        json_array_append_new(voices, json_pack("{s:s,s:s?}", "name", utter_model_voice_name(model, i),
                                          "dialect", utter_model_voice_dialect(model, i)));
    }
    for (int i = 0; i < info->n_languages; i++) {
        json_array_append_new(languages, json_string(utter_model_language_name(model, i)));
    }
    return json_pack(
        "{s:s,s:o,s:o}", "kind", info->kind_name, "voices", voices, "languages", languages);
}

static int list_voices(const utter_model *model, const struct settings *settings)
{
    utter_model_info info = checkpoint_info(model);
    struct list list = {.files = settings->json.given ? json_array() : NULL};
    json_t *object = NULL;
    if (list.files) {
        object = presets_json(model, &info);
        json_object_set_new(object, "files", list.files);
    } else {
        print_presets(model, &info);
    }
    int code = list_files(&list, settings);
    if (code) {
        json_decref(object);
        return code;
    }
    return object ? report_json(object) : 0;
}

/* ---- One voice ---- */

static void print_field(const char *field, const char *value)
{
    if (value) {
        put_line("%-12s %s", field, value);
    }
}

static void print_voice(const char *path, const utter_voice_info *v, const char *misfit, bool has_model)
{
    print_field("file", path);
    print_field("name", v->name);
    if (v->n_frames) {
        printf("kind         in context: an x-vector, %d frames of %d codes (%.1f s)\n", v->n_frames,
            v->n_codebooks, frame_s * v->n_frames);
    } else {
        print_field("kind", "an x-vector");
    }
    printf("fits         base models of width %d%s\n", v->width, size_text(v->width));
    if (has_model) {
        put_line("this model   %s%s", misfit ? "no: " : "yes", misfit ? misfit : "");
    }
    print_field("transcript", v->transcript);
    print_field("language", v->language);
    print_field("made", v->provenance);
}

static int show_voice(const utter_model *model, const struct settings *settings, const char *typed)
{
    char path[4096 + 300];
    utter_voice *voice = NULL;
    utter_error error = {0};
    if (!voice_file_path(path, sizeof path, settings, typed)) {
        return 1;
    }
    utter_status status = utter_voice_load(&voice, path, &error);
    if (status) {
        return fail_status(status, &error);
    }
    utter_voice_info v = info_of(voice);
    bool fits = model && utter_voice_fits(voice, model, &error) == UTTER_OK;
    const char *misfit = model && !fits ? error.text : NULL;
    int code = 0;
    if (settings->json.given) {
        json_t *object = json_pack("{s:o,s:s,s:s,s:i,s:i,s:i,s:s?,s:s?,s:s?}", "path", json_name(path),
            "name", v.name, "kind", kind_text(&v), "width", v.width, "frames", v.n_frames, "codebooks",
            v.n_codebooks, "transcript", v.transcript, "language", v.language, "provenance",
            v.provenance);
        if (model) {
            json_object_set_new(object, "fits", json_boolean(fits));
            json_object_set_new(object, "reason", misfit ? json_string(misfit) : json_null());
        }
        code = report_json(object);
    } else {
        print_voice(path, &v, misfit, model != NULL);
    }
    utter_voice_free(&voice);
    return code;
}

int command_voices(const struct invocation *invocation)
{
    const struct settings *settings = &invocation->settings;
    utter_model *model = NULL;
    bool one = invocation->n_words == 1;
    int code = one && !settings->model.given ? 0 : checkpoint_look(&model, settings);
    if (code == 0) {
        code = one ? show_voice(model, settings, invocation->words[0]) : list_voices(model, settings);
    }
    utter_model_close(&model);
    return code;
}
