/* SPDX-License-Identifier: Apache-2.0
 * What stands in front of a text or behind it is not looked at: each text of the tables, up to each of its characters,
 * lies beside memory that nobody may touch. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "script/letters.h"
#include "script/lexicon.h"
#include "script/script_parts.h"
#include "script/spell/spell.h"
#include "tests/fence.h"

/* Whatever begins in text[0..n) says the same beside either end of what may be read. */
static void spell_beside(const char *language, const char *text, size_t n, struct chars words[2])
{
    for (size_t at = 0; at < n; at += fence_step(text, at)) {
        size_t bytes[2];
        for (int in_front = 0; in_front < 2; in_front++) {
            utter_status status;
            words[in_front].n = 0;
            bytes[in_front] =
                spell_at(language, fence(text, n, in_front), n, at, &words[in_front], &status, NULL);
            assert_int_equal(status, UTTER_OK);
        }
        assert_int_equal(bytes[0], bytes[1]);
        assert_int_equal(words[0].n, words[1].n);
        assert_true(bytes[0] <= n - at);
        if (words[0].n > 0) {
            assert_memory_equal(words[0].at, words[1].at, words[0].n);
        }
    }
}

static void numbers_end_with_their_text(void **state)
{
    size_t table_bytes;
    char *table = support_read_file("tests/script/numbers.txt", &table_bytes), *rest = table;
    const char *language = "english";
    struct chars words[2] = {{0}};
    size_t n_lines = 0;
    (void)state;
    assert_non_null(table);
    for (char *line; (line = strsep(&rest, "\n"));) {
        char *arrow = strstr(line, " => ");
        if (*line == '[') {
            char name[] = {line[1], line[2], 0};
            language = spell_language(name, NULL, 0);
        } else if (arrow && *line != '#' && ++n_lines % (SUPPORT_SANITIZED ? 20 : 1) == 0) {
            *arrow = 0;
            for (size_t n = 0; line + n < arrow;) {
                n += fence_step(line, n);
                spell_beside(language, line, n, words);
            }
        }
    }
    assert_true(n_lines > 700);
    chars_fini(&words[0]);
    chars_fini(&words[1]);
    free(table);
}

/* A reader of markup reads text[0..n). Wrong markup is told, and nothing else. */
static void read_beside(int markup, const char *text, size_t n)
{
    const struct script_options options = {
        .markup = markup, .cast = "ANNA = serena\n* = anton", .language = "en", .spell_out = true};
    for (int in_front = 0; in_front < 2; in_front++) {
        struct script *s;
        struct script_span span;
        const char *at = fence(text, n, in_front);
        assert_int_equal(script_open(&s, &options, NULL), UTTER_OK);
        utter_status status =
            markup == UTTER_MARKUP_SSML ? ssml_read(s, at, n, NULL) : tags_read(s, at, n, NULL);
        assert_true(status == UTTER_OK || status == UTTER_E_ARGUMENT);
        while (script_next(s, &span)) {
            script_span_fini(&span);
        }
        script_free(&s);
        assert_true(!script_looks_like_ssml(at, n) || n >= 5);
    }
}

static void markup_ends_with_its_text(void **state)
{
    size_t table_bytes;
    char *table = support_read_file("tests/script/markup.txt", &table_bytes), *rest = table;
    size_t n_texts = 0;
    bool begins = false;
    (void)state;
    assert_non_null(table);
    for (char *line; (line = strsep(&rest, "\n"));) {
        if (begins && strlen(line) < 300 && ++n_texts % (SUPPORT_SANITIZED ? 20 : 1) == 0) {
            char text[301];
            size_t bytes = 0;
            for (const char *at = line; *at; at++) {
                bool newline = at[0] == '\\' && at[1] == 'n';
                text[bytes++] = newline ? '\n' : *at;
                at += newline;
            }
            text[bytes] = 0;
            for (size_t n = 0; n < bytes;) {
                n += fence_step(text, n);
                read_beside(UTTER_MARKUP_SSML, text, n);
                read_beside(UTTER_MARKUP_TAGS, text, n);
            }
        }
        begins = strncmp(line, "== ", 3) == 0;
    }
    assert_true(n_texts > 150);
    free(table);
}

