/* SPDX-License-Identifier: Apache-2.0
 * Results in a store, which is a list in memory here: names and files that are asked for, what a list saves, and what
 * others left in the folder of sounds on their way. */
#include "tests/support.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "job/results.h"
#include "store/s3.h"

/* ---- The store ---- */

static struct object {
    char name[128], content[512];
    uint64_t bytes;
} objects[16];
static size_t n_objects;

static struct {
    char asked[1024];  /* methods and names since it was cleared */
    unsigned n_behind; /* halves of results that the list names behind all objects */
    uint64_t most_pages;
    struct s3_patience patience;
    utter_status status;
    struct s3_store *open;
} store;

utter_status __wrap_s3_store_open(
    struct s3_store **opened, const char *url, const char *option, utter_error *error);
void __wrap_s3_store_close(struct s3_store *closed);
utter_status __wrap_s3_do(struct s3_store *asked, struct s3_request *request,
    const struct s3_patience *patience, utter_error *error);
utter_status __wrap_s3_list(struct s3_store *asked, const char *below, bool flat, uint64_t most_pages,
    const struct s3_patience *patience, s3_name_fn *fn, void *user, utter_error *error);

utter_status __wrap_s3_store_open(
    struct s3_store **opened, const char *url, const char *option, utter_error *error)
{
    assert_string_equal(url, "s3://bucket/prefix");
    assert_string_equal(option, "--results");
    if (store.status) {
        return error_set(error, store.status, "no store");
    }
    *opened = store.open = (struct s3_store *)&store;
    return UTTER_OK;
}

void __wrap_s3_store_close(struct s3_store *closed)
{
    assert_ptr_equal(closed, store.open);
    store.open = NULL;
}

static struct object *find(const char *name)
{
    for (size_t i = 0; i < n_objects; i++) {
        if (strcmp(objects[i].name, name) == 0) {
            return &objects[i];
        }
    }
    return NULL;
}

static struct object *add(const char *name, const char *content)
{
    struct object *o = find(name);
    o = o ? o : &objects[n_objects++];
    snprintf(o->name, sizeof o->name, "%.127s", name);
    snprintf(o->content, sizeof o->content, "%s", content);
    o->bytes = strlen(content);
    return o;
}

utter_status __wrap_s3_do(struct s3_store *asked, struct s3_request *request,
    const struct s3_patience *patience, utter_error *error)
{
    static const char *const methods[] = {"GET", "HEAD", "PUT", "DELETE"};
    char hash[IDENTITY_SIZE];
    size_t n = strlen(store.asked), bytes;
    assert_ptr_equal(asked, store.open);
    store.patience = *patience;
    snprintf(store.asked + n, sizeof store.asked - n, "%s%s %.3s..%s", n ? ", " : "",
        methods[request->method], request->name, strrchr(request->name, '.'));
    if (store.status) {
        return error_set(error, store.status, "no answer");
    }
    struct object *o = find(request->name);
    if (request->method == S3_PUT) {
        char *content = support_read_file(request->path, &bytes);
        assert_non_null(content);
        assert_int_equal(request->bytes, bytes);
        identity_of_bytes(hash, content, bytes);
        assert_string_equal(request->hash, hash);
        add(request->name, content);
        free(content);
        return UTTER_OK;
    }
    if (!o) {
        return UTTER_AGAIN;
    }
    if (request->method == S3_GET) {
        support_write_file(request->path, o->content, o->bytes);
    } else if (request->method == S3_HEAD) {
        request->bytes = o->bytes;
    } else {
        *o = objects[--n_objects];
    }
    return UTTER_OK;
}

utter_status __wrap_s3_list(struct s3_store *asked, const char *below, bool flat, uint64_t most_pages,
    const struct s3_patience *patience, s3_name_fn *fn, void *user, utter_error *error)
{
    assert_ptr_equal(asked, store.open);
    assert_string_equal(below, "");
    assert_false(flat);
    store.most_pages = most_pages;
    store.patience = *patience;
    for (size_t i = 0; i < n_objects; i++) {
        assert_int_equal(fn(user, objects[i].name, objects[i].bytes, "tag", error), UTTER_OK);
    }
    for (unsigned i = 0; i < store.n_behind; i++) {
        char name[128];
        snprintf(name, sizeof name, "fff/fff%010x%051x.json", i, 0);
        assert_int_equal(fn(user, name, 10, "tag", error), UTTER_OK);
    }
    return store.status < 0 ? error_set(error, store.status, "no list") : store.status;
}

