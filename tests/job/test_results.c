/* SPDX-License-Identifier: Apache-2.0
 * Results in a folder: what counts as one, what damage does, and how they come out. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "job/results.h"

static const char key[] = "abc3456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

static struct results *open_results(const char *folder)
{
    struct results *results;
    utter_error error;
    assert_int_equal(results_open(&results, support_path(folder), true, &error), UTTER_OK);
    return results;
}

/* Where a result of the key lies. */
static const char *place(struct results *results, const char *ending)
{
    static char path[PATH_MAX];
    char name[RESULT_NAME];
    result_name(name, key, ending);
    assert_int_equal(results->calls->place(results, name, path, NULL), UTTER_OK);
    return path;
}

/* What is there of the key. */
static enum result_state look(struct results *results, bool quick, json_t **about)
{
    enum result_state state = RESULT_FAILED;
    utter_error error;
    assert_int_equal(result_look(results, key, quick, &state, about, &error), UTTER_OK);
    return state;
}

static void keep_sound(struct results *results, const char *bytes)
{
    char name[RESULT_NAME];
    result_name(name, key, "wav");
    support_write_file(place(results, "wav"), bytes, strlen(bytes));
    assert_int_equal(results->calls->keep(results, name, place(results, "wav"), NULL), UTTER_OK);
}

/* The JSON that tells of a sound of these bytes. */
static json_t *about_sound(const char *bytes)
{
    char hash[IDENTITY_SIZE];
    identity_of_bytes(hash, bytes, strlen(bytes));
    return json_pack("{s:s,s:s,s:s,s:s,s:I,s:f}", "key", key, "status", "done", "format", "wav",
        "sha256", hash, "bytes", (json_int_t)strlen(bytes), "seconds", 0.1);
}

static void tell(struct results *results, json_t *about)
{
    assert_int_equal(result_tell(results, key, about, NULL), UTTER_OK);
    json_decref(about);
}

/* ---- What a result is ---- */

static void a_result_is_a_sound_and_what_tells_of_it(void **state)
{
    (void)state;
    struct results *results = open_results("whole");
    json_t *about = (json_t *)results;
    char wanted[PATH_MAX], name[RESULT_NAME];
    assert_int_equal(look(results, false, &about), RESULT_NONE);
    assert_null(about);
    keep_sound(results, "sound");
    snprintf(wanted, sizeof wanted, "%s/abc/%s.wav", support_path("whole"), key);
    assert_string_equal(place(results, "wav"), wanted);
    assert_int_equal(look(results, false, NULL), RESULT_NONE);
    tell(results, about_sound("sound"));
    for (int quick = 0; quick < 2; quick++) {
        assert_int_equal(look(results, quick, NULL), RESULT_DONE);
        assert_int_equal(look(results, quick, &about), RESULT_DONE);
        assert_string_equal(json_string_value(json_object_get(about, "status")), "done");
        assert_int_equal(strlen(json_string_value(json_object_get(about, "seal"))), 16);
        json_decref(about);
    }
    result_name(name, key, "wav");
    assert_int_equal(results->calls->drop(results, name, NULL), UTTER_OK);
    assert_int_equal(look(results, true, &about), RESULT_NONE);
    assert_null(about);
    assert_int_equal(results->calls->drop(results, name, NULL), UTTER_OK); /* nothing to drop */
    results_close(&results);
    assert_null(results);
    results_close(&results);
}

/* Others may read there what the user lets them. */
static void a_folder_of_results_is_the_users(void **state)
{
    (void)state;
    struct stat about;
    struct results *results = open_results("users");
    const mode_t before = umask(0);
    keep_sound(results, "sound");
    umask(before);
    assert_int_equal(stat(support_path("users/abc"), &about), 0);
    assert_int_equal(about.st_mode & ~(mode_t)S_IFMT, 0777);
    results_close(&results);
}

static void the_seal_is_the_last_field(void **state)
{
    (void)state;
    struct results *results = open_results("seal");
    char hash[IDENTITY_SIZE], wanted[512];
    size_t n;
    tell(results, json_pack("{s:s,s:f,s:f}", "key", key, "seconds", 0.1, "third", 1.0 / 3));
    char *text = support_read_file(place(results, "json"), &n);
    int sealed =
        snprintf(wanted, sizeof wanted, "{\"key\":\"%s\",\"seconds\":0.1,\"third\":0.333333333", key);
    identity_of_bytes(hash, wanted, (size_t)sealed);
    snprintf(wanted + sealed, sizeof wanted - (size_t)sealed, ",\"seal\":\"%.16s\"}\n", hash);
    assert_string_equal(text, wanted);
    assert_int_equal(n, strlen(wanted));
    free(text);
    results_close(&results);
}

