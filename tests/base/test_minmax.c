/* SPDX-License-Identifier: Apache-2.0
 * min and max: what the comparison gives, in the type that it has, each argument evaluated once. */
#include "tests/support.h"

#include <math.h>

#include "base/minmax.h"

static int n_evaluated;

static int next_number(void)
{
    return ++n_evaluated;
}

static void the_smaller_and_the_larger(void **state)
{
    (void)state;
    assert_int_equal(min(-2, 1), -2);
    assert_int_equal(max(-2, 1), 1);
    assert_true(min(1e300, 1.0) == 1.0);
    assert_true(max(0.5f, -1.0f) == 0.5f);
    assert_int_equal(min(next_number(), 7), 1);
    assert_int_equal(max(0, next_number()), 2);
    assert_int_equal(n_evaluated, 2);
}

static void the_type_is_that_of_the_comparison(void **state)
{
    (void)state;
    const size_t large = (size_t)1 << 40;
    assert_true(min(large, 3) == 3 && sizeof min(large, 3) == sizeof(size_t));
    assert_true(max(large, 3) == large);
    assert_true(max((int64_t)-5, 3) == 3 && min(INT64_MIN, 3) == INT64_MIN);
    assert_true(max(UINT64_MAX, (uint64_t)1) == UINT64_MAX);
    assert_true(sizeof max(0.5f, 1) == sizeof(float) && max(0.5f, 1) == 1);
    assert_true(sizeof max(0.5f, 0.25) == sizeof(double));
}

static void a_nan_gives_the_second(void **state)
{
    (void)state;
    assert_true(min(NAN, 1.0f) == 1.0f && max((double)NAN, 2.0) == 2.0);
    assert_true(isnan(min(1.0f, NAN)) && isnan(max(2.0, (double)NAN)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_smaller_and_the_larger),
        cmocka_unit_test(the_type_is_that_of_the_comparison),
        cmocka_unit_test(a_nan_gives_the_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
