/* SPDX-License-Identifier: Apache-2.0
 * The worker's lines: who is made when, what their results say, and what is tried again. */
#include "tests/job/beside_worker.h"

static void assert_json(json_t *about, const char *wanted)
{
    json_error_t where;
    json_t *other = json_loads(wanted, 0, &where);
    assert_non_null(other);
    if (!json_equal(about, other)) {
        fail_msg("%s, not %s", json_dumps(about, 0), wanted);
    }
    json_decref(other);
    json_decref(about);
}

/* ---- Lines that are made ---- */

static void a_line_that_is_made_has_its_result(void **state)
{
    (void)state;
    char name[RESULT_NAME], path[PATH_MAX], hash[IDENTITY_SIZE], wanted[2048];
    uint64_t bytes;
    begin("made", 1);
    add(1, "10 a b");
    assert_int_equal(work(), UTTER_OK);
    assert_told(1, 0, 0, 0);
    assert_int_equal(told.not_whole, 0);
    assert_int_equal(told.given_back, 0);
    assert_true(told.seconds == 0.1);
    assert_int_equal(lines[0].state, DONE);
    assert_int_equal(spoken.n_steps, 10);
    result_name(name, lines[0].key, "wav");
    assert_int_equal(results->calls->place(results, name, path, NULL), UTTER_OK);
    assert_int_equal(result_hash(hash, &bytes, path, NULL), UTTER_OK);
    assert_int_equal(bytes, 44 + 2 * 10 * FRAME);
    snprintf(wanted, sizeof wanted,
        "{\"id\":\"line0\",\"key\":\"%s\",\"status\":\"done\",\"format\":\"wav\",\"seconds\":0.1,"
        "\"finish\":"
        "\"eos\",\"pieces\":3,\"retries\":2,\"not_whole\":0,\"words\":null,\"words_approximate\":false,"
        "\"sha256\":\"%s\",\"bytes\":1644,\"error\":null}",
        lines[0].key, hash);
    assert_json(result_of(0, RESULT_DONE), wanted);
    assert_true(heard.n_told >= 10);
    results_close(&results);
}

static void words_are_told_with_their_seconds(void **state)
{
    (void)state;
    begin("words", 1);
    add_rest(1, "3 x", ",\"words\":true");
    add_rest(2, "4 xyz", ",\"words\":true");
    assert_int_equal(work(), UTTER_OK);
    json_t *about = result_of(1, RESULT_DONE);
    assert_true(json_is_true(json_object_get(about, "words_approximate")));
    assert_json(json_incref(json_object_get(about, "words")),
        "[{\"text\":\"4\",\"at\":0,\"bytes\":1,\"start_s\":0.0,\"end_s\":0.005,\"certainty\":0.0,"
        "\"skipped\":"
        "false},{\"text\":\"x\",\"at\":2,\"bytes\":1,\"start_s\":0.01,\"end_s\":0.015,\"certainty\":0."
        "0,"
        "\"skipped\":false},{\"text\":\"z\",\"at\":4,\"bytes\":1,\"start_s\":0.02,\"end_s\":0.03,"
        "\"certainty\":"
        "0.5,\"skipped\":true}]");
    json_decref(about);
    /* A word behind the text's end has no text, and does not read what is not there. */
    about = result_of(0, RESULT_DONE);
    const json_t *words = json_object_get(about, "words");
    assert_int_equal(json_array_size(words), 3);
    assert_string_equal(json_string_value(json_object_get(json_array_get(words, 1), "text")), "x");
    assert_string_equal(json_string_value(json_object_get(json_array_get(words, 2), "text")), "");
    json_decref(about);
    results_close(&results);
}

/* Only of a line with words, and only where the speaker says so. */
static void approximate_words_are_told_as_such(void **state)
{
    (void)state;
    begin("approximate", 1);
    add_rest(1, "1 exact", ",\"words\":true");
    add_rest(2, "1 guess", "");
    add_rest(3, "1 guess", ",\"words\":true");
    assert_int_equal(work(), UTTER_OK);
    for (int i = 0; i < 3; i++) {
        json_t *about = result_of(i, RESULT_DONE);
        assert_int_equal(json_is_true(json_object_get(about, "words_approximate")), i == 2);
        assert_int_equal(json_is_array(json_object_get(about, "words")), i != 1);
        json_decref(about);
    }
    results_close(&results);
}

static void what_may_lack_words_is_told(void **state)
{
    (void)state;
    begin("broken", 2);
    add(1, "2 broken");
    add(2, "2");
    assert_int_equal(work(), UTTER_OK);
    assert_told(2, 0, 0, 0);
    assert_int_equal(told.not_whole, 1);
    assert_true(told.seconds == 0.04);
    assert_result(0, RESULT_DONE, "not_whole");
    assert_result(1, RESULT_DONE, "done");
    results_close(&results);
}

