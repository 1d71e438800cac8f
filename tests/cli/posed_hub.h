/* SPDX-License-Identifier: Apache-2.0
 * A hub that a thread poses, with one repository, and who pulls it into a cache: for tests of what is pulled, and of
 * what fails. Waits take no time, and the room of the disk is posed. */
#ifndef TESTS_CLI_POSED_HUB_H
#define TESTS_CLI_POSED_HUB_H

#include "cli/model/hub.h"

#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "tests/cli/posed_server.h"
#include "utter.h"

#define COMMIT "c0ffee0000000000000000000000000000000000"
#define WEIGHTS "weights, weights, weights, and weights again"

/* The hashes are git's, of `git hash-object`, and that of sha256sum. */
static const struct file {
    const char *path, *data, *hash;
} files[] = {
    {"config.json", "{}", "9e26dfeeb6e641a33dae4961196235bdb965b21b"},
    {"model.safetensors", WEIGHTS, "df9d8e42e0ef6d161127b3dfc021c7aebbe2f173afe76a417e896efdcd4187ff"},
    {"speech_tokenizer/deep/config.json", "{\"a\":1}", "daa5053ecf5f9a37b2de733d0751cc1ab53ac010"},
    {"merges.txt", "one\ntwo\n", "814f4a422927b82f5f8a43f8fab6d3839e3983f2"},
};
enum { N_FILES = sizeof files / sizeof *files, MODEL = 1, ALL_BYTES = 2 + 44 + 7 + 8 };

/* ---- The hub ---- */

static struct {
    pthread_mutex_t lock;        /* of what follows */
    int cut_list;                /* answers, of the first that are asked for, that end early */
    int n_busy;                  /* answers, of the first that are asked for, that say so */
    const char *revision, *list; /* answers in place of the usual ones, or NULL */
    size_t list_bytes;
    const char *sends; /* in place of the weights */
    size_t cut;        /* of the weights so many bytes are sent, though more are promised; 0: all */
    bool from_the_start;
    char asked[32][256]; /* path and range of each request */
    int n_asked;
} hub = {.lock = PTHREAD_MUTEX_INITIALIZER};

static char sent[5 << 20];

static inline size_t put_answer(const char *status, const char *text, size_t bytes, size_t promised)
{
    size_t head = (size_t)snprintf(sent, sizeof sent,
        "HTTP/1.1 %s\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n", status, promised);
    assert_true(head + bytes <= sizeof sent);
    memcpy(sent + head, text, bytes);
    return head + bytes;
}

static inline size_t put_text(const char *text)
{
    return put_answer("200 OK", text, strlen(text), strlen(text));
}

static inline size_t put_list(void)
{
    char list[4096] = "[{\"type\":\"directory\",\"path\":\"a.json\",\"size\":0,\"oid\":\"\"}";
    static const char *const left_out[] = {"README.md", "../escape.json", "/escape.json",
        ".hidden.json", "a/.hidden.json", "a//b.json", ".json", "model.bin"};
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++) {
        size_t n = strlen(list);
        snprintf(list + n, sizeof list - n,
            ",{\"type\":\"file\",\"path\":\"%s\",\"size\":1,\"oid\":\"\"}", left_out[i]);
    }
    for (size_t i = 0; i < N_FILES; i++) {
        size_t n = strlen(list), bytes = strlen(files[i].data);
        bool large = strlen(files[i].hash) == 64;
        snprintf(list + n, sizeof list - n,
            large ? ",{\"type\":\"file\",\"path\":\"%s\",\"size\":3,\"oid\":\"3\",\"lfs\":{\"size\":%"
                    "zu,\"oid\":\"%s\"}}"
                  : ",{\"type\":\"file\",\"path\":\"%s\",\"size\":%zu,\"oid\":\"%s\"}",
            files[i].path, bytes, files[i].hash);
    }
    strcat(list, "]");
    return put_text(list);
}

static inline size_t put_file(const struct file *file, const char *range)
{
    const char *data = file == &files[MODEL] && hub.sends ? hub.sends : file->data;
    size_t from = range && !hub.from_the_start ? strtoul(range, NULL, 10) : 0;
    size_t n = strlen(data) - from,
           first = file == &files[MODEL] && hub.cut && hub.cut < n ? hub.cut : n;
    return put_answer(from ? "206 Partial Content" : "200 OK", data + from, first, n);
}

