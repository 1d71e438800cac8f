/* SPDX-License-Identifier: Apache-2.0
 * Results in a store that speaks S3, in 4,096 folders as on a disk. A put is whole or not at all. What may be better
 * later is tried again, for some time. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "job/results.h"
#include "store/s3.h"

enum { MOST_TEXT = 1 << 28 };

/* What a list says of a line. The key's first digits stand for it: of ten million lines two have the same with a chance
 * of one in 400,000. */
struct listed {
    uint64_t key;
    uint32_t bytes; /* of the sound */
    bool has_text, has_sound;
};

struct s3_results {
    struct results base;
    struct s3_store *store;
    char folder[PATH_MAX]; /* of sounds on their way */
    int lock;              /* the folder, locked: its owner lives */
    struct listed *listed; /* [n_listed], by key, where is_listed: what was there then */
    size_t n_listed, room;
    bool is_listed, is_in_order;
};

static const char folder_begins[] = "utter-job-";
enum { LEFT_S = 60 };

static struct s3_results *of(struct results *results)
{
    return (struct s3_results *)results;
}

/* Until there is an answer that will stay. UTTER_AGAIN: there is no such object. `name`: of the result. */
static utter_status ask(
    struct s3_results *r, const char *name, struct s3_request *request, utter_error *error)
{
    char key[RESULT_NAME + 4];
    const struct results *base = &r->base;
    const bool keeps = request->method == S3_PUT && base->stop_keep;
    const struct s3_patience patience = {
        .stop = keeps ? base->stop_keep : base->stop, .away = base->away, .user = base->user};
    snprintf(key, sizeof key, "%.3s/%s", name, name);
    request->name = key;
    return s3_do(r->store, request, &patience, error);
}

static utter_status s3_place(
    struct results *results, const char *name, char path[PATH_MAX], utter_error *error)
{
    return file_join(path, PATH_MAX, of(results)->folder, name, error);
}

static utter_status put(struct results *results, const char *name, const char *path, utter_error *error)
{
    char hash[IDENTITY_SIZE];
    uint64_t bytes;
    utter_status status = result_hash(hash, &bytes, path, error);
    struct s3_request request = {.method = S3_PUT, .path = path, .bytes = bytes, .hash = hash};
    return status ? status : ask(of(results), name, &request, error);
}

static utter_status s3_keep(
    struct results *results, const char *name, const char *path, utter_error *error)
{
    utter_status status = put(results, name, path, error);
    unlink(path);
    return status;
}

static utter_status s3_fetch(
    struct results *results, const char *name, const char *path, utter_error *error)
{
    struct s3_request request = {.method = S3_GET, .path = path};
    return ask(of(results), name, &request, error);
}

/* ---- The list ---- */

static uint64_t digits_of(const char *name)
{
    char digits[17];
    snprintf(digits, sizeof digits, "%.16s", name);
    return strtoull(digits, NULL, 16);
}

