/* SPDX-License-Identifier: Apache-2.0
 * Stages of a piece of work are told as one number, which rises to 1. */
#include "tests/support.h"

#include <math.h>
#include <string.h>

#include "base/progress.h"

static bool remember(void *user, double done)
{
    *(double *)user = done;
    return done < 0.9;
}

static void stages_follow_each_other(void **state)
{
    double told = -1;
    struct progress p = {.tell = remember, .user = &told, .what = "the work"};
    utter_error error = {0};
    (void)state;
    progress_begin(&p, 0.25, 10);
    assert_int_equal(progress_add(&p, 4, &error), UTTER_OK);
    assert_true(fabs(told - 0.1) < 1e-9);
    assert_int_equal(progress_add(&p, 60, &error), UTTER_OK); /* more than was foreseen */
    assert_true(fabs(told - 0.25) < 1e-9);
    progress_begin(&p, 0.5, 2);
    assert_int_equal(progress_add(&p, 1, &error), UTTER_OK);
    assert_true(fabs(told - 0.5) < 1e-9);
    progress_begin(&p, 0.25, 1);
    assert_int_equal(progress_add(&p, 1, &error), UTTER_E_CANCELLED);
    assert_true(fabs(told - 1) < 1e-9);
    assert_string_equal(error.text, "the work was stopped");
}

static void nobody_need_ask(void **state)
{
    struct progress p = {.what = "the work"};
    (void)state;
    progress_begin(NULL, 1, 1);
    assert_int_equal(progress_add(NULL, 1, NULL), UTTER_OK);
    progress_begin(&p, 1, 1);
    assert_int_equal(progress_add(&p, 1, NULL), UTTER_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_follow_each_other),
        cmocka_unit_test(nobody_need_ask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
