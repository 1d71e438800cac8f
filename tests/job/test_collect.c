/* SPDX-License-Identifier: Apache-2.0
 * What has a result is collected under its id, with a list of all lines. */
#include "tests/job/beside_submit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void assert_file(const char *path, const char *wanted)
{
    size_t n;
    char *text = support_read_file(support_path(path), &n);
    assert_non_null(text);
    assert_string_equal(text, wanted);
    free(text);
}

static void sounds_are_collected_under_their_ids(void **state)
{
    (void)state;
    struct job job;
    struct job_counts counts;
    utter_error error;
    begin(&job, "collect", ONE "\n" TWO "\n{\"id\":\"c\",\"file\":\"gone\"}\n" THREE "\n" FOUR "\n");
    give(&job, ONE, "done", "sound");
    give(&job, TWO, "not_whole", "other sound");
    give(&job, THREE, "failed", NULL);
    assert_int_equal(job_collect(&job, support_path("collect/out/deep"), &counts, &error), UTTER_OK);
    assert_string_equal(heard.what, "collected");
    assert_counts(&counts, 5, 2, 1, 1, 2);
    assert_file("collect/out/deep/one.wav", "sound");
    assert_file("collect/out/deep/b/two.flac", "other sound");
    assert_int_equal(support_count_files(support_path("collect/out/deep")), 3);
    assert_int_equal(heard.n_faults, 1);
    assert_int_equal(heard.faulty[0], 3);
    size_t n;
    char *list = support_read_file(support_path("collect/out/deep/results.jsonl"), &n), *at = list;
    static const char *const ids[] = {"one", "b/two", "c", "three", "four"};
    static const char *const statuses[] = {"done", "not_whole", "missing", "failed", "missing"};
    for (size_t i = 0; i < 5; i++) {
        char *feed = strchr(at, '\n');
        assert_non_null(feed);
        json_t *line = json_loadb(at, (size_t)(feed - at), 0, NULL);
        assert_non_null(line);
        assert_string_equal(json_string_value(json_object_get(line, "id")), ids[i]);
        assert_string_equal(json_string_value(json_object_get(line, "status")), statuses[i]);
        assert_null(json_object_get(line, "seal"));
        if (i == 2) {
            assert_non_null(strstr(json_string_value(json_object_get(line, "error")), "gone"));
        }
        json_decref(line);
        at = feed + 1;
    }
    assert_int_equal(*at, 0);
    assert_non_null(strstr(list, ",\"third\":0.333333333,\"seconds\":1.5}\n")); /* in nine digits */
    free(list);
    end(&job);
}

static void one_file_is_not_anothers_folder(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"{\"id\":\"a\",\"text\":\"One.\"}", "{\"id\":\"a.wav/b\",\"text\":\"Two.\"}"},
        {"{\"id\":\"c.wav/d\",\"text\":\"One.\"}", "{\"id\":\"c\",\"text\":\"Two.\"}"}};
    for (size_t i = 0; i < 2; i++) {
        char lines[256], wanted[PATH_MAX + 256];
        struct job job;
        struct job_counts counts;
        utter_error error;
        snprintf(lines, sizeof lines, "%s\n%s\n", pairs[i][0], pairs[i][1]);
        begin(&job, "pair", lines);
        give(&job, pairs[i][0], "done", "sound");
        give(&job, pairs[i][1], "done", "sound");
        assert_int_equal(job_collect(&job, support_path("pair/out"), &counts, &error), UTTER_E_FILE);
        snprintf(wanted, sizeof wanted,
            "\"%s\": %s/%s.wav cannot be written: is the file of one line the folder of another? "
            "(choose other ids, or another folder)",
            i ? "c" : "a.wav/b", support_path("pair/out"), i ? "c" : "a.wav/b");
        assert_string_equal(error.text, wanted);
        assert_int_not_equal(access(support_path("pair/out/results.jsonl"), F_OK), 0);
        end(&job);
    }
}

/* A sound's name with its folder has 4,087 bytes before its ending. */
static void a_name_that_is_too_long_is_told(void **state)
{
    (void)state;
    char folder[PATH_MAX], line[2048], id[1001] = "", wanted[2048];
    size_t n = (size_t)snprintf(folder, sizeof folder, "%s", support_path("deep"));
    while (n < 3300) {
        n += (size_t)snprintf(folder + n, sizeof folder - n, "/%0100d", 7);
    }
    for (size_t more = 0; more < 2; more++) {
        struct job job;
        struct job_counts counts;
        utter_error error;
        size_t left = PATH_MAX - 9 - n - 1 + more;
        for (size_t i = 0; i < left; i++) {
            id[i] = i % 100 == 99 && i + 1 < left ? '/' : 'x';
        }
        id[left] = 0;
        snprintf(line, sizeof line, "{\"id\":\"%s\",\"text\":\"One.\"}", id);
        begin(&job, "deep", line);
        give(&job, line, "done", "sound");
        assert_int_equal(job_collect(&job, folder, &counts, &error), more ? UTTER_E_FILE : UTTER_OK);
        snprintf(wanted, sizeof wanted, "%s: the name is too long", id);
        if (more) {
            assert_string_equal(error.text, wanted);
        }
        end(&job);
    }
}