static void a_failure_is_a_result_without_a_sound(void **state)
{
    (void)state;
    struct results *results = open_results("failure");
    json_t *about;
    tell(results, json_pack("{s:s,s:s,s:s}", "key", key, "status", "failed", "error", "no"));
    assert_int_equal(look(results, false, &about), RESULT_FAILED);
    assert_string_equal(json_string_value(json_object_get(about, "error")), "no");
    json_decref(about);
    assert_int_equal(look(results, true, NULL), RESULT_FAILED);
    results_close(&results);
}

/* Of a sound that was told of, each of these is none. */
static void what_is_damaged_is_no_result(void **state)
{
    (void)state;
    struct results *results = open_results("damage");
    size_t n;
    keep_sound(results, "sound");
    tell(results, about_sound("sound"));
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", place(results, "json"));
    char *text = support_read_file(path, &n);
    for (size_t i = 0; i < n; i++) {
        text[i] ^= 4;
        support_write_file(path, text, n);
        /* The line's end is no part of it: the object ends before. */
        assert_int_equal(look(results, false, NULL), RESULT_NONE);
        text[i] ^= 4;
        support_write_file(path, text, i);
        assert_int_equal(look(results, false, NULL), RESULT_NONE);
    }
    support_write_file(path, text, n);
    assert_int_equal(look(results, false, NULL), RESULT_DONE);
    free(text);
    /* The same length with other bytes is believed by who asks quickly. */
    keep_sound(results, "Sound");
    assert_int_equal(look(results, false, NULL), RESULT_NONE);
    assert_int_equal(look(results, true, NULL), RESULT_DONE);
    keep_sound(results, "soun");
    assert_int_equal(look(results, true, NULL), RESULT_NONE);
    keep_sound(results, "sound.");
    assert_int_equal(look(results, true, NULL), RESULT_NONE);
    keep_sound(results, "sound");
    assert_int_equal(look(results, false, NULL), RESULT_DONE);
    results_close(&results);
}

static void what_tells_of_something_else_is_no_result(void **state)
{
    (void)state;
    static const char *const fields[] = {"key", "status", "format", "sha256", "bytes"};
    struct results *results = open_results("else");
    json_t *about;
    keep_sound(results, "sound");
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        about = about_sound("sound");
        json_object_del(about, fields[i]);
        tell(results, about);
        assert_int_equal(look(results, false, &about), RESULT_NONE);
        assert_null(about);
    }
    about = about_sound("sound");
    json_object_set_new(
        about, "key", json_string("abc3456789abcdef0123456789abcdef0123456789abcdef0123456789abcdee"));
    tell(results, about);
    assert_int_equal(look(results, false, NULL), RESULT_NONE);
    about = about_sound("sound");
    json_object_set_new(about, "bytes", json_integer(-5));
    tell(results, about);
    assert_int_equal(look(results, false, NULL), RESULT_NONE);
    about = about_sound("sound");
    json_object_set_new(about, "status", json_string("not_whole"));
    tell(results, about);
    assert_int_equal(look(results, false, NULL), RESULT_DONE);
    results_close(&results);
}

/* ---- A store that answers slowly ---- */

static int n_texts, n_believed;
static bool believed;

static bool is_believed(const struct results *results, const char *asked)
{
    (void)results;
    assert_string_equal(asked, key);
    n_believed++;
    return believed;
}

static utter_status far_text(
    struct results *results, const char *name, char **text, size_t *bytes, utter_error *error)
{
    (void)results, (void)text, (void)bytes;
    assert_string_equal(name, "abc3456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.json");
    n_texts++;
    return error_set(error, UTTER_E_IO, "far away");
}

static void a_store_that_was_looked_at_is_believed(void **state)
{
    (void)state;
    static const struct results_calls calls = {.text = far_text, .is_believed = is_believed};
    struct results far = {.calls = &calls};
    enum result_state found;
    json_t *about;
    utter_error error;
    believed = true;
    assert_int_equal(result_look(&far, key, true, &found, NULL, &error), UTTER_OK);
    assert_int_equal(found, RESULT_DONE);
    assert_int_equal(n_texts, 0);
    assert_int_equal(n_believed, 1);
    /* Who wants more than that it is there, asks for it. */
    assert_int_equal(result_look(&far, key, true, &found, &about, &error), UTTER_E_IO);
    assert_string_equal(error.text, "far away");
    assert_int_equal(found, RESULT_NONE);
    assert_null(about);
    assert_int_equal(result_look(&far, key, false, &found, NULL, &error), UTTER_E_IO);
    assert_int_equal(n_believed, 1);
    believed = false;
    assert_int_equal(result_look(&far, key, true, &found, NULL, &error), UTTER_E_IO);
    assert_int_equal(n_believed, 2);
    assert_int_equal(n_texts, 3);
}

/* ---- Out of the folder ---- */