static inline const char *answer(const char *request, size_t *bytes)
{
    char path[128] = "";
    const char *range = strstr(request, "Range: bytes=");
    range = range ? range + 13 : NULL;
    sscanf(request, "GET %127s", path);
    pthread_mutex_lock(&hub.lock);
    snprintf(hub.asked[hub.n_asked++ % 32], sizeof *hub.asked, "%s%s%.*s", path, range ? " " : "",
        range ? (int)strcspn(range, "\r") : 0, range ? range : "");
    *bytes = put_answer("404 Not Found", "", 0, 0);
    if (hub.n_asked <= hub.n_busy) {
        *bytes = put_answer("503 Service Unavailable", "", 0, 0);
        pthread_mutex_unlock(&hub.lock);
        return sent;
    }
    if (hub.n_asked <= hub.cut_list) {
        *bytes = put_answer("200 OK", "{\"sha\"", 6, 100);
        pthread_mutex_unlock(&hub.lock);
        return sent;
    }
    if (strcmp(path, "/api/models/me/mine/revision/main") == 0) {
        *bytes = put_text(hub.revision ? hub.revision : "{\"sha\":\"" COMMIT "\"}");
    } else if (strcmp(path, "/api/models/me/mine/tree/" COMMIT "?recursive=true") == 0) {
        *bytes = hub.list ? put_answer("200 OK", hub.list, hub.list_bytes, hub.list_bytes) : put_list();
    }
    for (size_t i = 0; i < N_FILES; i++) {
        char wanted[128];
        snprintf(wanted, sizeof wanted, "/me/mine/resolve/" COMMIT "/%s", files[i].path);
        if (strcmp(path, wanted) == 0) {
            *bytes = put_file(&files[i], range);
        }
    }
    pthread_mutex_unlock(&hub.lock);
    return sent;
}

/* ---- The machine ---- */

static int seconds_slept;

unsigned sleep(unsigned seconds)
{
    seconds_slept += (int)seconds;
    return 0;
}

static unsigned long blocks_free = 1000;

int statvfs(const char *path, struct statvfs *about)
{
    assert_string_equal(path, support_path("cache/models--me--mine"));
    *about = (struct statvfs){.f_frsize = 2, .f_bsize = 4096, .f_bavail = blocks_free, .f_bfree = 1000};
    return 0;
}

/* ---- Who pulls ---- */

static struct {
    char file[256]; /* that was told last */
    uint64_t done, all;
    const char *stops_at; /* as soon as it is told of this file; NULL: never */
} told;
static utter_error why;
static uint64_t pulled_bytes;

static inline bool progress(void *user, const char *file, uint64_t done, uint64_t all)
{
    assert_ptr_equal(user, &told);
    assert_true(done <= all);
    snprintf(told.file, sizeof told.file, "%s", file);
    told.done = done;
    told.all = all;
    return !told.stops_at || strcmp(file, told.stops_at) != 0;
}

static inline utter_status pull(void)
{
    const char *stops_at = told.stops_at;
    memset(&told, 0, sizeof told);
    memset(&why, 0, sizeof why);
    told.stops_at = stops_at;
    hub.n_asked = 0;
    seconds_slept = 0;
    utter_status status =
        hub_pull("me/mine", support_path("cache"), progress, &told, &pulled_bytes, &why);
    if (status == UTTER_E_DEVICE && !server_can_be_asked()) {
        skip();
    }
    return status;
}

static inline void assert_refused(utter_status status, const char *text)
{
    assert_int_equal(pull(), status);
    assert_string_equal(why.text, text);
    assert_int_not_equal(access(support_path("cache/models--me--mine/refs/main"), F_OK), 0);
}

static inline const char *of_cache(const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "cache/models--me--mine/%s", name);
    return support_path(path);
}

static inline const char *of_blob(size_t i, const char *ending)
{
    char name[256];
    snprintf(name, sizeof name, "blobs/%s%s", files[i].hash, ending);
    return of_cache(name);
}

/* No file is half there, and each is under the name of its hash and that of the repository. */
static inline void assert_whole(void)
{
    static const char *const links[] = {
        "../../blobs/", "../../blobs/", "../../../../blobs/", "../../blobs/"};
    char name[256], target[256], wanted[256];
    assert_int_equal(support_count_files(of_cache("blobs")), N_FILES);
    for (size_t i = 0; i < N_FILES; i++) {
        support_assert_content(of_blob(i, ""), files[i].data);
        snprintf(name, sizeof name, "snapshots/" COMMIT "/%s", files[i].path);
        support_assert_content(of_cache(name), files[i].data);
        ssize_t n = readlink(of_cache(name), target, sizeof target - 1);
        assert_true(n > 0);
        target[n] = 0;
        snprintf(wanted, sizeof wanted, "%s%s", links[i], files[i].hash);
        assert_string_equal(target, wanted);
    }
    support_assert_content(of_cache("refs/main"), COMMIT);
    assert_int_equal(pulled_bytes, ALL_BYTES);
}

/* A hub as it should be, and an empty cache. */
static inline int begin(void **state)
{
    (void)state;
    char command[PATH_MAX + 16];
    snprintf(command, sizeof command, "rm -rf %s", support_path("cache"));
    hub.revision = hub.list = hub.sends = NULL;
    hub.cut = 0;
    hub.n_busy = hub.cut_list = 0;
    hub.from_the_start = false;
    told.stops_at = NULL;
    blocks_free = 1000;
    return system(command);
}

/* Leaves a blob as an earlier run may have left it. */
static inline void leave(size_t i, const char *ending, const char *data, size_t bytes)
{
    mkdir(support_path("cache"), 0700);
    mkdir(of_cache(""), 0700);
    mkdir(of_cache("blobs"), 0700);
    support_write_file(of_blob(i, ending), data, bytes);
}

static inline int start_hub(void **state)
{
    (void)state;
    char address[64];
    int failed = server_start(answer);
    snprintf(address, sizeof address, "http://127.0.0.1:%d", server.port);
    return failed || setenv("HF_ENDPOINT", address, 1);
}

#endif
