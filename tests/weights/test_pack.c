/* SPDX-License-Identifier: Apache-2.0
 * Packed weights: where each code stands, how near they are, and what is no number. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/numeric.h"
#include "tests/cpu/random.h"
#include "tests/support.h"
#include "weights/pack.h"

static void test_sizes(void **state)
{
    (void)state;
    assert_true(pack_is(DTYPE_Q8) && pack_is(DTYPE_Q4) && !pack_is(DTYPE_BF16) && !pack_is(DTYPE_U32));
    assert_int_equal(pack_groups(1), 1);
    assert_int_equal(pack_groups(32), 1);
    assert_int_equal(pack_groups(33), 2);
    assert_int_equal(pack_blocks(16), 1);
    assert_int_equal(pack_blocks(17), 2);
    assert_int_equal(pack_scale_bytes(32), 64); /* 32 bytes, filled up */
    assert_int_equal(pack_block_bytes(DTYPE_Q8, 64), 64 + 2 * 512);
    assert_int_equal(pack_block_bytes(DTYPE_Q4, 64), 64 + 2 * 256);
}

/* The layout of the header comment, number by number. Weights are whole multiples of a power of two, with the
 * largest code in each group, so that every code is known. */
static void test_places(void **state)
{
    (void)state;
    enum { ROWS = 5, COLS = 70 };
    for (enum dtype type = DTYPE_Q8; type <= DTYPE_Q4; type++) {
        int least = type == DTYPE_Q8 ? -127 : -8, most = type == DTYPE_Q8 ? 127 : 7;
        float rows[ROWS * COLS], back[COLS];
        int codes[ROWS * COLS];
        struct random random = {3, 0};
        for (int i = 0; i < ROWS * COLS; i++) {
            codes[i] = least + (int)(random_word(&random) % (uint32_t)(most - least + 1));
            codes[i] = i % COLS % 32 == 0 ? least : codes[i];
            rows[i] = (float)codes[i] * 0.25f;
        }
        uint8_t *block = malloc(pack_block_bytes(type, COLS));
        pack_block(block, type, rows, ROWS, COLS);
        for (int r = 0; r < ROWS; r++) {
            pack_row(block, type, COLS, r, back);
            for (int k = 0; k < COLS; k++) {
                const uint8_t *scale = block + (k / 32 * 16 + r) * 2;
                assert_true(bf16_to_float((uint16_t)(scale[0] | scale[1] << 8)) == 0.25f);
                const uint8_t *group =
                    block + pack_scale_bytes(COLS) + k / 32 * (type == DTYPE_Q8 ? 512 : 256);
                int in = k % 32, code;
                if (type == DTYPE_Q8) {
                    code = (int8_t)group[(in / 2 * 16 + r) * 2 + in % 2];
                } else {
                    const uint8_t *word = group + 2 * ((in / 8 * 16 + r) * 2 + in % 2);
                    code = ((word[0] | word[1] << 8) >> (in % 8 / 2 * 4) & 15) - 8;
                }
                assert_int_equal(code, codes[r * COLS + k]);
                assert_true(back[k] == rows[r * COLS + k]);
            }
        }
        free(block);
    }
}

/* Rows that the matrix lacks, and columns of the last group: zeros, so that one matrix has one file. */
static void what_the_matrix_lacks_is_zero(void **state)
{
    (void)state;
    enum { ROWS = 3, COLS = 40 };
    float rows[ROWS * COLS];
    for (int i = 0; i < ROWS * COLS; i++) {
        rows[i] = (float)(i % 7 + 1);
    }
    for (enum dtype type = DTYPE_Q8; type <= DTYPE_Q4; type++) {
        const size_t bytes = pack_block_bytes(type, COLS), scales = pack_scale_bytes(COLS);
        const int nothing = type == DTYPE_Q8 ? 0 : 0x88; /* codes of 4 bits have 8 added */
        uint8_t *block = malloc(bytes);
        memset(block, 0xa5, bytes);
        pack_block(block, type, rows, ROWS, COLS);
        for (size_t i = 0; i < scales; i++) {
            const bool is_row = i / 2 % PACK_ROWS < ROWS && i / 2 / PACK_ROWS < 2;
            assert_true(is_row || block[i] == 0);
        }
        for (size_t i = scales; i < bytes; i++) {
            const size_t row = (i - scales) / (type == DTYPE_Q8 ? 2 : 4) % PACK_ROWS;
            assert_true(row < ROWS || block[i] == nothing);
        }
        free(block);
    }
}

static double packed_error(enum dtype type, const float *rows, int64_t cols)
{
    void *block = malloc(pack_block_bytes(type, cols));
    float *back = malloc((size_t)cols * sizeof *back);
    double error = 0, size = 0;
    pack_block(block, type, rows, PACK_ROWS, cols);
    for (int r = 0; r < PACK_ROWS; r++) {
        pack_row(block, type, cols, r, back);
        for (int64_t k = 0; k < cols; k++) {
            double w = (double)rows[r * cols + k], away = (double)back[k] - w;
            error += away * away;
            size += w * w;
        }
    }
    free(block);
    free(back);
    return sqrt(error / size);
}

/* Normal weights: 8 bits of 32 numbers at a time leave 0.48%; 4 bits with the plain scale, largest / -8,
 * leave 9.3%, and with that of least squares less. */
static void test_error(void **state)
{
    (void)state;
    enum { COLS = 4096 };
    float *rows = malloc(PACK_ROWS * COLS * sizeof *rows);
    struct random random = {4, 0};
    random_fill(&random, rows, PACK_ROWS * COLS, 0.02f);
    double q8 = packed_error(DTYPE_Q8, rows, COLS), q4 = packed_error(DTYPE_Q4, rows, COLS);
    assert_true(q8 > 0.003 && q8 < 0.006);
    assert_true(q4 > 0.05 && q4 < 0.087);
    free(rows);
}

static void test_no_number(void **state)
{
    (void)state;
    for (enum dtype type = DTYPE_Q8; type <= DTYPE_Q4; type++) {
        float rows[96] = {0}, back[96];
        uint8_t *block = malloc(pack_block_bytes(type, 96));
        rows[33] = NAN;
        rows[40] = 1;
        rows[95] = 2;
        pack_block(block, type, rows, 1, 96);
        pack_row(block, type, 96, 0, back);
        for (int k = 0; k < 96; k++) {
            assert_true(k < 32   ? back[k] == 0
                        : k < 64 ? isnan(back[k])
                                 : fabsf(back[k] - rows[k]) < 0.02f);
        }
        rows[33] = INFINITY;
        pack_block(block, type, rows, 1, 96);
        pack_row(block, type, 96, 0, back);
        assert_true(isnan(back[40]) && back[0] == 0);
        free(block);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_places),
        cmocka_unit_test(what_the_matrix_lacks_is_zero),
        cmocka_unit_test(test_error),
        cmocka_unit_test(test_no_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
