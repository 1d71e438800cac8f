/* SPDX-License-Identifier: Apache-2.0
 * Results in a folder: 4,096 folders by the first digits of the key, so that ten million lines are some 5,000 files in
 * each. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "job/results.h"

enum { MOST_TEXT = 1 << 28 };

struct folder_results {
    struct results base;
    char folder[PATH_MAX];
};

static void path_of(const struct results *results, char path[PATH_MAX], const char *name)
{
    const struct folder_results *r = (const struct folder_results *)results;
    snprintf(path, PATH_MAX, "%.*s/%.3s/%s", PATH_MAX - 128, r->folder, name, name);
}

static utter_status folder_place(
    struct results *results, const char *name, char path[PATH_MAX], utter_error *error)
{
    char folder[PATH_MAX];
    path_of(results, path, name);
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    if (mkdir(folder, 0777) == 0) {
        file_sync_entry(folder);
        return UTTER_OK;
    }
    return errno == EEXIST ? UTTER_OK : file_error(error, folder, "make", errno);
}

static utter_status folder_keep(
    struct results *results, const char *name, const char *path, utter_error *error)
{
    (void)results, (void)name, (void)path, (void)error; /* it was written where it stays */
    return UTTER_OK;
}

static utter_status folder_text(
    struct results *results, const char *name, char **text, size_t *bytes, utter_error *error)
{
    char path[PATH_MAX];
    path_of(results, path, name);
    if (access(path, F_OK) != 0) {
        return UTTER_AGAIN;
    }
    return file_read(path, MOST_TEXT, text, bytes, error);
}

static utter_status folder_check(
    struct results *results, const char *name, uint64_t bytes, const char *hash, utter_error *error)
{
    char path[PATH_MAX], is[IDENTITY_SIZE];
    struct stat about;
    path_of(results, path, name);
    if (stat(path, &about) != 0 || (uint64_t)about.st_size != bytes) {
        return UTTER_AGAIN;
    }
    utter_status status = hash ? result_hash(is, &bytes, path, error) : UTTER_OK;
    return status || !hash || strcmp(is, hash) == 0 ? status : UTTER_AGAIN;
}

static utter_status folder_drop(struct results *results, const char *name, utter_error *error)
{
    char path[PATH_MAX];
    path_of(results, path, name);
    return unlink(path) == 0 || errno == ENOENT ? UTTER_OK : file_error(error, path, "remove", errno);
}

static utter_status copy(const char *from, const char *to, utter_error *error)
{
    struct file_map map = {0};
    struct file_out *out;
    utter_status status = file_map_open(&map, from, error);
    if (status) {
        return status;
    }
    status = file_out_open(&out, to, error);
    if (status == UTTER_OK) {
        status = file_out_write(out, map.data, map.size, error);
        if (status) {
            file_out_abort(&out);
        } else {
            status = file_out_close(&out, error);
        }
    }
    file_map_close(&map);
    return status;
}

/* A second name of the same file, where both are on one disk. */
static utter_status folder_fetch(
    struct results *results, const char *name, const char *to, utter_error *error)
{
    char path[PATH_MAX];
    path_of(results, path, name);
    if (unlink(to) != 0 && errno != ENOENT) {
        return file_error(error, to, "replace", errno);
    }
    return link(path, to) == 0 ? UTTER_OK : copy(path, to, error);
}

static void folder_close(struct results *results)
{
    memory_free(results);
}

static const struct results_calls folder_calls = {folder_place, folder_keep, folder_text, folder_check,
    folder_drop, folder_fetch, NULL, NULL, folder_close};

utter_status results_folder_open(
    struct results **results, const char *folder, bool make, utter_error *error)
{
    if (!make && !file_is_folder(folder)) {
        return error_set(error, UTTER_E_FILE, "--results %s: there is no such folder", folder);
    }
    utter_status status = make ? file_make_folder(folder, error) : UTTER_OK;
    struct folder_results *r = status ? NULL : memory_new(1, sizeof *r);
    if (!r) {
        return status ? status : error_memory(error, "results");
    }
    r->base.calls = &folder_calls;
    snprintf(r->folder, sizeof r->folder, "%s", folder);
    *results = &r->base;
    return UTTER_OK;
}
