/* SPDX-License-Identifier: Apache-2.0
 * What of memory that is shared with the system a plan may count on, without a GPU; and which kernel makes frames. */
#include "tests/support.h"

#include "cuda/device/unified.h"
#include "cuda/graph/frame_rule.h"

#define GB ((uint64_t)1 << 30)

/* A GB10 that has read a checkpoint: 3 GB are free, 112 GB available. */
static void test_cache_of_files(void **state)
{
    (void)state;
    uint64_t bytes = 0;
    assert_true(cuda_unified_bytes("MemTotal:       125829120 kB\nMemFree:         3145728 kB\n"
                                   "MemAvailable:   117440512 kB\nCached:        114294784 kB\n",
        120 * GB, &bytes));
    assert_int_equal(bytes, 112 * GB - 4 * GB);
}

/* An Orin of 8 GB: an eighth is the system's. Less than that, and nothing is to be had. */
static void test_small(void **state)
{
    (void)state;
    uint64_t bytes = 0;
    assert_true(cuda_unified_bytes("MemAvailable: 6291456 kB\n", 8 * GB, &bytes));
    assert_int_equal(bytes, 5 * GB);
    assert_true(
        cuda_unified_bytes("MemAvailable: 6291456 kB\n", 4 * GB, &bytes)); /* not more than all */
    assert_int_equal(bytes, 3 * GB);
    assert_true(cuda_unified_bytes("MemAvailable: 524288 kB\n", 8 * GB, &bytes));
    assert_int_equal(bytes, 0);
}

static void test_not_told(void **state)
{
    (void)state;
    uint64_t bytes = 7;
    assert_false(cuda_unified_bytes("MemFree: 524288 kB\n", 8 * GB, &bytes));
    assert_false(cuda_unified_bytes("NoMemAvailable: 524288 kB\n", 8 * GB, &bytes));
    assert_false(cuda_unified_bytes("", 8 * GB, &bytes));
    assert_int_equal(bytes, 7);
}

/* The kernel where one launch has all lanes of the model, from compute capability 9.0 on. */
static void test_rule(void **state)
{
    (void)state;
    const struct cuda_arch h100 = {.capability = 90}, a100 = {.capability = 80},
                           b200 = {.capability = 100}, rtx5090 = {.capability = 120};
    for (int n = 1; n <= 8; n++) {
        assert_true(frame_rule(&h100, 8, n));
        assert_true(frame_rule(&h100, 4, n) == (n <= 4));
        assert_true(frame_rule(&b200, 8, n));
        assert_true(frame_rule(&rtx5090, 8, n));
        assert_true(frame_rule(&rtx5090, 4, n) == (n <= 4));
        assert_false(frame_rule(&a100, 8, n));
        assert_false(frame_rule(&h100, 0, n)); /* it does not suit */
    }
    assert_false(frame_rule(&h100, 8, 9));
    assert_false(frame_rule(&h100, 8, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cache_of_files),
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_not_told),
        cmocka_unit_test(test_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