static void lanes_are_filled_and_left_over_behind_the_last_line(void **state)
{
    (void)state;
    begin("lanes", 3);
    for (int i = 0; i < 9; i++) {
        add(i, "4");
    }
    assert_int_equal(work(), UTTER_OK);
    assert_told(9, 0, 0, 0);
    assert_int_equal(spoken.most_now, 3);
    assert_int_equal(queue_is.most_claimed <= 2 * 3 + N_FINISHERS, true);
    assert_string_equal(spoken.order, "0 1 2 3 4 5 6 7 8");
    for (int i = 0; i < 8; i++) {
        assert_int_equal(spoken.lanes[i], 1);
    }
    results_close(&results);
    /* The queue was found empty before the lane was free. */
    begin("last", 2);
    add(1, "1");
    heard.rests_s = 0;
    assert_int_equal(work(), UTTER_OK);
    assert_int_equal(spoken.lanes[0], 2);
    results_close(&results);
}

/* ---- Lines that have a result ---- */

static void what_has_a_result_is_not_made(void **state)
{
    (void)state;
    for (int is_far = 0; is_far < 2; is_far++) {
        begin(is_far ? "far" : "near", 2);
        results->is_far = is_far;
        add(1, "1");
        add(2, "1 argument");
        add(3, "1");
        assert_int_equal(work(), UTTER_OK);
        assert_told(2, 0, 1, 2);
        int n_begun = spoken.n_begun;
        for (int i = 0; i < 3; i++) {
            lines[i].state = WAITS;
            lines[i].tries = 0;
        }
        add(4, "1");
        assert_int_equal(work(), UTTER_OK);
        assert_told(1, 3, 0, 0);
        assert_int_equal(spoken.n_begun, n_begun + 1);
        assert_int_equal(lines[0].state, DONE);
        assert_int_equal(lines[1].state, FAILED);
        assert_int_equal(lines[2].state, DONE);
        assert_int_equal(lines[3].state, DONE);
        assert_true(told.seconds == 0.01);
        results_close(&results);
    }
}

/* A sound that is as long as it was, and another: the whole of it is read. */
static void a_sound_that_was_damaged_is_made_again(void **state)
{
    (void)state;
    char name[RESULT_NAME], path[PATH_MAX];
    size_t n;
    begin("damaged", 1);
    add(1, "2");
    assert_int_equal(work(), UTTER_OK);
    result_name(name, lines[0].key, "wav");
    assert_int_equal(results->calls->place(results, name, path, NULL), UTTER_OK);
    char *sound = support_read_file(path, &n);
    sound[n - 1] ^= 1;
    support_write_file(path, sound, n);
    free(sound);
    lines[0].state = WAITS;
    assert_int_equal(work(), UTTER_OK);
    assert_told(1, 0, 0, 0);
    assert_result(0, RESULT_DONE, "done");
    results_close(&results);
}

static void lines_of_one_sound_are_made_once(void **state)
{
    (void)state;
    begin("once", 4);
    add(1, "3");
    add(1, "3");
    add(2, "3");
    add(1, "3");
    assert_int_equal(work(), UTTER_OK);
    assert_told(2, 2, 0, 0);
    assert_int_equal(spoken.n_begun, 2);
    assert_int_equal(spoken.most_now, 2);
    results_close(&results);
}

/* Twice as many as lanes, and four, of which others wait for the first of their sound. */
static void so_many_lines_are_claimed_at_once(void **state)
{
    (void)state;
    for (int lanes = 1; lanes <= 3; lanes++) {
        char folder[32];
        snprintf(folder, sizeof folder, "claimed%d", lanes);
        begin(folder, lanes);
        for (int i = 0; i < 20; i++) {
            add(1, "3");
        }
        assert_int_equal(work(), UTTER_OK);
        assert_told(1, 19, 0, 0);
        assert_int_equal(queue_is.most_claimed, 2 * lanes + N_FINISHERS);
        results_close(&results);
    }
}

/* A broker gives a line out twice where it must: the first result stays. */
static void a_result_that_came_meanwhile_stays(void **state)
{
    (void)state;
    char name[RESULT_NAME];
    begin("meanwhile", 1);
    add(1, "2 other");
    assert_int_equal(work(), UTTER_OK);
    assert_told(0, 1, 0, 0);
    assert_true(told.seconds == 0);
    assert_int_equal(lines[0].state, DONE);
    result_name(name, lines[0].key, "wav");
    assert_int_equal(results->calls->check(results, name, 5, NULL, NULL), UTTER_OK);
    assert_int_equal(support_count_files(support_path("meanwhile/001")), 2);
    results_close(&results);
}

