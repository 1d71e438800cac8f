/* SPDX-License-Identifier: Apache-2.0
 * Casts and dictionaries: how many names and terms there may be, how long they are, and that each is found. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "script/lexicon.h"
#include "script/script_parts.h"
#include "tests/support.h"

enum { ROOM = 1 << 16 };

/* Line i of `count`, for each. The caller's, to be freed. */
static char *write_lines(const char *line, int count)
{
    char *text = calloc(1, ROOM), *at = text;
    assert_non_null(text);
    for (int i = 0; i < count; i++) {
        at += sprintf(at, line, i, i);
        assert_true(at - text < ROOM - 100);
    }
    return text;
}

/* Of each line of a large cast its own voice; one name more is too many. */
static void a_cast_has_a_thousand_names(void **state)
{
    struct cast *cast;
    utter_error error = {0};
    size_t words = 0;
    char line[64], voice[16];
    char *text = write_lines("N%d = v%d\n", 1000);
    (void)state;
    assert_int_equal(cast_read(&cast, text, NULL), UTTER_OK);
    for (int i = 0; i < 1000; i++) {
        int n = snprintf(line, sizeof line, " n%d : Hi", i);
        snprintf(voice, sizeof voice, "v%d", i);
        assert_string_equal(cast_find(cast, line, (size_t)n, &words), voice);
        assert_int_equal(words, strlen(line) - 3);
    }
    assert_null(cast_find(cast, "N1000: Hi", 9, &words));
    assert_null(cast_narrator(cast));
    cast_free(&cast);
    assert_null(cast);
    strcat(text, "one = more");
    assert_int_equal(cast_read(&cast, text, &error), UTTER_E_ARGUMENT);
    assert_string_equal(error.text, "the cast has more than 1000 names");
    assert_null(cast);
    free(text);
}

static void a_name_of_a_cast_is_not_endless(void **state)
{
    char name[202], text[256];
    struct cast *cast;
    utter_error error = {0};
    size_t words;
    (void)state;
    for (size_t n = 200; n < 202; n++) {
        memset(name, 'x', n);
        name[n] = 0;
        snprintf(text, sizeof text, "A = b\n\n%s = c", name);
        assert_int_equal(cast_read(&cast, text, &error), n == 200 ? UTTER_OK : UTTER_E_ARGUMENT);
        strcat(name, n == 200 ? ":" : "");
        assert_true(n != 200 || strcmp(cast_find(cast, name, n + 1, &words), "c") == 0);
        cast_free(&cast);
    }
    assert_string_equal(error.text,
        "the cast, line 3: a line is \"NAME = voice\" (\"* = voice\" for what nobody speaks)");
}

/* Many terms, each in a section of its own. */
static void each_term_of_a_long_lexicon_is_found(void **state)
{
    enum { N = 300 };
    struct lexicon *l;
    size_t bytes = 0;
    char word[32], spelled[32], voice[32];
    char *text = write_lines("[voice:v%d]\nword%d = said\n", N);
    (void)state;
    assert_int_equal(lexicon_read(&l, text, NULL), UTTER_OK);
    for (int i = 0; i < N; i++) {
        int n = snprintf(word, sizeof word, "word%d", i);
        snprintf(voice, sizeof voice, "V%d", i);
        assert_non_null(lexicon_find(l, "english", voice, word, (size_t)n, 0, &bytes));
        assert_int_equal(bytes, n);
        assert_null(lexicon_find(l, "english", "v", word, (size_t)n, 0, &bytes));
        assert_null(lexicon_find(l, "english", NULL, word, (size_t)n, 0, &bytes));
    }
    lexicon_free(&l);
    assert_null(l);
    free(text);
    text = write_lines("w%d = s%d\n", N);
    assert_int_equal(lexicon_read(&l, text, NULL), UTTER_OK);
    for (int i = 0; i < N; i++) {
        int n = snprintf(word, sizeof word, "w%d", i);
        snprintf(spelled, sizeof spelled, "s%d", i);
        assert_string_equal(lexicon_find(l, NULL, NULL, word, (size_t)n, 0, &bytes), spelled);
    }
    lexicon_free(&l);
    lexicon_free(&l);
    free(text);
}

static void a_line_of_a_lexicon_is_not_endless(void **state)
{
    enum { MOST = 4096 };
    static char text[MOST + 16];
    struct lexicon *l;
    utter_error error = {0};
    (void)state;
    for (size_t n = MOST; n < MOST + 2; n++) {
        memcpy(text, "\na = ", 5);
        memset(text + 5, 'b', n - 4);
        text[n + 1] = 0;
        assert_int_equal(lexicon_read(&l, text, &error), n == MOST ? UTTER_OK : UTTER_E_ARGUMENT);
        lexicon_free(&l);
    }
    assert_string_equal(error.text, "the lexicon, line 2: a line is \"term = respelling\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_cast_has_a_thousand_names),
        cmocka_unit_test(a_name_of_a_cast_is_not_endless),
        cmocka_unit_test(each_term_of_a_long_lexicon_is_found),
        cmocka_unit_test(a_line_of_a_lexicon_is_not_endless)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
