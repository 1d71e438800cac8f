/* SPDX-License-Identifier: Apache-2.0
 * Downloads a repository: its list, then file after file into blobs/HASH.incomplete, which becomes blobs/HASH when the
 * hash agrees; then the links of the snapshot, and at last refs/main. Whatever ends the program between two steps, the
 * next run goes on from there. */
#include "cli/model/hub.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <nettle/sha1.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "cli/model/hub_place.h"
#include "cli/model/transfer.h"

enum { MOST_PATH = 4096, MOST_FILES = 256, MOST_TRIES = 5, LIST_LIMIT = 4 << 20, HASH_HEX = 64 };

struct part {
    char path[256];          /* in the repository */
    char hash[HASH_HEX + 1]; /* SHA-256 of a large file, SHA-1 of others as git has it */
    bool sha256;
    uint64_t bytes;
};

struct pull {
    const char *repository;
    char folder[MOST_PATH]; /* of the repository in the cache */
    char revision[HASH_HEX + 1];
    struct part *parts;
    size_t n_parts;
    struct transfer *transfer;
    hub_progress *progress;
    void *user;
    const char *now; /* the file that is read */
    uint64_t all, done;
};

static bool go_on(void *user)
{
    struct pull *p = user;
    return p->progress(p->user, p->now, p->done, p->all);
}

/* ---- The list of files ---- */

struct text {
    char *data;
    size_t n;
};

static utter_status take_text(void *user, const void *data, size_t bytes, utter_error *error)
{
    struct text *text = user;
    char *grown = text->n + bytes <= LIST_LIMIT ? realloc(text->data, text->n + bytes + 1) : NULL;
    if (!grown) {
        return error_set(error, UTTER_E_FILE, "the list of files is too long");
    }
    memcpy(grown + text->n, data, bytes);
    text->data = grown;
    text->n += bytes;
    return UTTER_OK;
}

/* A failure that may pass has lasted for all tries. */
static utter_status end_tries(utter_status status)
{
    return status == UTTER_AGAIN ? UTTER_E_DEVICE : status;
}

/* What the hub's interface says of something, as JSON; the caller's. */
static utter_status ask(struct pull *p, json_t **root, const char *what, utter_error *error)
{
    char url[MOST_PATH];
    struct text text = {0};
    uint64_t from = 0;
    utter_status status = UTTER_AGAIN;
    *root = NULL;
    snprintf(url, sizeof url, "%s/api/models/%s/%s", hub_address(), p->repository, what);
    for (int i = 0; i < MOST_TRIES && status == UTTER_AGAIN; i++) {
        sleep(i > 0 ? 1 : 0);
        text.n = 0;
        status = transfer_get(p->transfer, url, &from, take_text, &text, error);
    }
    if (status == UTTER_OK) {
        *root = text.data ? json_loadb(text.data, text.n, JSON_REJECT_DUPLICATES, NULL) : NULL;
        status = *root ? UTTER_OK : error_set(error, UTTER_E_FILE, "%s: the answer is no JSON", url);
    }
    free(text.data);
    return end_tries(status);
}

static bool is_hash(const char *text, size_t digits)
{
    return text && strlen(text) == digits && strspn(text, "0123456789abcdef") == digits;
}

static bool ends(const char *path, const char *with)
{
    size_t n = strlen(path), m = strlen(with);
    return n > m && strcmp(path + n - m, with) == 0;
}

/* Whether a model needs the file, and its path stays in the snapshot. */
static bool is_wanted(const char *path)
{
    bool safe = path[0] != '/' && path[0] != '.' && !strstr(path, "/.") && !strstr(path, "//") &&
                strlen(path) < sizeof((struct part *)0)->path;
    return safe && (ends(path, ".json") || ends(path, ".txt") || ends(path, ".safetensors"));
}

