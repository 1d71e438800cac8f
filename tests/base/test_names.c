/* SPDX-License-Identifier: Apache-2.0
 * Names that people type: languages by their codes, the name that a misspelt one is nearest to, and accents that are
 * composed or not. */
#include "tests/support.h"

#include <string.h>

#include "base/tables/languages.h"
#include "base/tables/nearest.h"

static void codes_are_languages(void **state)
{
    (void)state;
    assert_string_equal(language_name("en"), "english");
    assert_string_equal(language_name("EN-GB"), "english");
    assert_string_equal(language_name("pt_BR"), "portuguese");
    assert_string_equal(language_name("zh"), "chinese");
    const char *const others[] = {"english", "auto", "", "e", "eng", "xx", "chinese"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_ptr_equal(language_name(others[i]), others[i]);
    }
}

static void an_accent_may_stand_behind_its_letter(void **state)
{
    static const char *const same[][2] = {{"Zoe\u0308", "Zo\u00eb"}, {"zo\u00eb", "Zoe\u0308"},
        {"q\u0323\u0307", "q\u0307\u0323"}, {"\u1112\u1161\u11ab", "\ud55c"}, {"Anna", "ANNA"}};
    static const char *const others[][2] = {
        {"Zoe", "Zo\u00eb"}, {"Zoe\u0308", "Zoe\u0301"}, {"\xff", "\xfe"}, {"", "a"}};
    (void)state;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        assert_true(names_same(same[i][0], same[i][1]));
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(names_same(others[i][0], others[i][1]));
    }
    char buffer[NAME_COMPOSED], endless[NAME_COMPOSED + 1];
    assert_string_equal(name_composed(buffer, "Zoe\u0308"), "Zo\u00eb");
    for (size_t i = 0; i + 2 < sizeof endless; i += 2) {
        memcpy(endless + i, "\u00eb", 2);
    }
    endless[sizeof endless - 1] = 0;
    assert_ptr_equal(name_composed(buffer, endless), endless);
    /* Of three characters each when it is taken apart: the longest that has room, and what would have none. */
    enum { LEAST = 2, MOST = (NAME_COMPOSED / 4 - 1) / 3 };
    char accents[NAME_COMPOSED / 4];
    for (size_t i = 0; i + LEAST < sizeof accents; i += LEAST) {
        memcpy(accents + i, "\u0390", LEAST);
        accents[i + LEAST] = 0;
        const bool fits = i / LEAST + 1 <= MOST;
        assert_ptr_equal(name_composed(buffer, accents), fits ? buffer : accents);
        assert_string_equal(fits ? buffer : accents, accents);
    }
}

static void the_nearest_name_is_found(void **state)
{
    (void)state;
    static const char *const names[] = {"vivian", "ryan", "eric", "uncle_fu"};
    static const char *const cases[][2] = {{"rayn", "ryan"}, {"Vivien", "vivian"},
        {"uncle-fu", "uncle_fu"}, {"eri", "eric"}, {"erics", "eric"}, {"RYAN", "ryan"}, {"er", NULL},
        {"klingon", NULL}, {"", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *near = nearest_name(cases[i][0], names, 4);
        if (cases[i][1]) {
            assert_non_null(near);
            assert_string_equal(near, cases[i][1]);
        } else {
            assert_null(near);
        }
    }
    char endless[200];
    memset(endless, 'x', sizeof endless - 1);
    endless[sizeof endless - 1] = 0;
    const char *const same = endless;
    assert_null(nearest_name(endless, &same, 1)); /* not looked at */
}

static void the_hint_is_a_question(void **state)
{
    (void)state;
    char out[32];
    struct nearest nearest = nearest_begin("rayn");
    assert_string_equal(nearest_hint(&nearest, out, sizeof out), "");
    nearest_offer(&nearest, "vivian");
    assert_string_equal(nearest_hint(&nearest, out, sizeof out), "");
    nearest_offer(&nearest, "ryan");
    assert_string_equal(nearest_hint(&nearest, out, sizeof out), "did you mean ryan? ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_are_languages),
        cmocka_unit_test(an_accent_may_stand_behind_its_letter),
        cmocka_unit_test(the_nearest_name_is_found),
        cmocka_unit_test(the_hint_is_a_question),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
