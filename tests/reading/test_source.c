/* SPDX-License-Identifier: Apache-2.0
 * From a text to its pieces: places in the source, quiet around them, and what is refused; and how long a text takes to
 * say. */
#include "reading/source.h"

#include <stdio.h>
#include <string.h>

#include "reading/reading_parts.h"
#include "tests/heap.h"
#include "tests/support.h"

static void give(struct source *s, const char *text)
{
    assert_int_equal(source_text(s, text, strlen(text), NULL), UTTER_OK);
}

static struct source open_tags(size_t most)
{
    struct source s = {.cutter.most = most};
    const struct script_options options = {.markup = UTTER_MARKUP_TAGS, .language = "en"};
    assert_int_equal(source_open(&s, &options, NULL), UTTER_OK);
    assert_non_null(s.script);
    return s;
}

/* The place of the first byte that is none of a character, however the text came. */
static void what_is_not_utf8_is_told_with_its_place(void **state)
{
    static const struct {
        const char *text;
        int wrong; /* the place; -1: none */
        bool late; /* told at the end of the text */
    } all[] = {{"abc\xff", 3, false}, {"\xe4\xbd", 0, true}, {"ab\xe4\xbd", 2, true},
        {"\xe4\xbdx", 0, false}, {"ab\xe4\xbd\xa0", -1, false}, {"\xe4\xbd\xa0\x80", 3, false}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        for (int kind = 0; kind < 4; kind++) { /* plain or tags; at once or in bytes */
            struct source s = {.cutter.most = 100};
            utter_error error = {0};
            char wanted[64];
            const struct script_options o = {
                .markup = kind & 1 ? UTTER_MARKUP_TAGS : UTTER_MARKUP_NONE};
            assert_int_equal(source_open(&s, &o, NULL), UTTER_OK);
            size_t n = strlen(all[i].text), step = kind & 2 ? 1 : n;
            utter_status status = UTTER_OK;
            for (size_t at = 0; at < n && status == UTTER_OK; at += step) {
                status = source_text(&s, all[i].text + at, step, &error);
            }
            assert_int_equal(status, all[i].wrong < 0 || all[i].late ? UTTER_OK : UTTER_E_ARGUMENT);
            assert_false(s.finished);
            status = status ? status : source_finish(&s, &error);
            assert_int_equal(status, all[i].wrong < 0 ? UTTER_OK : UTTER_E_ARGUMENT);
            snprintf(wanted, sizeof wanted, "the text is not UTF-8 at byte %d", all[i].wrong);
            assert_string_equal(error.text, all[i].wrong < 0 ? "" : wanted);
            source_fini(&s);
        }
    }
}

static void pauses_stand_in_front_and_behind(void **state)
{
    static const struct {
        const char *text;
        struct {
            const char *words;
            double lead_s, pause_s;
            bool last;
        } pieces[4];
    } all[] = {{"One.", {{"One.", -1, -1, true}}},
        {"[pause:2s]One.[pause:3s]Two.[pause:4s]", {{"One.", 2, 3, false}, {"Two.", -1, 4, true}}},
        /* A text of one piece stays as it is, whatever quiet comes behind. */
        {" One  two.[pause:2s]", {{" One  two.", -1, 2, true}}},
        {"One [rate:2]two.", {{"One", -1, -1, false}, {"two.", -1, -1, true}}},
        /* Of what has no words the pause goes to what has. */
        {"[pause:1s]***[pause:2s]One.", {{"One.", 3, -1, true}}},
        {"One.[pause:1s]***[pause:2s]Two.", {{"One.", -1, 1, false}, {"Two.", 2, -1, true}}},
        {"One.[pause:1s]***[pause:500ms]Two.", {{"One.", -1, 1, false}, {"Two.", 0.5, -1, true}}},
        {"[pause:250ms]***[pause:500ms]***[pause:125ms]One.", {{"One.", 0.875, -1, true}}},
        /* A piece is folded where another follows, however short it is. */
        {" One  two  [rate:2]x", {{"One two", -1, -1, false}, {"x", -1, -1, true}}},
        {"One [rate:2] two  three ", {{"One", -1, -1, false}, {"two three", -1, -1, true}}},
        {"[pause:60s]***[pause:60s]One.[pause:0s]Two.",
            {{"One.", 120, 0, false}, {"Two.", -1, -1, true}}},
        {"***", {{NULL, 0, 0, false}}}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct source s = open_tags(100);
        struct source_piece p;
        give(&s, all[i].text);
        assert_int_equal(source_finish(&s, NULL), UTTER_OK);
        for (size_t k = 0; k < 4 && all[i].pieces[k].words; k++) {
            assert_int_equal(source_next(&s, &p, NULL), UTTER_OK);
            assert_int_equal(p.cut.text_bytes, strlen(all[i].pieces[k].words));
            assert_memory_equal(p.cut.text, all[i].pieces[k].words, p.cut.text_bytes);
            double lead = all[i].pieces[k].lead_s, pause = all[i].pieces[k].pause_s;
            if (p.lead_s != lead || p.pause_s != pause || p.cut.last != all[i].pieces[k].last) {
                fail_msg("%s: %g %g %d", p.cut.text, p.lead_s, p.pause_s, p.cut.last);
            }
            assert_int_equal(source_is_done(&s), p.cut.last);
        }
        assert_int_equal(source_next(&s, &p, NULL), UTTER_END);
        assert_true(p.lead_s < 0 && p.pause_s < 0);
        source_fini(&s);
    }
}

