/* SPDX-License-Identifier: Apache-2.0
 * Where normalisation has its borders, held against utf8proc's own data; and long runs between two of them. That the
 * normal forms are the official ones is in test_official.c. */
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "text/chars.h"
#include "text/nfc.h"

#define COMPOSE (UTF8PROC_STABLE | UTF8PROC_COMPOSE)

enum { N_CODES = 0x110000, MOST_PARTS = 8 };

/* Whether a character of class 0 is the last part of another one. */
static bool joins[N_CODES];

static bool is_surrogate(uint32_t code)
{
    return code >= 0xd800 && code < 0xe000;
}

static int class_of(utf8proc_int32_t code)
{
    return utf8proc_get_property(code)->combining_class;
}

static int parts_of(uint32_t code, utf8proc_int32_t *parts)
{
    int last_class = 0;
    return (int)utf8proc_decompose_char(
        (utf8proc_int32_t)code, parts, MOST_PARTS, COMPOSE, &last_class);
}

static int find_joins(void **state)
{
    (void)state;
    for (uint32_t code = 0; code < N_CODES; code++) {
        utf8proc_int32_t parts[MOST_PARTS];
        const int n = is_surrogate(code) ? 0 : parts_of(code, parts);
        if (n > 1 && class_of(parts[n - 1]) == 0) {
            joins[parts[n - 1]] = true;
        }
    }
    return 0;
}

/* Whether what stands before this character may change with it. */
static bool is_bound(uint32_t code)
{
    utf8proc_int32_t parts[MOST_PARTS];
    const int n = parts_of(code, parts);
    return n > 0 && (class_of(parts[0]) != 0 || joins[parts[0]]);
}

/* Before a character that binds to the one before it there is none, but where the official normaliser does not know it:
 * that one has borders on both sides. Before every other character there is one. */
static void borders_stand_before_what_binds_to_nothing(void **state)
{
    size_t n_bound = 0, n_unknown = 0;
    (void)state;
    for (uint32_t code = 1; code < N_CODES; code++) {
        if (is_surrogate(code)) {
            continue;
        }
        const bool bound = is_bound(code), unknown = bound && nfc_border_after(code);
        if (nfc_border_before(code) != (!bound || unknown)) {
            fail_msg("U+%04X", (unsigned)code);
        }
        n_bound += bound;
        n_unknown += unknown;
    }
    assert_true(n_bound > 900 && n_unknown > 0 && n_unknown < n_bound / 4);
    assert_true(nfc_border_before(0x11a7) && nfc_border_after(0x11a7));
}

/* Each range behind which nothing binds, and its neighbours. */
static void borders_stand_behind_what_nothing_changes(void **state)
{
    static const uint32_t ranges[][2] = {{0, ';'}, {'?', '@'}, {'[', '`'}, {'{', 0x7f},
        {0x2010, 0x2027}, {0x3000, 0x3003}, {0x3008, 0x3020}, {0x4e00, 0x9fff}, {0xff01, 0xff1b},
        {0xff1f, 0xff1f}};
    (void)state;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        for (uint32_t code = ranges[i][0]; code <= ranges[i][1]; code++) {
            assert_true(nfc_border_after(code));
        }
        assert_false(nfc_border_after(ranges[i][1] + 1));
        assert_true(ranges[i][0] == 0 || !nfc_border_after(ranges[i][0] - 1));
    }
    /* What binds to a letter is no such character. */
    static const uint32_t others[] = {
        'a', 'Z', '<', '=', '>', 0xe9, 0x301, 0x1100, 0x1161, 0xac00, 0x9c7};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(nfc_border_after(others[i]));
    }
}

static void put_all(struct chars *out, const utf8proc_int32_t *codes, int n)
{
    for (int i = 0; i < n; i++) {
        char text[4];
        assert_int_equal(chars_add(out, text, utf8_put((uint32_t)codes[i], text), NULL), UTTER_OK);
    }
}

/* The parts of each character become what utf8proc makes of them, also behind a letter, which stays. */
static void parts_are_put_together(void **state)
{
    struct chars apart = {0}, together = {0}, wanted = {0};
    size_t n_tried = 0;
    (void)state;
    for (uint32_t code = 0xc0; code < N_CODES; code++) {
        utf8proc_int32_t parts[MOST_PARTS];
        const int n = is_surrogate(code) ? 0 : parts_of(code, parts);
        bool known = n > 1 && !is_bound(code); /* which is none of the letter in front */
        for (int i = 0; i < n; i++) {
            known = known && !nfc_border_after((uint32_t)parts[i]);
        }
        if (!known || (code >= 0xac00 && code <= 0xd7a3 && code % 7 != 0)) { /* of Hangul some */
            continue;
        }
        apart.n = together.n = wanted.n = 0;
        assert_int_equal(chars_add(&apart, "x", 1, NULL), UTTER_OK);
        assert_int_equal(chars_add(&wanted, "x", 1, NULL), UTTER_OK);
        put_all(&apart, parts, n);
        put_all(&wanted, parts, (int)utf8proc_normalize_utf32(parts, n, COMPOSE));
        assert_int_equal(nfc_add(&together, apart.at, apart.n, NULL), UTTER_OK);
        if (together.n != wanted.n || memcmp(together.at, wanted.at, wanted.n) != 0) {
            fail_msg("U+%04X", (unsigned)code);
        }
        n_tried++;
    }
    assert_true(n_tried > 2500);
    chars_fini(&apart);
    chars_fini(&together);
    chars_fini(&wanted);
}

static void repeat(struct chars *out, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(chars_add(out, text, strlen(text), NULL), UTTER_OK);
    }
}

/* However long a run is: letters with their accents, and one letter with thousands of them, out of order. */
static void long_runs_are_one(void **state)
{
    (void)state;
    for (size_t n = 1; n < 3000; n += n < 600 ? 1 : 97) {
        struct chars in = {0}, out = {0}, wanted = {0};
        repeat(&in, "e\u0301", n);
        repeat(&wanted, "\u00e9", n);
        repeat(&in, "xe\u0304", 1);
        repeat(&in, "\u0301\u0316", n);
        repeat(&wanted, "x\u1e17", 1);
        repeat(&wanted, "\u0316", n);
        repeat(&wanted, "\u0301", n - 1);
        assert_int_equal(nfc_add(&out, in.at, in.n, NULL), UTTER_OK);
        assert_int_equal(out.n, wanted.n);
        assert_memory_equal(out.at, wanted.at, wanted.n);
        chars_fini(&in);
        chars_fini(&out);
        chars_fini(&wanted);
    }
}

/* What is added stands behind what was there; of what lacks memory no more is said than that. */
static void memory_may_run_out(void **state)
{
    (void)state;
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        struct chars in = {0}, out = {0};
        utter_error error = {0};
        support_fail_off();
        repeat(&in, "e\u0301\U00011930", 400);
        repeat(&out, "before", 1);
        support_fail_at(SUPPORT_MALLOC, n);
        const utter_status status = nfc_add(&out, in.at, in.n, &error);
        assert_int_equal(status, support_failed() ? UTTER_E_MEMORY : UTTER_OK);
        assert_int_equal(error.code, status);
        assert_memory_equal(out.at, "before", 6);
        assert_true(status || out.n == 6 + 400 * 6);
        chars_fini(&in);
        chars_fini(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(borders_stand_before_what_binds_to_nothing),
        cmocka_unit_test(borders_stand_behind_what_nothing_changes),
        cmocka_unit_test(parts_are_put_together),
        cmocka_unit_test(long_runs_are_one),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, find_joins, NULL);
}