/* ---- Results in it ---- */

static const char one[] = "aaa1111111111111000000000000000000000000000000000000000000000000";
static const char two[] = "bbb2222222222222000000000000000000000000000000000000000000000000";
static struct results *results;
static char temporary[PATH_MAX];

static void begin(const char *folder)
{
    memset(&store, 0, sizeof store);
    n_objects = 0;
    snprintf(temporary, sizeof temporary, "%s", support_path(folder));
    assert_int_equal(mkdir(temporary, 0700), 0);
    assert_int_equal(setenv("TMPDIR", temporary, 1), 0);
    utter_error error;
    assert_int_equal(results_open(&results, "s3://bucket/prefix", true, &error), UTTER_OK);
    assert_true(results->is_far);
    assert_int_equal(support_count_files(temporary), 1);
}

static void end(void)
{
    results_close(&results);
    assert_null(store.open);
    assert_int_equal(support_count_files(temporary), 0);
    assert_int_equal(unsetenv("TMPDIR"), 0);
}

static void assert_asked(const char *wanted)
{
    assert_string_equal(store.asked, wanted);
    store.asked[0] = 0;
}

static const char *name_of(const char *key, const char *ending)
{
    static char name[RESULT_NAME];
    result_name(name, key, ending);
    return name;
}

/* A sound and what tells of it, as a worker brings them. */
static void give(const char *key, const char *sound)
{
    char path[PATH_MAX], hash[IDENTITY_SIZE];
    assert_int_equal(results->calls->place(results, name_of(key, "wav"), path, NULL), UTTER_OK);
    support_write_file(path, sound, strlen(sound));
    assert_int_equal(results->calls->keep(results, name_of(key, "wav"), path, NULL), UTTER_OK);
    assert_int_not_equal(access(path, F_OK), 0); /* it is the store's now */
    identity_of_bytes(hash, sound, strlen(sound));
    json_t *about = json_pack("{s:s,s:s,s:s,s:s,s:i}", "key", key, "status", "done", "format", "wav",
        "sha256", hash, "bytes", (int)strlen(sound));
    assert_int_equal(result_tell(results, key, about, NULL), UTTER_OK);
    json_decref(about);
}

/* Files on their way are there for no longer than a question takes. */
static void assert_nothing_is_left(void)
{
    DIR *dir = opendir(temporary);
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        char path[2 * PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", temporary, entry->d_name);
        assert_int_equal(entry->d_name[0] != '.' ? support_count_files(path) : 0, 0);
    }
    closedir(dir);
}

static enum result_state look(const char *key, bool quick, bool wants_about)
{
    enum result_state state;
    json_t *about = NULL;
    utter_error error;
    assert_int_equal(
        result_look(results, key, quick, &state, wants_about ? &about : NULL, &error), UTTER_OK);
    assert_int_equal(wants_about && state != RESULT_NONE, about != NULL);
    json_decref(about);
    assert_nothing_is_left();
    return state;
}

static void results_go_to_the_store_and_come_back(void **state)
{
    (void)state;
    char to[PATH_MAX], name[256];
    size_t n;
    begin("back");
    assert_int_equal(look(one, false, true), RESULT_NONE);
    assert_asked("GET aaa...json");
    give(one, "sound");
    assert_asked("PUT aaa...wav, PUT aaa...json");
    snprintf(name, sizeof name, "aaa/%s.wav", one);
    assert_string_equal(objects[0].name, name);
    assert_int_equal(look(one, false, true), RESULT_DONE);
    assert_asked("GET aaa...json, HEAD aaa...wav, GET aaa...wav");
    assert_int_equal(look(one, true, false), RESULT_DONE);
    assert_asked("GET aaa...json, HEAD aaa...wav");
    /* What it was not, what is longer, and what is gone. */
    add(name, "Sound");
    assert_int_equal(look(one, true, false), RESULT_DONE);
    assert_int_equal(look(one, false, false), RESULT_NONE);
    store.asked[0] = 0;
    add(name, "sound.");
    assert_int_equal(look(one, true, false), RESULT_NONE);
    assert_int_equal(look(one, false, false), RESULT_NONE);
    assert_asked("GET aaa...json, HEAD aaa...wav, GET aaa...json, HEAD aaa...wav");
    snprintf(to, sizeof to, "%s", support_path("fetched"));
    assert_int_equal(results->calls->fetch(results, name_of(one, "wav"), to, NULL), UTTER_OK);
    char *text = support_read_file(to, &n);
    assert_string_equal(text, "sound.");
    free(text);
    assert_int_equal(results->calls->drop(results, name_of(one, "wav"), NULL), UTTER_OK);
    assert_int_equal(n_objects, 1);
    assert_int_equal(results->calls->drop(results, name_of(one, "wav"), NULL), UTTER_OK);
    assert_int_equal(look(one, true, false), RESULT_NONE);
    end();
}

