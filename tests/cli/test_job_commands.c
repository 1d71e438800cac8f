/* SPDX-License-Identifier: Apache-2.0
 * The commands of utter job, one after the other as people type them: what they print, what they count, and the exit
 * codes that scripts go by. With a small model, a queue and results in folders. */
#include "cli/speak/saying.h"
#include "job/queue.h"
#include "job/results.h"
#include "tests/cli/typed.h"

/* Two frames of every text, which are enough for the first two. */
#define MODEL "build/checkpoints/eos-first"
#define LONG "They looked at each other for a long, long while, and said not one word of it. "
#define LINES                                                                                          \
    "{\"id\":\"one\",\"text\":\"Hi.\"}\n{\"id\":\"two\",\"text\":\"Ho.\",\"format\":\"wav\"}\n"        \
    "{\"id\":\"deep/three\",\"text\":\"" LONG LONG LONG "\"}\n"

static int start(void **state)
{
    support_write_file(support_path("lines"), LINES, sizeof LINES - 1);
    return typed_start(state);
}

/* "results: " and these counts were printed, with the seconds of speech behind them. */
static void assert_counts(const char *counts)
{
    char head[256];
    double seconds = 0;
    int end = 0, n = snprintf(head, sizeof head, "results: %s; ", counts);
    assert_int_equal(strncmp(typed_printed, head, (size_t)n), 0);
    sscanf(typed_printed + n, "%lf s of speech%n", &seconds, &end);
    assert_string_equal(typed_printed + n + end, "\n");
    assert_true(seconds > 0.3 && seconds < 5);
}

#define WITH_MODEL " -m " MODEL
#define QUEUE " --queue @queue"
#define RESULTS " --results @results"

/* ---- What has to be said ---- */

