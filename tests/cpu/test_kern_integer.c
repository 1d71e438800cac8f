/* SPDX-License-Identifier: Apache-2.0
 * Convolutions of the vocoder beside packed weights, for every table that runs here and for the one on tiles with
 * tiles in plain C: against sums in double; and that no border of a call changes a bit. */
#include <stdlib.h>

#include "base/numeric.h"
#include "tests/cpu/random.h"
#include "tests/cpu/tile_emulation.h"
#include "tests/support.h"

static const char *const TABLES[] = {
    "c", "avx2", "avxvnni", "avx512", "avx512vnni", "amx", "neon", "dotprod", "i8mm", "emulated"};
enum { N_TABLES = sizeof TABLES / sizeof *TABLES };

static const struct kern *table_at(int i)
{
    return i == N_TABLES - 1 ? &tiles_emulated : kern_find(TABLES[i]);
}

#define EACH_TABLE(kern)                                                                               \
    for (int i_##kern = 0; i_##kern < N_TABLES; i_##kern++)                                            \
        for (const struct kern *kern = table_at(i_##kern); kern; kern = NULL)

enum {
    GROUPS = 5, /* with its taps more steps than any table takes at once */
    INTEGER_IN = GROUPS * KERN_INTEGER_GROUP,
    OUT = 2 * KERN_INTEGER_GROUP,
    TAPS = 3,
    DILATION = 5,
    N_T = 540, /* more than a block of time of any table */
    STRIDE = (TAPS - 1) * DILATION + N_T + KERN_PAD,
    PAIRS = KERN_INTEGER_GROUP / 2,
    MOST_WORDS = KERN_INTEGER_GROUP,
};

/* Numbers lie as the table wants them: see at(). */
struct integer_case {
    const struct kern *kern;
    bool halves; /* by time steps and not fine */
    struct kern_integer conv;
    float x[INTEGER_IN * STRIDE], y[OUT * STRIDE], residual[OUT * STRIDE];
    float bias[OUT], w_scales[OUT];
    int32_t words[GROUPS * MOST_WORDS * STRIDE], w[OUT * INTEGER_IN / 2 * TAPS];
};

/* Channel i at time step t. */
static int at(const struct kern *kern, int i, int t)
{
    enum { GROUP = KERN_INTEGER_GROUP };
    return kern->integer_by_time ? (i / GROUP * STRIDE + t) * GROUP + i % GROUP : i * STRIDE + t;
}

static struct integer_case *integer_case_new(const struct kern *kern, bool fine)
{
    struct random random = {77, 0};
    struct integer_case *c = calloc(1, sizeof *c);
    random_fill(&random, c->x, INTEGER_IN * STRIDE, 1);
    random_fill(&random, c->residual, OUT * STRIDE, 1);
    random_fill(&random, c->bias, OUT, 1);
    c->kern = kern;
    c->halves = kern->integer_by_time && !fine;
    c->x[at(kern, 0, 40)] = 500; /* costs its own time step and group only */
    for (int i = 0; i < OUT; i++) {
        c->w_scales[i] = 0.001f * (float)(i + 1);
    }
    for (int i = 0; i < OUT * INTEGER_IN / 2 * TAPS; i++) { /* a group of at most 2,047 each */
        uint32_t word = random_word(&random);
        uint32_t low = word % 4095 - 2047, high = (word >> 12) % 4095 - 2047;
        c->w[i] = (int32_t)((low & 0xffff) | high << 16);
        if (kern->integer_by_time) {
            uint32_t a = bf16_from_float((float)(int32_t)low),
                     b = bf16_from_float((float)(int32_t)high);
            c->w[i] = (int32_t)(a | b << 16);
        }
    }
    c->conv = (struct kern_integer){c->y, c->words, c->w, c->w_scales, c->bias, c->residual,
        kern->integer_by_time ? KERN_INTEGER_GROUP : STRIDE, STRIDE, GROUPS, TAPS, DILATION, N_T, fine};
    return c;
}

static double integer_weight(const struct integer_case *c, int o, int i, int j)
{
    int64_t place = kern_integer_place(c->kern->integer_by_time, GROUPS, TAPS, o, i, j);
    int32_t word = c->w[place / 2];
    if (c->kern->integer_by_time) {
        return (double)bf16_to_float((uint16_t)((uint32_t)word >> place % 2 * 16)) *
               (double)c->w_scales[o];
    }
    return (double)(place % 2 ? word >> 16 : (int16_t)(word & 0xffff)) * (double)c->w_scales[o];
}

static void check_integer(const struct integer_case *c)
{
    for (int o = 0; o < OUT; o++) {
        for (int t = 0; t < N_T; t++) {
            double sum = (double)c->bias[o] + (double)c->residual[at(c->kern, o, t)], size = 0;
            for (int i = 0; i < INTEGER_IN; i++) {
                for (int j = 0; j < TAPS; j++) {
                    double weight = integer_weight(c, o, i, j);
                    sum += weight * (double)c->x[at(c->kern, i, t + j * DILATION)];
                    size += fabs(weight) * (i < 32 && t + j * DILATION == 40 ? 500 : 1);
                }
            }
            /* Half a step, and fp32. */
            double step = c->halves ? 1.0 / 256 : 1.0 / 32767;
            assert_true(fabs((double)c->y[at(c->kern, o, t)] - sum) <= size * 0.6 * step);
        }
    }
}

static void integer_round_all(struct integer_case *c)
{
    for (int g = 0; g < GROUPS; g++) {
        struct kern_integer_rounding rounding = {c->words + g * c->kern->integer_words * STRIDE,
            c->x + g * KERN_INTEGER_GROUP * STRIDE, NULL, NULL, STRIDE,
            c->kern->integer_by_time ? KERN_INTEGER_GROUP : STRIDE, !c->halves};
        c->kern->integer_round(&rounding, STRIDE - KERN_PAD);
    }
}

/* n time steps from t on, of all outputs, into y. */
static void integer_piece(const struct integer_case *c, float *y, int t, int n)
{
    for (int o = 0; o < OUT; o += KERN_INTEGER_GROUP) {
        struct kern_integer piece = c->conv;
        int first = at(c->kern, o, t), o0 = c->kern->integer_by_time ? o : 0;
        piece.y = y + first, piece.residual += first, piece.n_t = n;
        piece.x += t * (c->kern->integer_by_time ? c->kern->integer_words / 2 : 1);
        if (!c->kern->integer_by_time) {
            piece.w += o / KERN_INTEGER_GROUP * GROUPS * TAPS * PAIRS * KERN_INTEGER_GROUP;
            piece.w_scales += o, piece.bias += o;
        }
        c->kern->integer(&piece, o0, o0 + KERN_INTEGER_GROUP);
    }
}

/* Rounded rows and a convolution of them against sums in double; then in calls of 1, 2, 3 time steps, to the bit. */
static void integer_sums(void **state)
{
    (void)state;
    EACH_TABLE(kern)
    {
        for (int fine = 0; fine < 2; fine++) {
            struct integer_case *c = integer_case_new(kern, fine);
            float *again = calloc(OUT * STRIDE, sizeof *again);
            integer_round_all(c);
            integer_piece(c, c->y, 0, N_T);
            check_integer(c);
            for (int t = 0, step = 1; t < N_T; t += step++) {
                integer_piece(c, again, t, N_T - t < step ? N_T - t : step);
            }
            assert_memory_equal(again, c->y, OUT * STRIDE * sizeof *again);
            free(again);
            free(c);
        }
    }
    assert_int_equal(emulated_begun, 0);
}

/* The largest sums of codes that the contract allows do not wrap: all in one pair or spread, up and down. */
static void integer_sums_do_not_overflow(void **state)
{
    (void)state;
    enum { LONE = 1 + KERN_PAD };
    static float x[KERN_INTEGER_GROUP * LONE], y[KERN_INTEGER_GROUP];
    static int32_t words[MOST_WORDS * LONE], w[PAIRS * KERN_INTEGER_GROUP];
    static float w_scales[KERN_INTEGER_GROUP], bias[KERN_INTEGER_GROUP];
    for (int i = 0; i < KERN_INTEGER_GROUP; i++) {
        x[i * LONE] = 32767;
    }
    for (int r = 0; r < KERN_INTEGER_GROUP; r++) {
        for (int i = 0; i < (r % 4 < 2 ? 2 : KERN_INTEGER_GROUP); i++) {
            uint32_t code = r % 4 < 2 ? 0x7fff : 0x07ff;
            int64_t place = kern_integer_place(false, 1, 1, r, i, 0);
            w[place / 2] |= (int32_t)((r % 2 ? 0x10000u - code : code) << 16 * (place % 2));
        }
        w_scales[r] = 1;
    }
    EACH_TABLE(kern)
    {
        struct kern_integer_rounding rounding = {words, x, NULL, NULL, LONE, LONE, true};
        struct kern_integer c = {y, words, w, w_scales, bias, NULL, 1, LONE, 1, 1, 1, 1, true};
        if (kern->integer_by_time) {
            continue; /* no codes */
        }
        kern->integer_round(&rounding, 1);
        kern->integer(&c, 0, KERN_INTEGER_GROUP);
        for (int r = 0; r < KERN_INTEGER_GROUP; r++) {
            float size = (r % 4 < 2 ? 2 * 32767.0f : 32 * 2047.0f) * 32767.0f;
            assert_true(fabsf(y[r] - (r % 2 ? -size : size)) <= 0);
        }
    }
}

/* A NaN stays in the time steps that see it. */
static void whole_of_no_number(void **state)
{
    (void)state;
    static const uint32_t bits[] = {
        0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0x7fffffff, 0xffffffff};
    EACH_TABLE(kern)
    {
        for (size_t i = 0; i < 2 * sizeof bits / sizeof *bits; i += SUPPORT_SANITIZED ? 5 : 1) {
            struct integer_case *c = integer_case_new(kern, i % 2);
            memcpy(&c->x[at(kern, 3, 100)], &bits[i / 2], sizeof *bits);
            integer_round_all(c);
            integer_piece(c, c->y, 0, N_T);
            for (int t = 0; t < N_T; t++) {
                bool sees = t == 100 || t == 100 - DILATION || t == 100 - 2 * DILATION;
                assert_int_equal(!isfinite(c->y[at(kern, 7, t)]), sees);
            }
            free(c);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integer_sums),
        cmocka_unit_test(integer_sums_do_not_overflow),
        cmocka_unit_test(whole_of_no_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
