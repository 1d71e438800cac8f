/* SPDX-License-Identifier: Apache-2.0
 * Where voices are looked for, by what was typed, and what they are. */
#include <limits.h>
#include <sys/stat.h>

#include "cli/voice/voice_lookup.h"
#include "tests/cli/heard.h"

static void put(const char *name, const char *text)
{
    support_write_file(support_path(name), text, strlen(text));
}

static void voices_are_looked_for_in_two_folders(void **state)
{
    (void)state;
    char folder[PATH_MAX];
    struct settings s = {.voices = {.given = true, .text = "/given"}};
    assert_int_equal(unsetenv("XDG_DATA_HOME"), 0);
    assert_int_equal(setenv("HOME", "/home/ann", 1), 0);
    assert_true(voice_folder(folder, sizeof folder, &s, 0));
    assert_string_equal(folder, "/given");
    assert_true(voice_folder(folder, sizeof folder, &s, 1));
    assert_string_equal(folder, "/home/ann/.local/share/utter/voices");
    assert_false(voice_folder(folder, sizeof folder, &s, 2));
    s.voices.given = false;
    assert_true(voice_folder(folder, sizeof folder, &s, 0));
    assert_string_equal(folder, "/home/ann/.local/share/utter/voices");
    assert_false(voice_folder(folder, 35, &s, 0));
    assert_true(voice_folder(folder, 36, &s, 0));
    assert_false(voice_folder(folder, sizeof folder, &s, 1));
    assert_int_equal(setenv("XDG_DATA_HOME", "/data", 1), 0);
    assert_true(voice_folder(folder, sizeof folder, &s, 0));
    assert_string_equal(folder, "/data/utter/voices");
    assert_int_equal(setenv("XDG_DATA_HOME", "data", 1), 0);
    assert_int_equal(setenv("HOME", "home", 1), 0);
    assert_false(voice_folder(folder, sizeof folder, &s, 0));
}

static void a_name_is_in_a_folder_and_a_path_as_it_is(void **state)
{
    (void)state;
    char path[PATH_MAX], wanted[PATH_MAX + 16], own[PATH_MAX];
    struct settings s = {0};
    mkdir(support_path("voices"), 0700);
    put("voices/ann.voice", "x");
    put("voices/annabel.voice", "x");
    put("voices/zoe.wav", "x");
    snprintf(own, sizeof own, "%s", support_path("voices"));
    s.voices = (struct setting){.given = true, .text = own};
    assert_true(voice_file_find(path, sizeof path, &s, "ann"));
    snprintf(wanted, sizeof wanted, "%s/ann.voice", own);
    assert_string_equal(path, wanted);
    assert_false(voice_file_find(path, sizeof path, &s, "bob"));
    assert_false(voice_file_find(path, sizeof path, &s, "ann.voice"));
    assert_true(voice_file_find(path, sizeof path, &s, wanted));
    assert_string_equal(path, wanted);
    assert_true(voice_file_path(path, sizeof path, &s, "none.voice"));
    assert_string_equal(path, "none.voice");
    char why[PATH_MAX + 256];
    heard_begin();
    bool found = voice_file_path(path, sizeof path, &s, "anna");
    snprintf(why, sizeof why,
        "utter: unknown voice \"anna\": no anna.voice in %s (did you mean ann? utter voices lists what "
        "there is)",
        own);
    heard_assert(why);
    assert_false(found);
    heard_begin();
    found = voice_file_path(path, sizeof path, &s, "zo");
    snprintf(why, sizeof why,
        "utter: unknown voice \"zo\": no zo.voice in %s (utter voices lists what there is)", own);
    heard_assert(why);
    assert_false(found);
    char name[16];
    voice_stem(name, sizeof name, "/a/b.c/ann.voice");
    assert_string_equal(name, "ann");
    voice_stem(name, sizeof name, "ann.wav");
    assert_string_equal(name, "ann.wav");
    voice_stem(name, sizeof name, "/a/.voice");
    assert_string_equal(name, ".voice");
}

static void voices_that_a_text_calls_for_are_hashed(void **state)
{
    (void)state;
    char own[PATH_MAX], hash[IDENTITY_SIZE], wanted[IDENTITY_SIZE], file[IDENTITY_SIZE];
    mkdir(support_path("called"), 0700);
    put("called/ann.voice", "one");
    put("called/bob.voice", "two");
    snprintf(own, sizeof own, "%s", support_path("called"));
    const struct settings s = {.voices = {.given = true, .text = own}};
    identity_of_bytes(hash, NULL, 0);
    assert_int_equal(voice_called_identity(hash, "plain [voice:eve] text", &s, NULL), UTTER_OK);
    identity_of_bytes(wanted, NULL, 0);
    assert_string_equal(hash, wanted); /* a preset has no file */
    assert_int_equal(voice_called_identity(
                         hash, "[voice:ann]One.[voice:eve]Two.[voice:bob]Three.[voice:ann\n", &s, NULL),
        UTTER_OK);
    static const char *const names[] = {"ann", "bob", "ann"};
    static const char *const files[] = {"called/ann.voice", "called/bob.voice", "called/ann.voice"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(identity_of_file(file, support_path(files[i]), NULL), UTTER_OK);
        identity_of_texts(wanted, (const char *const[]){wanted, names[i], file, NULL});
    }
    assert_string_equal(hash, wanted);
    char preset[IDENTITY_SIZE], other[IDENTITY_SIZE], none[IDENTITY_SIZE];
    voice_identity_preset(preset, "ann");
    voice_identity_preset(other, "bob");
    voice_identity(none, NULL);
    assert_string_not_equal(preset, other);
    assert_string_not_equal(preset, none);
    voice_identity_preset(other, NULL);
    assert_string_equal(other, none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(voices_are_looked_for_in_two_folders),
        cmocka_unit_test(a_name_is_in_a_folder_and_a_path_as_it_is),
        cmocka_unit_test(voices_that_a_text_calls_for_are_hashed),
    };
    return cmocka_run_group_tests_name("voices", tests, NULL, NULL);
}