static void a_sound_that_is_fetched_takes_a_place(void **state)
{
    (void)state;
    struct results *results = open_results("fetch");
    char name[RESULT_NAME], to[PATH_MAX];
    struct stat one, other;
    utter_error error;
    result_name(name, key, "wav");
    keep_sound(results, "sound");
    snprintf(to, sizeof to, "%s", support_path("fetch/out.wav"));
    assert_int_equal(results->calls->fetch(results, name, to, NULL), UTTER_OK);
    support_write_file(support_path("fetch/other.wav"), "what was there", 14);
    assert_int_equal(
        results->calls->fetch(results, name, support_path("fetch/other.wav"), NULL), UTTER_OK);
    assert_int_equal(stat(to, &one), 0);
    assert_int_equal(stat(support_path("fetch/other.wav"), &other), 0);
    assert_int_equal(one.st_ino, other.st_ino); /* one file */
    assert_int_equal(one.st_nlink, 3);
    assert_int_equal(one.st_size, 5);
    /* A folder is not replaced; what is not there cannot come. */
    assert_int_equal(mkdir(support_path("fetch/folder"), 0700), 0);
    assert_true(results->calls->fetch(results, name, support_path("fetch/folder"), &error) < 0);
    assert_non_null(strstr(error.text, "fetch/folder: cannot replace"));
    result_name(name, key, "ogg");
    assert_true(results->calls->fetch(results, name, to, &error) < 0);
    assert_int_not_equal(access(to, F_OK), 0);
    results_close(&results);
}

/* Where the place is on another disk: then it is a file of its own. */
static void a_sound_may_go_to_another_disk(void **state)
{
    (void)state;
    struct results *results = open_results("disk");
    char name[RESULT_NAME], to[64];
    struct stat here, there;
    size_t n;
    result_name(name, key, "wav");
    keep_sound(results, "sound");
    snprintf(to, sizeof to, "/dev/shm/utter-test-%d.wav", (int)getpid());
    if (stat("/dev/shm", &there) != 0 || access("/dev/shm", W_OK) != 0 ||
        stat(support_folder(), &here) != 0 || here.st_dev == there.st_dev) {
        results_close(&results);
        skip();
    }
    for (int i = 0; i < 2; i++) { /* the second takes the place of the first */
        assert_int_equal(results->calls->fetch(results, name, to, NULL), UTTER_OK);
        assert_int_equal(stat(to, &there), 0);
        assert_int_equal(there.st_nlink, 1);
        char *text = support_read_file(to, &n);
        assert_string_equal(text, "sound");
        free(text);
    }
    assert_int_equal(results->calls->check(results, name, 5, NULL, NULL), UTTER_OK);
    const int before = support_count_files("/proc/self/fd");
    assert_int_equal(results->calls->fetch(results, name, to, NULL), UTTER_OK);
    assert_int_equal(support_count_files("/proc/self/fd"), before);
    support_fail_write_at(1);
    assert_true(results->calls->fetch(results, name, to, NULL) < 0);
    support_fail_off();
    assert_int_not_equal(access(to, F_OK), 0);
    results_close(&results);
}

static void an_address_is_a_folder_or_a_store(void **state)
{
    (void)state;
    struct results *results = (struct results *)&results;
    utter_error error;
    char wanted[PATH_MAX + 64];
    assert_int_equal(results_open(&results, "ftp://host", true, &error), UTTER_E_ARGUMENT);
    assert_string_equal(error.text, "--results ftp://host: is no folder and no s3://BUCKET");
    assert_null(results);
    assert_int_equal(results_open(&results, support_path("none"), false, &error), UTTER_E_FILE);
    snprintf(wanted, sizeof wanted, "--results %s: there is no such folder", support_path("none"));
    assert_string_equal(error.text, wanted);
    assert_null(results);
    assert_int_equal(results_open(&results, support_path("made/by/us"), true, &error), UTTER_OK);
    assert_false(results->is_far);
    assert_null(results->calls->look_at_all);
    results_close(&results);
    assert_int_equal(results_open(&results, support_path("made/by/us"), false, &error), UTTER_OK);
    results_close(&results);
}

static utter_status check_fails(
    struct results *results, const char *name, uint64_t bytes, const char *hash, utter_error *error)
{
    (void)results, (void)name, (void)bytes, (void)hash;
    return error_set(error, UTTER_E_IO, "no check");
}

static void a_sound_that_cannot_be_looked_at_is_told(void **state)
{
    (void)state;
    struct results *results = open_results("unchecked");
    const struct results_calls *usual = results->calls;
    struct results_calls failing = *usual;
    enum result_state found;
    json_t *about;
    utter_error error;
    keep_sound(results, "sound");
    tell(results, about_sound("sound"));
    failing.check = check_fails;
    results->calls = &failing;
    assert_int_equal(result_look(results, key, false, &found, &about, &error), UTTER_E_IO);
    assert_string_equal(error.text, "no check");
    assert_int_equal(found, RESULT_NONE);
    assert_null(about);
    results->calls = usual;
    results_close(&results);
}