/* Each line of the list is whole, or there is none. */
static void a_list_without_memory_is_not_there(void **state)
{
    (void)state;
    struct job job;
    struct job_counts counts;
    size_t n_bytes;
    begin(&job, "lacks", ONE "\n" THREE "\n");
    give(&job, ONE, "done", "sound");
    assert_int_equal(job_collect(&job, support_path("lacks/whole"), &counts, NULL), UTTER_OK);
    char *whole = support_read_file(support_path("lacks/whole/results.jsonl"), &n_bytes);
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        utter_error error;
        unlink(support_path("lacks/out/results.jsonl"));
        manifest_rewind(&job.manifest);
        utter_status status = job_collect(&job, support_path("lacks/out"), &counts, &error);
        char *list = support_read_file(support_path("lacks/out/results.jsonl"), &n_bytes);
        assert_int_equal(list != NULL, status == UTTER_OK);
        assert_true(status == UTTER_OK || (status == UTTER_E_MEMORY && support_failed()));
        assert_true(!list || strcmp(list, whole) == 0);
        free(list);
    }
    free(whole);
    end(&job);
}

static void a_list_that_cannot_be_written_is_not_there(void **state)
{
    (void)state;
    struct job job;
    struct job_counts counts;
    SUPPORT_EACH_FAILURE(SUPPORT_WRITE, n)
    {
        char folder[64];
        utter_error error;
        begin(&job, "list", ONE "\n");
        snprintf(folder, sizeof folder, "list/out%ld", n);
        utter_status status = job_collect(&job, support_path(folder), &counts, &error);
        assert_int_equal(status, support_failed() ? UTTER_E_IO : UTTER_OK);
        assert_int_equal(support_count_files(support_path(folder)), status == UTTER_OK);
        end(&job);
    }
}

/* A line that is none any more: what it was cannot be told from the others. */
static void a_manifest_that_is_another_is_not_collected(void **state)
{
    (void)state;
    struct job job;
    struct job_counts counts;
    utter_error error;
    begin(&job, "another", ONE "\n{\n" THREE "\n");
    give(&job, ONE, "done", "sound");
    assert_int_equal(job_collect(&job, support_path("another/out"), &counts, &error), UTTER_E_FILE);
    assert_error(&job, &error, "is not as it was submitted");
    assert_int_equal(heard.n_faults, 1);
    assert_int_equal(heard.faulty[0], 2);
    assert_int_equal(counts.lines, 1);
    assert_int_not_equal(access(support_path("another/out/results.jsonl"), F_OK), 0);
    end(&job);
}

static void a_place_that_is_none_is_told(void **state)
{
    (void)state;
    struct job job;
    struct job_counts counts;
    utter_error error;
    char folder[PATH_MAX];
    begin(&job, "place", ONE "\n");
    give(&job, ONE, "done", "sound");
    assert_true(job_collect(&job, support_path("place/lines"), &counts, &error) < 0);
    assert_non_null(strstr(error.text, "place/lines"));
    assert_int_equal(heard.n_told, 0);
    /* A folder for which there is room, but not for the list in it. */
    size_t n = (size_t)snprintf(folder, sizeof folder, "%s", support_path("place/out"));
    memset(folder + n, '/', PATH_MAX - 10 - n);
    folder[PATH_MAX - 10] = 0;
    assert_int_equal(job_collect(&job, folder, &counts, &error), UTTER_E_FILE);
    assert_int_equal(heard.n_told, 0);
    support_fail_from(SUPPORT_OPEN, 1);
    assert_true(job_collect(&job, support_path("place/out"), &counts, &error) < 0);
    assert_true(support_failed());
    support_fail_off();
    assert_int_equal(heard.n_told, 0);
    assert_int_equal(support_count_files(support_path("place/out")), 0);
    end(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sounds_are_collected_under_their_ids),
        cmocka_unit_test(one_file_is_not_anothers_folder),
        cmocka_unit_test(a_name_that_is_too_long_is_told),
        cmocka_unit_test(a_list_without_memory_is_not_there),
        cmocka_unit_test(a_list_that_cannot_be_written_is_not_there),
        cmocka_unit_test(a_manifest_that_is_another_is_not_collected),
        cmocka_unit_test(a_place_that_is_none_is_told),
    };
    return cmocka_run_group_tests_name("collect", tests, NULL, NULL);
}
