/* SPDX-License-Identifier: Apache-2.0
 * The manifest only grows, a line at a time; a last line that is torn counts as none. */
#include "book/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "utter.h"

static const char manifest_name[] = "manifest.jsonl", sound_ending[] = ".flac";

enum { MOST_MANIFEST = 1 << 28 };

/* Removes the files that this program puts there; nothing else. */
static void sweep(const char *folder, bool manifest)
{
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        size_t n = strlen(entry->d_name);
        bool sound = n == IDENTITY_SIZE - 1 + strlen(sound_ending) &&
                     strspn(entry->d_name, "0123456789abcdef") == IDENTITY_SIZE - 1;
        bool part = strncmp(entry->d_name, "encoding-", 9) == 0;
        char path[PATH_MAX];
        if ((sound || part || (manifest && strcmp(entry->d_name, manifest_name) == 0)) &&
            file_join(path, sizeof path, folder, entry->d_name, NULL) == UTTER_OK) {
            unlink(path);
        }
    }
    if (dir) {
        closedir(dir);
    }
}

static utter_status keep(struct store *store, const struct store_entry *entry, utter_error *error)
{
    if (store->n == store->room) {
        size_t room = store->room ? 2 * store->room : 64;
        struct store_entry *grown = memory_resize(store->entries, store->room, room, sizeof *grown);
        if (!grown) {
            return error_memory(error, "the list of sections");
        }
        store->entries = grown;
        store->room = room;
    }
    store->entries[store->n++] = *entry;
    return UTTER_OK;
}

static utter_status take_line(struct store *store, const char *line, size_t n, utter_error *error)
{
    json_t *object = NULL;
    struct store_entry e = {0};
    if (json_text(&object, line, n, JSON_SMALL, manifest_name, NULL) != UTTER_OK) {
        return UTTER_OK; /* torn */
    }
    utter_error ignored;
    struct json_fields f = {.object = object, .where = manifest_name, .error = &ignored};
    const char *key = json_take_string(&f, "key", NULL);
    if (key) {
        snprintf(e.key, sizeof e.key, "%s", key);
        snprintf(e.sound, sizeof e.sound, "%s", json_need_string(&f, "sha256"));
        e.seed = (uint64_t)json_take_int(&f, "seed", INT64_MIN, INT64_MAX, 0);
        e.n_pieces = (uint64_t)json_take_int(&f, "pieces", 0, INT64_MAX, 0);
        e.n_retries = (uint64_t)json_take_int(&f, "retries", 0, INT64_MAX, 0);
        e.n_broken = (uint64_t)json_take_int(&f, "not_whole", 0, INT64_MAX, 0);
        e.seconds = json_take_number(&f, "seconds", 0, 1e9, 0);
    }
    json_decref(object);
    return key && f.status == UTTER_OK ? keep(store, &e, error) : UTTER_OK;
}

static utter_status take_lines(struct store *store, const char *path, utter_error *error)
{
    char *text;
    size_t n;
    utter_status status = file_read(path, MOST_MANIFEST, &text, &n, error);
    if (status) {
        return status;
    }
    for (size_t at = 0; at < n && status == UTTER_OK;) {
        const char *end = memchr(text + at, '\n', n - at);
        if (!end) {
            break;
        }
        status = take_line(store, text + at, (size_t)(end - text) - at, error);
        at = (size_t)(end - text) + 1;
    }
    /* A torn line must not swallow the next. */
    if (status == UTTER_OK && n > 0 && text[n - 1] != '\n' && write(store->manifest, "\n", 1) != 1) {
        status = file_error(error, path, "write", errno);
    }
    memory_free(text);
    return status;
}

/* Takes over the object. */
static utter_status put_line(struct store *store, json_t *object, utter_error *error)
{
    char *text = json_text_write(object, JSON_COMPACT | JSON_REAL_PRECISION(9));
    size_t n = text ? strlen(text) : 0;
    json_decref(object);
    if (!text) {
        return error_memory(error, "a line of the manifest");
    }
    text[n] = '\n'; /* in place of its zero: the line is one write */
    bool good = write(store->manifest, text, n + 1) == (ssize_t)n + 1;
    int reason = errno;
    memory_plain_free(text);
    return good ? UTTER_OK : file_error(error, store->folder, "write", reason);
}

utter_status store_open(struct store *store, const char *folder, const struct store_about *about,
    bool fresh, utter_error *error)
{
    char path[PATH_MAX];
    *store = (struct store){.manifest = -1};
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        return file_error(error, folder, "make", errno);
    }
    snprintf(store->folder, sizeof store->folder, "%s", folder);
    utter_status status = file_join(path, sizeof path, folder, manifest_name, error);
    if (status) {
        return status;
    }
    store->manifest = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (store->manifest < 0) {
        return file_error(error, path, "write", errno);
    }
    if (flock(store->manifest, LOCK_EX | LOCK_NB) != 0) {
        return error_set(
            error, UTTER_E_IO, "%s: another utter read works there (wait for it, or end it)", folder);
    }
    if (fresh) {
        sweep(folder, false);
        status = ftruncate(store->manifest, 0) ? file_error(error, path, "write", errno) : UTTER_OK;
    } else {
        status = take_lines(store, path, error);
    }
    file_out_sweep(folder);
    return status ? status
                  : put_line(store,
                        json_pack("{s:s,s:s,s:s,s:s,s:s}", "utter", utter_version_text(), "book",
                            about->book, "model", about->model, "voice", about->voice, "settings",
                            about->settings),
                        error);
}

void store_path(const struct store *store, char path[PATH_MAX], const char *key)
{
    snprintf(path, PATH_MAX, "%.*s/%s%s", PATH_MAX - 80, store->folder, key, sound_ending);
}

const struct store_entry *store_find(const struct store *store, const char *key)
{
    for (size_t i = store->n; i-- > 0;) {
        const struct store_entry *e = &store->entries[i];
        if (strcmp(e->key, key) == 0) {
            char path[PATH_MAX], sound[IDENTITY_SIZE];
            store_path(store, path, key);
            bool same = file_exists(path) && identity_of_file(sound, path, NULL) == UTTER_OK &&
                        strcmp(sound, e->sound) == 0;
            return same ? e : NULL;
        }
    }
    return NULL;
}

utter_status store_add(struct store *store, struct store_entry *e, utter_error *error)
{
    char path[PATH_MAX];
    store_path(store, path, e->key);
    utter_status status = identity_of_file(e->sound, path, error);
    if (status == UTTER_OK) {
        status = put_line(store,
            json_pack("{s:s,s:s,s:I,s:I,s:I,s:I,s:f}", "key", e->key, "sha256", e->sound, "seed",
                (json_int_t)e->seed, "pieces", (json_int_t)e->n_pieces, "retries",
                (json_int_t)e->n_retries, "not_whole", (json_int_t)e->n_broken, "seconds", e->seconds),
            error);
    }
    return status;
}

void store_close(struct store *store)
{
    if (store->manifest >= 0) {
        close(store->manifest);
    }
    memory_free(store->entries);
    *store = (struct store){.manifest = -1};
}

void store_remove(struct store *store)
{
    sweep(store->folder, true);
    rmdir(store->folder); /* stays where others have put something */
}
