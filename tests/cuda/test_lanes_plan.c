/* SPDX-License-Identifier: Apache-2.0
 * How the frame kernel for eight lanes lays out its exchange and its shared memory, without a GPU. */
#define FRAME_LANES 8
#define FRAME_LANES_WIDTH 1024

#include "tests/support.h"

#include "cuda/frame_lanes_plan.h"

/* Kinds of words do not overlap, four can be read at once, each holds what all lanes have; a mark for each fits. */
static void test_kinds(void **state)
{
    (void)state;
    const int least[LANES_N_KINDS] = {8 * 1024, 8 * 4096,
        8 * FRAME_KV_HEADS * FRAME_PARTS * 2 * (128 + 2), 8 * 2048, 8 * FRAME_KV_HEADS * 1024, 8 * 1024,
        8 * 3072, 8 * 4096, 8};
    assert_int_equal(lanes_kind_at(0), 0);
    for (int kind = 0; kind < LANES_N_KINDS; kind++) {
        assert_int_equal(lanes_kind_at(kind) % 4, 0);
        assert_true(lanes_kind_at(kind + 1) - lanes_kind_at(kind) >= least[kind]);
    }
    assert_true(LANES_N_SETS * LANES_N_KINDS <= LANES_PAIR_BIT);
}

/* Vectors of eight lanes, the sums of the widest product and the attention of four lanes fit, and a ring beside them
 * that holds most of a layer's weights. */
static void test_memory(void **state)
{
    (void)state;
    for (int units = 1; units <= 6; units++) {
        assert_true(FRAME_WARPS * 2 * 8 * frame_row_bytes(units) <= FRAME_VECTOR_BYTES);
    }
    assert_true(8 * (FRAME_WARPS * 64 + 8) <= FRAME_SUM_FLOATS);
    assert_true(4 * (4 * FRAME_WARPS + 2 * FRAME_WARPS * FRAME_HEAD) * 4 <= FRAME_VECTOR_BYTES);
    assert_true(frame_n_slots(232448, false) >= 7);
    assert_int_equal(frame_ring_at() % 128, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
