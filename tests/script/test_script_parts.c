/* SPDX-License-Identifier: Apache-2.0
 * How a text falls apart into spans as it comes: when one is ready, where a long one ends, and what is kept
 * meanwhile. */
#include <stdlib.h>
#include <string.h>

#include "script/script_parts.h"
#include "tests/heap.h"
#include "tests/support.h"

static struct script *open_script(int markup)
{
    const struct script_options options = {.markup = markup, .language = "en"};
    struct script *s;
    assert_int_equal(script_open(&s, &options, NULL), UTTER_OK);
    return s;
}

static void give(struct script *s, const char *text)
{
    assert_int_equal(script_text(s, text, strlen(text), NULL), UTTER_OK);
}

/* The next span, which has to be this text. */
static void is_next(struct script *s, const char *text)
{
    struct script_span span;
    assert_true(script_next(s, &span));
    assert_int_equal(span.text.n, strlen(text));
    assert_memory_equal(span.text.at, text, span.text.n);
    script_span_fini(&span);
}

/* Which markup it is takes eight bytes, white space and a mark of byte order in front of them not counted. */
static void the_kind_of_markup_takes_eight_bytes(void **state)
{
    static const struct {
        const char *text;
        bool enough;
    } all[] = {{"abcde\n\n", false}, {"abcdef\n\n", true}, {" \n\tabcde\n\n", false},
        {" \r\nabcdef\n\n", true},
        {"\xef\xbb\xbf"
         "abcde\n\n",
            false},
        {"\xef\xbb\xbf"
         "abcdef\n\n",
            true}};
    struct script_span span;
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct script *s = open_script(UTTER_MARKUP_AUTO);
        give(s, all[i].text);
        assert_int_equal(script_next(s, &span), all[i].enough);
        assert_int_equal(script_finish(s, NULL), UTTER_OK);
        if (!all[i].enough) {
            assert_true(script_next(s, &span));
        }
        script_span_fini(&span);
        assert_true(script_is_done(s));
        script_free(&s);
    }
}

static void ssml_is_known_by_its_beginning(void **state)
{
    static const struct {
        const char *text;
        bool is;
    } all[] = {{"<speak>", true}, {"<speak ", true}, {"<speak\n", true}, {"<?xml", true},
        {"<speak", false}, {"<speaks>", false}, {"<speak\t>", false}, {"<?xm", false}, {"", false},
        {" \t\r\n<speak>", true}, {"\xef\xbb\xbf<speak>", true}, {"\xef\xbb\xbf <?xml", true},
        {"a<speak>", false}, {" <speak", false}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_int_equal(script_looks_like_ssml(all[i].text, strlen(all[i].text)), all[i].is);
    }
    assert_false(script_looks_like_ssml(" <speak>", 7)); /* what stands behind the text is not of it */
}

/* Of 64 KiB without an empty line as much is read as ends with a blank, or else with a character. */
static void a_paragraph_without_an_end_is_read_in_parts(void **state)
{
    enum { PART = 1 << 16 };
    static const struct {
        const char *words, *then; /* words: repeated up to n bytes */
        size_t n, first;          /* of the spans */
    } all[] = {{"x", "", PART, 0}, {"x", "x", PART, PART}, {"x", " y", PART - 1, PART},
        {"x", " y", PART, PART}, {"x", "\ny", PART - 1, PART}, {"x", " yy", PART - 2, PART - 1},
        {"xx ", "yyyy", PART - 1, PART - 1}, {"xx ", "yyyyy", PART - 4, PART - 4},
        {"\xd0\x96", "x", PART, PART}, {"\xe4\xbd\xa0", "xx", PART - 1, PART},
        {"\xe4\xbd\xa0", "\xe4\xbd\xa0", PART - 1, PART - 1},
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80", PART, PART}, {"x", "\n\ny", PART - 2, PART},
        {"x", "\n\ny", PART - 1, PART}, {"x", "\n \ny", PART - 3, PART},
        {"x", "\nyy", PART - 2, PART - 1}};
    char *text = malloc(PART + 16);
    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct script *s = open_script(UTTER_MARKUP_TAGS);
        struct script_span span = {.pause_s = -1};
        size_t n = 0, step = strlen(all[i].words), behind = strlen(all[i].then);
        for (; n + step <= all[i].n; n += step) {
            memcpy(text + n, all[i].words, step);
        }
        memcpy(text + n, all[i].then, behind);
        assert_int_equal(script_text(s, text, n + behind, NULL), UTTER_OK);
        assert_int_equal(script_next(s, &span), all[i].first > 0);
        assert_int_equal(span.text.n, all[i].first);
        script_span_fini(&span);
        assert_int_equal(script_finish(s, NULL), UTTER_OK);
        for (n += behind - all[i].first; n > 0; n -= behind) {
            assert_true(script_next(s, &span));
            assert_true(span.text.n > 0 && ((unsigned char)span.text.at[0] & 0xc0) != 0x80);
            behind = span.text.n;
            script_span_fini(&span);
        }
        assert_true(script_is_done(s));
        script_free(&s);
    }
    free(text);
}

/* Paragraphs that are taken as they come leave nothing, however many they are. */
static void what_was_taken_is_not_kept(void **state)
{
    struct script *s = open_script(UTTER_MARKUP_TAGS);
    size_t used = 0;
    (void)state;
    for (int i = 0; i < 1000; i++) {
        give(s, "One.\n\nTwo.\n\n");
        assert_int_equal(script_next_style(s) != NULL, true);
        is_next(s, "One.\n\n");
        is_next(s, "Two.\n\n");
        assert_null(script_next_style(s));
        used = i == 100 ? heap_used() : used;
    }
    assert_true(s->spans_room < 16 && s->pending.n == 0);
    assert_true(heap_used() <= used);
    script_free(&s);
}