static void what_a_command_lacks_is_told(void **state)
{
    (void)state;
    static const struct {
        unsigned command;
        const char *words, *says;
    } rows[] = {
        {COMMAND_JOB, "", "utter: job: what should it do? (utter job --help)\n"},
        {COMMAND_JOB, "summit",
            "utter: job: 'summit' is none of submit, work, status, retry, collect (utter job "
            "--help)\n"},
        {COMMAND_JOB_SUBMIT, "@lines" RESULTS,
            "utter: job submit: --queue is missing (utter job submit --help)\n"},
        {COMMAND_JOB_SUBMIT, "@lines" QUEUE,
            "utter: job submit: --results is missing (utter job submit --help)\n"},
        {COMMAND_JOB_RETRY, "@lines" QUEUE,
            "utter: job retry: --results is missing (utter job retry --help)\n"},
        {COMMAND_JOB_WORK, QUEUE, "utter: job work: --results is missing (utter job work --help)\n"},
        {COMMAND_JOB_WORK, RESULTS, "utter: job work: --queue is missing (utter job work --help)\n"},
        {COMMAND_JOB_WORK, "", "utter: job work: --queue is missing (utter job work --help)\n"},
        {COMMAND_JOB_STATUS, RESULTS,
            "utter: job status: --queue, or a manifest with --results, says of what\n"},
        {COMMAND_JOB_STATUS, "@lines",
            "utter: job status: --results is missing (utter job status --help)\n"},
        {COMMAND_JOB_COLLECT, "@lines -o @out",
            "utter: job collect: --results is missing (utter job collect --help)\n"},
        {COMMAND_JOB_COLLECT, "@lines" RESULTS,
            "utter: job collect: --output is missing (utter job collect --help)\n"},
        {COMMAND_JOB_SUBMIT, "@lines --seed 9223372036854775808" QUEUE RESULTS,
            "utter: --seed: a line's is 9223372036854775807 at most\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        typed_assert(rows[i].command, rows[i].words, 1, "", rows[i].says);
    }
    assert_int_not_equal(access(support_path("queue"), F_OK), 0);
    assert_int_not_equal(access(support_path("results"), F_OK), 0);
}

/* ---- Lines from the manifest to their sounds ---- */

/* A worker of another machine has taken the first line, and could not make it. */
static void fail_first_line(void)
{
    struct queue *queue;
    struct results *results;
    struct claim claim;
    assert_int_equal(queue_open(&queue, support_path("queue"), false, NULL), UTTER_OK);
    assert_int_equal(results_open(&results, support_path("results"), true, NULL), UTTER_OK);
    assert_int_equal(queue->calls->claim(queue, &claim, NULL), UTTER_OK);
    json_t *about = json_pack("{s:s,s:s,s:s}", "key", claim.key, "status", "failed", "error", "no");
    assert_int_equal(result_tell(results, claim.key, about, NULL), UTTER_OK);
    json_decref(about);
    assert_int_equal(queue->calls->done(queue, &claim, true, NULL), UTTER_OK);
    queue_close(&queue);
    results_close(&results);
}

static void lines_are_submitted_and_made(void **state)
{
    (void)state;
    typed_assert(COMMAND_JOB_SUBMIT, "@lines" QUEUE RESULTS WITH_MODEL, 0,
        "3 lines: 0 have a result, 3 are submitted\n", "");
    typed_assert(COMMAND_JOB_STATUS, QUEUE, 0,
        "queue: 3 lines wait, 0 are being made\n       0 are done, 0 failed\n", "");
    fail_first_line();
    /* What was made lacks words in one. */
    assert_int_equal(typed_run(COMMAND_JOB_WORK,
                         "--until-empty --device cpu --threads 1 --json" QUEUE RESULTS WITH_MODEL),
        EXIT_NOT_WHOLE);
    assert_string_equal(typed_said, "");
    static const struct {
        const char *name;
        int value;
    } made[] = {
        {"made", 2}, {"found", 0}, {"failed", 0}, {"again", 0}, {"given_back", 0}, {"not_whole", 1}};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        assert_true(typed_number(NULL, made[i].name) == made[i].value);
    }
    assert_true(typed_number(NULL, "seconds") > 0.32 && typed_number(NULL, "seconds") < 5);
    assert_true(typed_number(NULL, "took_s") > 0);
    /* Nothing is left to make, and that is no fault. */
    assert_int_equal(
        typed_run(COMMAND_JOB_WORK, "--until-empty --device cpu --threads 1" QUEUE RESULTS WITH_MODEL),
        0);
    assert_string_equal(typed_said,
        "utter: note: 0 lines were made, 0.0 s of speech, 0.00 x real time; 0 had a "
        "result, 0 failed\n");
    typed_assert(COMMAND_JOB_STATUS, QUEUE, 0,
        "queue: 0 lines wait, 0 are being made\n       2 are done, 1 failed\n", "");
    assert_int_equal(typed_run(COMMAND_JOB_STATUS, "@lines" RESULTS WITH_MODEL), 0);
    assert_counts("2 of 3 lines are done, 1 of them not whole; 1 failed, 0 missing");
    assert_string_equal(typed_said, "");
    assert_int_equal(typed_run(COMMAND_JOB_STATUS, "@lines --json" QUEUE RESULTS WITH_MODEL), 0);
    static const struct {
        const char *object, *name;
        int value;
    } there[] = {{"queue", "waiting", 0}, {"queue", "claimed", 0}, {"queue", "done", 2},
        {"queue", "failed", 1}, {"results", "lines", 3}, {"results", "done", 2},
        {"results", "not_whole", 1}, {"results", "failed", 1}, {"results", "missing", 0}};
    for (size_t i = 0; i < sizeof there / sizeof *there; i++) {
        assert_true(typed_number(there[i].object, there[i].name) == there[i].value);
    }
}

