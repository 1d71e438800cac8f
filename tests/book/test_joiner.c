/* SPDX-License-Identifier: Apache-2.0
 * Sections that are ready become the sound of a book, sample by sample: quiet ends, pauses, chapters, files; subtitles
 * in their slots; loudness. */
#include "book/joiner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "book/loudness.h"
#include "tests/support.h"

/* Samples at this rate: what stays of quiet, and the pauses but for that. */
enum {
    RATE = 8000,
    EDGE = 400,
    PAUSE_SENTENCE = 2400,
    PAUSE_PARAGRAPH = 4800,
    PAUSE_CHAPTER = 11200,
    PAUSE_LAST = 3200
};

/* Steps of 16 bits on either side of -50 dB. */
enum { QUIET = 98, LOUD = 99 };

enum { MOST_SECTIONS = 6, MOST_SAMPLES = 24000 };

static char names[][8] = {"One", "Two", "Three", "Book", "Ann"};
static struct chapter chapters[] = {{.title = names[0]}, {.title = names[1]}, {.title = names[2]}};
static struct book book = {
    .title = names[3], .author = names[4], .chapters = chapters, .n_chapters = 3};
static struct store store;
static struct section sections[MOST_SECTIONS];
static struct task tasks[MOST_SECTIONS];
static int16_t wanted[20 * MOST_SAMPLES];
static size_t n_wanted;

static bool go_on(void)
{
    return false;
}

static int n_asked, stop_at;

static bool stop_then(void)
{
    return ++n_asked == stop_at;
}

static int make_store(void **state)
{
    (void)state;
    snprintf(store.folder, sizeof store.folder, "%s", support_folder());
    for (int i = 0; i < MOST_SECTIONS; i++) {
        snprintf(tasks[i].entry.key, sizeof tasks[i].entry.key, "section-%d", i);
        tasks[i].section = &sections[i];
    }
    return 0;
}

/* Steps: `before` of a quiet hiss, `n` of a loud tone, `behind` of quiet. The section's file. */
static void make_section(int i, size_t before, size_t n, size_t behind, int16_t steps[MOST_SAMPLES])
{
    char path[PATH_MAX];
    static float pcm[MOST_SAMPLES];
    utter_sound *sound;
    const size_t all = before + n + behind;
    assert_true(all <= MOST_SAMPLES);
    for (size_t t = 0; t < all; t++) {
        const bool loud = t >= before && t < before + n;
        steps[t] = (int16_t)(!loud                                ? (t % 2 ? QUIET : -QUIET)
                             : t == before || t + 1 == before + n ? (i % 2 ? -LOUD : LOUD)
                                                                  : (int)(t * 37 % 9000) - 4000);
        pcm[t] = (float)steps[t] / 32768;
    }
    store_path(&store, path, tasks[i].entry.key);
    assert_int_equal(utter_sound_create(&sound, path, "flac", UTTER_SAMPLE_S16, RATE, NULL), UTTER_OK);
    assert_int_equal(utter_sound_write(sound, pcm, all, NULL), UTTER_OK);
    assert_int_equal(utter_sound_close(&sound, NULL), UTTER_OK);
}

static void want(const int16_t *steps, size_t n)
{
    memcpy(wanted + n_wanted, steps, n * sizeof *steps);
    n_wanted += n;
}

static void want_silence(size_t n)
{
    memset(wanted + n_wanted, 0, n * sizeof *wanted);
    n_wanted += n;
}

static void file_is_wanted(const char *path)
{
    size_t bytes;
    char *have = support_read_file(path, &bytes);
    assert_non_null(have);
    assert_int_equal(bytes, n_wanted * sizeof *wanted);
    assert_memory_equal(have, wanted, bytes);
    free(have);
    n_wanted = 0;
}

static struct joiner begin(struct sink *sink, const char *path, bool split, size_t n)
{
    const struct sink_settings settings = {.path = path, .rate = RATE, .split = split};
    assert_int_equal(sink_open(sink, &settings, &book, NULL), UTTER_OK);
    return (struct joiner){.settings = {.effects = {.speed = 1, .volume = 1}, .fit = 1.2, .rate = RATE},
        .book = &book,
        .tasks = tasks,
        .n_tasks = n,
        .store = &store,
        .sink = sink,
        .stop = go_on};
}