static utter_status take_entry(struct pull *p, const json_t *entry, utter_error *error)
{
    const char *type = json_string_value(json_object_get(entry, "type"));
    const char *path = json_string_value(json_object_get(entry, "path"));
    const json_t *large = json_object_get(entry, "lfs");
    const char *hash = json_string_value(json_object_get(large ? large : entry, "oid"));
    json_int_t bytes = json_integer_value(json_object_get(large ? large : entry, "size"));
    if (!type || strcmp(type, "file") != 0 || !path || !is_wanted(path)) {
        return UTTER_OK;
    }
    if (!is_hash(hash, large ? 64 : 40) || bytes < 0 || p->n_parts == MOST_FILES) {
        return error_set(
            error, UTTER_E_FILE, "%s: the hub's list has no size or hash for %s", p->repository, path);
    }
    struct part *part = &p->parts[p->n_parts++];
    *part = (struct part){.sha256 = large != NULL, .bytes = (uint64_t)bytes};
    snprintf(part->path, sizeof part->path, "%s", path);
    snprintf(part->hash, sizeof part->hash, "%s", hash);
    p->all += part->bytes;
    return UTTER_OK;
}

static utter_status list_files(struct pull *p, utter_error *error)
{
    char what[MOST_PATH];
    json_t *root = NULL;
    utter_status status = ask(p, &root, "revision/main", error);
    const char *commit = json_string_value(json_object_get(root, "sha"));
    if (!status && !is_hash(commit, 40)) {
        status = error_set(error, UTTER_E_FILE, "%s: the hub names no revision", p->repository);
    }
    if (!status) {
        snprintf(p->revision, sizeof p->revision, "%s", commit);
        snprintf(what, sizeof what, "tree/%s?recursive=true", commit);
    }
    json_decref(root);
    root = NULL;
    if (status || (status = ask(p, &root, what, error))) {
        return status;
    }
    size_t i;
    const json_t *entry;
    json_array_foreach(root, i, entry)
    {
        status = status ? status : take_entry(p, entry, error);
    }
    json_decref(root);
    return status || p->n_parts > 0
               ? status
               : error_set(error, UTTER_E_FILE, "%s: has no files of a model", p->repository);
}

/* ---- One file ---- */

/* The hash of what was written so far. */
struct digest {
    bool sha256;
    struct sha256_ctx large;
    struct sha1_ctx small;
};

static void digest_begin(struct digest *d, const struct part *part)
{
    char head[64];
    d->sha256 = part->sha256;
    sha256_init(&d->large);
    sha1_init(&d->small);
    int n = snprintf(head, sizeof head, "blob %llu", (unsigned long long)part->bytes);
    sha1_update(&d->small, (size_t)n + 1, (const uint8_t *)head);
}

static void digest_add(struct digest *d, const void *data, size_t bytes)
{
    if (d->sha256) {
        sha256_update(&d->large, bytes, data);
    } else {
        sha1_update(&d->small, bytes, data);
    }
}

static bool digest_is(struct digest *d, const char *hash)
{
    uint8_t raw[SHA256_DIGEST_SIZE];
    char hex[HASH_HEX + 1] = "";
    size_t n = d->sha256 ? SHA256_DIGEST_SIZE : SHA1_DIGEST_SIZE;
    if (d->sha256) {
        sha256_digest(&d->large, n, raw);
    } else {
        sha1_digest(&d->small, n, raw);
    }
    for (size_t i = 0; i < n; i++) {
        snprintf(hex + 2 * i, 3, "%02x", raw[i]);
    }
    return strcmp(hex, hash) == 0;
}

struct writing {
    struct pull *pull;
    const struct part *part;
    const char *path;
    int descriptor;
    uint64_t at;    /* how many bytes are there */
    uint64_t asked; /* where the server was asked to begin */
    uint64_t from;  /* where it does */
    struct digest digest;
};

static utter_status restart(struct writing *w, utter_error *error)
{
    w->pull->done -= w->at;
    w->at = w->asked = w->from = 0;
    digest_begin(&w->digest, w->part);
    return ftruncate(w->descriptor, 0) == 0 && lseek(w->descriptor, 0, SEEK_SET) == 0
               ? UTTER_OK
               : file_error(error, w->path, "write", errno);
}

