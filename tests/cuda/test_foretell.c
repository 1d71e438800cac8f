/* SPDX-License-Identifier: Apache-2.0
 * The model of a frame's time beside rows that were measured on GPUs, as docs/log has them. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>

#include "base/file.h"
#include "base/memory.h"
#include "cuda/device/foretell.h"

/* The released shapes: numbers that a pass multiplies by, heads too. */
static struct foretell_model model_of(bool wide, double talker_bits, double predictor_bits)
{
    const double talker = wide ? 1.415e9 : 0.4405e9, predictor = 0.0775e9;
    return (struct foretell_model){.talker_width = wide ? 2048 : 1024,
        .talker_layers = 28,
        .predictor_layers = 5,
        .n_codebooks = 16,
        .talker_weights = talker,
        .predictor_weights = predictor,
        .talker_bytes = talker * talker_bits / 8,
        .predictor_bytes = predictor * predictor_bits / 8,
        .vocoder_weights = 2.48e9};
}

enum path { GRAPHS, KERNEL, SOUND, STEP };

/* Milliseconds. Where a row of a table was measured again with a later form, the later one stands here. */
static const struct {
    enum path path;
    const char *card;
    bool wide; /* 1.7B */
    int talker_bits, predictor_bits, n_lanes;
    double ms;
} rows[] = {
    /* gpu-backend.md, a graph of kernels */
    {GRAPHS, "h100", false, 16, 16, 1, 2.48}, {GRAPHS, "h200", false, 16, 16, 1, 2.34},
    {GRAPHS, "h100", true, 16, 16, 1, 3.35}, {GRAPHS, "h200", true, 16, 16, 1, 3.01},
    /* gpu-many-lanes.md: talker, choice and predictor; the vocoder */
    {GRAPHS, "h100", false, 16, 16, 8, 3.65}, {GRAPHS, "h100", false, 16, 16, 16, 3.71},
    {GRAPHS, "h100", false, 16, 16, 32, 4.14}, {GRAPHS, "h100", false, 16, 16, 64, 5.19},
    {GRAPHS, "h100", false, 16, 16, 128, 7.29}, {GRAPHS, "h100", false, 16, 16, 256, 12.57},
    {SOUND, "h100", false, 16, 16, 1, 0.61}, {SOUND, "h100", false, 16, 16, 8, 0.99},
    {SOUND, "h100", false, 16, 16, 16, 1.61}, {SOUND, "h100", false, 16, 16, 32, 2.79},
    {SOUND, "h100", false, 16, 16, 64, 4.13}, {SOUND, "h100", false, 16, 16, 128, 8.22},
    {SOUND, "h100", false, 16, 16, 256, 16.48},
    /* gpu-vocoder.md, gpu-backend.md */
    {SOUND, "h100", false, 16, 16, 1, 0.588}, {SOUND, "h200", false, 16, 16, 1, 0.580},
    {SOUND, "h100", false, 16, 16, 8, 1.11},
    /* gpu-frame-kernel.md: the graphs beside it, then the kernel */
    {GRAPHS, "h200", false, 16, 16, 1, 2.24}, {GRAPHS, "h200", false, 16, 16, 2, 2.50},
    {GRAPHS, "h200", false, 16, 16, 4, 2.75}, {GRAPHS, "h200", false, 16, 16, 8, 3.48},
    {GRAPHS, "h200", false, 16, 16, 12, 3.89}, {GRAPHS, "h200", true, 16, 16, 1, 2.88},
    {GRAPHS, "h200", true, 16, 16, 2, 3.18}, {GRAPHS, "h200", true, 16, 16, 4, 3.53},
    {GRAPHS, "h200", true, 16, 16, 8, 4.45}, {GRAPHS, "h200", true, 16, 16, 12, 4.51},
    {KERNEL, "h100", false, 16, 16, 1, 1.223}, {KERNEL, "h100", false, 16, 8, 1, 0.979},
    {KERNEL, "h100", false, 8, 8, 1, 0.897}, {KERNEL, "h100", true, 16, 16, 1, 1.929},
    {KERNEL, "h200", false, 16, 16, 1, 1.074}, {KERNEL, "h200", false, 16, 8, 1, 0.980},
    {KERNEL, "h200", false, 8, 8, 1, 0.948}, {KERNEL, "h200", true, 16, 16, 1, 1.919},
    {KERNEL, "h100", false, 16, 16, 2, 1.497}, {KERNEL, "h100", false, 16, 16, 3, 1.517},
    {KERNEL, "h100", false, 16, 16, 4, 1.473}, {KERNEL, "h100", false, 16, 16, 5, 1.634},
    {KERNEL, "h100", false, 16, 16, 8, 1.703}, {KERNEL, "h100", true, 16, 16, 2, 2.260},
    {KERNEL, "h100", true, 16, 16, 4, 2.234},
    /* speed.md: what figures prints of whole runs */
    {KERNEL, "h100", false, 16, 16, 1, 1.30}, {KERNEL, "h200", false, 16, 16, 1, 1.19},
    {KERNEL, "h100", true, 16, 16, 1, 1.93}, {KERNEL, "h200", true, 16, 16, 1, 1.72},
    /* gpu-small-cards.md: packed weights by the graphs; a frame with its sound, by `utter bench` */
    {GRAPHS, "h200", false, 8, 8, 1, 3.17}, {GRAPHS, "h200", false, 4, 4, 1, 2.87},
    {GRAPHS, "h200", false, 16, 16, 1, 2.53}, {STEP, "h200", false, 16, 16, 1, 1.168},
    {STEP, "h200", false, 16, 16, 2, 1.792}, {STEP, "h200", false, 16, 16, 4, 1.991},
    {STEP, "h200", false, 16, 16, 8, 2.560}, {STEP, "h200", false, 16, 16, 16, 5.499},
    {STEP, "h200", false, 16, 16, 32, 6.746}, {STEP, "h200", false, 16, 16, 64, 9.140},
    {STEP, "h200", true, 16, 16, 1, 1.777}, {STEP, "h200", true, 16, 16, 2, 2.418},
    {STEP, "h200", true, 16, 16, 4, 2.633}, {STEP, "h200", true, 16, 16, 8, 5.242},
    {STEP, "h200", true, 16, 16, 16, 6.115}, {STEP, "h200", true, 16, 16, 32, 7.603},
    {STEP, "h200", true, 16, 16, 64, 10.518}};