static void a_folder_that_is_gone_is_told(void **state)
{
    (void)state;
    struct results *results = open_results("gone");
    char name[RESULT_NAME], path[PATH_MAX], wanted[PATH_MAX + 64];
    utter_error error;
    result_name(name, key, "wav");
    assert_int_equal(rmdir(support_path("gone")), 0);
    assert_true(results->calls->place(results, name, path, &error) < 0);
    snprintf(wanted, sizeof wanted, "%s: cannot make: ", support_path("gone/abc"));
    assert_memory_equal(error.text, wanted, strlen(wanted));
    assert_true(result_tell(results, key, json_null(), &error) < 0);
    assert_int_equal(results->calls->drop(results, name, &error), UTTER_OK);
    /* A folder of a result's name is none that could be dropped. */
    assert_int_equal(mkdir(support_path("gone"), 0700), 0);
    assert_int_equal(results->calls->place(results, name, path, &error), UTTER_OK);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_true(results->calls->drop(results, name, &error) < 0);
    snprintf(wanted, sizeof wanted, "%s: cannot remove: ", path);
    assert_memory_equal(error.text, wanted, strlen(wanted));
    results_close(&results);
    support_fail_malloc_at(1);
    assert_int_equal(
        results_folder_open(&results, support_path("gone"), false, &error), UTTER_E_MEMORY);
    support_fail_off();
    support_write_file(support_path("file"), "", 0);
    assert_true(results_open(&results, support_path("file/in"), true, &error) < 0);
    assert_null(results);
}

static void a_hash_is_that_of_a_file(void **state)
{
    (void)state;
    char hash[IDENTITY_SIZE];
    uint64_t bytes;
    utter_error error;
    support_write_file(support_path("abc"), "abc", 3);
    assert_int_equal(result_hash(hash, &bytes, support_path("abc"), NULL), UTTER_OK);
    assert_string_equal(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_int_equal(bytes, 3);
    const int before = support_count_files("/proc/self/fd");
    assert_int_equal(result_hash(hash, &bytes, support_path("abc"), NULL), UTTER_OK);
    assert_int_equal(support_count_files("/proc/self/fd"), before);
    assert_true(result_hash(hash, &bytes, support_path("nothing"), &error) < 0);
}

/* ---- What fails ---- */

static void what_tells_of_a_sound_is_whole_or_as_before(void **state)
{
    (void)state;
    struct results *results = open_results("torn");
    json_t *before = json_pack("{s:s,s:s}", "key", key, "status", "failed"),
           *about = about_sound("sound");
    static const enum support_call calls[] = {
        SUPPORT_MALLOC, SUPPORT_OPEN, SUPPORT_WRITE, SUPPORT_FSYNC};
    keep_sound(results, "sound");
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        bool failed = true;
        for (long n = 1; failed; n++) {
            utter_error error = {0};
            assert_int_equal(result_tell(results, key, before, NULL), UTTER_OK);
            support_fail_at(calls[i], n);
            utter_status status = result_tell(results, key, about, &error);
            failed = support_failed();
            support_fail_off();
            assert_int_equal(look(results, false, NULL), status ? RESULT_FAILED : RESULT_DONE);
            assert_true(status == UTTER_OK || (failed && error.text[0]));
            assert_int_equal(support_count_files(support_path("torn/abc")), 2);
        }
    }
    json_decref(before);
    json_decref(about);
    results_close(&results);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_result_is_a_sound_and_what_tells_of_it),
        cmocka_unit_test(a_folder_of_results_is_the_users),
        cmocka_unit_test(the_seal_is_the_last_field),
        cmocka_unit_test(a_failure_is_a_result_without_a_sound),
        cmocka_unit_test(what_is_damaged_is_no_result),
        cmocka_unit_test(what_tells_of_something_else_is_no_result),
        cmocka_unit_test(a_store_that_was_looked_at_is_believed),
        cmocka_unit_test(a_sound_that_is_fetched_takes_a_place),
        cmocka_unit_test(a_sound_may_go_to_another_disk),
        cmocka_unit_test(an_address_is_a_folder_or_a_store),
        cmocka_unit_test(a_sound_that_cannot_be_looked_at_is_told),
        cmocka_unit_test(a_folder_that_is_gone_is_told),
        cmocka_unit_test(a_hash_is_that_of_a_file),
        cmocka_unit_test(what_tells_of_a_sound_is_whole_or_as_before),
    };
    return cmocka_run_group_tests_name("results", tests, NULL, NULL);
}