/* Each spoken byte knows where it comes from, also behind white space that was folded. */
static void spoken_bytes_know_their_source(void **state)
{
    static const char text[] = " One  [lang:de]two.\n three[/lang]";
    struct source s = open_tags(100);
    struct source_piece p;
    (void)state;
    give(&s, text);
    assert_int_equal(source_next(&s, &p, NULL), UTTER_AGAIN);
    assert_int_equal(source_finish(&s, NULL), UTTER_OK);
    assert_int_equal(source_next(&s, &p, NULL), UTTER_OK);
    assert_int_equal(p.cut.at, 1);
    assert_int_equal(p.cut.bytes, 3);
    assert_int_equal(p.cut.end, CUT_WORD);
    assert_null(p.style->language);
    assert_int_equal(source_next(&s, &p, NULL), UTTER_OK);
    assert_string_equal(p.style->language, "de");
    assert_int_equal(p.cut.text_bytes, 10);
    assert_memory_equal(p.cut.text, "two. three", 10);
    const char *at = strstr(text, "two");
    assert_int_equal(p.cut.at, at - text);
    for (size_t i = 0; i < 10; i++) {
        if (i != 4) {
            assert_int_equal(text[p.origins[i]], p.cut.text[i]);
            assert_int_equal(p.ends[i], p.origins[i] + 1);
        }
    }
    assert_int_equal(p.origins[10], (size_t)(strchr(at, '[') - text));
    assert_int_equal(source_next(&s, &p, NULL), UTTER_END);
    source_fini(&s);
}

/* A text of one piece has all of its white space; of others the last letter is found behind what was folded. */
static void bytes_around_white_space_know_their_source(void **state)
{
    static const char *const texts[] = {
        " One  two. ", "One.  [rate:2]two  b", "[rate:2]天\n天  b[rate:1]x"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct source s = open_tags(100);
        struct source_piece p;
        give(&s, texts[i]);
        assert_int_equal(source_finish(&s, NULL), UTTER_OK);
        assert_int_equal(source_next(&s, &p, NULL), UTTER_OK);
        if (i == 1) {
            assert_int_equal(source_next(&s, &p, NULL), UTTER_OK);
        }
        size_t n = p.cut.text_bytes;
        assert_true(i > 0 || n == strlen(texts[0]));
        for (size_t k = 0; k < n; k++) {
            assert_true(i == 0 || p.cut.text[k] == ' ' || texts[i][p.origins[k]] == p.cut.text[k]);
            assert_true(i > 0 || p.origins[k] == k);
            assert_true(p.ends[k] == p.origins[k] + 1 && p.origins[k + 1] >= p.ends[k]);
        }
        source_fini(&s);
    }
}

/* What a listener was told of a plain text: places and bytes, as they came. */
struct told {
    char text[64];
    uint64_t at[8], bytes[8];
    size_t n;
};

static void note_written(void *user, uint64_t at, uint64_t bytes, const char *text, size_t n)
{
    struct told *told = user;
    assert_true(told->n < 8 && n == bytes);
    told->at[told->n] = at;
    told->bytes[told->n++] = bytes;
    strncat(told->text, text, n);
}