static void a_store_that_fails_is_told(void **state)
{
    (void)state;
    char path[PATH_MAX];
    enum result_state found;
    json_t *about;
    utter_error error;
    begin("fails");
    give(one, "sound");
    store.status = UTTER_E_IO;
    assert_int_equal(result_look(results, one, false, &found, &about, &error), UTTER_E_IO);
    assert_string_equal(error.text, "no answer");
    assert_nothing_is_left();
    assert_int_equal(results->calls->check(results, name_of(one, "wav"), 5, NULL, &error), UTTER_E_IO);
    assert_int_equal(results->calls->drop(results, name_of(one, "wav"), &error), UTTER_E_IO);
    assert_int_equal(results->calls->place(results, name_of(one, "wav"), path, NULL), UTTER_OK);
    support_write_file(path, "x", 1);
    assert_int_equal(results->calls->keep(results, name_of(one, "wav"), path, &error), UTTER_E_IO);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(results->calls->look_at_all(results, 1, &error), UTTER_E_IO);
    assert_string_equal(error.text, "no list");
    store.status = UTTER_OK;
    assert_int_equal(
        look(one, false, true), RESULT_DONE); /* of a list that was cut nothing is believed */
    end();
    memset(&store, 0, sizeof store);
    store.status = UTTER_E_ARGUMENT;
    assert_int_equal(results_open(&results, "s3://bucket/prefix", true, &error), UTTER_E_ARGUMENT);
    assert_null(results);
}

static bool stop(void)
{
    return false;
}

static bool stop_keep(void)
{
    return false;
}

static void away(void *user, const utter_error *error)
{
    (void)user, (void)error;
}

/* After a signal, what was spoken may still go out. */
static void what_is_kept_has_longer(void **state)
{
    (void)state;
    begin("longer");
    results->stop = stop;
    results->away = away;
    results->user = &store;
    give(one, "sound");
    assert_ptr_equal(store.patience.stop, stop);
    results->stop_keep = stop_keep;
    give(one, "sound");
    assert_ptr_equal(store.patience.stop, stop_keep);
    assert_ptr_equal(store.patience.away, away);
    assert_ptr_equal(store.patience.user, &store);
    assert_int_equal(look(one, true, false), RESULT_DONE);
    assert_ptr_equal(store.patience.stop, stop);
    assert_int_equal(results->calls->look_at_all(results, 1, NULL), UTTER_OK);
    assert_ptr_equal(store.patience.stop, stop);
    assert_ptr_equal(store.patience.away, away);
    assert_ptr_equal(store.patience.user, &store);
    end();
}

/* ---- The list ---- */

static void what_a_list_says_is_not_asked_for(void **state)
{
    (void)state;
    for (int turned = 0; turned < 3; turned++) { /* in whatever order */
        begin(turned == 2 ? "back-to-front" : turned ? "turned" : "list");
        give(turned == 2 ? two : one, turned == 2 ? "other" : "sound");
        give(turned == 2 ? one : two, turned == 2 ? "sound" : "other");
        if (turned == 1) {
            const struct object last = objects[n_objects - 1];
            memmove(objects + 1, objects, (n_objects - 1) * sizeof *objects);
            objects[0] = last;
        }
        store.asked[0] = 0;
        assert_int_equal(results->calls->look_at_all(results, 41, NULL), UTTER_OK);
        assert_int_equal(store.most_pages, 42);
        assert_int_equal(look(one, true, false), RESULT_DONE);
        assert_int_equal(look(two, true, false), RESULT_DONE);
        assert_int_equal(
            look("ccc3333333333333000000000000000000000000000000000000000000000000", false, true),
            RESULT_NONE);
        assert_asked("");
        assert_int_equal(look(two, true, true), RESULT_DONE);
        assert_asked("GET bbb...json");
        assert_int_equal(look(two, false, true), RESULT_DONE);
        assert_asked("GET bbb...json, GET bbb...wav");
        /* A sound of another length is another. */
        char name[256];
        snprintf(name, sizeof name, "bbb/%s.wav", two);
        add(name, "others");
        assert_int_equal(results->calls->look_at_all(results, 41, NULL), UTTER_OK);
        assert_int_equal(look(two, true, false), RESULT_DONE);
        assert_int_equal(look(two, true, true), RESULT_NONE);
        assert_asked("GET bbb...json");
        end();
    }
}

