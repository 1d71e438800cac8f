/* SPDX-License-Identifier: Apache-2.0
 * Beside each file NAME lies .NAME.etag, which says of which object it is, and of what size and age the file was then.
 * It is written behind the file: a file that has another one, or none, is fetched again. */
#include "store/mirror.h"

#include <dirent.h>
#include <limits.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "store/s3.h"

enum {
    MOST_NAMES = 1 << 14,
    NAME = 256,
    TRIES = 3,
    MOST_BYTES = 64 << 20, /* of a voice */
    TOLD = 4096,           /* of an .etag */
};
static const char voice_ending[] = ".voice", told_ending[] = ".json", etag_ending[] = ".etag";

struct mirror {
    struct s3_store *store;
    char folder[PATH_MAX];
    struct s3_patience patience;
};

/* Names, in the order in which they came. */
struct names {
    char (*names)[NAME];
    size_t n, room;
};

struct look {
    struct mirror *mirror;
    const char *stem; /* of one voice; NULL: all */
    struct names there;
    utter_error left_out; /* why an object does not come */
    mirror_changed_fn *changed;
    void *user;
};

static bool ends_with(const char *name, const char *ending)
{
    size_t n = strlen(name), m = strlen(ending);
    return n > m && strcmp(name + n - m, ending) == 0;
}

/* What is a voice's, and lies in no folder further down. */
static bool is_ours(const char *name)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t n = strlen(name);
    return name[0] != '.' && n < NAME - sizeof etag_ending - 1 && strspn(name, plain) == n &&
           (ends_with(name, voice_ending) || ends_with(name, told_ending));
}

/* STEM.voice, STEM.json, STEM.0123456789abcdef.json. */
static bool is_of(const char *name, const char *stem)
{
    enum { DIGITS = 16 };
    size_t n = strlen(stem);
    if (!is_ours(name) || strncmp(name, stem, n) != 0 || name[n] != '.') {
        return false;
    }
    const char *rest = name + n;
    if (strspn(rest + 1, "0123456789abcdef") == DIGITS) {
        rest += 1 + DIGITS;
    }
    return strcmp(rest, told_ending) == 0 || strcmp(name + n, voice_ending) == 0;
}

static bool is_wanted(const char *name, const char *stem)
{
    return stem ? is_of(name, stem) : is_ours(name);
}

static utter_status names_add(struct names *all, const char *name, utter_error *error)
{
    if (all->n == MOST_NAMES) {
        return error_set(error, UTTER_E_FILE, "there are more than %d files of voices", MOST_NAMES);
    }
    if (all->n == all->room) {
        size_t room = all->room ? 2 * all->room : 64;
        char(*grown)[NAME] = all->room ? memory_resize(all->names, all->room, room, sizeof *grown)
                                       : memory_new(room, sizeof *grown);
        if (!grown) {
            return error_memory(error, "a list of voices");
        }
        all->names = grown;
        all->room = room;
    }
    snprintf(all->names[all->n++], NAME, "%s", name);
    return UTTER_OK;
}

