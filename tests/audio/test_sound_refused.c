/* SPDX-License-Identifier: Apache-2.0
 * Sound files that cannot be written: what is said of long names, of what a coder has not, and of a full disk. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support.h"
#include "utter.h"

enum { RATE = 24000 };

/* What is shown of a long name ends with dots, and leaves room for the reason. */
static void long_names_are_cut(void **state)
{
    enum { MOST = 1023 };
    static char path[2000], wanted[3000];
    char format[101] = "";
    utter_sound *sound;
    utter_error error = {0};
    (void)state;
    memset(path, 'p', sizeof path - 1);
    memset(format, 'f', sizeof format - 1);
    assert_int_equal(
        utter_sound_create(&sound, path, format, UTTER_SAMPLE_S16, RATE, &error), UTTER_E_ARGUMENT);
    snprintf(wanted, sizeof wanted,
        "%.252s...: no sound format '%.60s...' (there are wav, raw, pcm, flac, ogg, opus, mp3)", path,
        format);
    assert_string_equal(error.text, wanted);
    assert_int_equal(
        utter_sound_create(&sound, path, "ogg", UTTER_SAMPLE_F32, RATE, &error), UTTER_E_ARGUMENT);
    snprintf(wanted, sizeof wanted,
        "%.*s...: ogg holds no 32-bit floats (wav and raw do; or leave the samples at 16 bits)",
        MOST - 3, path);
    assert_string_equal(error.text, wanted);
}

/* Rates that a coder has not, and more tags than it takes. */
static void coders_refuse_rates_and_tags(void **state)
{
    char wanted[5200];
    const char *path = support_path("many.flac");
    utter_sound *sound;
    utter_error error = {0};
    utter_status status = UTTER_OK;
    (void)state;
    assert_int_equal(
        utter_sound_create(&sound, support_path("x.opus"), NULL, UTTER_SAMPLE_S16, 22050, &error),
        UTTER_E_ARGUMENT);
    snprintf(
        wanted, sizeof wanted, "%s: cannot write opus at 22050 Hz (use wav)", support_path("x.opus"));
    if (!strstr(error.text, "the libsndfile here")) { /* an old one has no opus at all */
        assert_string_equal(error.text, wanted);
    }
    assert_int_equal(utter_sound_create(&sound, path, NULL, UTTER_SAMPLE_S16, RATE, NULL), UTTER_OK);
    for (int i = 0; i < 100 && status == UTTER_OK; i++) {
        status = utter_sound_tag(sound, "title", "again", &error);
    }
    assert_int_equal(status, UTTER_E_INTERNAL);
    snprintf(wanted, sizeof wanted, "%s: libsndfile cannot encode flac", path);
    assert_string_equal(error.text, wanted);
    utter_sound_abort(&sound);
}

/* Who writes for hours hears of a full disk when it is full, and not at the end. */
static void a_failed_write_is_told_at_once(void **state)
{
    static const char *const names[] = {"full.flac", "full.ogg", "full.wav"};
    static float wave[RATE / 2];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        utter_sound *sound;
        utter_error error = {0};
        utter_status status = UTTER_OK;
        assert_int_equal(
            utter_sound_create(&sound, support_path(names[i]), NULL, UTTER_SAMPLE_S16, RATE, NULL),
            UTTER_OK);
        support_fail_from(SUPPORT_WRITE, 1);
        for (int k = 0; k < 20 && status == UTTER_OK; k++) {
            status = utter_sound_write(sound, wave, RATE / 2, &error);
        }
        support_fail_off();
        assert_int_equal(status, UTTER_E_IO);
        assert_int_equal(error.code, UTTER_E_IO);
        utter_sound_abort(&sound);
    }
}

/* Whether so many samples more are refused at once, each of so many bytes; else the first write fails. */
static void check_room(
    const char *name, const char *format, utter_sample sample, size_t before, size_t n, bool refused)
{
    static float wave[1 << 20]; /* more than is written at once */
    char wanted[5200];
    utter_sound *sound;
    utter_error error = {0};
    const char *path = strcmp(name, "-") == 0 ? name : support_path(name);
    assert_int_equal(utter_sound_create(&sound, path, format, sample, RATE, NULL), UTTER_OK);
    assert_int_equal(utter_sound_write(sound, wave, before, NULL), UTTER_OK);
    support_fail_from(SUPPORT_WRITE, 1);
    utter_status status = utter_sound_write(sound, wave, n, &error);
    support_fail_off();
    assert_int_equal(status, refused ? UTTER_E_ARGUMENT : UTTER_E_IO);
    snprintf(wanted, sizeof wanted, "%s: a wav file holds at most 4 GB (use flac or raw)", path);
    assert_true((strcmp(error.text, wanted) == 0) == refused);
    utter_sound_abort(&sound);
}

/* A wav counts its bytes in 32 bits, with those of its header; others have no such end, nor has a stream. */
static void a_wav_has_room_for_four_gigabytes(void **state)
{
    enum { HEADER = 58 };
    const size_t most = UINT32_MAX - HEADER, of_two = most / 2, of_four = most / 4;
    (void)state;
    check_room("full.wav", NULL, UTTER_SAMPLE_S16, 0, of_two, false);
    check_room("full.wav", NULL, UTTER_SAMPLE_S16, 0, of_two + 1, true);
    check_room("full.wav", NULL, UTTER_SAMPLE_S16, 10, of_two - 10, false);
    check_room("full.wav", NULL, UTTER_SAMPLE_S16, 10, of_two - 9, true);
    check_room("full.wav", NULL, UTTER_SAMPLE_F32, 5000, of_four - 5000, false);
    check_room("full.wav", NULL, UTTER_SAMPLE_F32, 5000, of_four - 4999, true);
    check_room("full.raw", NULL, UTTER_SAMPLE_S16, 0, of_two + 1, false);
    check_room("full.flac", NULL, UTTER_SAMPLE_S16, 0, of_two + 1, false);
    int ends[2];
    const int kept = dup(STDOUT_FILENO);
    assert_true(kept >= 0 && pipe(ends) == 0);
    fflush(stdout);
    dup2(ends[1], STDOUT_FILENO);
    check_room("-", "wav", UTTER_SAMPLE_S16, 0, of_two + 1, false);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(long_names_are_cut),
        cmocka_unit_test(coders_refuse_rates_and_tags),
        cmocka_unit_test(a_failed_write_is_told_at_once),
        cmocka_unit_test(a_wav_has_room_for_four_gigabytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
