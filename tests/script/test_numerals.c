/* SPDX-License-Identifier: Apache-2.0
 * Numbers in words without a text around them: cases of their endings, forms of nouns, and what is said when memory
 * runs out. */
#include "script/spell/numerals.h"

#include <string.h>

#include "script/spell/spell.h"
#include "script/spell/spell_table.h"
#include "tests/support.h"

/* What is said, which ends with a 0. */
static const char *said(struct chars *words)
{
    assert_int_equal(chars_add(words, "", 1, NULL), UTTER_OK);
    return words->at;
}

static void ordinals_have_their_cases(void **state)
{
    static const struct {
        enum tongue tongue;
        uint64_t n;
        enum gender gender;
        const char *ending, *words;
    } all[] = {{DE, 3, MASCULINE, NULL, "dritte"}, {DE, 3, MASCULINE, "", "dritte"},
        {DE, 3, MASCULINE, "en", "dritten"}, {DE, 100, MASCULINE, NULL, "hundertste"},
        {DE, 1000, MASCULINE, "er", "tausendster"}, {DE, 1012, MASCULINE, "", "eintausendzwölfte"},
        {DE, 113, MASCULINE, "", "einhundertdreizehnte"},
        {DE, 120, MASCULINE, "", "einhundertzwanzigste"}, {RU, 3, NEUTER, NULL, "третье"},
        {RU, 3, FEMININE, "", "третья"}, {RU, 3, MASCULINE, "", "третий"},
        {RU, 3, MASCULINE, "го", "третьего"}, {RU, 3, MASCULINE, "ым", "третьим"},
        {RU, 2, NEUTER, "", "второе"}, {RU, 2, MASCULINE, "", "второй"},
        {RU, 2, FEMININE, "", "вторая"}, {RU, 2, MASCULINE, "му", "второму"},
        {RU, 1000, NEUTER, "", "тысячное"}, {FR, 1, FEMININE, NULL, "première"},
        {FR, 1, COUNTING, NULL, "premier"}, {ES, 11, FEMININE, NULL, "undécima"},
        {ES, 12, MASCULINE, NULL, "duodécimo"}, {ES, 1001, FEMININE, NULL, "mil una"},
        {PT, 1002, FEMININE, NULL, "mil e duas"}, {IT, 23, FEMININE, NULL, "ventitreesima"},
        {EN, 20, COUNTING, NULL, "twentieth"}, {EN, 0, COUNTING, NULL, "zero"},
        {DE, 0, MASCULINE, "er", "null"}, {KO, 0, COUNTING, NULL, "영"}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct chars words = {0};
        struct phrase w = {.out = &words};
        numeral_ordinal(&w, all[i].tongue, all[i].n, all[i].gender, all[i].ending);
        assert_int_equal(w.status, UTTER_OK);
        assert_string_equal(said(&words), all[i].words);
        chars_fini(&words);
    }
}

/* Of a thing, of two to four things in Russian, of many; in French nothing is one. */
static void nouns_have_their_forms(void **state)
{
    static const struct {
        enum tongue tongue;
        uint64_t n;
        int form;
    } all[] = {{EN, 0, 2}, {EN, 1, 0}, {EN, 2, 2}, {EN, 21, 2}, {FR, 0, 0}, {FR, 1, 0}, {FR, 2, 2},
        {DE, 0, 2}, {RU, 0, 2}, {RU, 1, 0}, {RU, 2, 1}, {RU, 4, 1}, {RU, 5, 2}, {RU, 10, 2},
        {RU, 11, 2}, {RU, 12, 2}, {RU, 14, 2}, {RU, 19, 2}, {RU, 20, 2}, {RU, 21, 0}, {RU, 22, 1},
        {RU, 25, 2}, {RU, 100, 2}, {RU, 101, 0}, {RU, 111, 2}, {RU, 112, 2}, {RU, 121, 0},
        {RU, 1004, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_int_equal(numeral_form(all[i].tongue, all[i].n), all[i].form);
    }
}

/* A form is cut at the room that there is; a name without bars has one form alone. */
static void names_have_genders_and_forms(void **state)
{
    static const struct {
        const char *name;
        enum tongue tongue;
        uint64_t n;
        const char *form;
        enum gender gender;
    } all[] = {{"f:a|b|c", RU, 1, "a", FEMININE}, {"f:a|b|c", RU, 2, "b", FEMININE},
        {"m:a|b|c", RU, 5, "c", MASCULINE}, {"n:a|b", DE, 5, "b", MASCULINE},
        {"a", EN, 5, "a", MASCULINE}, {"a|b", EN, 1, "a", MASCULINE}, {"a|b", FR, 0, "a", MASCULINE},
        {"a|b", EN, 0, "b", MASCULINE}, {"fa", EN, 1, "fa", MASCULINE},
        {"abcdefghij|b", EN, 1, "abcdefg", MASCULINE}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char form[8];
        table_form(all[i].name, all[i].tongue, all[i].n, form, sizeof form);
        assert_string_equal(form, all[i].form);
        assert_int_equal(table_gender(all[i].name), all[i].gender);
    }
}

/* Words stand apart, parts of one do not; behind a failure nothing more is said. */
static void phrases_grow_by_words(void **state)
{
    struct chars words = {0};
    struct phrase w = {.out = &words};
    (void)state;
    phrase_blank(&w);
    phrase_say(&w, "");
    assert_int_equal(words.n, 0);
    phrase_say(&w, "a");
    phrase_add(&w, "b");
    phrase_say(&w, "c");
    phrase_say(&w, "");
    phrase_add(&w, " ");
    phrase_blank(&w);
    phrase_say(&w, "d");
    phrase_blank(&w);
    w.status = UTTER_E_MEMORY;
    phrase_add(&w, "e");
    phrase_say(&w, "f");
    assert_string_equal(said(&words), "ab c d ");
    chars_fini(&words);
}

/* In each language, whatever is said: words that are whole, or a failure that is told. */
static void memory_may_run_out(void **state)
{
    static const struct {
        const char *language, *text;
    } all[] = {{"english", "21st"}, {"german", "01.02.1999"}, {"french", "80e"}, {"french", "9e"},
        {"french", "21 £"}, {"spanish", "1.er"}, {"italian", "23º"}, {"italian", "2003"},
        {"italian", "181"}, {"portuguese", "1.234"}, {"russian", "3 мая 2024 года"},
        {"chinese", "2:05"}, {"japanese", "1,234"}, {"korean", "14:30"}, {"english", "$3.50"}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        size_t n = strlen(all[i].text);
        struct chars whole = {0};
        utter_status status;
        assert_int_equal(spell_at(all[i].language, all[i].text, n, 0, &whole, &status, NULL), n);
        for (int way = 0; way < 2; way++) {
            SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, k)
            {
                struct chars words = {0};
                if (way == 0) {
                    spell_at(all[i].language, all[i].text, n, 0, &words, &status, NULL);
                } else {
                    status = spell_as(all[i].language, "unit", "", all[i].text, n, &words, NULL);
                }
                assert_int_equal(status, support_failed() ? UTTER_E_MEMORY : UTTER_OK);
                assert_true(status || words.n == whole.n);
                chars_fini(&words);
            }
        }
        chars_fini(&whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ordinals_have_their_cases),
        cmocka_unit_test(nouns_have_their_forms), cmocka_unit_test(names_have_genders_and_forms),
        cmocka_unit_test(phrases_grow_by_words), cmocka_unit_test(memory_may_run_out)};
    return cmocka_run_group_tests_name("numerals", tests, NULL, NULL);
}
