/* SPDX-License-Identifier: Apache-2.0
 * Passes over a manifest: all of it is checked, what has no result is submitted, what has one is collected. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "job/submit.h"

/* ---- A job on folders of its own ---- */

static struct {
    int stops_at; /* the line at which it is stopped; 0: none */
    int n_stops, n_told, n_faults;
    uint64_t faulty[64];
    char faults[64][512];
    char what[32];
} heard;

static bool stop(void)
{
    return ++heard.n_stops == heard.stops_at;
}

static void told(void *user, const char *what, const struct manifest *manifest)
{
    assert_ptr_equal(user, &heard);
    assert_true(manifest->number > 0);
    heard.n_told++;
    snprintf(heard.what, sizeof heard.what, "%s", what);
}

static void fault(void *user, uint64_t number, const utter_error *error)
{
    assert_ptr_equal(user, &heard);
    assert_true(heard.n_faults < 64);
    heard.faulty[heard.n_faults] = number;
    snprintf(heard.faults[heard.n_faults++], sizeof heard.faults[0], "%.500s", error->text);
}

static utter_status language_status;

static utter_status check_language(void *user, const char *name, utter_error *error)
{
    (void)user;
    return language_status ? error_set(error, language_status, "%s: unknown", name) : UTTER_OK;
}

static utter_status hash_voice(
    void *user, const char *name, char hash[IDENTITY_SIZE], utter_error *error)
{
    (void)user, (void)error;
    identity_of_bytes(hash, name, strlen(name));
    return UTTER_OK;
}

static utter_status hash_called(
    void *user, const struct line *line, char hash[IDENTITY_SIZE], utter_error *error)
{
    (void)user, (void)line, (void)error;
    identity_of_bytes(hash, "", 0);
    return UTTER_OK;
}

/* A job about these lines, in a folder that is made. */
static void begin(struct job *job, const char *folder, const char *lines)
{
    char path[256];
    memset(&heard, 0, sizeof heard);
    language_status = UTTER_OK;
    mkdir(support_path(folder), 0700);
    snprintf(path, sizeof path, "%s/lines", folder);
    support_write_file(support_path(path), lines, strlen(lines));
    *job = (struct job){.rules = {.defaults = {.format = "wav"},
                            .model = "a model",
                            .folder = support_path(folder),
                            .check_language = check_language,
                            .hash_voice = hash_voice,
                            .hash_called = hash_called},
        .stop = stop,
        .told = told,
        .fault = fault,
        .user = &heard};
    assert_int_equal(manifest_open(&job->manifest, support_path(path), NULL), UTTER_OK);
    snprintf(path, sizeof path, "%s/results", folder);
    assert_int_equal(results_open(&job->results, support_path(path), true, NULL), UTTER_OK);
}

static void end(struct job *job)
{
    manifest_close(&job->manifest);
    results_close(&job->results);
}

static struct queue *queue_of(const char *folder)
{
    char path[256];
    struct queue *queue;
    snprintf(path, sizeof path, "%s/queue", folder);
    assert_int_equal(queue_open(&queue, support_path(path), true, NULL), UTTER_OK);
    return queue;
}

/* Gives the line of this text a result: a sound, or with NULL a failure. */
static void give(struct job *job, const char *text, const char *status, const char *sound)
{
    char key[IDENTITY_SIZE], hash[IDENTITY_SIZE], name[RESULT_NAME], path[PATH_MAX], *wire;
    struct line line;
    assert_int_equal(line_parse(&line, &job->rules.defaults, text, strlen(text), NULL), UTTER_OK);
    assert_int_equal(line_complete(&line, &job->rules, key, &wire, NULL), UTTER_OK);
    json_t *about = json_pack("{s:s,s:s,s:s}", "id", "of another", "key", key, "status", status);
    if (sound) {
        identity_of_bytes(hash, sound, strlen(sound));
        json_object_set_new(about, "sha256", json_string(hash));
        json_object_set_new(about, "bytes", json_integer((json_int_t)strlen(sound)));
        json_object_set_new(about, "format", json_string(line.format));
        json_object_set_new(about, "seconds", json_real(1.5));
        result_name(name, key, line.format);
        assert_int_equal(job->results->calls->place(job->results, name, path, NULL), UTTER_OK);
        support_write_file(path, sound, strlen(sound));
    } else {
        json_object_set_new(about, "error", json_string("it would not"));
    }
    assert_int_equal(result_tell(job->results, key, about, NULL), UTTER_OK);
    json_decref(about);
    memory_plain_free(wire);
    line_free(&line);
}

