/* SPDX-License-Identifier: Apache-2.0
 * What characters are to a script: the first and the last of each kind with their neighbours; and where words begin. */
#include "script/letters.h"

#include <stdio.h>
#include <string.h>

#include "script/spell/spell.h"
#include "tests/support.h"

/* The kinds of a character, a letter each: of a word, East Asian, Hangul, a mark, closing, of a script with blanks. */
static const char *kinds_of(uint32_t code)
{
    static char kinds[8];
    snprintf(kinds, sizeof kinds, "%s%s%s%s%s%s", letters_is_word(code) ? "w" : "",
        letters_is_wide(code) ? "e" : "", letters_is_hangul(code) ? "h" : "",
        letters_is_mark(code) ? "m" : "", letters_closes(code) ? "c" : "",
        letters_is_spaced(code) ? "s" : "");
    return kinds;
}

static void characters_are_of_their_kinds(void **state)
{
    static const struct {
        uint32_t code;
        const char *kinds;
    } all[] = {{0, ""}, {' ', ""}, {'(', ""}, {')', "c"}, {'5', "ws"}, {'A', "ws"}, {'_', ""},
        {'z', "ws"}, {0xb2, ""}, {0x1c5, "ws"}, {0x2b0, "ws"}, {0x301, "wm"}, {0x488, "wm"},
        {0x5d0, "ws"}, {0x903, "wm"}, {0xdf4, ""}, {0xe01, "w"}, {0x109d, "wm"}, {0x10a0, "ws"},
        {0x1773, "wm"}, {0x1780, "w"}, {0x17e9, "w"}, {0x1810, "ws"}, {0x194f, "ws"}, {0x1950, "w"},
        {0x1aa7, "w"}, {0x1ab0, "wm"}, {0x1b05, "w"}, {0x1b83, "ws"}, {0x201c, ""}, {0x201d, "c"},
        {0x2160, ""}, {0x2d80, "ws"}, {0x3005, "w"}, {0x300d, "c"}, {0x303f, ""}, {0x3040, "e"},
        {0x3042, "we"}, {0x30ff, "we"}, {0x3100, ""}, {0x312f, "w"}, {0x3131, "ws"}, {0x318e, "ws"},
        {0x31a0, "w"}, {0x31ff, "w"}, {0x33ff, ""}, {0x3400, "we"}, {0x9fff, "we"}, {0xa000, "ws"},
        {0xa97c, "ws"}, {0xa984, "w"}, {0xa9fe, "w"}, {0xaa00, "ws"}, {0xaa59, "ws"}, {0xaa60, "w"},
        {0xaadd, "w"}, {0xaae0, "ws"}, {0xabf9, "ws"}, {0xac00, "whs"}, {0xd7a3, "whs"}, {0xd7af, "h"},
        {0xd7b0, "ws"}, {0xf8ff, ""}, {0xf900, "we"}, {0xfaff, "e"}, {0xfb00, "ws"}, {0xfefc, "ws"},
        {0xff10, "w"}, {0xff9f, "w"}, {0xffa0, "ws"}, {0x16fe4, "wm"}, {0x1aff0, "w"}, {0x1b167, "w"},
        {0x1b170, "ws"}, {0x1ffff, ""}, {0x20000, "we"}, {0x3ffff, "e"}, {0x40000, ""}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const char *kinds = kinds_of(all[i].code);
        if (strcmp(kinds, all[i].kinds) != 0) {
            fail_msg("U+%04X is \"%s\"", all[i].code, kinds);
        }
    }
}

/* By the first character that tells it; Chinese where none tells more. */
static void a_language_is_known_by_its_letters(void **state)
{
    static const struct {
        uint32_t code;
        const char *language;
    } all[] = {{0x3ff, "english"}, {0x400, "russian"}, {0x4ff, "russian"}, {0x500, "english"},
        {0x303f, "english"}, {0x3040, "japanese"}, {0x30ff, "japanese"}, {0x3100, "english"},
        {0x4e00, "chinese"}, {0xac00, "korean"}, {0xd7b0, "english"}};
    char text[16] = "1 \u4e00 ";
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        size_t front = strlen("1 \u4e00 "), n = utf8_put(all[i].code, text + front);
        assert_string_equal(spell_language("AUTO", text + front, n), all[i].language);
        bool silent = strcmp(all[i].language, "english") == 0;
        assert_string_equal(
            spell_language(NULL, text, front + n), silent ? "chinese" : all[i].language);
    }
}

static void characters_stand_before_and_behind_a_place(void **state)
{
    static const char text[] = "a\u00e9\u4f60b";
    static const struct {
        size_t at;
        uint32_t before, behind;
        bool border;
    } all[] = {{0, 0, 'a', true}, {1, 'a', 0xe9, false}, {3, 0xe9, 0x4f60, true},
        {6, 0x4f60, 'b', true}, {7, 'b', 0, true}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_int_equal(letters_before(text, all[i].at), all[i].before);
        assert_int_equal(letters_at(text, sizeof text - 1, all[i].at), all[i].behind);
        assert_int_equal(letters_border(text, sizeof text - 1, all[i].at), all[i].border);
    }
    assert_int_equal(letters_at(text, 6, 6), 0); /* the text ends there */
    assert_int_equal(letters_byte_order("\xef\xbb\xbf", 3), 3);
    assert_int_equal(letters_byte_order("\xef\xbb\xbf", 2), 0);
    assert_int_equal(letters_byte_order("abcd", 4), 0);
}

static void blanks_at_the_ends_go(void **state)
{
    static const struct {
        const char *text, *trimmed;
    } all[] = {{"", ""}, {"a", "a"}, {" \t\r", ""}, {"\r a\tb \t", "a\tb"}, {"\na\n", "\na\n"}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const char *text = all[i].text;
        size_t n = strlen(text);
        letters_trim(&text, &n);
        assert_int_equal(n, strlen(all[i].trimmed));
        assert_memory_equal(text, all[i].trimmed, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(characters_are_of_their_kinds),
        cmocka_unit_test(a_language_is_known_by_its_letters),
        cmocka_unit_test(characters_stand_before_and_behind_a_place),
        cmocka_unit_test(blanks_at_the_ends_go)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
