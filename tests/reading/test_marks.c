/* SPDX-License-Identifier: Apache-2.0
 * What characters mean to a reader: the first and the last of each kind with their neighbours, and abbreviations. */
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

#include "reading/marks.h"

/* The kinds of a character, a letter each: white space, a break of a line, of East Asia, a small letter, spoken, a
 * digit, closing. */
static const char *kinds_of(uint32_t code)
{
    static char kinds[8];
    snprintf(kinds, sizeof kinds, "%s%s%s%s%s%s%s", marks_is_white(code) ? "w" : "",
        marks_is_break(code) ? "b" : "", marks_is_wide(code) ? "e" : "",
        marks_is_lower(code) ? "l" : "", marks_is_spoken(code) ? "s" : "",
        marks_is_digit(code) ? "d" : "", marks_is_closing(code) ? "c" : "");
    return kinds;
}

static void characters_are_of_their_kinds(void **state)
{
    static const struct {
        uint32_t code;
        size_t units;
        const char *kinds;
    } all[] = {{0, 1, ""}, {'\t', 1, "w"}, {'\n', 1, "wb"}, {0x0b, 1, "wb"}, {0x0c, 1, "wb"},
        {'\r', 1, "wb"}, {0x0e, 1, ""}, {' ', 1, "w"}, {'!', 1, ""}, {'"', 1, "c"}, {'#', 6, ""},
        {'$', 6, "s"}, {'%', 6, "s"}, {'&', 6, "s"}, {'\'', 1, "c"}, {'(', 1, ""}, {')', 1, "c"},
        {'*', 1, ""}, {'+', 6, "s"}, {'/', 1, ""}, {'0', 4, "sd"}, {'9', 4, "sd"}, {':', 1, ""},
        {'<', 1, ""}, {'=', 6, "s"}, {'>', 1, ""}, {'@', 6, "s"}, {'A', 1, "s"}, {'Z', 1, "s"},
        {'[', 1, ""}, {']', 1, "c"}, {'a', 1, "ls"}, {'z', 1, "ls"}, {'}', 1, "c"}, {0x7f, 1, ""},
        {0x84, 1, ""}, {0x85, 1, "wb"}, {0xa0, 1, "w"}, {0xa5, 1, "s"}, {0xab, 1, ""}, {0xbb, 1, "c"},
        {0xbd, 1, "s"}, {0xdf, 1, "ls"}, {0x660, 4, "sd"}, {0x10ff, 1, "ls"}, {0x1100, 3, "s"},
        {0x11ff, 1, "s"}, {0x2009, 1, "w"}, {0x200b, 1, ""}, {0x2019, 1, "c"}, {0x201c, 1, "c"},
        {0x201d, 1, "c"}, {0x201e, 1, ""}, {0x2027, 1, ""}, {0x2028, 1, "wb"}, {0x2029, 1, "wb"},
        {0x202a, 1, ""}, {0x20ac, 1, "s"}, {0x3000, 3, "we"}, {0x300d, 3, "ec"}, {0x3042, 3, "es"},
        {0x4e00, 3, "es"}, {0xac00, 3, "s"}, {0xd7a3, 3, "s"}, {0xff10, 3, "esd"}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const char *kinds = kinds_of(all[i].code);
        if (strcmp(kinds, all[i].kinds) != 0 || marks_units(all[i].code) != all[i].units) {
            fail_msg("U+%04X is \"%s\" of %zu units", all[i].code, kinds, marks_units(all[i].code));
        }
    }
}

static void marks_end_sentences_or_clauses(void **state)
{
    static const struct {
        enum mark mark;
        uint32_t codes[12];
    } all[] = {{MARK_SENTENCE, {'.', '!', '?', 0x2026, 0x203c, 0x203d, 0x2047, 0x2048, 0x2049}},
        {MARK_SENTENCE_WIDE, {0x3002, 0xff61, 0xff01, 0xff1f, 0xff0e}},
        {MARK_CLAUSE, {',', ';', ':', 0x2013}},
        {MARK_CLAUSE_WIDE, {0x2014, 0x2015, 0x3001, 0xff64, 0xff0c, 0xff1b, 0xff1a}},
        {MARK_NONE, {'a', '-', '\'', '"', 0x2012, 0x2016, 0x2025, 0x203e, 0x3003}}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        for (size_t k = 0; k < 12 && all[i].codes[k]; k++) {
            assert_int_equal(marks_of(all[i].codes[k]), all[i].mark);
        }
    }
}

