/* SPDX-License-Identifier: Apache-2.0
 * utter models, use and pull: which models are here, which one speaks, and how one comes here. */
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/tables/nearest.h"
#include "base/tables/released.h"
#include "cli/commands.h"
#include "cli/defaults.h"
#include "cli/interrupt.h"
#include "cli/model/checkpoint.h"
#include "cli/model/hub.h"
#include "cli/model/hub_place.h"
#include "cli/report.h"

/* ---- models ---- */

static uint64_t counted; /* by count_file, whose caller has no place for more */

static int count_file(const char *path, const struct stat *about, int kind, struct FTW *where)
{
    (void)path, (void)where;
    counted += kind == FTW_F ? (uint64_t)about->st_size : 0;
    return 0;
}

/* The bytes of all files below a folder, or of one file. */
static uint64_t size_of(const char *path)
{
    counted = 0;
    nftw(path, count_file, 8, 0);
    return counted;
}

struct listing {
    json_t *models; /* NULL: lines */
    char chosen[PATH_MAX];
};

static void list_model(
    struct listing *listing, const char *name, const char *repository, const char *path)
{
    uint64_t bytes = path ? size_of(path) : 0;
    bool chosen = path && strcmp(path, listing->chosen) == 0;
    if (listing->models) {
        json_array_append_new(listing->models,
            json_pack("{s:s?,s:s?,s:o,s:I,s:b}", "name", name, "repository", repository, "path",
                json_name(path), "bytes", (json_int_t)bytes, "chosen", chosen));
        return;
    }
    char size[32] = "not here";
    if (path) {
        snprintf(size, sizeof size, "%.1f MB", 1e-6 * (double)bytes);
    }
    put_line("%c %-10s %-38s %12s", chosen ? '*' : ' ', name ? name : "", repository ? repository : "",
        size);
}

