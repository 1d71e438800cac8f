/* SPDX-License-Identifier: Apache-2.0
 * Files of a book: their names, where chapters stand in them, and what they say of themselves. */
#include "book/sink.h"

#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support.h"

enum { RATE = 24000 };

static char names[][20] = {"One", "Two = 2; #x\\y\nz", "The book", "Ann Able"};
static struct chapter chapters[] = {{.title = names[0]}, {.title = names[1]}};
static struct book book = {
    .title = names[2], .author = names[3], .chapters = chapters, .n_chapters = 2};

static bool go_on(void)
{
    return false;
}

static void a_chapters_file_has_its_number(void **state)
{
    static const struct {
        const char *name;
        size_t chapter;
        const char *path;
    } cases[] = {{"a.mp3", 0, "a-0001.mp3"}, {"b.c/a.b.mp3", 41, "b.c/a.b-0042.mp3"},
        {"b.c/a", 0, "b.c/a-0001"}, {"a", 9999, "a-10000"}, {".mp3", 0, ".mp3-0001"},
        {"b/.mp3", 0, "b/.mp3-0001"}, {"b/x.mp3", 0, "b/x-0001.mp3"}};
    char path[PATH_MAX], name[PATH_MAX + 1];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(sink_chapter_path(path, cases[i].name, cases[i].chapter));
        assert_string_equal(path, cases[i].path);
    }
    memset(name, 'x', sizeof name);
    name[PATH_MAX - 6] = 0;
    assert_true(sink_chapter_path(path, name, 0));
    assert_int_equal(strlen(path), PATH_MAX - 1);
    name[PATH_MAX - 6] = 'x';
    name[PATH_MAX - 5] = 0;
    assert_false(sink_chapter_path(path, name, 0));
}

static void file_says(const char *path, const char *title, const char *track, sf_count_t n)
{
    SF_INFO info = {0};
    SNDFILE *file = sf_open(path, SFM_READ, &info);
    assert_non_null(file);
    assert_true(info.frames == n && info.samplerate == RATE && info.channels == 1);
    const char *const have[] = {sf_get_string(file, SF_STR_TITLE), sf_get_string(file, SF_STR_ARTIST),
        sf_get_string(file, SF_STR_ALBUM), sf_get_string(file, SF_STR_TRACKNUMBER)};
    const char *const wanted[] = {title, "Ann Able", "The book", track};
    for (int i = 0; i < 4; i++) {
        assert_string_equal(have[i] ? have[i] : "", wanted[i]);
    }
    sf_close(file);
}

/* One file for all, with where chapters stand in it; those of a timed book stand nowhere. */
static void one_file_has_the_whole_book(void **state)
{
    static const float pcm[3000];
    const char *path = support_path("book.ogg");
    const struct sink_settings settings = {.path = path, .format = "flac", .rate = RATE};
    struct sink sink;
    (void)state;
    for (int timed = 0; timed < 2; timed++) {
        book.timed = timed != 0;
        assert_int_equal(sink_open(&sink, &settings, &book, NULL), UTTER_OK);
        assert_false(sink.m4b);
        for (size_t i = 0; i < 70; i++) { /* more than there was room for at first */
            assert_int_equal(sink_chapter(&sink, i % 2, NULL), UTTER_OK);
            assert_int_equal(sink_write(&sink, pcm, 10 + i, NULL), UTTER_OK);
        }
        assert_int_equal(sink.n_samples, 70 * 10 + 69 * 35);
        assert_int_equal(sink.n_files, 0);
        assert_int_equal(sink_close(&sink, go_on, NULL), UTTER_OK);
        assert_int_equal(sink.n_files, 1);
        assert_int_equal(sink.n_marks, timed ? 0 : 70);
        for (size_t i = 0; i < sink.n_marks; i++) {
            assert_ptr_equal(sink.marks[i].title, chapters[i % 2].title);
            assert_int_equal(sink.marks[i].begin, 10 * i + i * (i - 1) / 2);
            assert_int_equal(sink.marks[i].end, 10 * (i + 1) + (i + 1) * i / 2);
        }
        assert_int_equal(
            sink_close(&sink, go_on, NULL), UTTER_OK); /* there is nothing more to complete */
        assert_int_equal(sink.n_files, 1);
        sink_fini(&sink);
        assert_true(!sink.marks && sink.n_marks == 0);
        file_says(path, "The book", "", 70 * 10 + 69 * 35);
        unlink(path);
    }
    book.timed = false;
}