static void join_all(struct joiner *j)
{
    utter_error error = {0};
    int n_open = 0;
    while (j->next < j->n_tasks) {
        assert_int_equal(joiner_move(j, &error), UTTER_OK);
        assert_string_equal(error.text, "");
        /* A section's file, and what is written, at most. */
        const int n = support_count_files("/proc/self/fd");
        n_open = n_open ? n_open : n;
        assert_in_range(n, 0, n_open);
    }
}

static void end(struct joiner *j, struct sink *sink)
{
    assert_int_equal(sink_close(sink, go_on, NULL), UTTER_OK);
    joiner_fini(j);
}

/* Two chapters: of a section with quiet ends 50 ms stay, or as much as there is; a pause stands behind each, as long as
 * what ends there; the last one is short. */
static void quiet_ends_become_pauses(void **state)
{
    static int16_t a[MOST_SAMPLES], b[MOST_SAMPLES], c[MOST_SAMPLES], d[MOST_SAMPLES];
    const char *path = support_path("book.raw");
    struct sink sink;
    (void)state;
    make_section(0, 6000, 8801, 5000, a); /* two blocks and a sample, with its edges */
    make_section(1, EDGE - 1, 20, EDGE - 1, b);
    make_section(2, EDGE + 1, 1, EDGE + 1, c);
    make_section(3, 1000, 0, 0, d); /* nothing but quiet */
    sections[0] = (struct section){.chapter = 0, .end = SECTION_SENTENCE};
    sections[1] = (struct section){.chapter = 0, .end = SECTION_PARAGRAPH};
    sections[2] = (struct section){.chapter = 0, .end = SECTION_CHAPTER};
    sections[3] = (struct section){.chapter = 2, .end = SECTION_CHAPTER};
    struct joiner j = begin(&sink, path, false, 4);
    join_all(&j);
    want(a + 6000 - EDGE, 8801 + 2 * EDGE);
    want_silence(PAUSE_SENTENCE);
    want(b, 20 + 2 * (EDGE - 1));
    want_silence(PAUSE_PARAGRAPH);
    want(c + 1, 1 + 2 * EDGE);
    want_silence(PAUSE_CHAPTER);
    const size_t second = n_wanted;
    want(d + 1000 - EDGE, EDGE);
    want_silence(PAUSE_LAST);
    assert_int_equal(sink.n_samples, n_wanted);
    assert_int_equal(sink.n_marks, 2);
    assert_string_equal(sink.marks[0].title, "One");
    assert_string_equal(sink.marks[1].title, "Three");
    assert_true(
        sink.marks[0].begin == 0 && sink.marks[0].end == second && sink.marks[1].begin == second);
    end(&j, &sink);
    assert_true(sink.marks[1].end == n_wanted && sink.n_files == 1);
    sink_fini(&sink);
    file_is_wanted(path);
}

/* In files of their own each chapter has the short pause. */
static void chapters_have_files_of_their_own(void **state)
{
    static int16_t steps[3][MOST_SAMPLES];
    struct sink sink;
    (void)state;
    for (int i = 0; i < 3; i++) {
        make_section(i, EDGE, 100, EDGE, steps[i]);
        sections[i] = (struct section){
            .chapter = (size_t)i / 2 * 2, .end = i ? SECTION_CHAPTER : SECTION_PARAGRAPH};
    }
    struct joiner j = begin(&sink, support_path("part.raw"), true, 3);
    join_all(&j);
    assert_int_equal(sink.n_files, 1);
    end(&j, &sink);
    assert_int_equal(sink.n_files, 2);
    sink_fini(&sink);
    want(steps[0], 100 + 2 * EDGE);
    want_silence(PAUSE_PARAGRAPH);
    want(steps[1], 100 + 2 * EDGE);
    want_silence(PAUSE_LAST);
    file_is_wanted(support_path("part-0001.raw"));
    want(steps[2], 100 + 2 * EDGE);
    want_silence(PAUSE_LAST);
    file_is_wanted(support_path("part-0003.raw"));
    assert_int_not_equal(access(support_path("part-0002.raw"), F_OK), 0);
}

