/* SPDX-License-Identifier: Apache-2.0
 * Tags that hold from one section of a chapter to the next, and brackets that are words. */
#include "book/sections.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support.h"

/* What stands in front of the second section of a chapter that begins with `words`. */
static void prefix_behind(char prefix[64], const char *words)
{
    static const char line[] = "The train left at noon. ";
    char text[4096];
    size_t n = (size_t)snprintf(text, sizeof text, "%s", words);
    for (int i = 0; i < 120; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", line, i % 20 == 19 ? "\n\n" : "");
    }
    const struct chapter chapter = {.text = text};
    struct sections s = {0};
    assert_int_equal(
        sections_add(&s, &chapter, 0, (struct sections_rules){.tags = true}, NULL), UTTER_OK);
    assert_true(s.n >= 2);
    assert_null(s.at[0].prefix);
    snprintf(prefix, 64, "%s", s.at[1].prefix ? s.at[1].prefix : "");
    sections_fini(&s);
}

static void test_prefix(void **state)
{
    static const char *const cases[][2] = {
        {"No tags. ", ""},
        {"[lang:german] [voice:miles] ", "[voice:miles][lang:german]"},
        {"[volume:soft] [rate:2] [lang:de] [voice:m] ", "[voice:m][lang:de][rate:2][volume:soft]"},
        {"[voice:miles] [/voice] ", ""},
        {"[voice:miles] [voice:] ", ""},
        {"[voice:miles] [voice:default] ", ""},
        {"[rate:1.2] [rate:0.9] ", "[rate:0.9]"},
        {"[rate:1.2] [rate:x] ", "[rate:1.2]"},
        {"[volume:soft] [volume:9000%] [volume: ] ", "[volume:soft]"},
        {"\\[voice:miles] ", ""},
        {"[voice: of the sea] ", ""},
        {"[voice:miles] [voice] ", "[voice:miles]"},
        {"[voice:of\nthe sea] ", ""},
        {"[voice ", ""},
        {"[/] [/voice ", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char prefix[64];
        prefix_behind(prefix, cases[i][0]);
        assert_string_equal(prefix, cases[i][1]);
    }
}

/* A tag has 200 bytes at most, and so has the name of a speaker with its colon. */
static void test_long(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++) {
        for (int cast = 0; cast < 2; cast++) {
            char text[4096], name[256], all[512];
            memset(name, 'A', sizeof name);
            name[cast ? 199 + more : 192 + more] = 0;
            snprintf(all, sizeof all, "%s = clara\n", name);
            size_t n = (size_t)snprintf(text, sizeof text, cast ? "%s: " : "[voice:%s] ", name);
            for (int k = 0; k < 130; k++) {
                n += (size_t)snprintf(text + n, sizeof text - n, "The train left at noon. ");
            }
            const struct chapter chapter = {.text = text};
            const struct sections_rules rules = {.tags = !cast, .cast = cast ? all : NULL};
            struct sections s = {0};
            assert_int_equal(sections_add(&s, &chapter, 0, rules, NULL), UTTER_OK);
            assert_true(s.n >= 2);
            const char *prefix = s.at[1].prefix ? s.at[1].prefix : "";
            snprintf(all, sizeof all, cast ? "%s: " : "[voice:%s]", name);
            assert_string_equal(prefix, more ? "" : all);
            sections_fini(&s);
        }
    }
}

/* A paragraph of two sections, and one behind it; with a cast, and with tags too. */
static void test_speaker(void **state)
{
    static const struct {
        const char *begins, *prefix;
        bool tags;
    } cases[] = {{"Anna: ", "Anna: ", false}, {"BOB: No.\nANNA: ", "ANNA: ", false},
        {"CARL: ", NULL, false}, {"Then: ", NULL, false}, {": ", NULL, false},
        {"- Then: ", NULL, false}, {"ANNA: [rate:2] ", "ANNA: ", false},
        {"ANNA: [rate:2] ", "ANNA: [rate:2]", true},
        {"ANNA: [voice:x] [lang:de] ", "ANNA: [voice:x][lang:de]", true},
        {"BOB: [voice:x] No.\nANNA: ", "ANNA: ", true}, {"[voice:x] : ", "[voice:x]", true},
        {"ANNA: Yes.\n\nThen ", NULL, false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[4096];
        struct sections s = {0};
        size_t n = (size_t)snprintf(text, sizeof text, "%s", cases[i].begins);
        for (int k = 0; k < 120; k++) {
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", "The train left at noon. ",
                k == 119 ? "\n\nEnd." : "");
        }
        const struct chapter chapter = {.text = text};
        const struct sections_rules rules = {
            .tags = cases[i].tags, .cast = "ANNA = clara\nBOB = miles\n"};
        assert_int_equal(sections_add(&s, &chapter, 0, rules, NULL), UTTER_OK);
        size_t cut = 0; /* the section that is cut inside a paragraph */
        while (cut < s.n && s.at[cut].end != SECTION_SENTENCE) {
            cut++;
        }
        assert_true(cut + 1 < s.n);
        const char *prefix = s.at[cut + 1].prefix;
        assert_string_equal(prefix ? prefix : "", cases[i].prefix ? cases[i].prefix : "");
        sections_fini(&s);
    }
}

