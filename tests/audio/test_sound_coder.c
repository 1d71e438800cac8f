/* SPDX-License-Identifier: Apache-2.0
 * The file as a coder sees it: libsndfile's own calls, made here, write behind the end, write over what is there, and
 * seek and read no further than there is; and what is said where it finds a file damaged. */
#include "tests/support.h"

#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audio/sound_read.h"
#include "utter.h"

enum { RATE = 24000 };

/* What the library was given to write a file with. */
static SF_VIRTUAL_IO calls;
static void *file;

/* What is done with a file before it is read, or NULL. */
static void (*look)(void);

SNDFILE *__real_sf_open_virtual(SF_VIRTUAL_IO *given, int mode, SF_INFO *info, void *user);
SNDFILE *__wrap_sf_open_virtual(SF_VIRTUAL_IO *given, int mode, SF_INFO *info, void *user);

/* In place of libsndfile's: the same, and it tells. */
SNDFILE *__wrap_sf_open_virtual(SF_VIRTUAL_IO *given, int mode, SF_INFO *info, void *user)
{
    calls = *given;
    file = user;
    if (mode == SFM_READ && look) {
        look();
    }
    return __real_sf_open_virtual(given, mode, info, user);
}

static utter_sound *open_sound(const char *name)
{
    utter_sound *sound = NULL;
    file = NULL;
    assert_int_equal(
        utter_sound_create(&sound, support_path(name), NULL, UTTER_SAMPLE_S16, RATE, NULL), UTTER_OK);
    assert_non_null(file);
    return sound;
}

static void a_coder_seeks_in_what_there_is(void **state)
{
    (void)state;
    utter_sound *sound = open_sound("seek.flac");
    const sf_count_t begun = calls.get_filelen(file);
    assert_int_equal(calls.seek(0, SF_SEEK_END, file), begun);
    assert_int_equal(calls.write("0123456789", 10, file), 10);
    const sf_count_t size = begun + 10;
    const struct {
        sf_count_t offset;
        int whence;
        sf_count_t to; /* -1: it is refused */
    } rows[] = {{0, SF_SEEK_SET, 0}, {7, SF_SEEK_SET, 7}, {-7, SF_SEEK_CUR, 0}, {-1, SF_SEEK_CUR, -1},
        {5, SF_SEEK_SET, 5}, {3, SF_SEEK_CUR, 8}, {-2, SF_SEEK_CUR, 6}, {0, SF_SEEK_CUR, 6},
        {-1, SF_SEEK_SET, -1}, {size, SF_SEEK_SET, size}, {size + 1, SF_SEEK_SET, -1},
        {-1, SF_SEEK_CUR, size - 1}, {1, SF_SEEK_CUR, size}, {1, SF_SEEK_CUR, -1},
        {0, SF_SEEK_END, size}, {-4, SF_SEEK_END, size - 4}, {1, SF_SEEK_END, -1},
        {-size, SF_SEEK_END, 0}, {-size - 1, SF_SEEK_END, -1}, {2, SF_SEEK_SET, 2}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const sf_count_t before = calls.tell(file);
        assert_int_equal(calls.seek(rows[i].offset, rows[i].whence, file), rows[i].to);
        assert_int_equal(calls.tell(file), rows[i].to < 0 ? before : rows[i].to);
    }
    char byte;
    assert_int_equal(calls.read(&byte, 1, file), 0);
    assert_int_equal(calls.tell(file), 2);
    assert_int_equal(calls.get_filelen(file), size);
    utter_sound_abort(&sound);
}

static const char recording[] = "RIFF, but no sound at all";
enum { RECORDED = sizeof recording - 1 };

/* From the beginning to the end and no further, whatever is asked for. */
static void look_at_recording(void)
{
    static const struct {
        sf_count_t offset;
        int whence;
        sf_count_t to; /* where it stands then: what is not there does not move it */
    } rows[] = {{4, SF_SEEK_SET, 4}, {3, SF_SEEK_CUR, 7}, {-5, SF_SEEK_CUR, 2}, {-3, SF_SEEK_CUR, 2},
        {-2, SF_SEEK_CUR, 0}, {-1, SF_SEEK_CUR, 0}, {-1, SF_SEEK_SET, 0},
        {RECORDED, SF_SEEK_SET, RECORDED}, {1, SF_SEEK_CUR, RECORDED},
        {INT64_MAX, SF_SEEK_CUR, RECORDED}, {RECORDED + 1, SF_SEEK_SET, RECORDED},
        {-3, SF_SEEK_END, RECORDED - 3}, {1, SF_SEEK_END, RECORDED - 3},
        {INT64_MAX, SF_SEEK_END, RECORDED - 3}, {INT64_MIN, SF_SEEK_CUR, RECORDED - 3},
        {-RECORDED, SF_SEEK_END, 0}, {0, SF_SEEK_END, RECORDED}, {6, SF_SEEK_SET, 6}};
    char bytes[RECORDED + 8];
    assert_int_equal(calls.get_filelen(file), RECORDED);
    assert_int_equal(calls.tell(file), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(calls.seek(rows[i].offset, rows[i].whence, file), rows[i].to);
        assert_int_equal(calls.tell(file), rows[i].to);
    }
    assert_int_equal(calls.read(bytes, 3, file), 3);
    assert_memory_equal(bytes, recording + 6, 3);
    assert_int_equal(calls.read(bytes, 0, file), 0);
    assert_int_equal(calls.read(bytes, -1, file), 0);
    assert_int_equal(calls.tell(file), 9);
    assert_int_equal(calls.read(bytes, sizeof bytes, file), RECORDED - 9);
    assert_memory_equal(bytes, recording + 9, RECORDED - 9);
    assert_int_equal(calls.tell(file), RECORDED);
    assert_int_equal(calls.read(bytes, 1, file), 0);
    assert_int_equal(calls.write(bytes, 1, file), 0);
    assert_int_equal(calls.tell(file), RECORDED);
    assert_int_equal(calls.seek(0, SF_SEEK_SET, file), 0);
}