/* Pauses go through the effects as speech does; how loud it is asked for holds for each sample. */
static void effects_are_of_all_that_is_written(void **state)
{
    static int16_t a[MOST_SAMPLES], b[MOST_SAMPLES];
    const char *path = support_path("soft.raw");
    struct sink sink;
    (void)state;
    make_section(0, EDGE, 5000, EDGE, a);
    make_section(1, EDGE, 5000, EDGE, b);
    sections[0] = (struct section){.chapter = 0, .end = SECTION_CHAPTER};
    sections[1] = (struct section){.chapter = 1, .end = SECTION_CHAPTER};
    struct joiner j = begin(&sink, path, false, 2);
    j.settings.effects.volume = 0.5;
    join_all(&j);
    end(&j, &sink);
    sink_fini(&sink);
    size_t bytes;
    int16_t *have = (void *)support_read_file(path, &bytes);
    const size_t n = 2 * (5000 + 2 * EDGE) + PAUSE_CHAPTER + PAUSE_LAST;
    assert_int_equal(bytes, n * sizeof *have);
    for (size_t t = 0; t < 5000 + 2 * EDGE; t++) {
        assert_true(abs(2 * have[t] - a[t]) <= 1);
        assert_true(abs(2 * have[t + 5000 + 2 * EDGE + PAUSE_CHAPTER] - b[t]) <= 1);
    }
    free(have);
    /* Another speed and rate: all of a chapter comes out before the next one begins. */
    j = begin(&sink, path, false, 2);
    j.settings.effects.speed = 2;
    j.settings.effects.sample_rate = 16000;
    join_all(&j);
    const double one = 5000 + 2 * EDGE + PAUSE_CHAPTER, all = (double)n;
    assert_true(fabs((double)sink.marks[1].begin - one) < 0.04 * one);
    assert_true(fabs((double)sink.n_samples - all) < 0.04 * all);
    end(&j, &sink);
    sink_fini(&sink);
}

/* A few times a second it is asked whether to go on; what was written stays, and the section counts as not written. */
static void it_stops_when_it_is_told(void **state)
{
    static int16_t a[MOST_SAMPLES];
    struct sink sink;
    utter_error error = {0};
    (void)state;
    make_section(0, 0, 12000, 0, a);
    sections[0] = (struct section){.chapter = 0, .end = SECTION_PARAGRAPH};
    for (stop_at = 1; stop_at <= 4; stop_at++) { /* two blocks and a half, and the pause */
        struct joiner j = begin(&sink, support_path("stopped.raw"), false, 1);
        j.stop = stop_then;
        n_asked = 0;
        assert_int_equal(joiner_move(&j, &error), UTTER_AGAIN);
        assert_int_equal(j.next, 0);
        assert_int_equal(sink.n_samples, stop_at == 4 ? 12000 : 4800 * (stop_at - 1));
        joiner_fini(&j);
        assert_true(!j.file && !j.effects && !j.meter);
        sink_fini(&sink);
    }
    struct joiner j = begin(&sink, support_path("stopped.raw"), false, 1);
    j.stop = stop_then;
    n_asked = 0;
    assert_int_equal(joiner_move(&j, &error), UTTER_OK);
    assert_int_equal(n_asked, 4);
    joiner_fini(&j);
    sink_fini(&sink);
    assert_int_not_equal(access(support_path("stopped.raw"), F_OK), 0);
}

static void a_file_that_cannot_be_read_is_told(void **state)
{
    static const char *const formats[] = {"flac", "wav"};
    static const float pcm[100] = {0.5f};
    char path[PATH_MAX], text[PATH_MAX + 80];
    struct sink sink;
    utter_error error = {0};
    (void)state;
    store_path(&store, path, tasks[0].entry.key);
    snprintf(
        text, sizeof text, "%s: a section that was spoken cannot be read (--fresh begins anew)", path);
    for (int i = 0; i < 4;
         i++) { /* none; no sound; another rate; as it should be, in another format too */
        unlink(path);
        if (i == 1) {
            support_write_file(path, "fLaC", 4);
        } else if (i > 1) {
            utter_sound *sound;
            assert_int_equal(utter_sound_create(&sound, path, formats[i % 2], UTTER_SAMPLE_S16,
                                 i == 2 ? RATE + 1 : RATE, NULL),
                UTTER_OK);
            assert_int_equal(utter_sound_write(sound, pcm, 100, NULL), UTTER_OK);
            assert_int_equal(utter_sound_close(&sound, NULL), UTTER_OK);
        }
        struct joiner j = begin(&sink, support_path("none.raw"), false, 1);
        assert_int_equal(joiner_move(&j, &error), i < 3 ? UTTER_E_FILE : UTTER_OK);
        assert_string_equal(error.text, i < 3 ? text : "");
        assert_int_equal(j.next, i == 3);
        error = (utter_error){0};
        joiner_fini(&j);
        sink_fini(&sink);
    }
}

