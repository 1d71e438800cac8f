/* SPDX-License-Identifier: Apache-2.0
 * What ends a worker and what becomes of its lines then; when it asks, rests and extends its claims. */
#include "tests/job/beside_worker.h"

/* ---- What ends the worker ---- */

static void a_machine_that_fails_ends_the_worker(void **state)
{
    (void)state;
    static const struct {
        const char *way;
        utter_status status;
        int deaths; /* what counts for each line that was being spoken */
    } cases[] = {{"2 memory", UTTER_E_MEMORY, 1}, {"2 device", UTTER_E_DEVICE, 1},
        {"2 io", UTTER_E_IO, 0}, {"2 cancelled", UTTER_E_CANCELLED, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char folder[32], wanted[64];
        snprintf(folder, sizeof folder, "fails%zu", i);
        begin(folder, 2);
        add(1, "9");
        add(2, cases[i].way);
        add(3, "9");
        assert_int_equal(work(), cases[i].status);
        snprintf(wanted, sizeof wanted, "the %s", cases[i].way + 2);
        assert_string_equal(why.text, wanted);
        assert_told(0, 0, 0, 0);
        assert_string_equal(heard.notes, "");
        for (int k = 0; k < 3; k++) {
            assert_int_equal(lines[k].state, WAITS);
            assert_int_equal(lines[k].tries, 0);
            assert_int_equal(lines[k].deaths, k < 2 ? cases[i].deaths : 0);
        }
        results_close(&results);
    }
}

static void a_step_that_fails_ends_the_worker(void **state)
{
    (void)state;
    begin("step", 2);
    add(1, "9");
    add(2, "9");
    spoken.step_status = UTTER_E_DEVICE;
    assert_int_equal(work(), UTTER_E_DEVICE);
    assert_string_equal(why.text, "no step");
    assert_int_equal(spoken.n_steps, 1);
    assert_int_equal(lines[0].deaths + lines[1].deaths, 2);
    results_close(&results);
}

static void a_worker_that_lacks_what_lines_need_ends(void **state)
{
    (void)state;
    begin("misfit", 2);
    add(1, "1 misfit");
    add(2, "5");
    assert_int_equal(work(), UTTER_E_ARGUMENT);
    assert_string_equal(why.text, "another's");
    assert_string_equal(heard.notes, "");
    assert_int_equal(lines[0].state, WAITS);
    assert_int_equal(lines[0].tries, 0);
    assert_int_equal(lines[0].deaths, 0);
    results_close(&results);
}

static void a_queue_that_fails_ends_the_worker(void **state)
{
    (void)state;
    utter_status *const places[] = {
        &queue_is.claim_status, &queue_is.count_status, &queue_is.done_status};
    static const char *const texts[] = {"no claim", "no count", "not done"};
    for (size_t i = 0; i < 3; i++) {
        char folder[32];
        snprintf(folder, sizeof folder, "queue%zu", i);
        begin(folder, 1);
        add(1, "1");
        *places[i] = UTTER_E_IO;
        assert_int_equal(work(), UTTER_E_IO);
        assert_string_equal(why.text, texts[i]);
        assert_int_equal(heard.n_rests, 0);
        results_close(&results);
    }
}

static void a_result_that_cannot_be_written_ends_the_worker(void **state)
{
    (void)state;
    begin("blocked", 1);
    add(1, "1");
    support_write_file(support_path("blocked/001"), "", 0); /* where the folder of the key would be */
    assert_int_equal(work(), UTTER_E_IO);
    assert_non_null(strstr(why.text, "blocked/001"));
    assert_int_equal(lines[0].state, WAITS);
    assert_int_equal(lines[0].tries, 0);
    results_close(&results);
}

static utter_status keeps;

static utter_status keep_as_told(
    struct results *r, const char *name, const char *path, utter_error *error)
{
    (void)r, (void)path;
    return error_set(error, keeps, "%s is not kept", name + strlen(name) - 4);
}

/* What no other line would fare better with is a fault of the machine, whatever it is called. */
static void a_result_that_cannot_be_kept_ends_the_worker(void **state)
{
    (void)state;
    static const struct {
        utter_status keeps, ends;
    } cases[] = {{UTTER_E_FILE, UTTER_E_IO}, {UTTER_E_ARGUMENT, UTTER_E_IO}, {UTTER_E_IO, UTTER_E_IO},
        {UTTER_E_MEMORY, UTTER_E_MEMORY}, {UTTER_E_CANCELLED, UTTER_E_CANCELLED}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char folder[32];
        snprintf(folder, sizeof folder, "kept%zu", i);
        begin(folder, 1);
        add(1, "1");
        const struct results_calls *usual = results->calls;
        struct results_calls failing = *usual;
        failing.keep = keep_as_told;
        results->calls = &failing;
        keeps = cases[i].keeps;
        assert_int_equal(work(), cases[i].ends);
        assert_string_equal(why.text, ".wav is not kept");
        assert_told(0, 0, 0, 0);
        assert_int_equal(lines[0].n_backs, 1);
        assert_int_equal(lines[0].tries + lines[0].deaths, 0);
        assert_string_equal(heard.notes, "");
        results->calls = usual;
        results_close(&results);
    }
}

static void a_signal_ends_what_is_not_spoken(void **state)
{
    (void)state;
    begin("signal", 2);
    add(1, "1");
    add(2, "1000");
    add(3, "1000");
    heard.stops_at = 5;
    assert_int_equal(work(), UTTER_OK);
    assert_told(1, 0, 0, 0);
    assert_int_equal(lines[0].state, DONE);
    assert_int_equal(lines[1].state, WAITS);
    assert_int_equal(lines[2].state, WAITS);
    assert_int_equal(lines[1].tries + lines[1].deaths + lines[2].tries + lines[2].deaths, 0);
    assert_result(0, RESULT_DONE, "done");
    assert_int_equal(heard.n_stops, 5);
    results_close(&results);
}

/* What is only looked for is nobody's try either. */
static void a_signal_gives_back_what_is_looked_for(void **state)
{
    (void)state;
    begin("looking", 1);
    results->is_far = true;
    add(1, "1");
    add(2, "1");
    heard.stops_at = 2;
    assert_int_equal(work(), UTTER_OK);
    assert_told(0, 0, 0, 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(lines[i].state, WAITS);
        assert_int_equal(lines[i].n_claims, 1);
        assert_int_equal(lines[i].tries + lines[i].deaths, 0);
    }
    assert_int_equal(spoken.n_begun, 0);
    results_close(&results);
}

/* ---- Time ---- */

static void a_server_that_will_not_now_is_asked_a_second_later(void **state)
{
    (void)state;
    begin("away", 1);
    add(1, "2 away");
    spoken.away = true;
    heard.rests_s = 0.3;
    assert_int_equal(work(), UTTER_OK);
    assert_told(1, 0, 0, 0);
    assert_int_equal(told.given_back, 1);
    assert_int_equal(lines[0].tries, 0);
    assert_int_equal(lines[0].n_claims, 2);
    assert_int_equal(heard.n_rests, 4);
    assert_string_equal(heard.notes, "");
    assert_true(told.seconds == 0.02);
    results_close(&results);
}

static void claims_are_extended_every_five_seconds(void **state)
{
    (void)state;
    static const struct {
        double step_s;
        int least, most;
    } cases[] = {{0, 0, 0}, {5.001, 9, 10}, {4.999, 4, 5}, {2.501, 4, 5}, {2.499, 3, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char folder[32];
        snprintf(folder, sizeof folder, "extend%zu", i);
        begin(folder, 2);
        add(1, "10");
        add(2, "10");
        spoken.step_s = cases[i].step_s;
        assert_int_equal(work(), UTTER_OK);
        for (int k = 0; k < 2; k++) { /* once more where its result was not complete yet */
            assert_in_range(lines[k].n_extends, cases[i].least, cases[i].most);
        }
        results_close(&results);
    }
}

/* While it speaks, as the queue wants it; else every fifth of a second. */
static void an_empty_queue_is_asked_now_and_then(void **state)
{
    (void)state;
    begin("pause", 2);
    add(1, "10");
    spoken.step_s = 0.21;
    assert_int_equal(work(), UTTER_OK);
    /* The line; at 0; at 0.63, 1.26 and 1.89 beside it; at 2.1 behind it. */
    assert_int_equal(queue_is.n_claims, 6);
    results_close(&results);
    begin("idle", 2);
    queue_is.claimed_by_others = 3;
    heard.rests_s = 0.15;
    assert_int_equal(work(), UTTER_OK);
    assert_int_equal(queue_is.n_claims, 2);
    results_close(&results);
}

static void the_end_waits_for_lines_of_others(void **state)
{
    (void)state;
    begin("others", 1);
    queue_is.claimed_by_others = 3;
    assert_int_equal(work(), UTTER_OK);
    assert_int_equal(queue_is.n_counts, 4);
    assert_int_equal(heard.n_rests, 3);
    assert_told(0, 0, 0, 0);
    /* A queue that cannot be asked now may be empty later. */
    queue_is.count_status = UTTER_AGAIN;
    heard.stops_at = heard.n_stops + 4;
    int n_rests = heard.n_rests;
    assert_int_equal(work(), UTTER_OK);
    assert_int_equal(heard.n_rests, n_rests + 3);
    results_close(&results);
}

static void who_was_not_told_to_end_waits_for_more(void **state)
{
    (void)state;
    begin("stays", 1);
    heard.stays = true;
    heard.stops_at = 20;
    assert_int_equal(work(), UTTER_OK);
    assert_int_equal(heard.n_stops, 20);
    assert_true(heard.n_rests > 10);
    assert_int_equal(queue_is.n_counts, 0);
    results_close(&results);
}

/* ---- What a worker needs ---- */

static void one_thread_is_enough(void **state)
{
    (void)state;
    for (int i = 1; i <= 2; i++) {
        begin("threads", 1);
        add(i, "1");
        support_fail_at(SUPPORT_THREAD, i);
        utter_status status = work();
        support_fail_off();
        assert_int_equal(status, i == 1 ? UTTER_E_MEMORY : UTTER_OK);
        assert_string_equal(why.text, i == 1 ? "no thread can be started" : "");
        assert_int_equal(lines[0].state, i == 1 ? WAITS : DONE);
        results_close(&results);
    }
    begin("threads", 1);
    support_fail_malloc_at(1);
    assert_int_equal(work(), UTTER_E_MEMORY);
    support_fail_off();
    assert_non_null(strstr(why.text, "the lines that a worker has"));
    results_close(&results);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_machine_that_fails_ends_the_worker),
        cmocka_unit_test(a_step_that_fails_ends_the_worker),
        cmocka_unit_test(a_worker_that_lacks_what_lines_need_ends),
        cmocka_unit_test(a_queue_that_fails_ends_the_worker),
        cmocka_unit_test(a_result_that_cannot_be_written_ends_the_worker),
        cmocka_unit_test(a_result_that_cannot_be_kept_ends_the_worker),
        cmocka_unit_test(a_signal_ends_what_is_not_spoken),
        cmocka_unit_test(a_signal_gives_back_what_is_looked_for),
        cmocka_unit_test(a_server_that_will_not_now_is_asked_a_second_later),
        cmocka_unit_test(claims_are_extended_every_five_seconds),
        cmocka_unit_test(an_empty_queue_is_asked_now_and_then),
        cmocka_unit_test(the_end_waits_for_lines_of_others),
        cmocka_unit_test(who_was_not_told_to_end_waits_for_more),
        cmocka_unit_test(one_thread_is_enough),
    };
    return cmocka_run_group_tests_name("worker_ends", tests, NULL, NULL);
}