static int compare(const void *a, const void *b)
{
    const struct listed *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

/* NULL: there is neither a text nor a sound. */
static const struct listed *find_listed(const struct s3_results *r, const char *name)
{
    const struct listed wanted = {.key = digits_of(name)};
    return r->n_listed ? bsearch(&wanted, r->listed, r->n_listed, sizeof wanted, compare) : NULL;
}

static void merge(struct listed *into, const struct listed *one)
{
    into->has_text |= one->has_text;
    into->has_sound |= one->has_sound;
    into->bytes = one->has_sound ? one->bytes : into->bytes;
}

/* abc/KEY.ENDING, and nothing else that may lie there. */
static bool is_result(const char *name)
{
    return strlen(name) > 4 + IDENTITY_SIZE && name[3] == '/' && memcmp(name, name + 4, 3) == 0 &&
           strspn(name + 4, "0123456789abcdef") == IDENTITY_SIZE - 1 &&
           name[4 + IDENTITY_SIZE - 1] == '.';
}

static utter_status add_name(
    void *user, const char *name, uint64_t bytes, const char *etag, utter_error *error)
{
    (void)etag;
    struct s3_results *r = user;
    if (!is_result(name)) {
        return UTTER_OK;
    }
    struct listed *last = r->n_listed ? &r->listed[r->n_listed - 1] : NULL;
    bool is_text = strcmp(name + 4 + IDENTITY_SIZE, "json") == 0;
    const struct listed one = {.key = digits_of(name + 4),
        .bytes = is_text ? 0 : (uint32_t)min(bytes, UINT32_MAX),
        .has_text = is_text,
        .has_sound = !is_text && bytes > 0};
    if (last && last->key == one.key) {
        merge(last, &one);
        return UTTER_OK;
    }
    r->is_in_order = r->is_in_order && (!last || last->key < one.key);
    if (r->n_listed == r->room) {
        size_t room = r->room + r->room / 2 + 1024;
        struct listed *grown = r->room ? memory_resize(r->listed, r->room, room, sizeof *grown)
                                       : memory_new(room, sizeof *grown);
        if (!grown) {
            return error_memory(error, "a list of results");
        }
        r->listed = grown;
        r->room = room;
    }
    r->listed[r->n_listed++] = one;
    return UTTER_OK;
}

/* Some stores keep no order. */
static void put_in_order(struct s3_results *r)
{
    size_t n = 0;
    qsort(r->listed, r->n_listed, sizeof *r->listed, compare);
    for (size_t i = 0; i < r->n_listed; i++) {
        if (n > 0 && r->listed[n - 1].key == r->listed[i].key) {
            merge(&r->listed[n - 1], &r->listed[i]);
        } else {
            r->listed[n++] = r->listed[i];
        }
    }
    r->n_listed = n;
}

/* A store may hold far more than is looked for: no more pages are asked for than lines would be. */
static utter_status s3_look_at_all(struct results *results, uint64_t n_lines, utter_error *error)
{
    struct s3_results *r = of(results);
    const struct s3_patience patience = {
        .stop = results->stop, .away = results->away, .user = results->user};
    r->n_listed = 0;
    r->is_in_order = true;
    utter_status status = s3_list(r->store, "", false, n_lines + 1, &patience, add_name, r, error);
    r->is_listed = status == UTTER_OK;
    if (r->is_listed && !r->is_in_order) {
        put_in_order(r);
    }
    return status == UTTER_END ? UTTER_OK : status;
}

static bool s3_is_believed(const struct results *results, const char *key)
{
    const struct s3_results *r = (const struct s3_results *)results;
    const struct listed *l = r->is_listed ? find_listed(r, key) : NULL;
    return l && l->has_text && l->has_sound;
}

/* A file of its own for each question, which several threads may ask. */
static utter_status fetch_own(
    struct s3_results *r, const char *name, char path[PATH_MAX], utter_error *error)
{
    snprintf(path, PATH_MAX, "%.*s/look-XXXXXX", PATH_MAX - 16, r->folder);
    int fd = mkstemp(path);
    if (fd < 0) {
        return file_error(error, path, "create", errno);
    }
    close(fd);
    utter_status status = s3_fetch(&r->base, name, path, error);
    if (status) {
        unlink(path);
    }
    return status;
}

static utter_status s3_text(
    struct results *results, const char *name, char **text, size_t *bytes, utter_error *error)
{
    char path[PATH_MAX];
    const struct s3_results *r = of(results);
    const struct listed *l = r->is_listed ? find_listed(r, name) : NULL;
    if (r->is_listed && !(l && l->has_text)) {
        return UTTER_AGAIN;
    }
    utter_status status = fetch_own(of(results), name, path, error);
    if (status == UTTER_OK) {
        status = file_read(path, MOST_TEXT, text, bytes, error);
        unlink(path);
    }
    return status;
}

static utter_status s3_check(
    struct results *results, const char *name, uint64_t bytes, const char *hash, utter_error *error)
{
    char path[PATH_MAX], is[IDENTITY_SIZE];
    struct s3_request request = {.method = S3_HEAD};
    const struct s3_results *r = of(results);
    const struct listed *l = r->is_listed ? find_listed(r, name) : NULL;
    utter_status status = UTTER_OK;
    if (r->is_listed) {
        request.bytes = l && l->has_sound ? l->bytes : 0;
    } else {
        status = ask(of(results), name, &request, error);
    }
    if (status || request.bytes != bytes || !hash) {
        return status ? status : request.bytes == bytes ? UTTER_OK : UTTER_AGAIN;
    }
    status = fetch_own(of(results), name, path, error);
    if (status == UTTER_OK) {
        status = result_hash(is, &bytes, path, error);
        unlink(path);
    }
    return status || strcmp(is, hash) == 0 ? status : UTTER_AGAIN;
}

static utter_status s3_drop(struct results *results, const char *name, utter_error *error)
{
    struct s3_request request = {.method = S3_DELETE};
    utter_status status = ask(of(results), name, &request, error);
    return status == UTTER_AGAIN ? UTTER_OK : status;
}

/* ---- The folder ---- */

static void remove_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        char path[PATH_MAX];
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            file_join(path, sizeof path, folder, entry->d_name, NULL) == UTTER_OK) {
            unlink(path);
        }
    }
    if (dir) {
        closedir(dir);
    }
    rmdir(folder);
}