/* Where an answer takes long, lines are claimed ahead of the lanes. */
static void a_store_far_away_is_asked_ahead(void **state)
{
    (void)state;
    for (int is_far = 0; is_far < 2; is_far++) {
        begin(is_far ? "ahead" : "not-ahead", 2);
        results->is_far = is_far;
        for (int i = 0; i < 12; i++) {
            add(i, "2");
        }
        assert_int_equal(work(), UTTER_OK);
        assert_told(12, 0, 0, 0);
        assert_int_equal(heard.first_claims, is_far ? 2 + N_FINISHERS : 2);
        assert_int_equal(spoken.most_now, 2);
        results_close(&results);
    }
}

/* ---- Lines that fail ---- */

static void a_line_is_tried_so_often(void **state)
{
    (void)state;
    static const char *const ways[] = {"1 argument", "0 refuse", "2 file", "2 internal"};
    static const char *const reasons[] = {"the argument", "refused", "the file", "the internal"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char folder[32], wanted[1024];
        snprintf(folder, sizeof folder, "tried%zu", i);
        begin(folder, 1);
        add(1, ways[i]);
        add(2, "1");
        assert_int_equal(work(), UTTER_OK);
        assert_told(1, 0, 1, 2);
        assert_int_equal(lines[0].state, FAILED);
        assert_int_equal(lines[0].n_backs, 2);
        assert_int_equal(lines[0].n_claims, 3);
        assert_true(told.seconds == 0.01); /* of what failed there is no sound */
        snprintf(wanted, sizeof wanted, "line0: %s: 1\nline0: %s: 2\nline0: %s: 0\n", reasons[i],
            reasons[i], reasons[i]);
        assert_string_equal(heard.notes, wanted);
        snprintf(wanted, sizeof wanted,
            "{\"id\":\"line0\",\"key\":\"%s\",\"status\":\"failed\",\"seconds\":0.0,\"tries\":3,"
            "\"error\":\"%s\"}",
            lines[0].key, reasons[i]);
        assert_json(result_of(0, RESULT_FAILED), wanted);
        results_close(&results);
    }
}

static void what_is_no_line_fails_too(void **state)
{
    (void)state;
    char wanted[1024];
    begin("noline", 1);
    add(1, "1");
    strcpy(lines[0].wire, "{}");
    assert_int_equal(work(), UTTER_OK);
    assert_told(0, 0, 1, 2);
    json_t *about = result_of(0, RESULT_FAILED);
    snprintf(wanted, sizeof wanted, ": %s: 0\n", json_string_value(json_object_get(about, "error")));
    assert_string_equal(json_string_value(json_object_get(about, "id")), "");
    assert_non_null(strstr(heard.notes, wanted));
    json_decref(about);
    results_close(&results);
}

static void a_line_that_workers_die_of_fails(void **state)
{
    (void)state;
    begin("deadly", 1);
    add(1, "1");
    add(2, "1");
    lines[0].deaths = 30;
    lines[1].deaths = 29;
    assert_int_equal(work(), UTTER_OK);
    assert_told(1, 0, 1, 0);
    assert_string_equal(heard.notes, "line0: 30 workers have died, or ended, while they made it: 0\n");
    assert_int_equal(spoken.n_begun, 1);
    json_t *about = result_of(0, RESULT_FAILED);
    assert_int_equal(json_integer_value(json_object_get(about, "tries")), 1);
    json_decref(about);
    assert_result(1, RESULT_DONE, "done");
    results_close(&results);
}

static void a_suspect_is_made_alone(void **state)
{
    (void)state;
    for (int deaths = 1; deaths <= 2; deaths++) {
        char folder[32];
        snprintf(folder, sizeof folder, "suspect%d", deaths);
        begin(folder, 3);
        add(1, "6");
        add(2, "3");
        add(3, "6");
        lines[1].deaths = deaths;
        assert_int_equal(work(), UTTER_OK);
        assert_told(3, 0, 0, 0);
        assert_string_equal(spoken.order, "0 1 2");
        assert_int_equal(spoken.most_now, deaths == 2 ? 1 : 3);
        results_close(&results);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_that_is_made_has_its_result),
        cmocka_unit_test(words_are_told_with_their_seconds),
        cmocka_unit_test(approximate_words_are_told_as_such),
        cmocka_unit_test(what_may_lack_words_is_told),
        cmocka_unit_test(lanes_are_filled_and_left_over_behind_the_last_line),
        cmocka_unit_test(what_has_a_result_is_not_made),
        cmocka_unit_test(a_sound_that_was_damaged_is_made_again),
        cmocka_unit_test(lines_of_one_sound_are_made_once),
        cmocka_unit_test(so_many_lines_are_claimed_at_once),
        cmocka_unit_test(a_result_that_came_meanwhile_stays),
        cmocka_unit_test(a_store_far_away_is_asked_ahead),
        cmocka_unit_test(a_line_is_tried_so_often),
        cmocka_unit_test(what_is_no_line_fails_too),
        cmocka_unit_test(a_line_that_workers_die_of_fails),
        cmocka_unit_test(a_suspect_is_made_alone),
    };
    return cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}
