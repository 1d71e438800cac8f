/* SPDX-License-Identifier: Apache-2.0
 * What a script tells ahead of its spans, and that nothing stays of it. */
#include <string.h>

#include "script/script.h"
#include "tests/heap.h"
#include "tests/support.h"

/* Each span's style is told once, before the span is asked for or not at all; a note is one line. */
static void styles_are_told_ahead(void **state)
{
    static const char text[] = "[voice:a]One[voice:b]two[lang:xx]three[pause:1s]";
    const struct script_options options = {.markup = UTTER_MARKUP_TAGS};
    struct script *s;
    struct script_span span;
    size_t at = 1, n = 1;
    (void)state;
    assert_int_equal(script_open(&s, &options, NULL), UTTER_OK);
    assert_null(script_next_style(s));
    assert_int_equal(script_text(s, text, strlen(text), NULL), UTTER_OK);
    assert_int_equal(script_finish(s, NULL), UTTER_OK);
    assert_string_equal(script_next_style(s)->voice, "a");
    assert_true(script_next(s, &span));
    script_span_fini(&span);
    script_source(&span, 0, 1, &at, &n);
    assert_int_equal(at + n, 0);
    assert_true(script_next(s, &span));
    assert_string_equal(span.text.at ? span.style.voice : "", "b");
    script_span_fini(&span);
    const struct script_style *style = script_next_style(s); /* not that of the one that has left */
    assert_string_equal(style->voice, "b");
    assert_string_equal(style->language, "xx");
    assert_non_null(script_next_style(s)); /* of the pause */
    assert_null(script_next_style(s));
    assert_null(script_note(s));
    script_note_language(s, "xx");
    script_note_language(s, "xx");
    assert_string_equal(script_note(s),
        "the model does not speak \"xx\": the words that the text marks so are left to it");
    assert_null(script_note(s));
    script_free(&s);
}

/* A script that is given up holds nothing any more: text that waits, spans, notes, names. */
static void nothing_stays_of_a_script(void **state)
{
    static const char source[] = "[voice:a]One\n\n[x:1]two[pause:1s]\n\n[voice:b]three";
    const struct script_options options = {.markup = UTTER_MARKUP_TAGS,
        .language = "en",
        .voice = "a",
        .lexicon = "[de voice:x]\none = two",
        .cast = "A = b",
        .spell_out = true};
    (void)state;
    for (int round = 0; round < 24;
         round++) { /* until the heap has in store what it keeps of freed blocks */
        bool finished = round % 2;
        size_t before = heap_used();
        struct script *script;
        assert_int_equal(script_open(&script, &options, NULL), UTTER_OK);
        assert_int_equal(script_text(script, source, strlen(source), NULL), UTTER_OK);
        assert_int_equal(finished ? script_finish(script, NULL) : UTTER_OK, UTTER_OK);
        script_free(&script);
        assert_null(script);
        assert_true(round < 22 || heap_used() == before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(styles_are_told_ahead), cmocka_unit_test(nothing_stays_of_a_script)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