static void a_list_may_be_long(void **state)
{
    (void)state;
    begin("long");
    give(one, "sound");
    give(two, "other");
    store.n_behind = 4000;
    assert_int_equal(results->calls->look_at_all(results, 9, NULL), UTTER_OK);
    store.asked[0] = 0;
    assert_int_equal(look(one, true, false), RESULT_DONE);
    assert_int_equal(look(two, true, false), RESULT_DONE);
    assert_asked("");
    end();
}

static void a_half_of_a_result_is_none(void **state)
{
    (void)state;
    char name[256];
    begin("half");
    give(one, "sound");
    snprintf(name, sizeof name, "aaa/%s.json", one);
    char *text = strdup(find(name)->content);
    assert_int_equal(results->calls->drop(results, name_of(one, "json"), NULL), UTTER_OK);
    assert_int_equal(results->calls->look_at_all(results, 1, NULL), UTTER_OK);
    store.asked[0] = 0;
    assert_int_equal(look(one, true, false), RESULT_NONE);
    assert_asked("");
    snprintf(name, sizeof name, "aaa/%s.wav", one);
    for (int bytes = 0; bytes <= 1; bytes++) { /* no sound, or an empty one */
        n_objects = 0;
        snprintf(name, sizeof name, "aaa/%s.json", one);
        add(name, text);
        if (bytes) {
            snprintf(name, sizeof name, "aaa/%s.wav", one);
            add(name, "");
        }
        assert_int_equal(results->calls->look_at_all(results, 1, NULL), UTTER_OK);
        assert_int_equal(look(one, true, false), RESULT_NONE);
        assert_asked("GET aaa...json");
    }
    free(text);
    for (uint64_t bytes = 0; bytes < 2; bytes++) { /* without a sound there is none of any length */
        assert_int_equal(results->calls->check(results, name_of(two, "wav"), bytes, NULL, NULL),
            bytes ? UTTER_AGAIN : UTTER_OK);
        assert_int_equal(results->calls->check(results, name_of(one, "wav"), bytes, NULL, NULL),
            bytes ? UTTER_AGAIN : UTTER_OK);
    }
    end();
}

/* Each of these lies where a sound of the line would, or nearly. */
static void what_else_lies_in_a_store_is_passed_over(void **state)
{
    (void)state;
    static const char *const others[] = {
        "aab/aaa1111111111111000000000000000000000000000000000000000000000000.wav",
        "aaa-aaa1111111111111000000000000000000000000000000000000000000000000.wav",
        "aaa/aaa111111111111100000000000000000000000000000000000000000000000.wav",
        "aaa/aaa11111111111110000000000000000000000000000000000000000000000000.wav",
        "aaa/aaa1111111111111000000000000000000000000000000000000000000000000-wav",
        "aaa/aaa1111111111111000000000000000000000000000000000000000000000000.",
        "aaa/aaa111111111111100000000000000000000000000000000000000000000000G.wav", "aaa", "", "aaa/"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char folder[32], name[256];
        snprintf(folder, sizeof folder, "else%zu", i);
        begin(folder);
        give(one, "sound");
        snprintf(name, sizeof name, "aaa/%s.wav", one);
        struct object *o = find(name);
        snprintf(o->name, sizeof o->name, "%s", others[i]);
        assert_int_equal(results->calls->look_at_all(results, 1, NULL), UTTER_OK);
        assert_int_equal(look(one, true, false), RESULT_NONE);
        end();
    }
}

/* Of more pages than lines the list is not used. */
static void a_store_that_holds_far_more_is_asked_line_by_line(void **state)
{
    (void)state;
    begin("more");
    give(one, "sound");
    store.status = UTTER_END;
    assert_int_equal(results->calls->look_at_all(results, 1, NULL), UTTER_OK);
    store.status = UTTER_OK;
    store.asked[0] = 0;
    assert_int_equal(look(one, true, false), RESULT_DONE);
    assert_asked("GET aaa...json, HEAD aaa...wav");
    end();
}

/* ---- The folder of sounds on their way ---- */