static void assert_counts(const struct job_counts *c, uint64_t lines, uint64_t done, uint64_t not_whole,
    uint64_t failed, uint64_t missing)
{
    assert_int_equal(c->lines, lines);
    assert_int_equal(c->done, done);
    assert_int_equal(c->not_whole, not_whole);
    assert_int_equal(c->failed, failed);
    assert_int_equal(c->missing, missing);
    assert_true(c->seconds == 1.5 * (double)done);
}

/* What the manifest's error begins with. */
static void assert_error(const struct job *job, const utter_error *error, const char *rest)
{
    char wanted[PATH_MAX + 256];
    snprintf(wanted, sizeof wanted, "%s: %s", job->manifest.path, rest);
    assert_string_equal(error->text, wanted);
}

#define ONE "{\"id\":\"one\",\"text\":\"One.\"}"
#define TWO "{\"id\":\"b/two\",\"text\":\"Two.\",\"format\":\"flac\"}"
#define THREE "{\"id\":\"three\",\"text\":\"Three.\"}"
#define FOUR "{\"id\":\"four\",\"text\":\"Four.\"}"

/* ---- The check ---- */

static void a_manifest_is_checked_as_a_whole(void **state)
{
    (void)state;
    struct job job;
    utter_error error;
    begin(&job, "check", ONE "\n\n" TWO "\n" THREE);
    assert_int_equal(job_check(&job, &error), UTTER_OK);
    assert_int_equal(heard.n_told, 3);
    assert_int_equal(heard.n_stops, 3);
    assert_string_equal(heard.what, "checked");
    assert_int_equal(job.manifest.number, 0); /* from the begin again */
    end(&job);
    begin(&job, "check", ONE "\n{\n" TWO "\n{\"id\":\"x\"}\n");
    assert_int_equal(job_check(&job, &error), UTTER_E_ARGUMENT);
    assert_error(&job, &error, "2 lines are wrong; nothing was submitted");
    assert_int_equal(heard.n_faults, 2);
    assert_int_equal(heard.faulty[0], 2);
    assert_int_equal(heard.faulty[1], 4);
    assert_string_equal(heard.faults[1], "it has none of \"text\" and \"file\" (give one of them)");
    end(&job);
    begin(&job, "check", ONE "\n" TWO "\n" ONE "\n");
    assert_int_equal(job_check(&job, &error), UTTER_E_ARGUMENT);
    assert_error(&job, &error, "lines 1 and 3 have one \"id\"");
    assert_int_equal(job.manifest.number, 0);
    end(&job);
    begin(&job, "check", "\n \n");
    assert_int_equal(job_check(&job, &error), UTTER_E_ARGUMENT);
    assert_error(&job, &error, "there is no line in it");
    end(&job);
}

static void the_first_twenty_faults_are_told(void **state)
{
    (void)state;
    static const int numbers[] = {1, 19, 20, 21};
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
        const int n = numbers[k];
        char lines[64] = "", wanted[64];
        struct job job;
        utter_error error;
        memset(lines, 'x', 2 * (size_t)n);
        for (int i = 0; i < n; i++) {
            lines[2 * i + 1] = '\n';
        }
        begin(&job, "faults", lines);
        assert_int_equal(job_check(&job, &error), UTTER_E_ARGUMENT);
        snprintf(wanted, sizeof wanted, "%s%d lines are wrong; nothing was submitted",
            n < 20 ? "" : "at least ", n < 20 ? n : 20);
        assert_error(&job, &error, wanted);
        assert_int_equal(heard.n_faults, n < 20 ? n : 20);
        assert_int_equal(job.manifest.number, 0);
        end(&job);
    }
}

static void what_is_no_lines_fault_ends_the_check(void **state)
{
    (void)state;
    static const struct {
        utter_status status;
        int n_faults;
        utter_status ends;
    } cases[] = {{UTTER_E_ARGUMENT, 2, UTTER_E_ARGUMENT}, {UTTER_E_FILE, 2, UTTER_E_ARGUMENT},
        {UTTER_E_MODEL, 2, UTTER_E_ARGUMENT}, {UTTER_E_MEMORY, 0, UTTER_E_MEMORY},
        {UTTER_E_IO, 0, UTTER_E_IO}, {UTTER_E_CANCELLED, 0, UTTER_E_CANCELLED}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct job job;
        utter_error error;
        begin(&job, "fault", ONE "\n" TWO "\n");
        job.rules.defaults.language = "klingon";
        language_status = cases[i].status;
        assert_int_equal(job_check(&job, &error), cases[i].ends);
        assert_int_equal(heard.n_faults, cases[i].n_faults);
        end(&job);
    }
}

