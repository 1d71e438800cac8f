/* SPDX-License-Identifier: Apache-2.0
 * How the frame kernel for eight lanes lays out its exchange and its shared memory, without a GPU. */
#define FRAME_LANES 8
#define FRAME_LANES_WIDTH 1024

#include "tests/support.h"

#include "cuda/device/pages.h"
#include "cuda/persistent/lanes/lanes_layout_body.h"

/* Kinds of words do not overlap, four can be read at once, each holds what all lanes have; a mark for each fits. */
static void test_kinds(void **state)
{
    (void)state;
    const int vector = 8 * (1024 + 256); /* and its squares */
    const int least[LANES_N_KINDS] = {
        vector, 8 * 4096, 8 * 2048, vector, 8 * 3072, 8 * 4096, 8, vector, 8 * 2048};
    assert_int_equal(lanes_kind_at(0), 0);
    for (int kind = 0; kind < LANES_N_KINDS; kind++) {
        assert_int_equal(lanes_kind_at(kind) % 4, 0);
        assert_true(lanes_kind_at(kind + 1) - lanes_kind_at(kind) >= least[kind]);
    }
    assert_true(LANES_N_SETS * LANES_N_KINDS <= LANES_PAIR_O_BIT);
}

/* Pairs of elements and their two parts, and the squares behind them, have words of their own, and use all of them.
 * */
static void test_vector(void **state)
{
    (void)state;
    enum { WIDTH = 2048, UNITS = WIDTH / FRAME_UNIT_K, WORDS = 8 * (WIDTH + WIDTH / 4) };
    static bool seen[WORDS];
    for (int lane = 0; lane < 8; lane++) {
        for (int element = 0; element < WIDTH; element += 2) {
            for (int part = 0; part < 2; part++) {
                const int at = lanes_word_at(UNITS, lane, element, part);
                assert_int_equal(at, lanes_word_at(UNITS, lane, element + 1, part));
                assert_in_range(at, 0, lanes_vector_words(UNITS) - 1);
                assert_false(seen[at]);
                seen[at] = true;
            }
        }
        for (int element = 0; element < WIDTH; element += 4) {
            const int at = lanes_square_at(WIDTH, lane, element);
            assert_in_range(at, lanes_vector_words(UNITS), WORDS - 1);
            assert_false(seen[at]);
            seen[at] = true;
        }
    }
    assert_int_equal(lanes_vector_words(UNITS), 8 * WIDTH);
}

/* Every page of a block comes once, and to a warp's turn those of one part before those of the other. */
static void test_pages(void **state)
{
    (void)state;
    enum { MOST = 70 };
    for (int n = 1; n <= MOST; n++) {
        int times[MOST] = {0}, last[LANES_GROUPS] = {-1, -1, -1, -1}, all = 0;
        for (int page = 0; page >= 0; page = lanes_page_after(page, n), all++) {
            int *before = &last[page % LANES_GROUPS];
            assert_in_range(page, 0, n - 1);
            assert_int_equal(times[page]++, 0);
            assert_true(page < LANES_PARTS ? *before < 0 || *before + LANES_PARTS >= n
                                           : *before == page - LANES_PARTS);
            *before = page;
        }
        assert_int_equal(all, n);
    }
}

/* The sums of the widest product and the notes of the talker's attention fit, and a ring beside them that holds
 * two thirds of a layer's weights; a page of the cache fits a slot. */
static void test_memory(void **state)
{
    (void)state;
    assert_true(8 * (FRAME_WARPS * 64 + 8) <= FRAME_SUM_FLOATS);
    assert_true(FRAME_MAX_SCORES * 8 <= FRAME_VECTOR_BYTES); /* the sampler's list */
    assert_true((FRAME_KEY_PARTS * (FRAME_HEAD + 2) + FRAME_WARPS * 32) * 4 <= FRAME_VECTOR_BYTES);
    assert_true(frame_n_slots(232448, frame_ring_at(), false, false) >= 10);
    assert_int_equal(frame_n_slots(101376, frame_ring_at(), false, true),
        4); /* of 12.0, in slots of half the size */
    assert_true(2 * LANES_VALUES_AT <= (int)frame_slot_bytes(false, false));
    assert_true(LANES_VALUES_AT <= (int)frame_slot_bytes(false, true));
    assert_true(CUDA_PAGE * FRAME_HEAD * 4 <= LANES_VALUES_AT);
    assert_int_equal(frame_ring_at() % 128, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_vector),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