/* All lines have a result of a kind by now. */
static void what_failed_may_be_tried_again(void **state)
{
    (void)state;
    typed_assert(COMMAND_JOB_SUBMIT, "@lines" QUEUE RESULTS WITH_MODEL, 0,
        "3 lines: 2 have a result, 0 are submitted\n",
        "utter: note: 1 lines have failed (utter job retry tries them again)\n");
    typed_assert(COMMAND_JOB_SUBMIT, "@lines -q" QUEUE RESULTS WITH_MODEL, 0,
        "3 lines: 2 have a result, 0 are submitted\n", "");
    assert_int_equal(
        typed_run(COMMAND_JOB_COLLECT, "@lines -o @out" RESULTS WITH_MODEL), EXIT_NOT_WHOLE);
    assert_counts("2 of 3 lines are done, 1 of them not whole; 1 failed, 0 missing");
    assert_string_equal(typed_said, "");
    assert_int_not_equal(access(support_path("out/one.flac"), F_OK), 0);
    assert_int_equal(access(support_path("out/two.wav"), F_OK), 0);
    assert_int_equal(access(support_path("out/deep/three.flac"), F_OK), 0);
    assert_int_equal(access(support_path("out/results.jsonl"), F_OK), 0);
    assert_int_equal(typed_run(COMMAND_JOB_RETRY, "@lines --json" QUEUE RESULTS WITH_MODEL), 0);
    assert_true(typed_number(NULL, "lines") == 3 && typed_number(NULL, "done") == 2);
    assert_true(typed_number(NULL, "submitted") == 1 && typed_number(NULL, "not_whole") == 1);
    assert_int_equal(
        typed_run(COMMAND_JOB_WORK, "--until-empty --device cpu --threads 1" QUEUE RESULTS WITH_MODEL),
        0);
    assert_int_equal(strncmp(typed_said, "utter: note: 1 lines were made, 0.2 s of speech, ", 48), 0);
    assert_int_equal(
        typed_run(COMMAND_JOB_COLLECT, "@lines -o @out --json" RESULTS WITH_MODEL), EXIT_NOT_WHOLE);
    assert_true(typed_number(NULL, "done") == 3 && typed_number(NULL, "failed") == 0);
    assert_int_equal(access(support_path("out/one.flac"), F_OK), 0);
}

/* Other options are other lines, which have no result. */
static void results_are_those_of_the_options(void **state)
{
    (void)state;
    static const char none[] =
        "results: 0 of 3 lines are done, 0 of them not whole; 0 failed, 3 missing; 0.0 s of speech\n";
    static const char why[] =
        "utter: note: there is no result of any line: the model, its weights and the options of the "
        "lines are to be those of utter job submit\n";
    typed_assert(
        COMMAND_JOB_COLLECT, "@lines -o @none --seed 1" RESULTS WITH_MODEL, EXIT_NOT_WHOLE, none, why);
    typed_assert(COMMAND_JOB_COLLECT, "@lines -o @none --weights q8" RESULTS WITH_MODEL, EXIT_NOT_WHOLE,
        none, why);
    typed_assert(COMMAND_JOB_COLLECT, "@lines -q -o @none -l german" RESULTS WITH_MODEL, EXIT_NOT_WHOLE,
        none, "");
    typed_assert(COMMAND_JOB_STATUS, "@lines --markup tags" RESULTS WITH_MODEL, 0, none, "");
    /* One that was not given is as it was submitted. */
    assert_int_equal(
        typed_run(COMMAND_JOB_STATUS, "@lines --seed 0 -l auto --quick" RESULTS WITH_MODEL), 0);
    assert_counts("3 of 3 lines are done, 1 of them not whole; 0 failed, 0 missing");
    assert_int_equal(typed_run(COMMAND_JOB_SUBMIT, "@lines -l tlh" QUEUE RESULTS WITH_MODEL), 1);
    assert_non_null(
        strstr(typed_said, "line 1: unknown language \"tlh\" (utter info lists the model's)\n"));
    assert_int_equal(typed_run(COMMAND_JOB_STATUS, "@lines --results @nothing" WITH_MODEL), 1);
    assert_int_equal(typed_run(COMMAND_JOB_STATUS, "--queue @nothing"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_command_lacks_is_told),
        cmocka_unit_test(lines_are_submitted_and_made),
        cmocka_unit_test(what_failed_may_be_tried_again),
        cmocka_unit_test(results_are_those_of_the_options),
    };
    return cmocka_run_group_tests_name("job_commands", tests, start, typed_end);
}
