/* SPDX-License-Identifier: Apache-2.0
 * The table of voices: presets from the worker, files from the folder. */
#include "server/speech/voices.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/tables/nearest.h"
#include "server/loop/account.h"
#include "server/loop/log.h"
#include "server/speech/aliases.h"
#include "server/speech/voices_parts.h"

void voice_entry_free(struct voice_entry *v)
{
    if (v) {
        memory_free(v->name);
        memory_free(v->file);
        memory_free(v->transcript);
        json_decref(v->told);
        memory_free(v);
    }
}

struct voice_entry *voice_entry_read(const char *file, utter_error *error)
{
    utter_voice *voice = NULL;
    struct voice_entry *v = NULL;
    struct stat about;
    if (utter_voice_load(&voice, file, error) != UTTER_OK) {
        return NULL;
    }
    utter_voice_info info = {.size = sizeof info};
    if (utter_voice_get_info(voice, &info) == UTTER_OK && (v = memory_new(1, sizeof *v))) {
        const char *slash = strrchr(file, '/');
        v->name = memory_string(info.name && info.name[0] ? info.name : slash ? slash + 1 : file);
        v->file = memory_string(file);
        v->transcript = info.transcript ? memory_string(info.transcript) : NULL;
        v->width = info.width;
        v->made = stat(file, &about) == 0 ? (long long)about.st_mtime : 0;
        v->told = told_read(file);
        if (!v->name || !v->file || !v->told) {
            voice_entry_free(v);
            v = NULL;
        }
    }
    utter_voice_free(&voice);
    if (!v) {
        error_set(error, UTTER_E_MEMORY, "out of memory");
    }
    return v;
}

struct voice_entry *voices_entry(const struct server *s, const char *name)
{
    struct voice_entry *v;
    TAILQ_FOREACH(v, &s->voices->entries, entry)
    {
        if (names_same(v->name, name)) {
            return v;
        }
    }
    return NULL;
}

void voices_insert(struct server *s, struct voice_entry *v)
{
    struct voice_entry *old = voices_entry(s, v->name);
    if (old) {
        voices_remove(s, old);
    }
    TAILQ_INSERT_TAIL(&s->voices->entries, v, entry);
    s->voices->n++;
}

void voices_remove(struct server *s, struct voice_entry *v)
{
    TAILQ_REMOVE(&s->voices->entries, v, entry);
    s->voices->n--;
    voice_entry_free(v);
}

/* NAME of DIR/NAME.voice; *n: its length. */
static const char *stem_of(const char *file, size_t *n)
{
    const char *slash = strrchr(file, '/'), *stem = slash ? slash + 1 : file;
    *n = strlen(stem) - strlen(VOICE_ENDING);
    return stem;
}

/* As the program's commands know it: by its file. */
static struct voice_entry *voice_of_file(const struct server *s, const char *name)
{
    struct voice_entry *v;
    TAILQ_FOREACH(v, &s->voices->entries, entry)
    {
        size_t n;
        const char *stem = stem_of(v->file, &n);
        if (strlen(name) == n && strncasecmp(stem, name, n) == 0) {
            break;
        }
    }
    return v;
}

static int is_voice_file(const struct dirent *file)
{
    size_t n = strlen(file->d_name), m = strlen(VOICE_ENDING);
    return file->d_name[0] != '.' && n > m && strcmp(file->d_name + n - m, VOICE_ENDING) == 0;
}

/* Reads a voice file into the table. Where two files hold voices of the same name, the first one that is read has the
 * name, and the other voice is named for its file. */
static void add_file(struct server *s, const char *path)
{
    utter_error error = {.text = ""};
    struct voice_entry *v = voice_entry_read(path, &error);
    if (v && voices_entry(s, v->name)) {
        size_t n;
        const char *stem = stem_of(path, &n);
        memory_free(v->name);
        v->name = memory_string_n(stem, n);
        error_set(&error, UTTER_E_FILE, "%s: a voice of this name is there", path);
    }
    if (v && v->name && !voices_entry(s, v->name)) {
        voices_insert(s, v);
    } else {
        log_event(s, "voice_unreadable", json_pack("{s:s}", "error", error.text));
        voice_entry_free(v);
    }
}