/* Blanks around what is said as something, and all of it. */
static void what_is_said_as_ends_with_its_text(void **state)
{
    static const char *const as[] = {"cardinal", "ordinal", "digits", "characters", "date", "time",
        "telephone", "currency", "unit", "fraction"};
    static const char *const texts[] = {
        " ", " \t\r\n", " -12 ", "3.5.2024", "14:30:15", "+1 650 253-0000", "$3.50", "5 km", "1/2"};
    (void)state;
    for (size_t k = 0; k < sizeof as / sizeof *as * (sizeof texts / sizeof *texts); k++) {
        const char *text = texts[k % (sizeof texts / sizeof *texts)];
        for (size_t n = 1; n <= strlen(text); n++) {
            struct chars words[2] = {{0}};
            utter_status status[2];
            for (int in_front = 0; in_front < 2; in_front++) {
                status[in_front] = spell_as("en", as[k / (sizeof texts / sizeof *texts)], "",
                    fence(text, n, in_front), n, &words[in_front], NULL);
            }
            assert_true(status[0] == status[1] && words[0].n == words[1].n);
            assert_true(status[0] == UTTER_OK || status[0] == UTTER_AGAIN);
            chars_fini(&words[0]);
            chars_fini(&words[1]);
        }
    }
}

static void values_end_with_their_text(void **state)
{
    static const char *const values[] = {"500ms", "+1.5s", "-0.5s", "60.1s", "x-strong", "medium",
        "120%", "+20%", "-20%", "1.2", ".5", "5.", "x-slow", "+6dB", "-120dB", "silent", "50", "+"};
    double before, behind;
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        bool (*const all[])(const char *, size_t, double *) = {
            value_pause, value_strength, value_rate, value_volume};
        for (size_t n = 0; n <= strlen(values[i]); n++) {
            for (size_t k = 0; k < 4; k++) {
                before = behind = 0;
                bool is = all[k](fence(values[i], n, true), n, &before);
                assert_int_equal(all[k](fence(values[i], n, false), n, &behind), is);
                assert_true(!is || (before <= behind && before >= behind));
            }
        }
    }
}

static void terms_end_with_the_text(void **state)
{
    static const char text[] =
        "New York City, a\xc3\xa9 Sql x\xe5\xa4\xa9\xe5\xa4\xa9 e.g. \xd0\xb4\xd0\xb0";
    struct lexicon *l;
    (void)state;
    assert_int_equal(lexicon_read(&l,
                         "new york = a\nnew york city = b\na\xc3\xa9 = c\nSql = d\n\xe5\xa4\xa9 = e\n"
                         "\xe5\xa4\xa9\xe5\xa4\xa9 = f\ne.g. = g\n\xd0\xb4\xd0\xb0 = h\nSqlite = i",
                         NULL),
        UTTER_OK);
    size_t n_found = 0;
    for (size_t n = 0; text[n];) {
        n += fence_step(text, n);
        for (size_t at = 0; at < n; at += fence_step(text, at)) {
            size_t bytes = 0, again = 0;
            const char *found = lexicon_find(l, "en", NULL, fence(text, n, true), n, at, &bytes);
            assert_ptr_equal(lexicon_find(l, "en", NULL, fence(text, n, false), n, at, &again), found);
            assert_true(!found || (bytes == again && at + bytes <= n));
            n_found += found != NULL;
        }
    }
    assert_true(n_found > 20);
    lexicon_free(&l);
}

static void letters_end_with_the_text(void **state)
{
    static const char text[] = "a\xc3\xa9\xe5\xa4\xa9\xf0\x9f\x98\x80 \t";
    (void)state;
    for (size_t n = 0; n < sizeof text - 1;) {
        n += fence_step(text, n);
        for (size_t at = 0; at <= n; at += at < n ? fence_step(text, at) : 1) {
            bool border = letters_border(fence(text, n, true), n, at);
            assert_int_equal(letters_border(fence(text, n, false), n, at), border);
        }
        for (int in_front = 0; in_front < 2; in_front++) {
            const char *trimmed = fence(text, n, in_front);
            size_t left = n;
            assert_int_equal(letters_byte_order(trimmed, n), 0);
            letters_trim(&trimmed, &left);
            assert_true(left > 0 && left <= n);
            trimmed = fence("  \t", 3, in_front);
            left = 3;
            letters_trim(&trimmed, &left);
            assert_int_equal(left, 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_end_with_their_text),
        cmocka_unit_test(markup_ends_with_its_text),
        cmocka_unit_test(what_is_said_as_ends_with_its_text),
        cmocka_unit_test(values_end_with_their_text), cmocka_unit_test(terms_end_with_the_text),
        cmocka_unit_test(letters_end_with_the_text)};
    return cmocka_run_group_tests_name("ends of texts", tests, NULL, NULL);
}