static const char *cut_path;

/* Not yet while it is looked for its ends, but before its second block is written. */
static bool cut_then(void)
{
    if (++n_asked == 2) {
        assert_int_equal(truncate(cut_path, 64), 0);
    }
    return false;
}

/* By others, while it is written. */
static void a_file_that_is_cut_is_told(void **state)
{
    static float pcm[400000];
    char path[PATH_MAX];
    struct sink sink;
    utter_sound *sound;
    utter_error error = {0};
    (void)state;
    for (size_t t = 0; t < sizeof pcm / sizeof *pcm; t++) {
        pcm[t] = (float)(t * 7919 % 30011) / 30011;
    }
    store_path(&store, path, tasks[0].entry.key);
    assert_int_equal(utter_sound_create(&sound, path, "flac", UTTER_SAMPLE_S16, RATE, NULL), UTTER_OK);
    assert_int_equal(utter_sound_write(sound, pcm, sizeof pcm / sizeof *pcm, NULL), UTTER_OK);
    assert_int_equal(utter_sound_close(&sound, NULL), UTTER_OK);
    cut_path = path;
    n_asked = 0;
    struct joiner j = begin(&sink, support_path("cut.raw"), false, 1);
    j.stop = cut_then;
    assert_int_equal(joiner_move(&j, &error), UTTER_E_FILE);
    assert_string_equal(error.text, "a section that was spoken cannot be read (--fresh begins anew)");
    assert_int_equal(j.next, 0);
    joiner_fini(&j);
    sink_fini(&sink);
}

/* ---- Loudness ---- */

/* Only whole chapters can be measured. */
static void whole_chapters_are_reached(void **state)
{
    static const enum section_end ends[] = {
        SECTION_SENTENCE, SECTION_CHAPTER, SECTION_PARAGRAPH, SECTION_PARAGRAPH, SECTION_CHAPTER};
    static const size_t reach[] = {0, 0, 2, 2, 2, 5}, behind_2[] = {0, 1, 2, 2, 2, 5};
    struct joiner j = {.tasks = tasks, .n_tasks = 5};
    (void)state;
    for (int i = 0; i < 5; i++) {
        sections[i].end = ends[i];
    }
    for (size_t n = 0; n <= 5; n++) {
        j.settings.lufs = 0;
        assert_int_equal(joiner_reach(&j, n), n);
        j.settings.lufs = -20;
        j.next = 0;
        assert_int_equal(joiner_reach(&j, n), reach[n]);
        j.next = 2;
        assert_int_equal(joiner_reach(&j, n), behind_2[n]);
    }
}

