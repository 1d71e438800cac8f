/* SPDX-License-Identifier: Apache-2.0
 * Tags that hold from one section of a chapter to the next, and brackets that are words. */
#include "book/sections.h"

#include <stdio.h>
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

/* A paragraph of two sections, and one behind it; with a cast, and with tags too. */
static void test_speaker(void **state)
{
    static const struct {
        const char *begins, *prefix;
        bool tags;
    } cases[] = {{"Anna: ", "Anna: ", false}, {"BOB: No.\nANNA: ", "ANNA: ", false},
        {"CARL: ", NULL, false}, {"Then: ", NULL, false}, {": ", NULL, false},
        {"ANNA: [rate:2] ", "ANNA: ", false}, {"ANNA: [rate:2] ", "ANNA: [rate:2]", true},
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_speaker),
        cmocka_unit_test(test_cut),
    };
    return cmocka_run_group_tests_name("book sections", tests, NULL, NULL);
}