static void whoever_stops_a_pass_is_told(void **state)
{
    (void)state;
    struct job job;
    struct job_counts counts;
    utter_error error;
    begin(&job, "stop", ONE "\n" TWO "\n");
    heard.stops_at = 2;
    assert_int_equal(job_check(&job, &error), UTTER_E_CANCELLED);
    assert_string_equal(error.text, "interrupted");
    assert_int_equal(heard.n_told, 1);
    heard.stops_at = heard.n_stops + 2;
    assert_int_equal(job_collect(&job, NULL, &counts, &error), UTTER_E_CANCELLED);
    assert_string_equal(error.text, "interrupted");
    assert_int_equal(counts.lines, 1);
    end(&job);
}

/* ---- Submissions ---- */

/* What the queue gives out, as the ids of its lines. */
static void assert_waiting(const char *folder, const char *wanted)
{
    struct queue *queue = queue_of(folder);
    struct claim claims[8];
    char ids[256] = "";
    int n = 0;
    while (queue->calls->claim(queue, &claims[n], NULL) == UTTER_OK) {
        struct line line;
        assert_int_equal(line_take(&line, claims[n].wire, claims[n].bytes, NULL), UTTER_OK);
        strcat(strcat(ids, ids[0] ? " " : ""), line.id);
        line_free(&line);
        n++;
    }
    assert_string_equal(ids, wanted);
    queue_close(&queue);
}

static void what_has_no_result_is_submitted(void **state)
{
    (void)state;
    struct job job;
    struct job_counts counts;
    utter_error error;
    begin(&job, "submit", ONE "\n" TWO "\n" THREE "\n" FOUR "\n");
    give(&job, ONE, "done", "sound");
    give(&job, TWO, "not_whole", "other sound");
    give(&job, THREE, "failed", NULL);
    struct queue *queue = queue_of("submit");
    assert_int_equal(job_submit(&job, queue, &counts, &error), UTTER_OK);
    assert_string_equal(heard.what, "submitted");
    assert_counts(&counts, 4, 2, 1, 1, 1);
    queue_close(&queue);
    assert_waiting("submit", "four");
    /* A second pass takes the place of the first; what has failed is done again where that is wanted. */
    queue = queue_of("submit");
    job.retry = true;
    assert_int_equal(job_submit(&job, queue, &counts, &error), UTTER_OK);
    assert_counts(&counts, 4, 2, 1, 1, 2);
    queue_close(&queue);
    assert_waiting("submit", "three four");
    assert_int_equal(job_collect(&job, NULL, &counts, &error), UTTER_OK);
    assert_counts(&counts, 4, 2, 1, 0, 2);
    assert_string_equal(heard.what, "looked at");
    end(&job);
}

static void without_results_all_is_submitted(void **state)
{
    (void)state;
    struct job job;
    struct job_counts counts;
    begin(&job, "bare", ONE "\n" TWO "\n");
    results_close(&job.results);
    struct queue *queue = queue_of("bare");
    assert_int_equal(job_submit(&job, queue, &counts, NULL), UTTER_OK);
    assert_counts(&counts, 2, 0, 0, 0, 2);
    queue_close(&queue);
    assert_waiting("bare", "one b/two");
    end(&job);
}

/* Each of what the key depends on and what the lines do not say makes another submission. */
static void other_options_are_another_submission(void **state)
{
    (void)state;
    struct job job;
    struct job_counts counts;
    struct queue_counts waiting;
    begin(&job, "options", ONE "\n");
    struct queue *queue;
    const struct line_defaults plain = job.rules.defaults;
    const char **const places[] = {&job.rules.model, &job.rules.defaults.voice,
        &job.rules.defaults.language, &job.rules.defaults.instruct, &job.rules.defaults.format,
        &job.rules.defaults.markup};
    for (uint64_t i = 0; i <= 7; i++) {
        job.rules.defaults = plain;
        job.rules.model = "a model";
        job.rules.defaults.seed = i == 7;
        if (i > 0 && i < 7) {
            *places[i - 1] = i == 5 ? "ogg" : i == 6 ? "none" : "other";
        }
        for (int round = 0; round < 2; round++) { /* the second takes the place of the first */
            queue = queue_of("options");
            assert_int_equal(job_submit(&job, queue, &counts, NULL), UTTER_OK);
            assert_int_equal(queue->calls->count(queue, &waiting, NULL), UTTER_OK);
            assert_int_equal(waiting.waiting, i + 1);
            queue_close(&queue);
        }
    }
    end(&job);
}

