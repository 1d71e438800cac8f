/* SPDX-License-Identifier: Apache-2.0
 * The ends of a text in pieces: whatever the cuts, what comes out is the text without the line breaks at
 * its ends. */
#include "tests/support.h"

#include <string.h>

#include "prompt/edges.h"
#include "tests/utf8.h"

/* Feeds text[n] in pieces of `step` bytes; what is given goes to out. */
static size_t run(const char *text, size_t n, size_t step, char *out, bool *has_text)
{
    struct edges edges = {0};
    size_t n_out = 0;
    for (size_t at = 0; at < n; at += step) {
        const char *piece = text + at, *inner;
        size_t bytes = n - at < step ? n - at : step, n_inner;
        do {
            assert_int_equal(edges_next(&edges, &piece, &bytes, &inner, &n_inner, NULL), UTTER_OK);
            if (n_inner > 0) { /* else inner may be NULL, which memcpy does not take */
                memcpy(out + n_out, inner, n_inner);
            }
            n_out += n_inner;
        } while (n_inner > 0);
    }
    *has_text = edges_has_text(&edges);
    edges_fini(&edges);
    return n_out;
}

static void check(const char *text, const char *want, bool want_text)
{
    char out[256];
    for (size_t step = 1; step <= strlen(text) + 1; step++) {
        bool has_text;
        size_t n = run(text, strlen(text), step, out, &has_text);
        out[n] = 0;
        assert_string_equal(out, want);
        assert_int_equal(has_text, want_text);
    }
}

static void breaks_at_the_ends_go(void **state)
{
    (void)state;
    check("Hello", "Hello", true);
    check("\n\r\nHello\n\n", "Hello", true);
    check("\nHello\n\nyou\r\n", "Hello\n\nyou", true);
    check("a\nb\n\nc\n\n\nd", "a\nb\n\nc\n\n\nd", true);
}

static void other_white_space_stays(void **state)
{
    (void)state;
    check(" \nHello ", " \nHello ", true);
    check("\tHi\n ", "\tHi\n ", true);
}

static void white_space_alone_is_no_text(void **state)
{
    (void)state;
    check("", "", false);
    check("\n\n", "", false);
    check("  \t ", "  \t ", false);
    check("\xc2\xa0\xe3\x80\x80\xe2\x80\x89", "\xc2\xa0\xe3\x80\x80\xe2\x80\x89",
        false);                                  /* U+00A0 U+3000 U+2009 */
    check("\xe2\x80\x8b", "\xe2\x80\x8b", true); /* U+200B is no white space */
    check("\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80", true);
}

/* What is no character is no white space either: bytes that begin none, and a blank that is written too long. What may
 * still become a character is not there yet. */
static void what_is_no_character_is_visible(void **state)
{
    static const struct {
        const char *text;
        bool visible;
    } cases[] = {{"\x80", true}, {"\xbf", true}, {" \x9f\x80", true}, {"\xc0\xa0", true},
        {"\xc1\xbf", true}, {"\xc0", true}, {"\xc1", true}, {"\xc2", false}, {"\xe3\x80", false},
        {"\xf0\x9f\x98", false}, {"\xe3\x80\x80", false}, {"\xe3x", true}, {"\xe3 ", false},
        {"\xc2\xa0\x81", true}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check(cases[i].text, cases[i].text, cases[i].visible);
    }
}

/* All characters up to U+3001: 25 of them are white space, as Unicode has it. */
static void white_space_is_that_of_unicode(void **state)
{
    static const uint32_t spaces[] = {9, 10, 11, 12, 13, 32, 0x85, 0xa0, 0x1680, 0x2000, 0x2001, 0x2002,
        0x2003, 0x2004, 0x2005, 0x2006, 0x2007, 0x2008, 0x2009, 0x200a, 0x2028, 0x2029, 0x202f, 0x205f,
        0x3000};
    size_t n_spaces = 0;
    (void)state;
    for (uint32_t c = 1; c <= 0x3001; c++) {
        char text[5], out[8];
        bool has_text, space = c == spaces[n_spaces];
        const size_t n = utf8_put(text, c);
        run(text, n, n, out, &has_text);
        if (has_text == space) {
            fail_msg("U+%04X", c);
        }
        n_spaces += space && n_spaces + 1 < sizeof spaces / sizeof *spaces;
    }
    assert_int_equal(spaces[n_spaces], 0x3000);
}

static void a_failed_allocation_is_reported(void **state)
{
    (void)state;
    struct edges edges = {0};
    const char *piece = "a\n", *inner;
    size_t bytes = 2, n;
    assert_int_equal(edges_next(&edges, &piece, &bytes, &inner, &n, NULL), UTTER_OK);
    support_fail_malloc_at(1);
    assert_int_equal(edges_next(&edges, &piece, &bytes, &inner, &n, NULL), UTTER_E_MEMORY);
    support_fail_off();
    edges_fini(&edges);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(breaks_at_the_ends_go),
        cmocka_unit_test(other_white_space_stays),
        cmocka_unit_test(white_space_alone_is_no_text),
        cmocka_unit_test(what_is_no_character_is_visible),
        cmocka_unit_test(white_space_is_that_of_unicode),
        cmocka_unit_test(a_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests_name("prompt edges", tests, NULL, NULL);
}