void voices_read_again(struct server *s, const char *file)
{
    struct voice_entry *v, *next;
    for (v = TAILQ_FIRST(&s->voices->entries); v; v = next) {
        next = TAILQ_NEXT(v, entry);
        if (strcmp(v->file, file) == 0) {
            voices_remove(s, v);
        }
    }
    if (file_exists(file) && s->voices->n < LIMIT_VOICES) {
        add_file(s, file);
    }
}

/* False with errno. */
static bool read_folder(struct server *s)
{
    struct dirent **files = NULL;
    int n = scandir(s->voices->folder, &files, is_voice_file, alphasort);
    for (int i = 0; i < n; i++) {
        char path[4096];
        if (s->voices->n < LIMIT_VOICES && snprintf(path, sizeof path, "%s/%s", s->voices->folder,
                                               files[i]->d_name) < (int)sizeof path) {
            add_file(s, path);
        }
        memory_plain_free(files[i]);
    }
    memory_plain_free(files);
    return n >= 0;
}

enum { LEFT_S = 60 }; /* since a folder that nobody holds has changed */
static const char temporary_pattern[] = P_tmpdir "/utter-serve-XXXXXX";

/* Whether this is the temporary folder of a server of ours that is gone: it would hold the lock. */
static bool is_left(int folder)
{
    struct stat about;
    return folder >= 0 && fstat(folder, &about) == 0 && about.st_uid == geteuid() &&
           (about.st_mode & 0777) == 0700 && time(NULL) - about.st_mtime > LEFT_S &&
           flock(folder, LOCK_EX | LOCK_NB) == 0;
}

/* "7.sound", "7.json", "7.voice", "anna-0123456789ab.voice" and what is told of it, or a voice that was being written:
 * such files are put there, and no others are removed. */
static bool is_recording(const char *name)
{
    enum { HASH = 12, TOLD_HASH = 17 };
    static const char hidden[] = ".utter-", hex[] = "0123456789abcdef";
    const char *dash = strchr(name, '-');
    size_t n = dash && strspn(dash + 1, hex) == HASH ? (size_t)(dash + 1 + HASH - name)
                                                     : strspn(name, "0123456789");
    n += n > 0 && name[n] == '.' && strspn(name + n + 1, hex) == TOLD_HASH - 1 ? TOLD_HASH : 0;
    return strncmp(name, hidden, sizeof hidden - 1) == 0 ||
           (n > 0 && (strcmp(name + n, ".sound") == 0 || strcmp(name + n, ".json") == 0 ||
                         strcmp(name + n, VOICE_ENDING) == 0));
}

