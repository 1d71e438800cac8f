/* SPDX-License-Identifier: Apache-2.0
 * Commands as people type them, with what they print and say kept from the terminal. */
#ifndef TESTS_CLI_TYPED_H
#define TESTS_CLI_TYPED_H

#include <limits.h>
#include <math.h>

#include "cli/options.h"
#include "cli/report.h"
#include "tests/cli/heard.h"
#include "utter.h"

static struct invocation typed;
static char typed_said[8192],
    *typed_printed; /* by the last command, on standard error and standard output */

static inline const struct command *typed_command(unsigned bit)
{
    size_t i = 0;
    while (command_table[i].bit != bit) {
        assert_true(++i < n_commands);
    }
    return &command_table[i];
}

/* Text with the folder of this test and a slash for each @; valid until the next call. */
static inline char *typed_in_folder(const char *text)
{
    static char whole[8 * PATH_MAX];
    size_t length = 0;
    whole[0] = 0;
    for (const char *c = text; *c; c++) {
        length += (size_t)snprintf(whole + length, sizeof whole - length, *c == '@' ? "%s/" : "%.1s",
            *c == '@' ? support_folder() : c);
        assert_true(length < sizeof whole);
    }
    return whole;
}

/* Reads the words of a command, which a blank parts; a ~ is a blank in a word. */
static inline void typed_parse(unsigned command, const char *words)
{
    static char kept[8 * PATH_MAX];
    static char *arguments[64];
    int n = 0;
    snprintf(kept, sizeof kept, "%s", typed_in_folder(words));
    for (char *word = strtok(kept, " "); word; word = strtok(NULL, " ")) {
        arguments[n++] = word;
        while ((word = strchr(word, '~'))) {
            *word = ' ';
        }
    }
    free(typed.words);
    assert_true(options_parse(&typed, typed_command(command), n, arguments));
}

/* The exit code of a command. */
static inline int typed_run(unsigned command, const char *words)
{
    typed_parse(command, words);
    free(typed_printed);
    heard_begin();
    printed_begin("printed");
    int code = typed.command->run(&typed);
    typed_printed = printed_end("printed");
    snprintf(typed_said, sizeof typed_said, "%s", heard_end());
    return code;
}

/* It ends with this code, and prints and says this, with the folder for each @. */
static inline void typed_assert(
    unsigned command, const char *words, int code, const char *prints, const char *says)
{
    int ended = typed_run(command, words);
    assert_string_equal(typed_said, typed_in_folder(says));
    assert_string_equal(typed_printed, typed_in_folder(prints));
    assert_int_equal(ended, code);
}

/* A number in what was printed as JSON, in the object of that name or, without one, in all. */
static inline double typed_number(const char *object, const char *name)
{
    json_t *all = json_loads(typed_printed, 0, NULL);
    const json_t *found = json_object_get(object ? json_object_get(all, object) : all, name);
    assert_true(json_is_number(found));
    double value = json_number_value(found);
    json_decref(all);
    return value;
}

/* Makes @ref.wav: a tone that swells and fades, 15 frames or 1.2 s. */
static inline void typed_record(void)
{
    enum { N = 15 * 1920 };
    static float pcm[N];
    utter_sound *sound;
    for (int i = 0; i < N; i++) {
        pcm[i] = (float)(0.3 * sin(i * 0.05) * sin(i * 0.0007));
    }
    assert_int_equal(
        utter_sound_create(&sound, support_path("ref.wav"), NULL, UTTER_SAMPLE_S16, 24000, NULL),
        UTTER_OK);
    assert_int_equal(utter_sound_write(sound, pcm, N, NULL), UTTER_OK);
    assert_int_equal(utter_sound_close(&sound, NULL), UTTER_OK);
}

/* Nothing of the user's is found or chooses anything. */
static inline int typed_start(void **state)
{
    (void)state;
    static const char *const homes[] = {
        "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "HF_HUB_CACHE"};
    static const char *const choices[] = {
        "UTTER_MODEL", "UTTER_VOICE", "UTTER_DEVICE", "HF_TOKEN", "HF_ENDPOINT"};
    for (size_t i = 0; i < sizeof homes / sizeof *homes; i++) {
        setenv(homes[i], support_path("home"), 1);
    }
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        unsetenv(choices[i]);
    }
    return 0;
}

static inline int typed_end(void **state)
{
    (void)state;
    free(typed_printed);
    free(typed.words);
    return 0;
}

#endif
