/* SPDX-License-Identifier: Apache-2.0
 * What follows from a compute capability and the code that runs there, without a GPU. */
#include "tests/support.h"

#include "cuda/device/cards.h"

static struct cuda_arch derived(int capability, int code, enum cuda_code kind)
{
    struct cuda_arch arch = {.capability = capability, .code = code};
    cuda_arch_derive(&arch, kind);
    return arch;
}

/* Launches overlap only where the device can and the kernels wait: with code for 8.0 on an H100 they would race. */
static void test_overlap(void **state)
{
    (void)state;
    assert_false(derived(80, 80, CUDA_CODE_PLAIN).overlaps);
    assert_false(derived(89, 89, CUDA_CODE_PLAIN).overlaps);
    assert_false(derived(90, 80, CUDA_CODE_PLAIN).overlaps);
    assert_false(derived(90, 89, CUDA_CODE_PLAIN).bulk_copies);
    assert_true(derived(90, 90, CUDA_CODE_PLAIN).overlaps);
    assert_true(derived(100, 90, CUDA_CODE_PLAIN).bulk_copies);
    assert_true(derived(110, 100, CUDA_CODE_PLAIN).overlaps);
    assert_true(derived(121, 120, CUDA_CODE_PLAIN).overlaps);
    assert_true(derived(121, 120, CUDA_CODE_PLAIN).bulk_copies);
}

/* wgmma is in sm_90a alone, in no later kind either. */
static void test_wgmma(void **state)
{
    (void)state;
    assert_true(derived(90, 90, CUDA_CODE_90A).wgmma);
    assert_true(derived(90, 90, CUDA_CODE_90A).register_moves);
    assert_false(derived(90, 90, CUDA_CODE_PLAIN).wgmma);
    assert_false(derived(90, 90, CUDA_CODE_PLAIN).register_moves);
    assert_false(derived(100, 100, CUDA_CODE_PLAIN).wgmma);
    assert_false(derived(120, 90, CUDA_CODE_90A).wgmma);
}

/* Registers go from warp to warp in code for a family too, and not in portable code. */
static void test_register_moves(void **state)
{
    (void)state;
    assert_true(derived(120, 120, CUDA_CODE_FAMILY).register_moves);
    assert_true(derived(121, 120, CUDA_CODE_FAMILY).register_moves);
    assert_true(derived(103, 100, CUDA_CODE_FAMILY).register_moves);
    assert_false(derived(120, 120, CUDA_CODE_FAMILY).wgmma);
    assert_false(derived(121, 120, CUDA_CODE_PLAIN).register_moves);
    assert_false(derived(90, 90, CUDA_CODE_FAMILY).register_moves);
}

/* Half slots follow from the code that runs, not from the card; and no limit changes them. */
static void test_half_slots(void **state)
{
    (void)state;
    assert_false(derived(90, 90, CUDA_CODE_90A).half_slots);
    assert_false(derived(120, 90, CUDA_CODE_PLAIN).half_slots);
    assert_false(derived(110, 110, CUDA_CODE_FAMILY).half_slots);
    assert_true(derived(120, 120, CUDA_CODE_FAMILY).half_slots);
    assert_true(derived(121, 120, CUDA_CODE_PLAIN).half_slots);
    const struct cuda_arch as = cuda_card_arch(cuda_card_find("h100"));
    struct cuda_arch arch = cuda_card_arch(cuda_card_find("5090"));
    cuda_arch_limit(&arch, &as);
    assert_true(arch.half_slots);
}

/* A 5090's L2 cache holds the layers of a predictor in 8 bits, and those of one in bf16 no card's. A B200's would too,
 * but only code for 12.x does something with it (PTX_KEEPS). */
static void test_holds(void **state)
{
    (void)state;
    enum { NUMBERS = 5 * 1024 * (4096 + 2048 + 6144 + 3072) };
    const struct cuda_arch big = cuda_card_arch(cuda_card_find("5090")),
                           b200 = cuda_card_arch(cuda_card_find("b200")),
                           hopper = cuda_card_arch(cuda_card_find("h200"));
    assert_true(cuda_l2_holds(big.l2_bytes, (size_t)NUMBERS / 16 * 17));
    assert_true(cuda_l2_holds(b200.l2_bytes, (size_t)NUMBERS / 16 * 17));
    assert_false(cuda_l2_holds(hopper.l2_bytes, (size_t)NUMBERS / 16 * 17));
    assert_false(cuda_l2_holds(b200.l2_bytes, (size_t)NUMBERS * 2));
}

/* A card of the table can do what its kind can, and no more than its maker tells. */
static void test_cards(void **state)
{
    (void)state;
    assert_null(cuda_card_find("none"));
    const struct cuda_arch big = cuda_card_arch(cuda_card_find("5090")),
                           small = cuda_card_arch(cuda_card_find("3060")),
                           hopper = cuda_card_arch(cuda_card_find("h100"));
    assert_true(big.overlaps && big.bulk_copies && big.register_moves && !big.wgmma);
    assert_int_equal(big.block_shared, 99 << 10);
    assert_false(small.overlaps || small.bulk_copies || small.register_moves || small.wgmma);
    assert_true(hopper.wgmma && hopper.register_moves && hopper.block_shared == 227 << 10);
    for (int i = 0; i < CUDA_N_CARDS; i++) {
        assert_ptr_equal(cuda_card_find(cuda_cards[i].name), &cuda_cards[i]);
    }
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
        cmocka_unit_test(test_register_moves),
        cmocka_unit_test(test_half_slots),
        cmocka_unit_test(test_holds),
        cmocka_unit_test(test_cards),
        cmocka_unit_test(test_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