static void a_tone_is_as_loud_as_defined(void **state)
{
    enum { N = 3 * 48000 };
    static float pcm[N];
    double lacks;
    (void)state;
    if (!loudness_is_here()) {
        skip();
    }
    for (int t = 0; t < N; t++) {
        pcm[t] = (float)(0.1 * sin(2 * 3.14159265358979 * 997 * t / 48000)); /* -23 LUFS */
    }
    static const struct {
        double lufs, gain_db, lacks;
    } cases[] = {{-23, 0, 0}, {-26, -3, 0}, {-10, 13, 0}, {-2, 19, 2}, {-4, 19, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct loudness *l = loudness_new(48000);
        assert_true(loudness_add(l, pcm, N / 3) && loudness_add(l, pcm, N / 3 * 2));
        const double gain = loudness_gain(l, cases[i].lufs, &lacks);
        assert_true(fabs(20 * log10(gain) - cases[i].gain_db) < 0.1);
        assert_true(fabs(lacks - cases[i].lacks) < 0.1);
        assert_true(gain < 1.002 * pow(10, 19 / 20.0)); /* 1 dB below full scale */
        loudness_free(l);
    }
    memset(pcm, 0, sizeof pcm);
    struct loudness *l = loudness_new(48000);
    assert_true(loudness_add(l, pcm, N));
    lacks = 7;
    assert_true(loudness_gain(l, -20, &lacks) == 1 && !(lacks > 0));
    loudness_free(l);
    for (int t = 0; t < N; t++) {
        pcm[t] = t % 2 ? 1e-5F : -1e-5F; /* too quiet to be measured: it stays so */
    }
    l = loudness_new(48000);
    assert_true(loudness_add(l, pcm, N));
    assert_true(loudness_gain(l, -20, &lacks) == 1 && !(lacks > 0));
    loudness_free(l);
    loudness_free(NULL);
    assert_null(loudness_new(0));
    support_fail_at(SUPPORT_MALLOC, 1);
    assert_null(loudness_new(48000));
    support_fail_off();
}

/* Each chapter is measured on its own, and what its peaks forbid is told. */
static void each_chapter_has_its_loudness(void **state)
{
    static int16_t a[MOST_SAMPLES], b[MOST_SAMPLES];
    const char *path = support_path("loud.raw");
    struct sink sink;
    (void)state;
    if (!loudness_is_here()) {
        skip();
    }
    make_section(0, EDGE, 9000, EDGE, a);
    make_section(1, EDGE, 9000, EDGE, b);
    sections[0] = (struct section){.chapter = 0, .end = SECTION_PARAGRAPH};
    sections[1] = (struct section){.chapter = 0, .end = SECTION_CHAPTER};
    static const double lufs[] = {-30, -3, -24};
    for (int i = 0; i < 3; i++) { /* to where peaks allow it, and not; a little louder */
        struct joiner j = begin(&sink, path, false, 2);
        double lacks;
        j.settings.lufs = lufs[i];
        assert_int_equal(joiner_move(&j, NULL), UTTER_OK); /* both sections at once */
        assert_int_equal(j.next, 2);
        assert_null(j.meter);
        struct loudness *l = loudness_new(RATE);
        static float pcm[2 * MOST_SAMPLES];
        size_t n = 0;
        for (size_t t = 0; t < 9000 + 2 * EDGE; t++) {
            pcm[n + t] = (float)a[t] / 32768;
            pcm[n + t + 9000 + 2 * EDGE + PAUSE_PARAGRAPH] = (float)b[t] / 32768;
        }
        n = 2 * (9000 + 2 * EDGE) + PAUSE_PARAGRAPH + PAUSE_LAST;
        assert_true(loudness_add(l, pcm, n));
        const double gain = loudness_gain(l, j.settings.lufs, &lacks);
        loudness_free(l);
        assert_true(fabs(j.gain - gain) < 1e-6 * gain);
        assert_true(fabs(j.most_short_lu - lacks) < 1e-6);
        assert_int_equal(j.n_quiet, i == 1);
        assert_int_equal(lacks >= 1, i == 1);
        assert_int_equal(gain > 1.1 && gain < 2, i == 2);
        assert_int_equal(sink.n_samples, n);
        assert_int_equal(sink.n_marks, 1);
        end(&j, &sink);
        sink_fini(&sink);
        size_t bytes;
        int16_t *have = (void *)support_read_file(path, &bytes);
        assert_int_equal(bytes, n * sizeof *have);
        for (size_t t = 0; t < n; t++) {
            assert_true(
                fabs(have[t] - fmin(fmax(gain * (double)pcm[t] * 32768, -32768), 32767)) <= 0.51);
        }
        free(have);
    }
}

/* ---- Subtitles ---- */

static int make_timed(void **state)
{
    (void)state;
    book.timed = true;
    for (int i = 0; i < MOST_SECTIONS; i++) {
        sections[i] = (struct section){.chapter = (size_t)i, .end = SECTION_CHAPTER};
    }
    return 0;
}

static int end_timed(void **state)
{
    (void)state;
    book.timed = false;
    return 0;
}

/* Each begins when it is to be heard, and may last to the next one. */
static void subtitles_stand_in_their_slots(void **state)
{
    static int16_t steps[3][MOST_SAMPLES];
    const char *path = support_path("timed.raw");
    struct sink sink;
    (void)state;
    for (int i = 0; i < 3; i++) {
        make_section(i, EDGE, 7200, EDGE, steps[i]); /* a second */
        chapters[i].begin_s = i * 1.5 + 0.25;
        chapters[i].end_s = i * 1.5 + 0.5;
    }
    chapters[2].end_s = 4.25; /* behind the last one there is none */
    struct joiner j = begin(&sink, path, false, 3);
    join_all(&j);
    for (int i = 0; i < 3; i++) {
        want_silence(i ? RATE / 2 : RATE / 4);
        want(steps[i], RATE);
    }
    assert_true(j.n_late == 0 && j.n_hurried == 0 && j.most_late_s <= 0);
    assert_int_equal(sink.n_marks, 0);
    end(&j, &sink);
    sink_fini(&sink);
    file_is_wanted(path);
    /* In files of their own nothing stands in front of them. */
    j = begin(&sink, path, true, 3);
    join_all(&j);
    end(&j, &sink);
    assert_int_equal(sink.n_files, 3);
    sink_fini(&sink);
    for (int i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "timed-%04d.raw", i + 1);
        want(steps[i], RATE);
        file_is_wanted(support_path(name));
    }
    stop_at = 2;
    n_asked = 0;
    chapters[0].begin_s = 5;
    j = begin(&sink, path, false, 1);
    j.stop = stop_then;
    assert_int_equal(joiner_move(&j, NULL), UTTER_AGAIN);
    assert_int_equal(sink.n_samples, 4800);
    joiner_fini(&j);
    sink_fini(&sink);
}