static double foretold(int i)
{
    const struct foretell_card card = foretell_of(cuda_card_find(rows[i].card));
    /* A scale of 16 bits for 32 numbers. */
    const double talker = rows[i].talker_bits == 16 ? 16 : rows[i].talker_bits + 0.5,
                 predictor = rows[i].predictor_bits == 16 ? 16 : rows[i].predictor_bits + 0.5;
    const struct foretell_model model = model_of(rows[i].wide, talker, predictor);
    return 1e3 * (rows[i].path == GRAPHS      ? foretell_graphs(&card, &model, rows[i].n_lanes)
                     : rows[i].path == KERNEL ? foretell_kernel(&card, &model, rows[i].n_lanes)
                     : rows[i].path == SOUND
                         ? foretell_sound(&card, &model, rows[i].n_lanes)
                         : foretell_step(&card, &model, rows[i].wide ? 4 : 8, rows[i].n_lanes));
}

static void test_measured_rows(void **state)
{
    int n_far = 0;
    (void)state;
    for (int i = 0; i < (int)(sizeof rows / sizeof *rows); i++) {
        const double ms = foretold(i), off = ms / rows[i].ms - 1;
        if (fabs(off) > 0.15) {
            print_error("%s, path %d, 1.7B %d, bits %d %d, lanes %d: measured %.3f ms, foretold %.3f: "
                        "%+.1f %%\n",
                rows[i].card, (int)rows[i].path, (int)rows[i].wide, rows[i].talker_bits,
                rows[i].predictor_bits, rows[i].n_lanes, rows[i].ms, ms, 100 * off);
            n_far++;
        }
    }
    assert_int_equal(n_far, 0);
}

/* What holds of every card: fewer bits come sooner, and are faster where memory is what is waited for; fewer lanes are
 * never slower, and what cannot overlap never faster. */
static void test_every_card(void **state)
{
    const struct foretell_model full = model_of(false, 16, 16), packed = model_of(false, 8.5, 8.5),
                                wide = model_of(true, 16, 16);
    (void)state;
    for (int i = 1; i < CUDA_N_CARDS; i++) {
        struct foretell_card card = foretell_of(&cuda_cards[i]);
        for (int n = 1; n <= 64; n *= 2) {
            const double s = foretell_graphs(&card, &full, n);
            assert_true(s > 0 && s < 1);
            assert_true(foretell_bytes(&card, &packed, card.bytes_per_s) <
                        foretell_bytes(&card, &full, card.bytes_per_s));
            assert_true(card.bytes_per_s > 4e11 || foretell_graphs(&card, &packed, n) < s);
            assert_true(foretell_graphs(&card, &wide, n) > s);
            assert_true(foretell_graphs(&card, &full, 2 * n) > 0.9 * s);
            assert_true(foretell_sound(&card, &full, 2 * n) > foretell_sound(&card, &full, n));
        }
        const double s = foretell_graphs(&card, &full, 1);
        card.overlaps = false;
        assert_true(foretell_graphs(&card, &full, 1) >= s);
    }
}

/* A row of the table of docs/speed.md: milliseconds of a frame and its sound. */
static void print_row(char *row, size_t size, const struct cuda_card *of)
{
    const struct foretell_model small = model_of(false, 16, 16), packed = model_of(false, 8.5, 8.5),
                                wide = model_of(true, 16, 16);
    const struct foretell_card card = foretell_of(of);
    /* Of packed weights, and of 64 lanes, a launch has no more anyway. */
    const int launch = of->capability < 90 || of->n_sms < 128 ? 0 : 8;
    snprintf(row, size, "|%s|%.1f|%.1f|%.1f|%.1f|%.1f|%.1f|\n", of->name,
        1e3 * foretell_step(&card, &small, launch, 1), 1e3 * foretell_step(&card, &small, launch, 8),
        1e3 * foretell_step(&card, &small, launch, 64), 1e3 * foretell_step(&card, &packed, launch, 1),
        1e3 * foretell_step(&card, &wide, launch, 1), 1e3 * foretell_step(&card, &wide, launch, 64));
}

/* `test_foretell table` prints it anew. */
static void test_table(void **state)
{
    char *text = NULL, row[128];
    size_t bytes;
    utter_error error;
    (void)state;
    assert_int_equal(file_read("docs/speed.md", 1 << 20, &text, &bytes, &error), UTTER_OK);
    for (int i = 1; i < CUDA_N_CARDS; i++) {
        print_row(row, sizeof row, &cuda_cards[i]);
        assert_non_null(strstr(text, row));
    }
    memory_free(text);
}

int main(int n, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_measured_rows),
        cmocka_unit_test(test_every_card),
        cmocka_unit_test(test_table),
    };
    char row[128];
    for (int i = 1; n > 1 && strcmp(arguments[1], "table") == 0 && i < CUDA_N_CARDS; i++) {
        print_row(row, sizeof row, &cuda_cards[i]);
        fputs(row, stdout);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
