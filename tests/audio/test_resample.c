/* SPDX-License-Identifier: Apache-2.0
 * Another rate: what is copied, and what is refused. That a tone stays the same one is in test_sound_read.c. */
#include "audio/resample.h"

#include <string.h>

#include "base/memory.h"
#include "tests/support.h"

/* The same rate is a copy; what soxr does not take is none. */
static void rates_are_changed_or_refused(void **state)
{
    static const float x[] = {0.5f, -0.25f, 0.125f};
    float *pcm;
    size_t n;
    utter_error error = {0};
    (void)state;
    assert_int_equal(resample(&pcm, &n, x, 3, 24000, 24000, NULL), UTTER_OK);
    assert_int_equal(n, 3);
    assert_ptr_not_equal(pcm, x);
    assert_memory_equal(pcm, x, sizeof x);
    memory_free(pcm);
    assert_int_equal(resample(&pcm, &n, x, 3, 8000, 0, &error), UTTER_E_INTERNAL);
    assert_null(pcm);
    assert_int_equal(n, 0);
    assert_ptr_equal(strstr(error.text, "8000 Hz to 0 Hz: the resampler says: "), error.text);
    support_fail_malloc_at(1);
    n = 7;
    assert_int_equal(resample(&pcm, &n, x, 3, 8000, 24000, NULL), UTTER_E_MEMORY);
    support_fail_off();
    assert_true(!pcm && n == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rates_are_changed_or_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