/* From either end; a byte that begins no character, and one whose end is missing, stand for themselves. */
static void characters_are_found_from_both_ends(void **state)
{
    static const struct {
        const char *text;
        size_t n, first_n, last_n;
        uint32_t first, last;
    } all[] = {{"a", 1, 1, 1, 'a', 'a'}, {"ab", 2, 1, 1, 'a', 'b'}, {"\xc3\xa9", 2, 2, 2, 0xe9, 0xe9},
        {"\xe4\xbd\xa0", 3, 3, 3, 0x4f60, 0x4f60}, {"\xf0\x9f\x98\x80", 4, 4, 4, 0x1f600, 0x1f600},
        {"x\xf0\x9f\x98\x80", 5, 1, 4, 'x', 0x1f600}, {"\xc3\xa9z", 3, 2, 1, 0xe9, 'z'},
        {"\xe4\xbd", 2, 1, 1, 0xfffd, 0xfffd}, {"\xf0\x9f\x98", 3, 1, 1, 0xfffd, 0xfffd},
        {"\xbd", 1, 1, 1, 0xfffd, 0xfffd}, {"\xc3\xa9\xa9", 3, 2, 1, 0xe9, 0xfffd},
        {"\xa9\xa9\xa9\xa9\xa9", 5, 1, 1, 0xfffd, 0xfffd}, {"\xff", 1, 1, 1, 0xfffd, 0xfffd}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        uint32_t code = 1;
        assert_int_equal(marks_get(all[i].text, all[i].n, &code), all[i].first_n);
        assert_int_equal(code, all[i].first);
        assert_int_equal(marks_last(all[i].text, all[i].n, &code), all[i].last_n);
        assert_int_equal(code, all[i].last);
    }
}

/* The word stands before a full stop, and `next` behind it. */
static void a_stop_belongs_to_what_is_short(void **state)
{
    static const struct {
        const char *word;
        uint32_t next;
        bool is;
    } all[] = {{"Mr", 'S', true}, {"mr", 's', true}, {"MR", 'S', false}, {"Mt", 'S', true},
        {"av", 'C', true}, {"Ms", 'S', true}, {"\xd1\x81\xd0\xb2", 0x41f, true}, {"Mister", 'S', false},
        {"r", 'S', true}, {"J", 'R', true}, {"\xc3\x89", 'Z', true}, {"\xe5\xa4\xa9", 'R', false},
        {"\xd7\x90", 'R', false}, {"\"Mr", 'S', true}, {"(\xe2\x80\x9cMr", 'S', true},
        {"\"(", 'S', false}, {"", 'S', false},
        /* Numbers of one or two digits order, longer ones are years. */
        {"3", 'M', true}, {"19", 'J', true}, {"198", 'T', false}, {"1984", 'T', false},
        {"3b", 'M', false}, {"b33", 'M', false},
        /* Before a number alone. */
        {"No", '5', true}, {"no", 'T', false}, {"fig", '3', true}, {"fig", 'T', false},
        {"\xd1\x81\xd1\x82", '7', true}, {"\xe2\x84\x96", '7', false},
        /* What may end a sentence ends one before a large letter, and before what closes. */
        {"etc", 'w', true}, {"etc", 'W', false}, {"etc", '"', false}, {"etc", ')', false},
        {"etc", '(', true}, {"Ltd", 'h', true}, {"ltda", 'h', true}, {"ltda", 'H', false},
        /* Letters with stops between them. */
        {"e.g", 'a', true}, {"U.S", 'A', true}, {"u.s.a", 'A', true}, {"U.S.A", 'A', true},
        {"A.D", 'a', true}, {"Z.B", 'a', true}, {"U.S.X", 'A', false}, {"uS", 'A', false},
        /* The longest that is listed, and what is too long to be. */
        {"dott.ssa", 'B', true}, {"dott.ssax", 'B', false}, {"approximates", 'B', false},
        {"approximately", 'B', false}, {"approx", 'B', true}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (marks_is_short_form(all[i].word, strlen(all[i].word), all[i].next) != all[i].is) {
            fail_msg("%s. %c", all[i].word, (int)all[i].next);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(characters_are_of_their_kinds),
        cmocka_unit_test(marks_end_sentences_or_clauses),
        cmocka_unit_test(characters_are_found_from_both_ends),
        cmocka_unit_test(a_stop_belongs_to_what_is_short)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