/* What killed workers have left goes. */
static void sweep(const char *temporary)
{
    DIR *dir = opendir(temporary);
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        char path[PATH_MAX];
        struct stat about;
        if (strncmp(entry->d_name, folder_begins, sizeof folder_begins - 1) != 0 ||
            file_join(path, sizeof path, temporary, entry->d_name, NULL) != UTTER_OK) {
            continue;
        }
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && fstat(fd, &about) == 0 && about.st_uid == geteuid() &&
            time(NULL) - about.st_mtime > LEFT_S && flock(fd, LOCK_EX | LOCK_NB) == 0) {
            remove_folder(path);
        }
        if (fd >= 0) {
            close(fd);
        }
    }
    if (dir) {
        closedir(dir);
    }
}

static utter_status make_folder(struct s3_results *r, utter_error *error)
{
    const char *named = getenv("TMPDIR"), *temporary = named && named[0] ? named : "/tmp";
    sweep(temporary);
    snprintf(r->folder, sizeof r->folder, "%.3000s/%sXXXXXX", temporary, folder_begins);
    if (!mkdtemp(r->folder)) {
        utter_status status = file_error(error, r->folder, "make", errno);
        r->folder[0] = 0;
        return status;
    }
    r->lock = open(r->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r->lock >= 0) {
        (void)!flock(r->lock, LOCK_EX | LOCK_NB);
    }
    return UTTER_OK;
}

static void s3_close(struct results *results)
{
    struct s3_results *r = of(results);
    s3_store_close(r->store);
    if (r->folder[0]) {
        remove_folder(r->folder);
    }
    if (r->lock >= 0) {
        close(r->lock);
    }
    memory_free(r->listed);
    memory_free(r);
}

static const struct results_calls s3_calls = {
    s3_place, s3_keep, s3_text, s3_check, s3_drop, s3_fetch, s3_look_at_all, s3_is_believed, s3_close};

utter_status results_s3_open(struct results **results, const char *url, utter_error *error)
{
    struct s3_results *r = memory_new(1, sizeof *r);
    if (!r) {
        return error_memory(error, "results");
    }
    r->base.calls = &s3_calls;
    r->base.is_far = true;
    r->lock = -1;
    *results = &r->base;
    utter_status status = s3_store_open(&r->store, url, "--results", error);
    status = status ? status : make_folder(r, error);
    if (status) {
        results_close(results);
    }
    return status;
}