static void a_recording_is_read_to_its_end(void **state)
{
    float *pcm;
    size_t n;
    (void)state;
    file = NULL;
    look = look_at_recording;
    assert_int_equal(
        sound_read_memory(&pcm, &n, NULL, recording, RECORDED, "r", 0, NULL, NULL), UTTER_E_FILE);
    assert_non_null(file);
    look = NULL;
}

/* A FLAC with a frame that is none any more. */
static void what_is_damaged_is_told_with_its_place(void **state)
{
    static float wave[3 * RATE];
    const char *path = support_path("damaged.flac");
    utter_sound *sound;
    utter_error error = {0};
    size_t bytes, n;
    float *pcm;
    (void)state;
    for (int i = 0; i < 3 * RATE; i++) {
        wave[i] = (float)(i * 7919 % 1000) / 1000 - 0.5f;
    }
    assert_int_equal(utter_sound_create(&sound, path, NULL, UTTER_SAMPLE_S16, RATE, NULL), UTTER_OK);
    assert_int_equal(utter_sound_write(sound, wave, 3 * RATE, NULL), UTTER_OK);
    assert_int_equal(utter_sound_close(&sound, NULL), UTTER_OK);
    char *data = support_read_file(path, &bytes);
    memset(data + bytes / 2, 0x55, bytes / 8);
    assert_int_equal(
        sound_read_memory(&pcm, &n, NULL, data, bytes, "d.flac", 0, NULL, &error), UTTER_E_FILE);
    double seconds = 0;
    int n_said = 0;
    assert_int_equal(sscanf(error.text, "d.flac: damaged after %lf s (%n", &seconds, &n_said), 1);
    assert_true(seconds > 1 && seconds < 1.6); /* the half of it, less what is decoded at once */
    assert_true(n_said > 0 && strlen(error.text + n_said) > 4);
    assert_int_equal(error.text[strlen(error.text) - 1], ')');
    assert_null(pcm);
    free(data);
}

/* Over the end what is there is replaced and the rest is added. */
static void a_coder_writes_over_the_end(void **state)
{
    const char *path = support_path("write.flac");
    size_t bytes;
    (void)state;
    utter_sound *sound = open_sound("write.flac");
    const sf_count_t begun = calls.get_filelen(file), end = calls.tell(file);
    assert_int_equal(calls.seek(begun, SF_SEEK_SET, file), begun);
    assert_int_equal(calls.write("abcdef", 6, file), 6);
    assert_int_equal(calls.seek(-2, SF_SEEK_CUR, file), begun + 4);
    assert_int_equal(calls.write("EFGH", 4, file), 4);
    assert_int_equal(calls.tell(file), begun + 8);
    assert_int_equal(calls.get_filelen(file), begun + 8);
    assert_int_equal(calls.seek(begun + 1, SF_SEEK_SET, file), begun + 1);
    assert_int_equal(calls.write("BC", 2, file), 2);
    assert_int_equal(calls.write("", 0, file), 0);
    assert_int_equal(calls.tell(file), begun + 3);
    assert_int_equal(calls.get_filelen(file), begun + 8);
    assert_int_equal(calls.seek(end, SF_SEEK_SET, file), end);
    assert_int_equal(utter_sound_close(&sound, NULL), UTTER_OK);
    char *have = support_read_file(path, &bytes);
    assert_true(bytes >= (size_t)begun + 8);
    assert_memory_equal(have + begun, "aBCdEFGH", 8);
    free(have);
}

/* The first reason stays the one that is told, whatever is written then; the coder itself hears of none. */
static void a_coder_goes_on_into_nothing(void **state)
{
    (void)state;
    for (int patched = 0; patched < 2; patched++) {
        static const float silence[8];
        utter_sound *sound = open_sound("nothing.flac");
        static char block[1 << 20];
        utter_error error = {0};
        const sf_count_t begun = calls.get_filelen(file);
        assert_int_equal(calls.seek(patched ? 0 : begun, SF_SEEK_SET, file), patched ? 0 : begun);
        support_fail_from(SUPPORT_WRITE, 1);
        assert_int_equal(calls.write(block, sizeof block, file), sizeof block);
        support_fail_off();
        assert_int_equal(calls.write("more", 4, file), 4);
        assert_int_equal(calls.tell(file), (patched ? 0 : begun) + (sf_count_t)sizeof block + 4);
        assert_int_equal(utter_sound_write(sound, silence, 8, &error), UTTER_E_IO);
        assert_non_null(strstr(error.text, "nothing.flac"));
        utter_sound_abort(&sound);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_recording_is_read_to_its_end),
        cmocka_unit_test(what_is_damaged_is_told_with_its_place),
        cmocka_unit_test(a_coder_seeks_in_what_there_is), cmocka_unit_test(a_coder_writes_over_the_end),
        cmocka_unit_test(a_coder_goes_on_into_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