static void plain_text_is_told_as_it_comes(void **state)
{
    struct source s = {.cutter.most = 100};
    struct told told = {.n = 0};
    const struct script_options plain = {
        .markup = UTTER_MARKUP_NONE, .written = note_written, .written_user = &told};
    (void)state;
    assert_int_equal(source_open(&s, &plain, NULL), UTTER_OK);
    give(&s, "One ");
    give(&s, "");
    give(&s, "two\xe4");
    give(&s, "\xbd\xa0.");
    assert_int_equal(s.n_given, 11);
    assert_int_equal(s.n_checked, 11);
    assert_int_equal(told.n, 3);
    assert_string_equal(told.text, "One two\xe4\xbd\xa0.");
    static const uint64_t at[] = {0, 4, 8}, bytes[] = {4, 4, 3};
    assert_memory_equal(told.at, at, sizeof at);
    assert_memory_equal(told.bytes, bytes, sizeof bytes);
    support_fail_malloc_at(1);
    char more[4096];
    memset(more, 'x', sizeof more);
    assert_int_equal(source_text(&s, more, sizeof more, NULL), UTTER_E_MEMORY);
    support_fail_off();
    assert_int_equal(told.n, 3); /* what was not taken is not told */
    source_fini(&s);
}

/* Of plain text the first words are certain, of a script none. */
static void plain_text_begins_before_it_ends(void **state)
{
    struct source s = {.cutter.most = 100}, tags = open_tags(100);
    const struct script_options plain = {.markup = UTTER_MARKUP_NONE};
    struct source_piece p;
    (void)state;
    assert_int_equal(source_open(&s, &plain, NULL), UTTER_OK);
    assert_null(s.script);
    give(&s, "Hello there, my frie");
    give(&tags, "Hello there, my frie");
    assert_int_equal(source_certain(&s), 16);
    assert_int_equal(source_certain(&tags), 0);
    assert_int_equal(source_next(&s, &p, NULL), UTTER_AGAIN);
    assert_int_equal(s.n_cut, 0);
    assert_int_equal(source_finish(&s, NULL), UTTER_OK);
    assert_false(source_is_done(&s));
    assert_int_equal(source_next(&s, &p, NULL), UTTER_OK);
    assert_int_equal(s.n_cut, 1);
    assert_true(source_is_done(&s));
    assert_int_equal(source_next(&s, &p, NULL), UTTER_END);
    source_fini(&s);
    source_fini(&tags);
    assert_int_equal(s.n_cut + s.n_given + s.n_checked, 0);
}

static void nothing_stays_of_a_source(void **state)
{
    (void)state;
    for (int round = 0; round < 39;
         round++) { /* until the heap has in store what it keeps of freed blocks */
        size_t before = heap_used();
        int i = round % 3;
        struct source s = open_tags(100);
        struct source_piece p;
        give(&s, "One [pause:1s]two [rate:2]three\n\nfour \xe4");
        assert_int_equal(i ? source_next(&s, &p, NULL) : UTTER_OK, UTTER_OK);
        assert_int_equal(i > 1 ? source_next(&s, &p, NULL) : UTTER_OK, UTTER_OK);
        source_fini(&s);
        assert_true(round < 36 || heap_used() == before);
    }
}

/* In letters: nine for the ends of any piece, six for a digit, three and five for the pause behind a mark. */
static void a_length_is_that_of_letters_and_pauses(void **state)
{
    static const struct {
        const char *text;
        size_t length;
    } all[] = {{"", 9}, {"a", 10}, {"ab c", 13}, {"0", 15}, {"19", 21}, {"a,", 11}, {"a, b", 15},
        {"a. b", 17}, {"a? b", 17}, {"a.b", 12}, {"a,b", 12}, {"a.", 11}, {"a. ", 16},
        {"\xe5\xa4\xa9", 12}, {"\xe3\x80\x82", 14}, {"\xef\xbc\x8c", 12}, {"\xe3\x80\x82 ", 15},
        {"%", 15}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (whole_length(all[i].text, strlen(all[i].text)) != all[i].length) {
            fail_msg("%s: %zu", all[i].text, whole_length(all[i].text, strlen(all[i].text)));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_not_utf8_is_told_with_its_place),
        cmocka_unit_test(pauses_stand_in_front_and_behind),
        cmocka_unit_test(spoken_bytes_know_their_source),
        cmocka_unit_test(bytes_around_white_space_know_their_source),
        cmocka_unit_test(plain_text_is_told_as_it_comes),
        cmocka_unit_test(plain_text_begins_before_it_ends), cmocka_unit_test(nothing_stays_of_a_source),
        cmocka_unit_test(a_length_is_that_of_letters_and_pauses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