static void each_chapter_has_a_file(void **state)
{
    static const float pcm[500];
    const struct sink_settings settings = {.path = support_path("c.flac"), .split = true, .rate = RATE};
    struct sink sink;
    (void)state;
    assert_int_equal(sink_open(&sink, &settings, &book, NULL), UTTER_OK);
    assert_int_equal(support_count_files(support_folder()), 0);
    assert_int_equal(sink_chapter(&sink, 0, NULL), UTTER_OK);
    assert_int_equal(sink.n_files, 0);
    assert_int_equal(sink_write(&sink, pcm, 500, NULL), UTTER_OK);
    assert_int_equal(sink_chapter(&sink, 1, NULL), UTTER_OK);
    assert_int_equal(sink.n_files, 1);
    assert_int_equal(sink_write(&sink, pcm, 400, NULL), UTTER_OK);
    assert_int_equal(sink_close(&sink, go_on, NULL), UTTER_OK);
    assert_int_equal(sink.n_files, 2);
    assert_int_equal(sink.n_marks, 0);
    sink_fini(&sink);
    file_says(support_path("c-0001.flac"), "One", "1", 500);
    file_says(support_path("c-0002.flac"), chapters[1].title, "2", 400);
    /* What is not complete is dropped. */
    unlink(support_path("c-0001.flac"));
    assert_int_equal(sink_open(&sink, &settings, &book, NULL), UTTER_OK);
    assert_int_equal(sink_chapter(&sink, 0, NULL), UTTER_OK);
    sink_fini(&sink);
    sink_fini(&sink);
    assert_int_equal(support_count_files(support_folder()), 1);
    unlink(support_path("c-0002.flac"));
}

static void files_that_cannot_be_are_told(void **state)
{
    static char name[PATH_MAX];
    struct sink_settings settings = {.path = name, .split = true, .rate = RATE};
    struct sink sink;
    utter_error error = {0};
    (void)state;
    memset(name, 'x', sizeof name - 1);
    assert_int_equal(sink_open(&sink, &settings, &book, NULL), UTTER_OK);
    assert_int_equal(sink_chapter(&sink, 0, &error), UTTER_E_ARGUMENT);
    assert_int_equal(strncmp(error.text, "xxxx", 4), 0);
    sink_fini(&sink);
    settings = (struct sink_settings){.path = support_path("a.xyz"), .rate = RATE};
    assert_int_equal(sink_open(&sink, &settings, &book, &error), UTTER_E_ARGUMENT);
    assert_non_null(strstr(error.text, "no sound format 'xyz'"));
    sink_fini(&sink);
    settings = (struct sink_settings){.path = support_path("m.wav"), .rate = RATE};
    assert_int_equal(sink_open(&sink, &settings, &book, NULL), UTTER_OK);
    support_fail_at(SUPPORT_MALLOC, 1);
    assert_int_equal(sink_chapter(&sink, 0, &error), UTTER_E_MEMORY);
    support_fail_off();
    assert_int_equal(sink.n_marks, 0);
    sink_fini(&sink);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chapters_file_has_its_number),
        cmocka_unit_test(one_file_has_the_whole_book),
        cmocka_unit_test(each_chapter_has_a_file),
        cmocka_unit_test(files_that_cannot_be_are_told),
    };
    return cmocka_run_group_tests_name("sound files of books", tests, NULL, NULL);
}