/* A long paragraph is cut behind a sentence, which no short word ends; where there is none, between words. */
static void test_cut(void **state)
{
    static const char *const cases[][2] = {
        /* what the first section ends with, and what follows it */
        {"and heard some jazz.", "There were some, e.g. from the"},
        {"and heard some jazz.", "There was Mr. Miller, from the"},
        {"and heard some jazz.", "There were some, a few etc. from the"},
        {"\"Who is there?\"", "There were some, e.g. from the"},
        {" north", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[8192];
        size_t n = 0;
        while (n < 900) {
            n += (size_t)snprintf(text + n, sizeof text - n, "north ");
        }
        n += (size_t)snprintf(text + n, sizeof text - n, "%s %s ", cases[i][0], cases[i][1]);
        while (n < 4000) {
            n += (size_t)snprintf(text + n, sizeof text - n, "north ");
        }
        const struct chapter chapter = {.text = text};
        struct sections s = {0};
        assert_int_equal(
            sections_add(&s, &chapter, 0, (struct sections_rules){.whole = false}, NULL), UTTER_OK);
        assert_true(s.n >= 2);
        const struct section *first = &s.at[0];
        assert_int_equal(first->end, SECTION_SENTENCE);
        assert_int_equal(first->text[first->bytes], ' ');
        assert_ptr_equal(s.at[1].text, first->text + first->bytes + 1);
        size_t length = strlen(cases[i][0]);
        assert_memory_equal(first->text + first->bytes - length, cases[i][0], length);
        sections_fini(&s);
    }
}

/* Text of paragraphs with so many bytes, of short words; 0 ends them. */
static char *make_paragraphs(const int *lengths)
{
    char *text = calloc(1, 100000), *at = text;
    for (int i = 0; lengths[i]; i++) {
        for (int k = 0; k < lengths[i]; k++) {
            *at++ = k % 5 == 4 && k + 1 < lengths[i] ? ' ' : 'x';
        }
        at = stpcpy(at, lengths[i + 1] ? "\n\n" : "");
    }
    return text;
}

/* Paragraphs are gathered up to 900 bytes, never to more than 2,400; one alone may have as many. */
static void test_gathered(void **state)
{
    static const struct {
        int paragraphs[8], sections[8];
    } cases[] = {
        {{448, 448, 448}, {898, 448}},
        {{447, 448, 448}, {1347}},
        {{898, 10}, {898, 10}},
        {{897, 10}, {909}},
        {{100, 2296, 10}, {2398, 10}},
        {{100, 2297, 10}, {100, 2297, 10}},
        {{800, 1596, 10}, {2398, 10}},
        {{800, 1597, 10}, {800, 1597, 10}},
        {{2398, 10}, {2398, 10}},
        {{10}, {10}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = make_paragraphs(cases[i].paragraphs);
        const struct chapter chapter = {.text = text};
        struct sections s = {0};
        uint64_t all = 0;
        assert_int_equal(
            sections_add(&s, &chapter, 7, (struct sections_rules){.whole = false}, NULL), UTTER_OK);
        for (size_t k = 0; k < s.n; k++) {
            assert_int_equal(s.at[k].bytes, cases[i].sections[k]);
            assert_int_equal(s.at[k].chapter, 7);
            assert_int_equal(s.at[k].end, k + 1 < s.n ? SECTION_PARAGRAPH : SECTION_CHAPTER);
            assert_null(s.at[k].prefix);
            all += s.at[k].bytes;
        }
        assert_int_equal(cases[i].sections[s.n], 0);
        assert_int_equal(s.bytes, all);
        sections_fini(&s);
        assert_true(!s.at && s.n == 0 && s.bytes == 0);
        free(text);
    }
}

/* Where a paragraph of more than 2,400 bytes is cut: behind the last mark in the last two thirds, else behind the last
 * blank, else between two characters. */
static void test_cut_places(void **state)
{
    static const struct {
        const char *mark;
        int at;    /* where it begins, in letters without a blank */
        int bytes; /* of the first section and the white space behind it */
    } cases[] = {
        {"", 0, 2400},
        {" ", 2399, 2400},
        {" ", 2400, 2400},
        {" ", 801, 802},
        {" ", 800, 2400},
        {"! ", 1000, 1002},
        {"? ", 1000, 1002},
        {"\" ", 1000, 1002},
        {". ", 1000, 1002},
        {".\n", 1000, 1002},
        {"\xE3\x80\x82", 2397, 2400},
        {"\xE3\x80\x82", 2398, 2398},
        {"\xEF\xBC\x81", 1000, 1003},
        {"\xEF\xBC\x9F", 1000, 1003},
        {"\xE2\x80\xA6", 799, 802},
        {"\xE2\x80\xA6", 798, 2400},
        {"! x ", 1000, 1002},
        {"!x ", 1000, 1003},
        {"xxxX. ", 1000, 1006},
        {"xXxxxx. ", 1000, 1008},
        {" abc. y ", 1000, 1008},
        {" abc. ", 1000, 1006},
        {" abcd. y ", 1000, 1007},
        {". 12345 ", 1000, 1002},
        {". ~~~~~ ", 1000, 1002},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[3001] = "";
        struct sections s = {0};
        const struct chapter chapter = {.text = text};
        memset(text, 'z', sizeof text - 1);
        memcpy(text + cases[i].at, cases[i].mark, strlen(cases[i].mark));
        assert_int_equal(
            sections_add(&s, &chapter, 0, (struct sections_rules){.whole = false}, NULL), UTTER_OK);
        assert_int_equal(s.n, 2);
        if (s.at[1].text - text != cases[i].bytes) {
            fail_msg("case %zu: %td", i, s.at[1].text - text);
        }
        assert_int_equal(s.at[0].end, SECTION_SENTENCE);
        sections_fini(&s);
    }
}

/* Characters of two bytes, and one byte in front of them. */
static void test_cut_characters(void **state)
{
    (void)state;
    for (int first = 0; first < 2; first++) {
        char text[3002] = "x";
        struct sections s = {0};
        const struct chapter chapter = {.text = text};
        for (int k = first; k + 2 < 3000; k += 2) {
            memcpy(text + k, "\xC3\xA9", 2);
        }
        assert_int_equal(
            sections_add(&s, &chapter, 0, (struct sections_rules){.whole = false}, NULL), UTTER_OK);
        assert_int_equal(s.at[0].bytes, 2400 - first);
        sections_fini(&s);
    }
}

/* A chapter that is not cut at all; one without a word; and many, of whose last sections each ends one. */
static void test_chapters(void **state)
{
    static const int many[] = {900, 900, 900, 900, 0};
    char stars[] = "* * *";
    const struct chapter silent = {.text = stars};
    char *text = make_paragraphs(many);
    const struct chapter chapter = {.text = text};
    struct sections s = {0};
    (void)state;
    assert_int_equal(
        sections_add(&s, &silent, 0, (struct sections_rules){.whole = true}, NULL), UTTER_OK);
    assert_int_equal(s.n, 0);
    assert_int_equal(
        sections_add(&s, &chapter, 1, (struct sections_rules){.whole = true, .tags = true}, NULL),
        UTTER_OK);
    assert_int_equal(s.n, 1);
    assert_int_equal(s.at[0].bytes, strlen(text));
    assert_int_equal(s.at[0].end, SECTION_CHAPTER);
    for (size_t i = 2; i < 40; i++) {
        assert_int_equal(
            sections_add(&s, &silent, i, (struct sections_rules){.tags = true}, NULL), UTTER_OK);
        assert_int_equal(
            sections_add(&s, &chapter, i, (struct sections_rules){.tags = true}, NULL), UTTER_OK);
    }
    assert_int_equal(s.n, 1 + 38 * 4);
    assert_int_equal(s.bytes, strlen(text) + 38 * 3600);
    for (size_t i = 1; i < s.n; i++) {
        assert_int_equal(s.at[i].chapter, 2 + (i - 1) / 4);
        assert_int_equal(s.at[i].end, i % 4 ? SECTION_PARAGRAPH : SECTION_CHAPTER);
        assert_int_equal(s.at[i].bytes, 900);
    }
    sections_fini(&s);
    free(text);
}

/* A section without a word is none, and what is in force in it goes on. */
static void test_silent_section(void **state)
{
    char text[8000] = "[voice:miles]";
    size_t n = strlen(text);
    struct sections s = {0};
    const struct chapter chapter = {.text = text};
    (void)state;
    memset(text + n, '.', 1000);
    strcat(text, "\n\n[rate:2]");
    n = strlen(text);
    memset(text + n, '-', 1000);
    strcat(text, "\n\nWords at last.");
    text[13 + 500] = 'a';
    assert_int_equal(
        sections_add(&s, &chapter, 0, (struct sections_rules){.tags = true}, NULL), UTTER_OK);
    assert_int_equal(s.n, 3); /* a tag has letters */
    assert_string_equal(s.at[2].prefix, "[voice:miles][rate:2]");
    assert_memory_equal(s.at[2].text, "Words at last.", s.at[2].bytes);
    sections_fini(&s);
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, k)
    {
        utter_status status =
            sections_add(&s, &chapter, 0, (struct sections_rules){.tags = true}, NULL);
        assert_true(status == UTTER_OK || (status == UTTER_E_MEMORY && support_failed()));
        assert_int_equal(status == UTTER_OK && s.n != 3, 0);
        sections_fini(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_speaker),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_gathered),
        cmocka_unit_test(test_cut_places),
        cmocka_unit_test(test_cut_characters),
        cmocka_unit_test(test_chapters),
        cmocka_unit_test(test_silent_section),
    };
    return cmocka_run_group_tests_name("book sections", tests, NULL, NULL);
}
