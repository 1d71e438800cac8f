/* SPDX-License-Identifier: Apache-2.0
 * What follows from a compute capability and the code that runs there, without a GPU. */
#include "tests/support.h"

#include "cuda/device/arch.h"

static struct cuda_arch derived(int capability, int code, bool code_is_90a)
{
    struct cuda_arch arch = {.capability = capability, .code = code};
    cuda_arch_derive(&arch, code_is_90a);
    return arch;
}

/* Launches overlap only where the device can and the kernels wait: with code for 8.0 on an H100 they would race. */
static void test_overlap(void **state)
{
    (void)state;
    assert_false(derived(80, 80, false).overlaps);
    assert_false(derived(89, 89, false).overlaps);
    assert_false(derived(90, 80, false).overlaps);
    assert_false(derived(90, 89, false).bulk_copies);
    assert_true(derived(90, 90, false).overlaps);
    assert_true(derived(100, 90, false).bulk_copies);
    assert_true(derived(110, 100, false).overlaps);
    assert_true(derived(121, 120, false).overlaps);
    assert_true(derived(121, 120, false).bulk_copies);
}

/* wgmma is in sm_90a alone, in no later kind either. */
static void test_wgmma(void **state)
{
    (void)state;
    assert_true(derived(90, 90, true).wgmma);
    assert_true(derived(90, 90, true).register_moves);
    assert_false(derived(90, 90, false).wgmma);
    assert_false(derived(90, 90, false).register_moves);
    assert_false(derived(100, 100, false).wgmma);
    assert_false(derived(120, 90, true).wgmma);
}

/* A lesser card takes away, a greater one adds nothing; each field is limited by itself. */
static void test_limit(void **state)
{
    (void)state;
    const struct cuda_arch h100 = {.capability = 90,
        .code = 90,
        .overlaps = true,
        .bulk_copies = true,
        .wgmma = true,
        .register_moves = true,
        .n_sms = 132,
        .block_shared = 232448,
        .sm_shared = 233472,
        .l2_bytes = 50 << 20};
    const struct cuda_arch a100 = {.capability = 80,
        .code = 80,
        .n_sms = 108,
        .block_shared = 166912,
        .sm_shared = 167936,
        .l2_bytes = 40 << 20};
    struct cuda_arch arch = h100;
    cuda_arch_limit(&arch, &h100);
    assert_true(arch.overlaps && arch.bulk_copies && arch.wgmma && arch.register_moves);
    assert_int_equal(arch.code, 90);
    assert_int_equal(arch.n_sms, 132);
    assert_int_equal(arch.l2_bytes, 50 << 20);
    cuda_arch_limit(&arch, &a100);
    assert_int_equal(arch.capability, 80);
    assert_int_equal(arch.code, 80);
    assert_false(arch.overlaps || arch.bulk_copies || arch.wgmma || arch.register_moves);
    assert_int_equal(arch.n_sms, 108);
    assert_int_equal(arch.block_shared, 166912);
    assert_int_equal(arch.sm_shared, 167936);
    assert_int_equal(arch.l2_bytes, 40 << 20);
    arch = a100;
    cuda_arch_limit(&arch, &h100);
    assert_false(arch.overlaps || arch.bulk_copies || arch.wgmma || arch.register_moves);
    assert_int_equal(arch.n_sms, 108);
    assert_int_equal(arch.block_shared, 166912);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_wgmma),
        cmocka_unit_test(test_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