static void a_line_that_has_changed_is_not_submitted(void **state)
{
    (void)state;
    struct job job;
    struct job_counts counts;
    utter_error error;
    begin(&job, "changed", ONE "\n{\"id\":\"b\",\"file\":\"gone\"}\n");
    struct queue *queue = queue_of("changed");
    assert_int_equal(job_submit(&job, queue, &counts, &error), UTTER_E_FILE);
    assert_error(&job, &error, "has changed since it was checked");
    assert_int_equal(heard.n_faults, 1);
    assert_int_equal(heard.faulty[0], 2);
    queue_close(&queue);
    assert_waiting("changed", "");
    end(&job);
}

/* ---- A store far away ---- */

static struct {
    uint64_t n_lines;
    int n_looks, n_texts, n_believed;
    utter_status status;
} far;

static utter_status look_at_all(struct results *results, uint64_t n_lines, utter_error *error)
{
    (void)results;
    far.n_lines = n_lines;
    far.n_looks++;
    return far.status ? error_set(error, far.status, "far away") : UTTER_OK;
}

static bool is_believed(const struct results *results, const char *key)
{
    (void)results, (void)key;
    far.n_believed++;
    return far.n_believed == 1;
}

static utter_status far_text(
    struct results *results, const char *name, char **text, size_t *bytes, utter_error *error)
{
    (void)results, (void)name, (void)text, (void)bytes, (void)error;
    far.n_texts++;
    return UTTER_AGAIN;
}

static void a_store_is_looked_at_once(void **state)
{
    (void)state;
    static const struct results_calls calls = {
        .look_at_all = look_at_all, .is_believed = is_believed, .text = far_text};
    struct results store = {.calls = &calls, .is_far = true};
    struct job job;
    struct job_counts counts;
    utter_error error;
    memset(&far, 0, sizeof far);
    begin(&job, "far", ONE "\n" TWO "\n\n" THREE "\n");
    results_close(&job.results);
    job.results = &store;
    job.quick = true;
    struct queue *queue = queue_of("far");
    assert_int_equal(job_submit(&job, queue, &counts, &error), UTTER_OK);
    assert_int_equal(far.n_looks, 1);
    assert_int_equal(far.n_lines, 3);
    assert_int_equal(far.n_believed, 3);
    assert_int_equal(far.n_texts, 2); /* of the two that are not believed */
    assert_int_equal(counts.done, 1);
    assert_int_equal(counts.missing, 2);
    /* Who collects wants more than that it is there, and who is not quick asks for each. */
    assert_int_equal(job_collect(&job, NULL, &counts, &error), UTTER_OK);
    assert_int_equal(far.n_looks, 2);
    assert_int_equal(far.n_believed, 3);
    assert_int_equal(far.n_texts, 5);
    assert_int_equal(counts.missing, 3);
    job.quick = false;
    queue_close(&queue);
    queue = queue_of("far");
    assert_int_equal(job_submit(&job, queue, &counts, &error), UTTER_OK);
    assert_int_equal(far.n_believed, 3);
    assert_int_equal(far.n_texts, 8);
    far.status = UTTER_E_IO;
    assert_int_equal(job_submit(&job, queue, &counts, &error), UTTER_E_IO);
    assert_string_equal(error.text, "far away");
    assert_int_equal(far.n_texts, 8);
    queue_close(&queue);
    job.results = NULL;
    end(&job);
}

/* ---- Collecting ---- */

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
        assert_true(job_collect(&job, support_path("pair/out"), &counts, &error) < 0);
        if (i == 1) {
            snprintf(wanted, sizeof wanted,
                "\"c\": %s/c.wav cannot be written: is the file of one line the folder of another? "
                "(choose "
                "other ids, or another folder)",
                support_path("pair/out"));
            assert_string_equal(error.text, wanted);
        }
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manifest_is_checked_as_a_whole),
        cmocka_unit_test(the_first_twenty_faults_are_told),
        cmocka_unit_test(what_is_no_lines_fault_ends_the_check),
        cmocka_unit_test(whoever_stops_a_pass_is_told),
        cmocka_unit_test(what_has_no_result_is_submitted),
        cmocka_unit_test(without_results_all_is_submitted),
        cmocka_unit_test(other_options_are_another_submission),
        cmocka_unit_test(a_line_that_has_changed_is_not_submitted),
        cmocka_unit_test(a_store_is_looked_at_once),
        cmocka_unit_test(sounds_are_collected_under_their_ids),
        cmocka_unit_test(one_file_is_not_anothers_folder),
        cmocka_unit_test(a_name_that_is_too_long_is_told),
        cmocka_unit_test(a_list_that_cannot_be_written_is_not_there),
    };
    return cmocka_run_group_tests_name("submit", tests, NULL, NULL);
}
