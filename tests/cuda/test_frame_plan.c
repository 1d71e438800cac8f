/* SPDX-License-Identifier: Apache-2.0
 * How the frame kernel shares its work, without a GPU: every piece of every matrix is consumed once, every word of
 * the exchange has one writer, and the ring fits the shared memory of the GPUs that are meant. */
#define FRAME_LANES 1
#define FRAME_LANES_WIDTH 0

#include <string.h>

#include "tests/support.h"

#include "cuda/persistent/layout_body.h"

struct product_case {
    enum frame_step step;
    int rows, cols;
};

/* The products of both released sizes. */
static const struct product_case PRODUCTS[] = {
    {FRAME_QKV, 4096, 1024},
    {FRAME_O, 1024, 2048},
    {FRAME_GATE_UP, 6144, 1024},
    {FRAME_DOWN, 1024, 3072},
    {FRAME_HEAD_ROWS, 3072, 1024},
    {FRAME_HEAD_ROWS, 2048, 1024},
    {FRAME_QKV, 4096, 2048},
    {FRAME_O, 2048, 2048},
    {FRAME_GATE_UP, 12288, 2048},
    {FRAME_DOWN, 2048, 6144},
    {FRAME_HEAD_ROWS, 3072, 2048},
    {FRAME_PROJECT, 1024, 2048},
};
enum { N_PRODUCTS = sizeof PRODUCTS / sizeof *PRODUCTS };

/* Each unit (16 rows by 256 columns) is in one run of one block, and all blocks have equally many, an even number. */
static void test_each_unit_once(void **state)
{
    (void)state;
    for (int i = 0; i < N_PRODUCTS; i++) {
        static unsigned char taken[1024][32];
        const enum frame_step step = PRODUCTS[i].step;
        const int row_tiles = PRODUCTS[i].rows / 16, k_units = PRODUCTS[i].cols / FRAME_UNIT_K;
        int each = -1;
        memset(taken, 0, sizeof taken);
        for (int block = 0; block < FRAME_BLOCKS; block++) {
            int n = 0;
            for (int j = 0; j < frame_n_runs(step, row_tiles); j++) {
                struct frame_run run = frame_run_at(step, row_tiles, k_units, block, j);
                for (int k = 0; k < run.n_units; k++, n++) {
                    assert_in_range(run.row_tile, 0, row_tiles - 1);
                    assert_in_range(run.unit + k, 0, k_units - 1);
                    taken[run.row_tile][run.unit + k]++;
                }
            }
            assert_true(each < 0 || n == each);
            assert_int_equal(n % FRAME_SLOT_UNITS, 0); /* so they fill whole slots */
            each = n;
        }
        for (int r = 0; r < row_tiles; r++) {
            for (int k = 0; k < k_units; k++) {
                assert_int_equal(taken[r][k], 1);
            }
        }
    }
}

/* The 16 blocks of a kv head have the rows of its two query heads, its key and its value, in this order. */
static void test_heads_stay_together(void **state)
{
    (void)state;
    for (int block = 0; block < FRAME_BLOCKS; block++) {
        for (int j = 0; j < 2; j++) {
            int row = frame_run_at(FRAME_QKV, 256, 4, block, j).row_tile * 16;
            int head = block / FRAME_KV_BLOCKS, place = (block % FRAME_KV_BLOCKS * 2 + j) * 16;
            int want = place < 256   ? head * 256 + place
                       : place < 384 ? 2048 + head * 128 + place - 256
                                     : 3072 + head * 128 + place - 384;
            assert_int_equal(row, want);
        }
    }
}

/* A block has those 256 columns of the output projection that its kv head's two query heads give. */
static void test_projection_follows_heads(void **state)
{
    (void)state;
    for (int block = 0; block < FRAME_BLOCKS; block++) {
        for (int i = 0; i < frame_n_runs(FRAME_O, 64); i++) {
            struct frame_run run = frame_run_at(FRAME_O, 64, 8, block, i);
            assert_int_equal(run.unit, block / FRAME_KV_BLOCKS);
            assert_int_equal(run.row_tile, block % FRAME_KV_BLOCKS * 4 + i);
        }
    }
    assert_int_equal(frame_parts(FRAME_O, 64), 8);
    assert_int_equal(frame_parts(FRAME_DOWN, 64), 2);
    assert_int_equal(frame_parts(FRAME_DOWN, 128), 1);
}