/* Words that follow each other in the source are one run, also behind a dictionary that has none of them; others are
 * as many as there are places. */
static void runs_are_as_few_as_can_be(void **state)
{
    static const struct {
        int markup;
        const char *text;
        size_t n_runs;
    } all[] = {{UTTER_MARKUP_TAGS, "One two, three.", 1}, {UTTER_MARKUP_TAGS, "One two [x] three.", 1},
        {UTTER_MARKUP_TAGS, "One \\[x:y] three.", 2}, {UTTER_MARKUP_TAGS, "One term three.", 3},
        {UTTER_MARKUP_TAGS, "One 2 three.", 3}, {UTTER_MARKUP_SSML, "One <b>two</b> three.", 3},
        {UTTER_MARKUP_SSML, "One &amp; two", 3}, {UTTER_MARKUP_SSML, "<!-- a -->One two", 1}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const struct script_options options = {
            .markup = all[i].markup, .language = "en", .lexicon = "term = word", .spell_out = true};
        struct script *s;
        struct script_span span;
        assert_int_equal(script_open(&s, &options, NULL), UTTER_OK);
        give(s, all[i].text);
        assert_int_equal(script_finish(s, NULL), UTTER_OK);
        assert_true(script_next(s, &span));
        assert_int_equal(span.n_runs, all[i].n_runs);
        script_span_fini(&span);
        script_free(&s);
    }
}

/* A document of 64 MiB is read at its end; no byte more is taken. */
static void a_document_has_a_bound(void **state)
{
    enum { MOST = 1 << 26 };
    struct script *s = open_script(UTTER_MARKUP_SSML);
    utter_error error = {0};
    char *text = calloc(1, MOST);
    (void)state;
    assert_non_null(text);
    assert_int_equal(script_text(s, text, MOST, &error), UTTER_OK);
    free(text);
    assert_int_equal(script_text(s, "x", 1, &error), UTTER_E_ARGUMENT);
    assert_string_equal(error.text, "markup: a document has more than 64 MB of SSML");
    script_free(&s);
}

/* Any of the four, and not a voice or a language alone. */
static void a_script_is_for_who_wants_one(void **state)
{
    static const struct {
        struct script_options options;
        bool is;
    } all[] = {{{.language = "en", .voice = "a"}, false}, {{.markup = UTTER_MARKUP_AUTO}, true},
        {{.markup = UTTER_MARKUP_TAGS}, true}, {{.cast = ""}, true}, {{.lexicon = ""}, true},
        {{.spell_out = true}, true}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_int_equal(script_is_wanted(&all[i].options), all[i].is);
    }
}

/* When it has been told that no more text comes, and all spans were taken. */
static void a_script_is_done_at_its_end(void **state)
{
    struct script *s = open_script(UTTER_MARKUP_TAGS);
    (void)state;
    assert_false(script_is_done(s));
    give(s, "One.\n\nTwo.");
    is_next(s, "One.\n\n");
    assert_false(script_is_done(s));
    assert_int_equal(script_finish(s, NULL), UTTER_OK);
    assert_false(script_is_done(s));
    is_next(s, "Two.");
    assert_true(script_is_done(s));
    script_free(&s);
}

/* Of markup of all kinds, of numbers, and of what was refused in the middle of an element. */
static void nothing_stays_of_a_document(void **state)
{
    static const struct {
        const char *text;
        utter_status status;
    } all[] = {{"<speak>a <x/>b <sub alias='c'>d</sub> 01.02.1999 <say-as interpret-as='date'>"
                "01.02.1999</say-as> <say-as interpret-as='date'>e</say-as></speak>",
                   UTTER_OK},
        {"<speak><say-as interpret-as='date'>01.02.1999<voice name='f'></speak>", UTTER_E_ARGUMENT}};
    const struct script_options options = {
        .markup = UTTER_MARKUP_SSML, .language = "de", .spell_out = true};
    (void)state;
    for (int round = 0; round < 24; round++) { /* until the heap has in store what it keeps */
        size_t before = heap_used(), i = (size_t)round % 2;
        struct script *s;
        const struct script_options wrong = {.language = "de", .cast = "A = b", .lexicon = "c"};
        assert_int_equal(script_open(&s, &wrong, NULL), UTTER_E_ARGUMENT);
        assert_null(s);
        assert_int_equal(script_open(&s, &options, NULL), UTTER_OK);
        give(s, all[i].text);
        assert_int_equal(script_finish(s, NULL), all[i].status);
        script_free(&s);
        assert_true(round < 22 || heap_used() == before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_kind_of_markup_takes_eight_bytes),
        cmocka_unit_test(ssml_is_known_by_its_beginning),
        cmocka_unit_test(a_paragraph_without_an_end_is_read_in_parts),
        cmocka_unit_test(what_was_taken_is_not_kept), cmocka_unit_test(runs_are_as_few_as_can_be),
        cmocka_unit_test(a_document_has_a_bound), cmocka_unit_test(a_script_is_for_who_wants_one),
        cmocka_unit_test(a_script_is_done_at_its_end), cmocka_unit_test(nothing_stays_of_a_document)};
    return cmocka_run_group_tests_name("parts of a script", tests, NULL, NULL);
}
