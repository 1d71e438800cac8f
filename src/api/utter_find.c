/* SPDX-License-Identifier: Apache-2.0
 * Where models lie: what people type for one, in; a folder or file that utter_model_open takes, out. */
#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/tables/nearest.h"
#include "base/tables/released.h"

/* ---- The voice that comes with the library ---- */

/* The file that this code was loaded from, the program or a shared library, in file[size]. */
static bool own_file(char *file, size_t size)
{
    Dl_info about;
    struct link_map *map = NULL;
    const char *loaded =
        dladdr1((const void *)(uintptr_t)&own_file, &about, (void **)&map, RTLD_DL_LINKMAP)
            ? map->l_name
            : "";
    char real[PATH_MAX];
    /* The program has no name in the list of what was loaded, and its argv[0] may say anything. */
    if (*loaded) {
        return realpath(loaded, real) && snprintf(file, size, "%s", real) < (int)size;
    }
    ssize_t n = readlink("/proc/self/exe", file, size - 1);
    file[n > 0 ? n : 0] = 0;
    return n > 0;
}

static bool try_builtin(char *path, size_t size, const char *folder, int n, const char *place)
{
    char config[PATH_MAX + 64];
    return snprintf(path, size, "%.*s%s", n, folder, place) < (int)size &&
           snprintf(config, sizeof config, "%s/config.json", path) < (int)sizeof config &&
           file_exists(config);
}

/* Beside the library or program: in a Python package, the source tree, or where `make install` put it; else where
 * systems have such files. */
static utter_status find_builtin(char *path, size_t size, utter_error *error)
{
    static const char *const beside[] = {
        "/builtin", "/../share/utter/builtin", "/../../share/utter/builtin", "/../../voice/builtin"};
    static const char *const fixed[] = {"/usr/local/share/utter/builtin", "/usr/share/utter/builtin"};
    char file[PATH_MAX];
    const char *slash = own_file(file, sizeof file) ? strrchr(file, '/') : NULL;
    for (size_t i = 0; slash && i < sizeof beside / sizeof *beside; i++) {
        const char *place = beside[i];
        int n = (int)(slash - file);
        for (; strncmp(place, "/..", 3) == 0;
             place += 3) { /* the file's path is real, and so is this */
            while (n > 0 && file[--n] != '/') {
            }
        }
        if (try_builtin(path, size, file, n, place)) {
            return UTTER_OK;
        }
    }
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        if (try_builtin(path, size, "", 0, fixed[i])) {
            return UTTER_OK;
        }
    }
    return error_set(error, UTTER_E_FILE,
        "no model: the voice that comes with the library is not beside it (name a model, or install "
        "with make install)");
}

/* ---- The cache of the hub's client ---- */

/* The one entry of the folder: in name[size]. False where there are none or several. */
static bool only_entry(char *name, size_t size, const char *folder)
{
    DIR *list = opendir(folder);
    int n = 0;
    for (const struct dirent *entry; list && (entry = readdir(list));) {
        if (entry->d_name[0] != '.') {
            n++;
            snprintf(name, size, "%s", entry->d_name);
        }
    }
    if (list) {
        closedir(list);
    }
    return n == 1;
}

/* The snapshot that refs/main of a repository's folder names, or the only one there; false: there is none. */
static bool find_snapshot(char *path, size_t size, const char *repository)
{
    char place[PATH_MAX + 32], revision[256] = "", *text = NULL;
    size_t bytes = 0;
    if (snprintf(place, sizeof place, "%s/refs/main", repository) >= (int)sizeof place) {
        return false;
    }
    if (file_read(place, sizeof revision - 1, &text, &bytes, NULL) == UTTER_OK) {
        memcpy(revision, text, bytes);
        revision[bytes] = 0;
        revision[strcspn(revision, "\r\n/")] = 0;
    }
    memory_free(text);
    snprintf(place, sizeof place, "%s/snapshots", repository);
    return (revision[0] && revision[0] != '.' ? true : only_entry(revision, sizeof revision, place)) &&
           snprintf(path, size, "%s/%s", place, revision) < (int)size && file_is_folder(path);
}

/* OWNER/NAME -> CACHE/models--OWNER--NAME. */
static bool repository_folder(char *path, size_t size, const char *cache, const char *repository)
{
    const char *slash = strchr(repository, '/');
    return snprintf(path, size, "%s/models--%.*s--%s", cache, (int)(slash - repository), repository,
               slash + 1) < (int)size;
}

/* ---- Names ---- */

static utter_status find_named(char *path, size_t size, const char *typed, const char *repository,
    const char *cache, utter_error *error)
{
    char folder[PATH_MAX];
    if (cache && repository_folder(folder, sizeof folder, cache, repository) &&
        find_snapshot(path, size, folder)) {
        return UTTER_OK;
    }
    return error_set(error, UTTER_E_FILE,
        "%s: no folder or file, and the model %s is not in %s (utter pull %s gets it)", typed,
        repository, cache ? cache : "the cache, which was not named", typed);
}

utter_status find_checkpoint(char *path, size_t size, const char *given, utter_error *error)
{
    if (!given) {
        return find_builtin(path, size, error);
    }
    if (find_snapshot(path, size, given) || snprintf(path, size, "%s", given) < (int)size) {
        return UTTER_OK;
    }
    return error_set(error, UTTER_E_ARGUMENT, "%s: the path is too long", given);
}

/* Neither a folder or file nor a name: UTTER_OK where it may still be a path, whose opening says what is wrong. */
static utter_status check_unknown(const char *name, utter_error *error)
{
    struct nearest nearest = nearest_begin(name);
    char hint[64];
    for (size_t i = 0; i < n_released; i++) {
        nearest_offer(&nearest, released_table[i].name);
    }
    return nearest.name ? error_set(error, UTTER_E_FILE,
                              "%s: no such folder, file or model (%sutter models lists them)", name,
                              nearest_hint(&nearest, hint, sizeof hint))
                        : UTTER_OK;
}

utter_status utter_model_find(
    char *path, size_t size, const char *name, const char *cache, utter_error *error)
{
    utter_status status = api_need(path, "path", error);
    if (status) {
        return status;
    }
    if (name && strcmp(name, "builtin") == 0 && !file_exists(name)) {
        return find_builtin(path, size, error);
    }
    const char *repository = name && !file_exists(name) ? released_repository(name) : NULL;
    if (name && !repository && !file_exists(name)) {
        repository = released_is_repository(name) ? name : NULL;
        status = repository ? UTTER_OK : check_unknown(name, error);
    }
    if (status) {
        return status;
    }
    return repository ? find_named(path, size, name, repository, cache, error)
                      : find_checkpoint(path, size, name, error);
}