/* Kinds of words do not overlap, each begins where four words can be read at once, and each holds its result. */
static void test_words(void **state)
{
    (void)state;
    const int least[FRAME_N_KINDS] = {FRAME_KV_HEADS * FRAME_MAX_COLUMNS * FRAME_GROUP,
        FRAME_KV_HEADS * FRAME_KEY_PARTS * 2 * FRAME_SPLIT, FRAME_MAX_COLUMNS * 3072,
        FRAME_MAX_COLUMNS * frame_parts(FRAME_DOWN, 64) * 1024, frame_words(192),
        FRAME_MAX_COLUMNS * frame_parts(FRAME_PROJECT, 64) * 1024};
    assert_int_equal(frame_kind_at(0), 0);
    for (int kind = 0; kind < FRAME_N_KINDS; kind++) {
        assert_int_equal(frame_kind_at(kind) % 4, 0);
        assert_true(frame_kind_at(kind + 1) - frame_kind_at(kind) >= least[kind]);
    }
    assert_true(FRAME_N_SETS * FRAME_N_KINDS <= 32); /* a mark each in one word */
    assert_int_equal(frame_words(128), 2048);
    assert_int_equal(frame_words(192), 4096);
}

/* Rows of a warp's part of a vector lie in other halves of the banks, and the longest vectors fit. */
static void test_vectors(void **state)
{
    (void)state;
    const struct {
        int units, columns;
    } most[] = {{24, 1}, {8, 1}, {4, 2}, {6, 2}, {1, 2}};
    for (size_t i = 0; i < sizeof most / sizeof *most; i++) {
        const int row = frame_row_bytes(most[i].units);
        assert_int_equal(row % 128, 64);
        assert_true(FRAME_WARPS * 2 * most[i].columns * row <= FRAME_VECTOR_BYTES);
    }
    assert_true(FRAME_MAX_SCORES * 8 <= FRAME_VECTOR_BYTES); /* the sampler's list */
}

/* Blocks of compute capability 9.0 have 227 KB, of 12.0 99: the ring has enough slots to bridge an exchange on both,
 * on the second one with slots of half the size. What has no room for the least of them has none. */
static void test_shared_memory(void **state)
{
    (void)state;
    enum { OF_90 = 227 << 10, OF_120 = 99 << 10 };
    assert_int_equal(frame_n_slots(OF_90, frame_ring_at(), false, false), 11);
    assert_int_equal(frame_n_slots(OF_90, frame_ring_at(), true, false), 10);
    assert_int_equal(frame_n_slots(OF_120, frame_ring_at(), false, true), 6);
    assert_int_equal(frame_n_slots(OF_120, frame_ring_at(), true, true), 6);
    for (int i = 0; i < 4; i++) {
        const bool packed = i % 2, half = i / 2;
        const size_t slot = frame_slot_bytes(packed, half), least = half ? 4 : 3;
        assert_int_equal(slot * (half ? 2 : 1), packed ? 17408 : 16384);
        assert_int_equal(slot % 128, 0);
        assert_int_equal(
            frame_n_slots(frame_ring_at() + least * slot, frame_ring_at(), packed, half), least);
        assert_int_equal(
            frame_n_slots(frame_ring_at() + least * slot - 1, frame_ring_at(), packed, half), 0);
        assert_int_equal(frame_n_slots(frame_ring_at() - 1, frame_ring_at(), packed, half), 0);
    }
    assert_int_equal(frame_ring_at() % 128, 0);
    assert_int_equal(offsetof(struct frame_shared, vector) % 128, 0);
    assert_int_equal(offsetof(struct frame_shared, placed) % 16, 0);
    assert_int_equal(offsetof(struct frame_shared, full) % 8, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_unit_once),
        cmocka_unit_test(test_heads_stay_together),
        cmocka_unit_test(test_projection_follows_heads),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_shared_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