static bool names_have(const struct names *all, const char *name)
{
    for (size_t i = 0; i < all->n; i++) {
        if (strcmp(all->names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* The files of a voice (NULL: of all); `etags`: instead of them, those that an .etag tells of, be they there or not. */
static utter_status list_folder(
    const char *path, const char *stem, bool etags, struct names *all, utter_error *error)
{
    utter_status status = UTTER_OK;
    DIR *folder = opendir(path);
    for (const struct dirent *file; folder && status == UTTER_OK && (file = readdir(folder));) {
        char name[sizeof file->d_name];
        size_t n = strlen(file->d_name);
        snprintf(name, sizeof name, "%s", file->d_name);
        if (etags && name[0] == '.' && ends_with(name, etag_ending)) {
            snprintf(name, sizeof name, "%.*s", (int)(n - sizeof etag_ending), file->d_name + 1);
        } else if (etags) {
            continue;
        }
        status =
            is_wanted(name, stem) && !names_have(all, name) ? names_add(all, name, error) : UTTER_OK;
    }
    if (folder) {
        closedir(folder);
    }
    return status;
}

static void path_of(const struct mirror *m, char path[PATH_MAX], const char *name)
{
    snprintf(path, PATH_MAX, "%.*s/%s", PATH_MAX - NAME - 1, m->folder, name);
}

static void etag_path(const struct mirror *m, char path[PATH_MAX], const char *name)
{
    snprintf(path, PATH_MAX, "%.*s/.%s%s", PATH_MAX - NAME - 1, m->folder, name, etag_ending);
}

/* ---- What others have done ---- */

/* What .NAME.etag has to say of the file as it is now; false: there is no file. */
static bool tell_file(
    const struct mirror *m, char *out, size_t size, const char *name, const char *etag)
{
    char path[PATH_MAX];
    struct stat about;
    path_of(m, path, name);
    if (stat(path, &about) != 0) {
        return false;
    }
    snprintf(out, size, "%lld %lld.%09ld %s", (long long)about.st_size, (long long)about.st_mtim.tv_sec,
        about.st_mtim.tv_nsec, etag);
    return true;
}

static bool is_known(const struct mirror *m, const char *name, const char *etag)
{
    char path[PATH_MAX], now[TOLD], *text = NULL;
    size_t bytes;
    etag_path(m, path, name);
    bool is_same = tell_file(m, now, sizeof now, name, etag) && file_exists(path) &&
                   file_read(path, TOLD, &text, &bytes, NULL) == UTTER_OK && strcmp(text, now) == 0;
    memory_free(text);
    return is_same;
}

static utter_status write_etag(
    const struct mirror *m, const char *name, const char *etag, utter_error *error)
{
    char path[PATH_MAX], text[TOLD];
    struct file_out *out;
    if (!tell_file(m, text, sizeof text, name, etag)) {
        return UTTER_OK; /* removed meanwhile, by another that has this folder */
    }
    etag_path(m, path, name);
    utter_status status = file_out_open(&out, path, error);
    if (status) {
        return status;
    }
    status = file_out_write(out, text, strlen(text), error);
    if (status) {
        file_out_abort(&out);
        return status;
    }
    return file_out_close(&out, error);
}

static void remove_file(const struct mirror *m, const char *name)
{
    char path[PATH_MAX];
    path_of(m, path, name);
    unlink(path);
    file_sync_entry(path);
    etag_path(m, path, name);
    unlink(path);
}

/* An object of the list: fetched where the folder has another one, or none. */
static utter_status take_name(
    void *user, const char *name, uint64_t bytes, const char *etag, utter_error *error)
{
    struct look *look = user;
    struct mirror *m = look->mirror;
    char path[PATH_MAX];
    if (!is_wanted(name, look->stem)) {
        return UTTER_OK;
    }
    utter_status status = names_add(&look->there, name, error);
    if (status || is_known(m, name, etag)) {
        return status;
    }
    if (bytes > MOST_BYTES) {
        error_set(
            &look->left_out, UTTER_E_FILE, "%s: more than %d MiB are no voice", name, MOST_BYTES >> 20);
        return UTTER_OK;
    }
    path_of(m, path, name);
    struct s3_request request = {.method = S3_GET, .name = name, .path = path};
    status = s3_do(m->store, &request, &m->patience, error);
    if (status == UTTER_OK) {
        status = write_etag(m, name, etag, error);
        look->changed(look->user, name);
    } else if (request.is_refused && error) { /* others may come */
        look->left_out = *error;
    }
    /* UTTER_AGAIN: removed meanwhile, which the next look sees. */
    return status == UTTER_AGAIN || request.is_refused ? UTTER_OK : status;
}

/* The folder becomes what the store has, of one voice or of all. */
static utter_status follow(struct look *look, utter_error *error)
{
    struct mirror *m = look->mirror;
    struct names here = {0};
    char below[NAME] = "";
    if (look->stem) {
        snprintf(below, sizeof below, "%s.", look->stem);
    }
    utter_status status =
        s3_list(m->store, below, true, MOST_NAMES, &m->patience, take_name, look, error);
    if (status == UTTER_END) {
        status =
            error_set(error, UTTER_E_FILE, "the store has too many objects below the voices' prefix");
    }
    status = status ? status : list_folder(m->folder, look->stem, false, &here, error);
    status = status ? status : list_folder(m->folder, look->stem, true, &here, error);
    for (size_t i = 0; i < here.n && status == UTTER_OK; i++) {
        if (!names_have(&look->there, here.names[i])) {
            remove_file(m, here.names[i]);
            look->changed(look->user, here.names[i]);
        }
    }
    memory_free(look->there.names);
    memory_free(here.names);
    return status;
}

utter_status mirror_look(struct mirror *m, mirror_changed_fn *changed, void *user, utter_error *error)
{
    struct look look = {.mirror = m, .changed = changed, .user = user};
    utter_status status = follow(&look, error);
    if (status == UTTER_OK && error) {
        *error = look.left_out;
    }
    return status;
}

/* ---- What is done here ---- */

utter_status mirror_hash(char hash[MIRROR_HASH], uint64_t *bytes, const char *path, utter_error *error)
{
    struct file_map map = {0};
    struct sha256_ctx sha;
    uint8_t digest[SHA256_DIGEST_SIZE];
    utter_status status = file_map_open(&map, path, error);
    if (status) {
        return status;
    }
    *bytes = map.size;
    sha256_init(&sha);
    sha256_update(&sha, map.size, map.data);
    sha256_digest(&sha, sizeof digest, digest);
    file_map_close(&map);
    for (size_t i = 0; i < sizeof digest; i++) {
        snprintf(hash + 2 * i, 3, "%02x", digest[i]);
    }
    return UTTER_OK;
}

static utter_status put_file(struct mirror *m, const char *from, const char *name, utter_error *error)
{
    char path[PATH_MAX], hash[MIRROR_HASH];
    uint64_t bytes = 0;
    utter_status status = file_join(path, sizeof path, from, name, error);
    status = status ? status : mirror_hash(hash, &bytes, path, error);
    struct s3_request request = {
        .method = S3_PUT, .name = name, .path = path, .bytes = bytes, .hash = hash};
    return status ? status : s3_do(m->store, &request, &m->patience, error);
}

static utter_status remove_object(struct mirror *m, const char *name, utter_error *error)
{
    struct s3_request request = {.method = S3_DELETE, .name = name};
    utter_status status = s3_do(m->store, &request, &m->patience, error);
    return status == UTTER_AGAIN ? UTTER_OK : status;
}

static utter_status note_name(
    void *user, const char *name, uint64_t bytes, const char *etag, utter_error *error)
{
    (void)bytes, (void)etag;
    return names_add(user, name, error);
}

/* The names of a voice's objects. */
static utter_status list_objects(
    struct mirror *m, const char *stem, struct names *all, utter_error *error)
{
    char below[NAME];
    snprintf(below, sizeof below, "%s.", stem);
    return s3_list(m->store, below, true, MOST_NAMES, &m->patience, note_name, all, error);
}

/* The voice, or what is told of it. */
static utter_status put_files(
    struct mirror *m, const char *from, const struct names *given, bool voices, utter_error *error)
{
    utter_status status = UTTER_OK;
    for (size_t i = 0; i < given->n && status == UTTER_OK; i++) {
        bool wanted = ends_with(given->names[i], voice_ending) == voices;
        status = wanted ? put_file(m, from, given->names[i], error) : UTTER_OK;
    }
    return status;
}

static void ignore_changed(void *user, const char *name)
{
    (void)user, (void)name; /* who has put it knows */
}

utter_status mirror_put(struct mirror *m, const char *from, const char *stem, utter_error *error)
{
    struct look look = {.mirror = m, .stem = stem, .changed = ignore_changed};
    struct names given = {0}, there = {0};
    utter_status status = list_folder(from, stem, false, &given, error);
    status = status ? status : put_files(m, from, &given, false, error);
    status = status ? status : put_files(m, from, &given, true, error);
    /* What was said of the voice that was there before. */
    status = status ? status : list_objects(m, stem, &there, error);
    for (size_t i = 0; i < there.n && status == UTTER_OK; i++) {
        bool old = is_of(there.names[i], stem) && !names_have(&given, there.names[i]);
        status = old ? remove_object(m, there.names[i], error) : UTTER_OK;
    }
    memory_free(given.names);
    memory_free(there.names);
    return status ? status : follow(&look, error);
}

/* They go here only. */
static void forget(struct mirror *m, const char *stem)
{
    struct names here = {0};
    list_folder(m->folder, stem, false, &here, NULL);
    list_folder(m->folder, stem, true, &here, NULL);
    for (size_t i = 0; i < here.n; i++) {
        remove_file(m, here.names[i]);
    }
    memory_free(here.names);
}

utter_status mirror_drop(struct mirror *m, const char *stem, utter_error *error)
{
    char voice[NAME + sizeof voice_ending];
    struct names there = {0};
    snprintf(voice, sizeof voice, "%s%s", stem, voice_ending);
    utter_status status = remove_object(m, voice, error);
    status = status ? status : list_objects(m, stem, &there, error);
    for (size_t i = 0; i < there.n && status == UTTER_OK; i++) {
        status = is_of(there.names[i], stem) ? remove_object(m, there.names[i], error) : UTTER_OK;
    }
    memory_free(there.names);
    if (status == UTTER_OK) {
        forget(m, stem);
    }
    return status;
}

/* ---- Life ---- */

utter_status mirror_open(
    struct mirror **mirror, const char *url, const char *option, const char *cache, utter_error *error)
{
    struct mirror *m = memory_new(1, sizeof *m);
    *mirror = NULL;
    if (!m) {
        return error_memory(error, "a copy of a store");
    }
    m->patience.tries = TRIES;
    utter_status status = s3_store_open(&m->store, url, option, error);
    if (status == UTTER_OK) {
        size_t n = (size_t)snprintf(m->folder, sizeof m->folder, "%.2000s/voices/", cache);
        snprintf(m->folder + n, sizeof m->folder - n, "%s", url + strlen("s3://"));
        for (char *c = m->folder + n; *c; c++) {
            *c = *c == '/' ? '+' : *c; /* which no bucket and no prefix has */
        }
        status = file_make_folder(m->folder, error);
    }
    if (status) {
        mirror_close(m);
        return status;
    }
    file_out_sweep(m->folder);
    *mirror = m;
    return UTTER_OK;
}

void mirror_close(struct mirror *m)
{
    if (m) {
        s3_store_close(m->store);
    }
    memory_free(m);
}

const char *mirror_folder(const struct mirror *m)
{
    return m->folder;
}

void mirror_stop_by(struct mirror *m, bool (*stop)(void))
{
    m->patience.stop = stop;
}
