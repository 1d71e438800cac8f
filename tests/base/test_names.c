/* SPDX-License-Identifier: Apache-2.0
 * Names that people type: languages by their codes, the name that a misspelt one is nearest to, and accents that are
 * composed or not. */
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

#include "base/tables/languages.h"
#include "base/tables/nearest.h"
#include "base/tables/released.h"

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

/* Each code and its name, in any case, and nothing that only begins so. */
static void each_language_has_one_code(void **state)
{
    (void)state;
    static const char *const all[][2] = {{"zh", "chinese"}, {"en", "english"}, {"ja", "japanese"},
        {"ko", "korean"}, {"de", "german"}, {"fr", "french"}, {"ru", "russian"}, {"pt", "portuguese"},
        {"es", "spanish"}, {"it", "italian"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char region[16], longer[16], upper[32] = "";
        assert_string_equal(language_name(all[i][0]), all[i][1]);
        assert_string_equal(language_code(all[i][1]), all[i][0]);
        snprintf(region, sizeof region, "%s_XX", all[i][0]);
        snprintf(longer, sizeof longer, "%sx", all[i][0]);
        for (size_t k = 0; all[i][1][k]; k++) {
            upper[k] = (char)(all[i][1][k] - 'a' + 'A');
        }
        assert_string_equal(language_name(region), all[i][1]);
        assert_ptr_equal(language_name(longer), longer);
        assert_string_equal(language_code(upper), all[i][0]);
        assert_null(language_code(all[i][0]));
    }
    assert_null(language_code(""));
    assert_null(language_code("englis"));
    assert_null(language_code("klingon"));
}

static void released_models_are_known_by_two_names(void **state)
{
    (void)state;
    static const char *const all[][2] = {{"0.6b", "Qwen/Qwen3-TTS-12Hz-0.6B-CustomVoice"},
        {"0.6b-base", "Qwen/Qwen3-TTS-12Hz-0.6B-Base"},
        {"1.7B", "Qwen/Qwen3-TTS-12Hz-1.7B-CustomVoice"},
        {"1.7b-BASE", "Qwen/Qwen3-TTS-12Hz-1.7B-Base"},
        {"design", "Qwen/Qwen3-TTS-12Hz-1.7B-VoiceDesign"}};
    assert_int_equal(n_released, sizeof all / sizeof *all);
    for (size_t i = 0; i < n_released; i++) {
        assert_string_equal(released_repository(all[i][0]), all[i][1]);
        assert_string_equal(released_repository(all[i][1] + strlen("Qwen/")), all[i][1]);
        assert_null(released_repository(all[i][1]));
    }
    assert_string_equal(released_repository("qwen3-tts-12hz-0.6b-base"), all[1][1]);
    assert_null(released_repository(""));
    assert_null(released_repository("0.6"));
}

/* "owner/name": both begin with a letter or a digit. */
static void a_repository_has_an_owner_and_a_name(void **state)
{
    (void)state;
    static const char *const good[] = {"a/b", "Own-er/Na.me_1", "0/9", "a-/b."};
    static const char *const bad[] = {"", "a", "/", "a/", "/b", "a//b", "a/b/c", "a/b/", "a/.b", "a/-b",
        "_a/b", "a b/c", "a/b?", "a/b:c", "\u00e4/b", "../b", "a/.."};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(released_is_repository(good[i]));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(released_is_repository(bad[i]));
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
    endless[NAME_COMPOSED / 4 - 2] = 'a', endless[NAME_COMPOSED / 4 - 1] = 0; /* as long as may be */
    assert_string_equal(name_composed(buffer, endless), endless);
    assert_ptr_equal(name_composed(buffer, endless), buffer);
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
    for (size_t more = 1; more <= 2; more++) {
        memcpy(accents + LEAST * MOST, "aa", 2);
        accents[LEAST * MOST + more] = 0;
        assert_ptr_equal(name_composed(buffer, accents), accents);
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

/* Two changes for a name of four letters, one for less; each of the four kinds of change is one. */
static void changes_of_letters_are_counted(void **state)
{
    (void)state;
    static const struct {
        const char *typed, *name;
        bool near;
    } cases[] = {{"abc", "abd", true}, {"abc", "abcd", true}, {"abc", "ab", true}, {"abc", "bac", true},
        {"abc", "acb", true}, {"abc", "add", false}, {"abc", "bca", false}, {"abcd", "abdd", true},
        {"abcd", "abee", true}, {"abcd", "aeee", false}, {"abcd", "badc", true},
        {"abcd", "abcdef", true}, {"abcd", "abcdefg", false}, {"abcdef", "abcd", true},
        {"abcdef", "abc", false}, {"abcdef", "ABCDEF", true}, {"abcd", "cdab", false},
        {"abcd", "", false}, {"a", "b", true}, {"a", "ba", true}, {"", "a", true}, {"", "ab", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *near = nearest_name(cases[i].typed, &cases[i].name, 1);
        if ((near != NULL) != cases[i].near) {
            fail_msg("%s and %s", cases[i].typed, cases[i].name);
        }
    }
    /* The first of those that are as near. */
    const char *const names[] = {"abce", "abcf", "abcd"};
    assert_ptr_equal(nearest_name("abcx", names, 3), names[0]);
    assert_ptr_equal(nearest_name("abcd", names, 3), names[2]);
}

static void names_of_64_letters_are_compared(void **state)
{
    (void)state;
    for (size_t n = 64; n <= 65; n++) {
        char typed[80], same[80];
        memset(typed, 'x', n);
        memset(same, 'x', n);
        typed[n] = same[n] = 0;
        typed[n / 2] = 'y';
        const char *const name = same;
        assert_ptr_equal(nearest_name(typed, &name, 1), n == 64 ? same : NULL);
    }
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
        cmocka_unit_test(each_language_has_one_code),
        cmocka_unit_test(released_models_are_known_by_two_names),
        cmocka_unit_test(a_repository_has_an_owner_and_a_name),
        cmocka_unit_test(changes_of_letters_are_counted),
        cmocka_unit_test(names_of_64_letters_are_compared),
        cmocka_unit_test(the_hint_is_a_question),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