static utter_status take_bytes(void *user, const void *data, size_t bytes, utter_error *error)
{
    struct writing *w = user;
    if (w->asked > 0 && w->from == 0) { /* the server begins anew */
        utter_status status = restart(w, error);
        if (status) {
            return status;
        }
    }
    if (w->at + bytes > w->part->bytes) {
        return error_set(
            error, UTTER_E_FILE, "%s: the server sends more than the hub's list says", w->part->path);
    }
    const char *at = data;
    for (size_t left = bytes; left > 0;) {
        ssize_t n = write(w->descriptor, at, left);
        if (n < 0 && errno != EINTR) {
            return file_error(error, w->path, "write", errno);
        }
        at += n > 0 ? n : 0;
        left -= n > 0 ? (size_t)n : 0;
    }
    digest_add(&w->digest, data, bytes);
    w->at += bytes;
    w->pull->done += bytes;
    return UTTER_OK;
}

/* Hashes and counts what an earlier run has left: the download goes on behind it. */
static utter_status take_up(struct writing *w, utter_error *error)
{
    static char piece[1 << 16];
    ssize_t n;
    digest_begin(&w->digest, w->part);
    while ((n = read(w->descriptor, piece, sizeof piece)) > 0 && w->at + (size_t)n <= w->part->bytes) {
        digest_add(&w->digest, piece, (size_t)n);
        w->at += (size_t)n;
        w->pull->done += (size_t)n;
        if (!go_on(w->pull)) {
            return error_set(error, UTTER_E_CANCELLED, "interrupted");
        }
    }
    return n < 0 ? file_error(error, w->path, "read", errno) : n > 0 ? restart(w, error) : UTTER_OK;
}

/* Until the file is whole; a try that brought something does not count. */
static utter_status fill(struct writing *w, utter_error *error)
{
    char url[MOST_PATH];
    const struct pull *p = w->pull;
    snprintf(url, sizeof url, "%s/%s/resolve/%s/%s", hub_address(), p->repository, p->revision,
        w->part->path);
    utter_status status = UTTER_OK;
    for (int tries = 0; w->at < w->part->bytes && tries < MOST_TRIES; tries++) {
        sleep(tries > 0 ? 1 : 0);
        uint64_t before = w->at;
        w->asked = w->from = w->at;
        status = transfer_get(p->transfer, url, &w->from, take_bytes, w, error);
        if (status != UTTER_OK && status != UTTER_AGAIN) {
            return status;
        }
        tries = w->at > before ? -1 : tries;
    }
    if (w->at == w->part->bytes) {
        return UTTER_OK;
    }
    return status
               ? UTTER_E_DEVICE
               : error_set(error, UTTER_E_DEVICE, "%s: the server ends it early, again and again", url);
}

static utter_status finish(struct writing *w, const char *blob, utter_error *error)
{
    if (!digest_is(&w->digest, w->part->hash)) {
        unlink(w->path);
        return error_set(error, UTTER_E_FILE,
            "%s: what came is not what the hub's list says: its hash is wrong (it was "
            "removed; run it again)",
            w->part->path);
    }
    if (fsync(w->descriptor) != 0 || rename(w->path, blob) != 0) {
        return file_error(error, blob, "write", errno);
    }
    return UTTER_OK;
}

static utter_status get_part(struct pull *p, const struct part *part, utter_error *error)
{
    char blob[MOST_PATH + 96], path[MOST_PATH + 128];
    struct stat about;
    snprintf(blob, sizeof blob, "%s/blobs/%s", p->folder, part->hash);
    snprintf(path, sizeof path, "%s.incomplete", blob);
    p->now = part->path;
    if (stat(blob, &about) == 0 && (uint64_t)about.st_size == part->bytes) {
        p->done += part->bytes;
        return UTTER_OK;
    }
    struct writing w = {.pull = p, .part = part, .path = path};
    w.descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (w.descriptor < 0) {
        return file_error(error, path, "write", errno);
    }
    utter_status status =
        flock(w.descriptor, LOCK_EX | LOCK_NB) == 0
            ? take_up(&w, error)
            : error_set(error, UTTER_E_FILE, "%s: another program downloads it now", part->path);
    if (!status && !(status = fill(&w, error))) {
        status = finish(&w, blob, error);
    }
    close(w.descriptor);
    return status;
}

/* ---- The snapshot ---- */