/* Recordings that a server had when it was killed are not kept. */
static void sweep_temporary(void)
{
    const char *pattern = strrchr(temporary_pattern, '/') + 1;
    size_t n = strcspn(pattern, "X");
    DIR *all = opendir(P_tmpdir), *inside;
    for (const struct dirent *e; all && (e = readdir(all));) {
        if (strncmp(e->d_name, pattern, n) != 0 || strlen(e->d_name) != strlen(pattern)) {
            continue;
        }
        int folder = openat(dirfd(all), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (is_left(folder) && (inside = fdopendir(folder))) {
            for (const struct dirent *file; (file = readdir(inside));) {
                if (is_recording(file->d_name)) {
                    unlinkat(dirfd(inside), file->d_name, 0);
                }
            }
            unlinkat(dirfd(all), e->d_name, AT_REMOVEDIR); /* only when nothing of others is in it */
            closedir(inside);
        } else if (folder >= 0) {
            close(folder);
        }
    }
    if (all) {
        closedir(all);
    }
}

static bool make_temporary(struct voices *v)
{
    sweep_temporary();
    strcpy(v->temporary, temporary_pattern);
    char *made = mkdtemp(v->temporary);
    v->temporary_lock = made ? open(made, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (v->temporary_lock < 0) {
        fprintf(stderr, "utter: %s: %s\n", v->temporary, strerror(errno));
        v->temporary[0] = 0;
        return false;
    }
    (void)!flock(v->temporary_lock, LOCK_EX | LOCK_NB); /* ends with the process */
    return true;
}

bool voices_open(struct server *s)
{
    struct voices *v = memory_new(1, sizeof *v);
    s->voices = v;
    if (!v) {
        fprintf(stderr, "utter: out of memory\n");
        return false;
    }
    TAILQ_INIT(&v->entries);
    TAILQ_INIT(&v->uploads);
    v->temporary_lock = -1;
    if (!make_temporary(v)) {
        return false;
    }
    s->voice_folders[1] = v->temporary;
    if (!s->options->voices) {
        return true;
    }
    if (strncmp(s->options->voices, "s3://", 5) == 0) {
        if (!voices_store_open(s, s->options->voices)) {
            return false;
        }
    } else if (!realpath(s->options->voices, v->folder)) {
        v->folder[0] = 0;
    }
    if (!v->folder[0] || !read_folder(s)) {
        fprintf(stderr, "utter: --voices %s: %s%s\n", s->options->voices, strerror(errno),
            errno == ENOENT ? " (make the folder first, or check the name)" : "");
        return false;
    }
    file_out_sweep(v->folder);
    s->voice_folders[0] = v->folder;
    return true;
}

void voices_close(struct server *s)
{
    struct voices *v = s->voices;
    if (!v) {
        return;
    }
    voices_end_uploads(s);
    voices_store_close(s);
    for (struct voice_entry *e; (e = TAILQ_FIRST(&v->entries));) {
        voices_remove(s, e);
    }
    if (v->temporary[0]) {
        rmdir(v->temporary);
    }
    if (v->temporary_lock >= 0) {
        close(v->temporary_lock);
    }
    memory_free(v);
    s->voices = NULL;
}

/* Why the served model cannot speak with it; NULL: it can. */
static const char *misfit_of(const struct server *s, const struct voice_entry *v)
{
    return strcmp(s->ready.kind_name, "base") != 0
               ? "was made from a recording, which base models speak with"
           : v->width != s->ready.width ? "was made for a model of another width (clone it again)"
                                        : NULL;
}

static const struct voice_entry *first_fit(const struct server *s)
{
    const struct voice_entry *v = TAILQ_FIRST(&s->voices->entries);
    while (v && misfit_of(s, v)) {
        v = TAILQ_NEXT(v, entry);
    }
    return v;
}

static const char *preset_of(const struct server *s, const char *name)
{
    for (int i = 0; i < s->ready.n_voices; i++) {
        if (names_same(s->ready.voices[i], name)) {
            return s->ready.voices[i];
        }
    }
    return NULL;
}

/* `name`: NULL, where nobody has chosen one, and there is none. */
static bool refuse_voice(const struct server *s, const char *name, struct refusal *r)
{
    if (!name) {
        return refuse(
            r, 400, "voice", "\"voice\": no voice is here yet (upload one with POST /v1/audio/voices)");
    }
    if (voices_store_is_away(s)) {
        refuse(r, 503, "voice",
            "\"voice\": '%.80s' is not among the voices that are here, and the store of "
            "voices cannot be reached now (later it may be better)",
            name);
        r->retry_ms = 5000;
        return false;
    }
    char list[512] = "", hint[128];
    struct nearest nearest = nearest_begin(name);
    const struct voice_entry *v;
    for (int i = 0; i < s->ready.n_voices; i++) {
        nearest_offer(&nearest, s->ready.voices[i]);
        strncat(list, list[0] ? ", " : "", sizeof list - strlen(list) - 1);
        strncat(list, s->ready.voices[i], sizeof list - strlen(list) - 1);
    }
    TAILQ_FOREACH(v, &s->voices->entries, entry)
    {
        nearest_offer(&nearest, v->name);
        strncat(list, list[0] ? ", " : "", sizeof list - strlen(list) - 1);
        strncat(list, v->name, sizeof list - strlen(list) - 1);
    }
    return refuse(r, 400, "voice", "\"voice\": no voice '%.80s' (%svoices: %s)", name,
        nearest_hint(&nearest, hint, sizeof hint),
        list[0] ? list : "none; upload one with POST /v1/audio/voices");
}

static struct voice_entry *entry_of_file(const struct server *s, const char *file)
{
    struct voice_entry *v;
    TAILQ_FOREACH(v, &s->voices->entries, entry)
    {
        if (strcmp(v->file, file) == 0) {
            break;
        }
    }
    return v;
}

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* How requests name what was found. A voice is read for it once, and again when its file has changed: all speeches
 * stand still meanwhile. */
static bool find_hash(char *hash, const struct server *s, const struct voices_found *found)
{
    struct stat about;
    const struct serve_options *o = s->options;
    const char *file = found->file[0] ? found->file : NULL;
    struct voice_entry *v = file && stat(file, &about) == 0 ? entry_of_file(s, file) : NULL;
    if (!v) {
        return o->hash_voice && o->hash_voice(hash, found->preset, file);
    }
    if (!v->hash[0] || !is_same_file(&v->hashed, &about)) {
        v->hashed = about;
        if (!o->hash_voice || !o->hash_voice(v->hash, NULL, file)) {
            v->hash[0] = 0;
        }
    }
    memcpy(hash, v->hash, sizeof v->hash);
    return v->hash[0] != 0;
}

/* Whether what was found is what the request was meant for. */
static bool is_meant(const struct server *s, const struct fields *fields,
    const struct voices_found *found, struct refusal *r)
{
    char hash[65];
    const struct serve_options *o = s->options;
    if (fields->model_hash && (!o->model_hash || strcmp(o->model_hash, fields->model_hash) != 0)) {
        return refuse(r, 409, "model_hash", "\"model_hash\": this server's model is another (%s)",
            o->model_hash ? o->model_hash : "not known");
    }
    if (fields->voice_hash && (!find_hash(hash, s, found) || strcmp(hash, fields->voice_hash) != 0)) {
        return refuse(r, 409, "voice_hash", "\"voice_hash\": the voice \"%.80s\" is another one here",
            fields->voice ? fields->voice : "");
    }
    return true;
}

static bool find(
    struct server *s, const struct fields *fields, struct voices_found *found, struct refusal *refusal)
{
    const char *name = fields->voice;
    *found = (struct voices_found){0};
    bool needs_none = strcmp(s->ready.kind_name, "voice_design") == 0;
    if (needs_none) {
        return true;
    }
    if (fields->voice_file) {
        snprintf(found->file, sizeof found->file, "%s", fields->voice_file);
        return true;
    }
    const struct voice_entry *v = name ? voices_entry(s, name) : NULL;
    v = v && misfit_of(s, v) && preset_of(s, name) ? NULL : v;
    found->preset = v                   ? NULL
                    : name              ? preset_of(s, name)
                    : s->ready.n_voices ? s->ready.voices[0]
                                        : NULL;
    v = !v && !found->preset && name ? voice_of_file(s, name) : v;
    if (v && misfit_of(s, v)) {
        return refuse(refusal, 400, "voice", "\"voice\": '%.80s' %s", v->name, misfit_of(s, v));
    }
    if (v) {
        snprintf(found->file, sizeof found->file, "%s", v->file);
        return true;
    }
    if (!found->preset && name) {
        found->preset = alias_preset(name, s->ready.voices, s->ready.n_voices);
    }
    if (!found->preset && (!name || alias_preset(name, &name, 1))) {
        /* A base model has no presets: the first voice stands for all names of OpenAI. */
        v = first_fit(s);
        snprintf(found->file, sizeof found->file, "%s", v ? v->file : "");
    }
    return found->preset || found->file[0] ? true : refuse_voice(s, name, refusal);
}

bool voices_find(
    struct server *s, const struct fields *fields, struct voices_found *found, struct refusal *refusal)
{
    return find(s, fields, found, refusal) && is_meant(s, fields, found, refusal);
}

json_t *voices_entry_json(const struct voice_entry *v)
{
    json_t *j = json_pack("{s:s,s:s,s:s,s:s,s:I,s:s?}", "object", "audio.voice", "id", v->name, "name",
        v->name, "kind", v->transcript ? "context" : "vector", "created_at", (json_int_t)v->made,
        "ref_text", v->transcript);
    if (j && v->told) {
        json_object_update_missing(j, v->told);
        json_object_del(j, "owner"); /* for the server alone */
    }
    return j;
}

static void add_name(json_t *list, const char *name, const char *kind, bool legacy)
{
    json_array_append_new(
        list, legacy ? json_string(name)
                     : json_pack("{s:s,s:s,s:s}", "id", name, "name", name, "kind", kind));
}

json_t *voices_list(struct server *s, bool legacy)
{
    json_t *voices = json_array(), *uploaded = json_array();
    const struct voice_entry *v;
    for (int i = 0; i < s->ready.n_voices; i++) {
        add_name(voices, s->ready.voices[i], "preset", legacy);
    }
    TAILQ_FOREACH(v, &s->voices->entries, entry)
    {
        if (!misfit_of(s, v)) {
            add_name(voices, v->name, "uploaded", legacy);
        }
        json_array_append_new(uploaded, voices_entry_json(v));
    }
    /* OpenAI's names stand for what is there; a base model without a voice has nothing that they could stand for. */
    bool speaks = s->was_ready && (strcmp(s->ready.kind_name, "base") != 0 || first_fit(s));
    for (int i = 0; speaks && !legacy && alias_voice(i); i++) {
        add_name(voices, alias_voice(i), "alias", legacy);
    }
    return json_pack("{s:o,s:o}", "voices", voices, "uploaded_voices", uploaded);
}

json_t *voices_one(struct server *s, const char *name)
{
    const struct voice_entry *v = voices_entry(s, name);
    const char *preset = v ? NULL : preset_of(s, name), *alias = NULL;
    for (int i = 0; !v && !preset && (alias = alias_voice(i)) && strcasecmp(alias, name) != 0; i++) {
    }
    const char *known = preset ? preset : alias;
    return v       ? voices_entry_json(v)
           : known ? json_pack("{s:s,s:s,s:s}", "id", known, "name", known, "kind",
                         preset ? "preset" : "alias")
                   : NULL;
}

bool voices_unlink(const struct voice_entry *v)
{
    bool gone = unlink(v->file) == 0 || errno == ENOENT;
    if (gone) {
        file_sync_entry(v->file); /* who takes back a consent is not to find the voice again */
        told_sweep(v->file);
    }
    return gone;
}

bool voices_may_change(const struct voice_entry *v, const struct account *account, struct refusal *r)
{
    char mark[ACCOUNT_MARK];
    const char *owner = json_string_value(json_object_get(v->told, "owner"));
    if (account) {
        account_mark(mark, account);
    }
    return !account || (owner && strcmp(owner, mark) == 0) ||
           refuse(r, 403, "name", "the voice '%.80s' was not uploaded with this key", v->name);
}

bool voices_delete(struct server *s, const char *name, const struct account *account, voices_done *done,
    void *user, struct refusal *refusal)
{
    struct voice_entry *v = voices_entry(s, name);
    if (!v) {
        refuse(refusal, 404, "name", "no uploaded voice '%.80s'", name);
        return false;
    }
    if (!voices_may_change(v, account, refusal)) {
        return false;
    }
    if (s->voices->store) {
        voices_store_drop(s, v->file, done, user);
        return true;
    }
    if (!voices_unlink(v)) {
        return refuse(
            refusal, 500, "name", "the file of '%.80s' cannot be removed: %s", name, strerror(errno));
    }
    log_event(s, "voice_deleted", json_pack("{s:s}", "name", v->name));
    voices_remove(s, v);
    done(user, json_null(), NULL, NULL);
    return true;
}