static bool is_released(const char *repository)
{
    for (size_t i = 0; i < n_released; i++) {
        if (strcmp(repository, released_table[i].repository) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether the folder has a model of this family: others lie in the same cache. */
static bool is_speech(const char *folder)
{
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/config.json", folder);
    json_t *root = json_load_file(path, 0, NULL);
    const char *type = json_string_value(json_object_get(root, "model_type"));
    bool is = type && strcmp(type, "qwen3_tts") == 0;
    json_decref(root);
    return is;
}

static int is_model_folder(const struct dirent *entry)
{
    return strncmp(entry->d_name, "models--", 8) == 0;
}

/* models--OWNER--NAME -> OWNER/NAME. */
static bool repository_of(char *name, size_t size, const char *folder)
{
    const char *owner = folder + 8, *split = strstr(owner, "--");
    return split && snprintf(name, size, "%.*s/%s", (int)(split - owner), owner, split + 2) < (int)size;
}

static void list_others(struct listing *listing, const char *cache)
{
    struct dirent **entries = NULL;
    int n = cache ? scandir(cache, &entries, is_model_folder, alphasort) : 0;
    for (int i = 0; i < n; i++) {
        char name[NAME_MAX + 1], path[PATH_MAX];
        if (repository_of(name, sizeof name, entries[i]->d_name) && !is_released(name) &&
            utter_model_find(path, sizeof path, name, cache, NULL) == UTTER_OK && is_speech(path)) {
            list_model(listing, NULL, name, path);
        }
        free(entries[i]);
    }
    free(entries);
}

int command_models(const struct invocation *invocation)
{
    struct listing listing = {.models = invocation->settings.json.given ? json_array() : NULL};
    struct invocation use = *invocation;
    struct command as_use = *invocation->command;
    const char *cache = hub_folder();
    char path[PATH_MAX];
    as_use.bit = COMMAND_USE;
    use.command = &as_use;
    int code = defaults_apply(&use);
    if (code) {
        json_decref(listing.models);
        return code;
    }
    utter_model_find(listing.chosen, sizeof listing.chosen, use.settings.model.text, cache, NULL);
    if (utter_model_find(path, sizeof path, NULL, NULL, NULL) == UTTER_OK) {
        list_model(&listing, "builtin", NULL, path);
    }
    for (size_t i = 0; i < n_released; i++) {
        const char *repository = released_table[i].repository;
        bool here = utter_model_find(path, sizeof path, repository, cache, NULL) == UTTER_OK;
        list_model(&listing, released_table[i].name, repository, here ? path : NULL);
    }
    list_others(&listing, cache);
    return listing.models
               ? report_json(json_pack("{s:s?,s:o}", "cache", cache, "models", listing.models))
               : 0;
}

/* ---- use ---- */

static const char *rule_text(const struct setting *setting)
{
    return setting->rule ? setting->rule : "nobody chose";
}

static int tell_choice(const struct settings *s)
{
    char path[PATH_MAX] = "";
    int code = checkpoint_find(path, sizeof path, s->model.text);
    put_line("model   %s  (%s)", s->model.text ? s->model.text : "builtin", rule_text(&s->model));
    if (code == 0) {
        put_line("path    %s", path);
    }
    put_line(
        "voice   %s  (%s)", s->voice.text ? s->voice.text : "the model's first", rule_text(&s->voice));
    put_line("device  %s  (%s)", s->device.text, rule_text(&s->device));
    return code;
}

static utter_status write_choice(const char *path, const char *text, utter_error *error)
{
    struct file_out *out = NULL;
    utter_status status = file_out_open(&out, path, error);
    if (!status) {
        status = file_out_write(out, text, strlen(text), error);
    }
    if (status) {
        file_out_abort(&out);
        return status;
    }
    return file_out_close(&out, error);
}

int command_use(const struct invocation *invocation)
{
    const struct settings *s = &invocation->settings;
    const char *typed = invocation->n_words ? invocation->words[0] : NULL, *path = defaults_file();
    char text[3 * PATH_MAX] = "", found[PATH_MAX], whole[PATH_MAX], folder[PATH_MAX];
    size_t n = 0;
    if (!typed && !s->voice.given && !s->device.given) {
        return tell_choice(s);
    }
    if (!path) {
        return fail(1, "use: no folder for the choice (HOME names none)");
    }
    bool builtin = typed && strcmp(typed, "builtin") == 0;
    int code = typed && !builtin ? checkpoint_find(found, sizeof found, typed) : 0;
    if (code == 0 && typed && !builtin && !file_exists(found)) {
        code = fail(1, "use: %s: there is no such model (utter models lists them)", typed);
    }
    if (code) {
        return code;
    }
    /* A path must be good from every folder; a name stays one, so that it goes on with later revisions. */
    const char *kept = typed && file_exists(typed) && realpath(typed, whole) ? whole : typed;
    const char *const lines[][2] = {{"model", builtin ? NULL : kept},
        {"voice", s->voice.given ? s->voice.text : NULL},
        {"device", s->device.given ? s->device.text : NULL}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (lines[i][1]) {
            n += (size_t)snprintf(text + n, sizeof text - n, "%s = %s\n", lines[i][0], lines[i][1]);
        }
    }
    if (n >= sizeof text || strpbrk(text, "\r#")) {
        return fail(1, "use: a name is too long, or has a '#' in it");
    }
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = folder + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        if (mkdir(folder, 0755) != 0 && errno != EEXIST) {
            return fail(2, "%s: cannot make the folder: %s", folder, strerror(errno));
        }
    }
    utter_error error = {0};
    utter_status status = write_choice(path, text, &error);
    return status ? fail_output(status, &error) : 0;
}

/* ---- pull ---- */

struct pulling {
    bool quiet;
    double told_s, begin_s;
    uint64_t begun; /* what was there before */
};

static bool tell(void *user, const char *file, uint64_t done, uint64_t all)
{
    struct pulling *pulling = user;
    double now = clock_seconds();
    if (!pulling->begun) {
        pulling->begun = done;
        pulling->begin_s = now;
    }
    if (!pulling->quiet && progress_shown() && now - pulling->told_s > 0.2 && all > 0) {
        double rate = (double)(done - pulling->begun) / (now - pulling->begin_s + 1e-3);
        progress("%s: %.0f of %.0f MB, %.1f MB/s, %.0f s to go", file, 1e-6 * (double)done,
            1e-6 * (double)all, 1e-6 * rate, rate > 0 ? (double)(all - done) / rate : 0.0);
        pulling->told_s = now;
    }
    return interrupt_signal() == 0;
}

/* An address holds the name of its repository; else a short name may be near. */
static int fail_name(const char *typed)
{
    const char *host = strstr(typed, "://"), *path = host ? strchr(host + 3, '/') : NULL;
    struct nearest nearest = nearest_begin(typed);
    char hint[300];
    for (size_t i = 0; i < n_released; i++) {
        nearest_offer(&nearest, released_table[i].name);
    }
    nearest.name = path && released_is_repository(path + 1) ? path + 1 : nearest.name;
    return fail(1,
        "pull: '%s' is no model (%sutter models lists the released ones; others are OWNER/NAME)", typed,
        nearest_hint(&nearest, hint, sizeof hint));
}

int command_pull(const struct invocation *invocation)
{
    const char *typed = invocation->words[0], *cache = hub_folder();
    const char *short_name = released_repository(typed), *repository = short_name ? short_name : typed;
    struct pulling pulling = {.quiet = invocation->settings.quiet.given};
    char path[PATH_MAX] = "";
    uint64_t bytes = 0;
    utter_error error = {0};
    if (!released_is_repository(repository)) {
        return fail_name(typed);
    }
    if (!cache) {
        return fail(1, "pull: no folder to put it (HF_HUB_CACHE names one)");
    }
    if (!interrupt_watch(NULL)) {
        return fail(2, "the system refuses a signal handler");
    }
    utter_status status = hub_pull(repository, cache, tell, &pulling, &bytes, &error);
    progress_clear();
    if (status == UTTER_E_CANCELLED && interrupt_signal()) {
        return fail(
            128 + interrupt_signal(), "interrupted (the same command goes on where this ended)");
    }
    if (status || (status = utter_model_find(path, sizeof path, repository, cache, &error))) {
        return fail_status(status, &error);
    }
    if (!pulling.quiet) {
        note("%s is here, %.1f MB (utter say -m %s ...)", repository, 1e-6 * (double)bytes, typed);
    }
    return 0;
}