/* What is too long is spoken faster, as far as that is allowed, and then what follows begins late. */
static void subtitles_are_hurried_and_late(void **state)
{
    static const struct {
        double begin_s[3], end_s, speed[3], fit;
        size_t n_late, n_hurried;
        double late_s;
    } cases[] = {
        {{0, 1, 2}, 2, {1, 1, 1.2}, 1.2, 0, 1, 0},
        {{0, 0.8, 1.8}, 3, {1.2, 1.2, 1}, 1.2, 0, 2, 0.071}, /* late by less than a tenth */
        {{0, 0.5, 1.5}, 3, {1.2, 1.2, 1}, 1.2, 2, 2, 0.34},
        {{0, 0.5, 1.5}, 3, {1, 1, 1}, 1, 2, 0, 0.5},
        {{0, 0.5, 0.9}, 9, {1.5, 1.5, 1}, 1.5, 2, 2, 0.44},
        {{0, 1.2, 1.2}, 9, {1, 1.5, 1}, 1.5, 1, 1, 0.67},
    };
    static int16_t steps[MOST_SAMPLES];
    struct sink sink;
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        double at_s = 0;
        for (int i = 0; i < 3; i++) {
            make_section(i, EDGE, 7200, EDGE, steps);
            chapters[i].begin_s = cases[k].begin_s[i];
            chapters[i].end_s = i == 2 ? cases[k].end_s : cases[k].begin_s[i];
        }
        struct joiner j = begin(&sink, support_path("late.raw"), false, 3);
        j.settings.fit = cases[k].fit;
        join_all(&j);
        for (int i = 0; i < 3; i++) {
            at_s = fmax(at_s, cases[k].begin_s[i]) + 1 / cases[k].speed[i];
        }
        assert_int_equal(j.n_late, cases[k].n_late);
        assert_int_equal(j.n_hurried, cases[k].n_hurried);
        assert_true(fabs(j.most_late_s - cases[k].late_s) < 0.06);
        assert_true(fabs((double)sink.n_samples / RATE - at_s) < 0.1);
        joiner_fini(&j);
        sink_fini(&sink);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quiet_ends_become_pauses),
        cmocka_unit_test(chapters_have_files_of_their_own),
        cmocka_unit_test(effects_are_of_all_that_is_written),
        cmocka_unit_test(it_stops_when_it_is_told),
        cmocka_unit_test(a_file_that_cannot_be_read_is_told),
        cmocka_unit_test(a_file_that_is_cut_is_told),
        cmocka_unit_test(whole_chapters_are_reached),
        cmocka_unit_test(a_tone_is_as_loud_as_defined),
        cmocka_unit_test(each_chapter_has_its_loudness),
        cmocka_unit_test_setup_teardown(subtitles_stand_in_their_slots, make_timed, end_timed),
        cmocka_unit_test_setup_teardown(subtitles_are_hurried_and_late, make_timed, end_timed),
    };
    return cmocka_run_group_tests_name("joiner", tests, make_store, NULL);
}
