/* SPDX-License-Identifier: Apache-2.0
 * Names of models: the built-in voice, folders, repositories in the cache of the hub's client, short names. */
#include "tests/support.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/tables/released.h"
#include "utter.h"

static char cache[] = "/tmp/utter-find-XXXXXX";

static void must(bool done)
{
    assert_true(done);
}

static void put(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", cache, name);
    for (char *slash = path + strlen(cache); (slash = strchr(slash + 1, '/'));) {
        *slash = 0;
        mkdir(path, 0755);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    must(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void found(const char *name, const char *where)
{
    char path[PATH_MAX], want[256];
    utter_error error = {0};
    snprintf(want, sizeof want, "%s/%s", cache, where);
    assert_int_equal(utter_model_find(path, sizeof path, name, cache, &error), UTTER_OK);
    assert_string_equal(path, want);
}

static void repositories_are_found(void **state)
{
    (void)state;
    must(mkdtemp(cache) != NULL);
    put("models--Qwen--Qwen3-TTS-12Hz-0.6B-CustomVoice/refs/main", "abc");
    put("models--Qwen--Qwen3-TTS-12Hz-0.6B-CustomVoice/snapshots/abc/config.json", "{}");
    put("models--Qwen--Qwen3-TTS-12Hz-0.6B-CustomVoice/snapshots/old/config.json", "{}");
    put("models--me--mine/snapshots/only/config.json", "{}");
    put("models--me--two/snapshots/a/config.json", "{}");
    put("models--me--two/snapshots/b/config.json", "{}");
    put("models--me--bad/refs/main", "../../..");
    found("Qwen/Qwen3-TTS-12Hz-0.6B-CustomVoice",
        "models--Qwen--Qwen3-TTS-12Hz-0.6B-CustomVoice/snapshots/abc");
    found("0.6B", "models--Qwen--Qwen3-TTS-12Hz-0.6B-CustomVoice/snapshots/abc");
    found("me/mine", "models--me--mine/snapshots/only");
    char path[PATH_MAX], folder[256];
    utter_error error = {0};
    snprintf(folder, sizeof folder, "%s/models--me--mine", cache);
    assert_int_equal(utter_model_find(path, sizeof path, folder, NULL, &error), UTTER_OK);
    assert_string_equal(path + strlen(folder), "/snapshots/only");
    static const char *const none[] = {"me/two", "me/bad", "1.7b", "design", "you/none"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(utter_model_find(path, sizeof path, none[i], cache, &error), UTTER_E_FILE);
        assert_non_null(strstr(error.text, "utter pull"));
        assert_int_equal(utter_model_find(path, sizeof path, none[i], NULL, &error), UTTER_E_FILE);
    }
    assert_string_equal(error.text, "you/none: no folder or file, and the model you/none is not in the "
                                    "cache, which was not named (utter pull you/none gets it)");
    char wanted[512];
    snprintf(wanted, sizeof wanted,
        "design: no folder or file, and the model Qwen/Qwen3-TTS-12Hz-1.7B-VoiceDesign is not in %s "
        "(utter pull design gets it)",
        cache);
    utter_model_find(path, sizeof path, "design", cache, &error);
    assert_string_equal(error.text, wanted);
    snprintf(folder, sizeof folder, "rm -rf %s", cache);
    must(system(folder) == 0);
}

/* What refs/main names may be as long as a file's name can be; what is longer names nothing, and the only
 * snapshot there is meant. */
static void a_revision_has_a_longest_name(void **state)
{
    enum { LONGEST = 255 };
    static const int lengths[] = {1, LONGEST - 1, LONGEST, LONGEST + 1, LONGEST + 2, 1000};
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char revision[1001], place[PATH_MAX], path[PATH_MAX], wanted[PATH_MAX];
        const bool fits = lengths[i] <= LONGEST;
        memset(revision, 'r', sizeof revision);
        revision[lengths[i]] = 0;
        static const char *const folders[] = {"", "/refs", "/snapshots"};
        for (size_t k = 0; k < 3; k++) {
            snprintf(place, sizeof place, "m%zu%s", i, folders[k]);
            must(mkdir(support_path(place), 0755) == 0);
        }
        snprintf(place, sizeof place, "m%zu/refs/main", i);
        support_write_file(support_path(place), revision, (size_t)lengths[i]);
        snprintf(
            place, sizeof place, "%s/m%zu/snapshots/%s", support_folder(), i, fits ? revision : "only");
        must(mkdir(place, 0755) == 0);
        snprintf(wanted, sizeof wanted, "%s", place);
        snprintf(place, sizeof place, "%s/m%zu", support_folder(), i);
        assert_int_equal(utter_model_find(path, sizeof path, place, NULL, NULL), UTTER_OK);
        assert_string_equal(path, wanted);
    }
}

static int n_open(void)
{
    return support_count_files("/proc/self/fd");
}

/* Of the first line up to a slash; where that cannot be one, the only snapshot is meant: a folder, not hidden. */
static void a_revision_is_a_name(void **state)
{
    static const struct {
        const char *named, *found;
    } cases[] = {{"abc\n", "abc"}, {"abc\r\nold", "abc"}, {"abc/old", "abc"}, {"old", "old"},
        {"file", NULL}, {"none", NULL}, {"..", NULL}, {"", NULL}, {"/abc", NULL}, {"\nabc", NULL}};
    char folder[PATH_MAX], path[PATH_MAX], wanted[2 * PATH_MAX];
    (void)state;
    snprintf(folder, sizeof folder, "%s", support_fresh_folder("named"));
    support_fresh_folder("named/refs");
    support_fresh_folder("named/snapshots");
    support_fresh_folder("named/snapshots/abc");
    support_fresh_folder("named/snapshots/old");
    support_write_file(support_path("named/snapshots/file"), "", 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        support_write_file(support_path("named/refs/main"), cases[i].named, strlen(cases[i].named));
        const char *below = cases[i].found ? cases[i].found : "";
        snprintf(wanted, sizeof wanted, "%s%s%s", folder, cases[i].found ? "/snapshots/" : "", below);
        assert_int_equal(utter_model_find(path, sizeof path, folder, NULL, NULL), UTTER_OK);
        assert_string_equal(path, wanted);
    }
    support_fresh_folder("only");
    support_fresh_folder("only/refs");
    support_fresh_folder("only/snapshots");
    support_fresh_folder("only/snapshots/.hidden");
    support_fresh_folder("only/snapshots/one");
    support_write_file(support_path("only/refs/main"), "..", 2);
    const int before = n_open();
    assert_int_equal(utter_model_find(path, sizeof path, support_path("only"), NULL, NULL), UTTER_OK);
    assert_string_equal(path, support_path("only/snapshots/one"));
    assert_int_equal(n_open(), before);
}

static void the_rest_is_a_path(void **state)
{
    (void)state;
    char path[PATH_MAX], small[8];
    utter_error error = {0};
    static const char *const paths[] = {
        "include", "/nowhere", "a/b/c", "./x", "../x/y", "model_folder"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        assert_int_equal(utter_model_find(path, sizeof path, paths[i], cache, &error), UTTER_OK);
        assert_string_equal(path, paths[i]);
    }
    assert_int_equal(utter_model_find(path, sizeof path, "1.7b-bse", NULL, &error), UTTER_E_FILE);
    assert_string_equal(error.text, "1.7b-bse: no such folder, file or model (did you mean 1.7b-base? "
                                    "utter models lists them)");
    assert_int_equal(
        utter_model_find(small, sizeof small, "/tmp/folder", NULL, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_model_find(NULL, 0, NULL, NULL, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_model_find(small, sizeof small, NULL, NULL, &error), UTTER_E_FILE);
}

static void repositories_have_two_words(void **state)
{
    (void)state;
    assert_true(released_is_repository("Qwen/Qwen3-TTS-12Hz-0.6B-Base"));
    static const char *const others[] = {
        "", "a", "a/", "/a", "a/b/c", "a//b", "./a", "../a", "a/..", "a b/c", "~/a", "a/.b", "a?/b"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(released_is_repository(others[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(repositories_are_found),
        cmocka_unit_test(a_revision_has_a_longest_name), cmocka_unit_test(a_revision_is_a_name),
        cmocka_unit_test(the_rest_is_a_path), cmocka_unit_test(repositories_have_two_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