static utter_status make_folders(char *path, utter_error *error)
{
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        bool made = mkdir(path, 0755) == 0 || errno == EEXIST;
        int reason = errno;
        utter_status status = made ? UTTER_OK : file_error(error, path, "make the folder", reason);
        *slash = '/';
        if (status) {
            return status;
        }
    }
    return UTTER_OK;
}

static utter_status link_part(struct pull *p, const struct part *part, utter_error *error)
{
    char path[MOST_PATH + 512], target[512] = "../../";
    snprintf(path, sizeof path, "%s/snapshots/%s/%s", p->folder, p->revision, part->path);
    for (const char *slash = part->path; (slash = strchr(slash, '/')); slash++) {
        size_t n = strlen(target);
        snprintf(target + n, sizeof target - n, "../");
    }
    size_t n = strlen(target);
    snprintf(target + n, sizeof target - n, "blobs/%s", part->hash);
    utter_status status = make_folders(path, error);
    unlink(path);
    return status                       ? status
           : symlink(target, path) == 0 ? UTTER_OK
                                        : file_error(error, path, "make the link", errno);
}

static utter_status write_reference(const struct pull *p, utter_error *error)
{
    char path[MOST_PATH + 512];
    struct file_out *out = NULL;
    snprintf(path, sizeof path, "%s/refs/main", p->folder);
    utter_status status = make_folders(path, error);
    if (status || (status = file_out_open(&out, path, error)) ||
        (status = file_out_write(out, p->revision, strlen(p->revision), error))) {
        file_out_abort(&out);
        return status;
    }
    return file_out_close(&out, error);
}

static utter_status check_room(const struct pull *p, utter_error *error)
{
    struct statvfs about;
    struct stat blob;
    char path[MOST_PATH + 96];
    uint64_t wanted = p->all;
    for (size_t i = 0; i < p->n_parts; i++) {
        static const char *const ends_of[] = {"", ".incomplete"};
        for (size_t k = 0; k < 2; k++) {
            snprintf(path, sizeof path, "%s/blobs/%s%s", p->folder, p->parts[i].hash, ends_of[k]);
            if (stat(path, &blob) == 0 && (uint64_t)blob.st_size <= p->parts[i].bytes) {
                wanted -= (uint64_t)blob.st_size;
                break;
            }
        }
    }
    if (statvfs(p->folder, &about) == 0 && (uint64_t)about.f_bavail * about.f_frsize < wanted) {
        return error_set(error, UTTER_E_IO,
            "%s: %.1f MB are to come and %.1f MB are free (HF_HUB_CACHE names another folder)",
            p->folder, 1e-6 * (double)wanted, 1e-6 * (double)about.f_bavail * (double)about.f_frsize);
    }
    return UTTER_OK;
}

static utter_status pull_all(struct pull *p, utter_error *error)
{
    char blobs[MOST_PATH + 8];
    utter_status status = list_files(p, error);
    snprintf(blobs, sizeof blobs, "%s/blobs/", p->folder);
    if (status || (status = make_folders(blobs, error)) || (status = check_room(p, error))) {
        return status;
    }
    for (size_t i = 0; i < p->n_parts && !status; i++) {
        status = get_part(p, &p->parts[i], error);
    }
    for (size_t i = 0; i < p->n_parts && !status; i++) {
        status = link_part(p, &p->parts[i], error);
    }
    return status ? status : write_reference(p, error);
}

utter_status hub_pull(const char *repository, const char *cache, hub_progress *progress, void *user,
    uint64_t *bytes, utter_error *error)
{
    struct pull p = {.repository = repository, .progress = progress, .user = user, .now = "the list"};
    const char *slash = strchr(repository, '/');
    if (snprintf(p.folder, sizeof p.folder, "%s/models--%.*s--%s", cache, (int)(slash - repository),
            repository, slash + 1) >= (int)sizeof p.folder - 512) {
        return error_set(error, UTTER_E_ARGUMENT, "%s: the path is too long", cache);
    }
    p.parts = calloc(MOST_FILES, sizeof *p.parts);
    utter_status status = p.parts ? transfer_open(&p.transfer, hub_token(), go_on, &p, error)
                                  : error_memory(error, "list of files");
    if (!status) {
        status = pull_all(&p, error);
    }
    *bytes = p.all;
    transfer_close(&p.transfer);
    free(p.parts);
    return status;
}
