/* SPDX-License-Identifier: Apache-2.0
 * Names that people type: languages by their codes, and the name that a misspelt one is nearest to. */
#include "tests/support.h"

#include <string.h>

#include "base/nearest.h"
#include "base/tables/languages.h"

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
        cmocka_unit_test(the_nearest_name_is_found),
        cmocka_unit_test(the_hint_is_a_question),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
