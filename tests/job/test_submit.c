/* SPDX-License-Identifier: Apache-2.0
 * Passes over a manifest: all of it is checked, and what has no result is submitted. */
#include "tests/job/beside_submit.h"

#include <stdlib.h>
#include <string.h>

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
        /* Nor has a line changed because of it. */
        struct job_counts counts;
        struct queue *queue = queue_of("fault");
        heard.n_faults = 0;
        assert_int_equal(job_submit(&job, queue, &counts, &error), cases[i].status);
        assert_int_equal(heard.n_faults, cases[i].n_faults > 0);
        assert_int_equal(
            strstr(error.text, "has changed since it was checked") != NULL, heard.n_faults);
        queue_close(&queue);
        end(&job);
    }
}

/* What cannot be read any further is told in its own words, unless faults were found before. */
static void a_line_without_an_end_ends_the_check(void **state)
{
    (void)state;
    const size_t n = LINE_BYTES + 16;
    char *lines = malloc(n);
    assert_non_null(lines);
    memset(lines, ' ', n);
    lines[n - 1] = 0;
    for (int faulty = 0; faulty < 2; faulty++) {
        struct job job;
        utter_error error;
        memcpy(lines, faulty ? "x\n" : " \n", 2);
        begin(&job, "endless", lines);
        assert_int_equal(job_check(&job, &error), UTTER_E_ARGUMENT);
        assert_error(&job, &error,
            faulty ? "1 lines are wrong; nothing was submitted" : "line 2 is longer than 4 MB");
        assert_int_equal(heard.n_faults, faulty);
        end(&job);
    }
    free(lines);
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
    begin(&job, "submit", ONE "\n" TWO "\n" THREE "\n" FOUR "\n" FIVE "\n");
    give(&job, ONE, "done", "sound");
    give(&job, FIVE, "done", "a third sound");
    give(&job, TWO, "not_whole", "other sound");
    give(&job, THREE, "failed", NULL);
    struct queue *queue = queue_of("submit");
    assert_int_equal(job_submit(&job, queue, &counts, &error), UTTER_OK);
    assert_string_equal(heard.what, "submitted");
    assert_counts(&counts, 5, 3, 1, 1, 1);
    queue_close(&queue);
    assert_waiting("submit", "four");
    /* Who is quick counts the same. */
    queue = queue_of("submit");
    job.quick = true;
    assert_int_equal(job_submit(&job, queue, &counts, &error), UTTER_OK);
    assert_counts(&counts, 5, 3, 1, 1, 1);
    queue_close(&queue);
    job.quick = false;
    /* A second pass takes the place of the first; what has failed is done again where that is wanted. */
    queue = queue_of("submit");
    job.retry = true;
    assert_int_equal(job_submit(&job, queue, &counts, &error), UTTER_OK);
    assert_counts(&counts, 5, 3, 1, 1, 2);
    queue_close(&queue);
    assert_waiting("submit", "three four");
    assert_int_equal(job_collect(&job, NULL, &counts, &error), UTTER_OK);
    assert_counts(&counts, 5, 3, 1, 0, 2);
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
    /* And so does another manifest. */
    begin(&job, "options/other", ONE "\n");
    queue = queue_of("options");
    assert_int_equal(job_submit(&job, queue, &counts, NULL), UTTER_OK);
    assert_int_equal(queue->calls->count(queue, &waiting, NULL), UTTER_OK);
    assert_int_equal(waiting.waiting, 9);
    queue_close(&queue);
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
    queue_close(&queue);
    manifest_close(&job.manifest); /* one that cannot be read to its end */
    char *lines = malloc(LINE_BYTES + 2);
    assert_non_null(lines);
    memset(lines, ' ', LINE_BYTES + 1);
    support_write_file(support_path("far/lines"), lines, LINE_BYTES + 1);
    free(lines);
    assert_int_equal(manifest_open(&job.manifest, support_path("far/lines"), NULL), UTTER_OK);
    queue = queue_of("far");
    assert_int_equal(job_submit(&job, queue, &counts, &error), UTTER_E_ARGUMENT);
    assert_int_equal(far.n_looks, 3);
    manifest_close(&job.manifest);
    support_write_file(support_path("far/lines"), ONE, strlen(ONE));
    assert_int_equal(manifest_open(&job.manifest, support_path("far/lines"), NULL), UTTER_OK);
    far.status = UTTER_E_IO;
    assert_int_equal(job_submit(&job, queue, &counts, &error), UTTER_E_IO);
    assert_string_equal(error.text, "far away");
    assert_int_equal(far.n_texts, 8);
    queue_close(&queue);
    job.results = NULL;
    end(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manifest_is_checked_as_a_whole),
        cmocka_unit_test(the_first_twenty_faults_are_told),
        cmocka_unit_test(what_is_no_lines_fault_ends_the_check),
        cmocka_unit_test(a_line_without_an_end_ends_the_check),
        cmocka_unit_test(whoever_stops_a_pass_is_told),
        cmocka_unit_test(what_has_no_result_is_submitted),
        cmocka_unit_test(without_results_all_is_submitted),
        cmocka_unit_test(other_options_are_another_submission),
        cmocka_unit_test(a_line_that_has_changed_is_not_submitted),
        cmocka_unit_test(a_store_is_looked_at_once),
    };
    return cmocka_run_group_tests_name("submit", tests, NULL, NULL);
}