/* Whether each folder of workers there is held, so that no other worker takes it for one that was left. */
static bool all_are_held(const char *folder)
{
    int n_free = 0, n = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        char path[2 * PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (strncmp(entry->d_name, "utter-job-", 10) == 0) {
            int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            n_free += flock(fd, LOCK_EX | LOCK_NB) == 0;
            n++;
            close(fd);
        }
    }
    closedir(dir);
    return n > 0 && n_free == 0;
}

/* Who is started beside it does not hold the folder when its worker is gone. */
static void assert_held_by_nobody_else(const char *folder)
{
    int n_held = 0;
    for (int fd = 0; fd < 64; fd++) {
        char link[32], path[PATH_MAX] = "";
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        if (readlink(link, path, sizeof path - 1) > 0 && strncmp(path, folder, strlen(folder)) == 0) {
            assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
            n_held++;
        }
    }
    assert_int_equal(n_held, 1);
}

static void a_folder_is_its_workers(void **state)
{
    (void)state;
    begin("held");
    assert_true(all_are_held(temporary));
    assert_held_by_nobody_else(temporary);
    end();
}

static void what_a_killed_worker_left_goes_after_a_minute(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int age_s;
        bool stays;
    } left[] = {{"utter-job-old", 61, false}, {"utter-job-young", 30, true}, {"utter-other", 120, true},
        {"utter-job-held", 120, true}};
    int held = -1;
    assert_int_equal(mkdir(support_path("left"), 0700), 0);
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        char path[PATH_MAX], file[PATH_MAX + 8];
        snprintf(path, sizeof path, "%s/%s", support_path("left"), left[i].name);
        assert_int_equal(mkdir(path, 0700), 0);
        snprintf(file, sizeof file, "%s/file", path);
        support_write_file(file, "", 0);
        const struct timespec at = {.tv_sec = time(NULL) - left[i].age_s};
        assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[]){at, at}, 0), 0);
        if (i == 3) {
            held = open(path, O_RDONLY | O_CLOEXEC);
            assert_int_equal(flock(held, LOCK_EX), 0);
        }
    }
    /* A link there may be anybody's, and leads to what is no worker's. */
    char link[PATH_MAX];
    snprintf(link, sizeof link, "%s/utter-job-link", support_path("left"));
    assert_int_equal(symlink("utter-other", link), 0);
    /* What is no folder is not opened: a pipe would be waited for. */
    char pipe[PATH_MAX];
    snprintf(pipe, sizeof pipe, "%s/utter-job-pipe", support_path("left"));
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(setenv("TMPDIR", support_path("left"), 1), 0);
    assert_int_equal(results_open(&results, "s3://bucket/prefix", true, NULL), UTTER_OK);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(unlink(pipe), 0);
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s/file", support_path("left"), left[i].name);
        assert_int_equal(access(path, F_OK) == 0, left[i].stays);
    }
    assert_int_equal(support_count_files(support_path("left")), 4);
    unlink(support_path("left/utter-job-young/file"));
    assert_int_equal(rmdir(support_path("left/utter-job-young")), 0);
    assert_true(all_are_held(support_path("left")));
    results_close(&results);
    assert_int_equal(support_count_files(support_path("left")), 2);
    close(held);
    utter_error error;
    assert_int_equal(setenv("TMPDIR", support_path("nowhere"), 1), 0);
    assert_int_equal(results_open(&results, "s3://bucket/prefix", true, &error), UTTER_E_FILE);
    assert_null(results);
    assert_null(store.open);
    assert_int_equal(unsetenv("TMPDIR"), 0);
}

int main(void)
{
    support_folder(); /* before TMPDIR is another */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_go_to_the_store_and_come_back),
        cmocka_unit_test(a_store_that_fails_is_told),
        cmocka_unit_test(what_is_kept_has_longer),
        cmocka_unit_test(what_a_list_says_is_not_asked_for),
        cmocka_unit_test(a_list_may_be_long),
        cmocka_unit_test(a_half_of_a_result_is_none),
        cmocka_unit_test(what_else_lies_in_a_store_is_passed_over),
        cmocka_unit_test(a_store_that_holds_far_more_is_asked_line_by_line),
        cmocka_unit_test(a_folder_is_its_workers),
        cmocka_unit_test(what_a_killed_worker_left_goes_after_a_minute),
    };
    return cmocka_run_group_tests_name("results_s3", tests, NULL, NULL);
}
