/* SPDX-License-Identifier: Apache-2.0
 * Words with times -> JSON and subtitles: cues, lines, clocks and signs, whatever pieces the words come in. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/speak/times_file.h"

enum { RATE = 1000, MOST_WORDS = 64 };

/* ---- The reading ---- */

/* In front of all dialogues: a style for a picture of 1280 by 720. */
#define ASS_HEAD                                                                                       \
    "[Script Info]\n"                                                                                  \
    "ScriptType: v4.00+\n"                                                                             \
    "PlayResX: 1280\n"                                                                                 \
    "PlayResY: 720\n"                                                                                  \
    "WrapStyle: 2\n"                                                                                   \
    "\n"                                                                                               \
    "[V4+ Styles]\n"                                                                                   \
    "Format: Name, Fontname, Fontsize, PrimaryColour, SecondaryColour, OutlineColour, BackColour, "    \
    "Bold, Italic, Underline, StrikeOut, ScaleX, ScaleY, Spacing, Angle, BorderStyle, Outline, "       \
    "Shadow, Alignment, MarginL, MarginR, MarginV, Encoding\n"                                         \
    "Style: "                                                                                          \
    "Default,Sans,48,&H0000FFFF,&H00FFFFFF,&H00000000,&H64000000,0,0,0,0,100,100,0,0,1,2,0,2,40,40,"   \
    "40,1\n"                                                                                           \
    "\n"                                                                                               \
    "[Events]\n"                                                                                       \
    "Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"

static utter_word words[MOST_WORDS];
static size_t n_words;
static uint64_t told_first;
static size_t told_n;

const utter_word *__wrap_utter_reading_words(utter_reading *reading, uint64_t *first, size_t *n);

const utter_word *__wrap_utter_reading_words(utter_reading *reading, uint64_t *first, size_t *n)
{
    (void)reading;
    *first = told_first;
    *n = told_n;
    return words + told_first;
}

static bool is_letter(char c)
{
    return c && !strchr(" \t\r\n.,;:!?\"'()<>&{}\\", c);
}

/* The words of a text, one every step_ms, heard for heard_ms. Each | behind one is a pause of 100 ms more, and no part
 * of the text, which is given back. */
static const char *cut(const char *marked, uint64_t step_ms, uint64_t heard_ms)
{
    static char text[4096];
    uint64_t at_ms = 0;
    size_t n = 0;
    memset(words, 0, sizeof words);
    n_words = 0;
    for (const char *c = marked; *c; c++) {
        if (*c == '|') {
            at_ms += 100;
            continue;
        }
        text[n] = *c;
        /* What is of East Asia is a word by itself. */
        bool wide = (unsigned char)*c >= 0xe3 && strncmp(c, "\xe3\x80\x82", 3) != 0 &&
                    strncmp(c, "\xef", 1) != 0;
        if (wide) {
            words[n_words++] = (utter_word){
                .at = n, .bytes = 3, .start = at_ms, .end = at_ms + heard_ms, .certainty = 0.5F};
            at_ms += step_ms;
            memcpy(text + n, c, 3);
            c += 2;
            n += 2;
        } else if (is_letter(*c) && (unsigned char)*c < 0xe3 && (n == 0 || !is_letter(text[n - 1]))) {
            words[n_words] =
                (utter_word){.at = n, .start = at_ms, .end = at_ms + heard_ms, .certainty = 0.5F};
            while (is_letter(c[words[n_words].bytes]) && c[words[n_words].bytes] != '|') {
                words[n_words].bytes++;
            }
            n_words++;
            at_ms += step_ms;
        }
        n++;
    }
    text[n] = 0;
    return text;
}

/* ---- The file ---- */

static void open_file(struct times_file *t, const char *name, double speed)
{
    memset(t, 0, sizeof *t);
    assert_int_equal(times_file_open(t, support_path(name), RATE, speed), 0);
}

static char *finish(struct times_file *t, const char *name, bool approximate)
{
    size_t n;
    assert_int_equal(times_file_finish(t, approximate), 0);
    times_file_abort(t);
    char *made = support_read_file(support_path(name), &n);
    assert_non_null(made);
    return made;
}

/* What is made of it in steps: each tells so many words more, and again the last ones of those before. */
static char *write_file(const char *name, const char *text, size_t step, size_t behind)
{
    struct times_file t;
    open_file(&t, name, 1);
    times_file_text(&t, 0, strlen(text), text, strlen(text));
    for (size_t n = step; n < n_words + step; n += step) {
        size_t all = n < n_words ? n : n_words;
        told_first = all > behind ? all - behind : 0;
        told_n = all - told_first;
        times_file_note(&t, NULL, 1e9);
    }
    return finish(&t, name, false);
}

static void assert_written(const char *name, const char *text, const char *wanted)
{
    static const size_t steps[][2] = {{MOST_WORDS, MOST_WORDS}, {1, 1}, {1, 4}, {3, 5}, {7, 9}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        char *have = write_file(name, text, steps[i][0], steps[i][1]);
        if (strcmp(have, wanted) != 0) {
            print_message("%s, in steps of %zu:\n--- have\n%s\n--- wanted\n%s\n", name, steps[i][0],
                have, wanted);
            fail();
        }
        free(have);
    }
}

static void a_sentence_is_a_cue(void **state)
{
    (void)state;
    assert_written("a.srt",
        cut("Good morning. It is cold, and dark!\n\nWhy? \"So,\" she said.", 400, 300),
        "1\n"
        "00:00:00,000 --> 00:00:00,760\n"
        "Good morning.\n"
        "\n"
        "2\n"
        "00:00:00,800 --> 00:00:02,700\n"
        "It is cold, and dark!\n"
        "\n"
        "3\n"
        "00:00:02,800 --> 00:00:03,160\n"
        "Why?\n"
        "\n"
        "4\n"
        "00:00:03,200 --> 00:00:04,300\n"
        "\"So,\" she said.\n"
        "\n");
}

static void two_lines_are_about_equally_long(void **state)
{
    (void)state;
    assert_written("b.srt",
        cut("When the rain had gone over the hills, we went out to look at what it had done to the old "
            "garden wall. "
            "Nothing else mattered to anybody that day or the next",
            200, 150),
        "1\n"
        "00:00:00,000 --> 00:00:03,750\n"
        "When the rain had gone over the hills,\n"
        "we went out to look at what it had done to\n"
        "\n"
        "2\n"
        "00:00:03,800 --> 00:00:04,560\n"
        "the old garden wall.\n"
        "\n"
        "3\n"
        "00:00:04,600 --> 00:00:06,550\n"
        "Nothing else mattered to\n"
        "anybody that day or the next\n"
        "\n");
}

static void a_mark_in_front_of_all_is_shown(void **state)
{
    (void)state;
    assert_written("quote.srt", cut("\"Go\" home.", 300, 200),
        "1\n"
        "00:00:00,000 --> 00:00:00,900\n"
        "\"Go\" home.\n"
        "\n");
}

/* What does not fit goes back to a mark, where one stands in the second half. */
static void a_full_cue_ends_at_a_mark(void **state)
{
    (void)state;
    assert_written("mark.srt",
        cut("When the rain had at last gone over the hills beyond, we went out to look at what it had "
            "done",
            200, 150),
        "1\n"
        "00:00:00,000 --> 00:00:02,150\n"
        "When the rain had at last\n"
        "gone over the hills beyond,\n"
        "\n"
        "2\n"
        "00:00:02,200 --> 00:00:04,150\n"
        "we went out to look at what it had done\n"
        "\n");
}

static void a_pause_ends_a_cue(void **state)
{
    (void)state;
    /* 800 ms between two words, and 801. */
    assert_written("c.srt", cut("one||||||| two|||||||| three four", 300, 200),
        "1\n"
        "00:00:00,000 --> 00:00:01,200\n"
        "one two\n"
        "\n"
        "2\n"
        "00:00:02,100 --> 00:00:03,000\n"
        "three four\n"
        "\n");
}

static void a_cue_is_not_shown_for_long(void **state)
{
    (void)state;
    assert_written("d.srt", cut("one two, three four five six seven eight nine ten eleven", 1000, 700),
        "1\n"
        "00:00:00,000 --> 00:00:06,700\n"
        "one two, three four five six seven\n"
        "\n"
        "2\n"
        "00:00:07,000 --> 00:00:10,700\n"
        "eight nine ten eleven\n"
        "\n");
    assert_written("e.srt", cut("one two three four five six seven eight", 1000, 1000),
        "1\n"
        "00:00:00,000 --> 00:00:07,000\n"
        "one two three four five six seven\n"
        "\n"
        "2\n"
        "00:00:07,000 --> 00:00:08,000\n"
        "eight\n"
        "\n");
    assert_written("f.srt", cut("one two three four five six seven eight", 1001, 1000),
        "1\n"
        "00:00:00,000 --> 00:00:06,005\n"
        "one two three four five six\n"
        "\n"
        "2\n"
        "00:00:06,006 --> 00:00:08,007\n"
        "seven eight\n"
        "\n");
}

static void a_short_cue_is_shown_for_long_enough(void **state)
{
    (void)state;
    assert_written("g.srt", cut("Yes. No. Well||||||||. So.", 300, 200),
        "1\n"
        "00:00:00,000 --> 00:00:00,260\n"
        "Yes.\n"
        "\n"
        "2\n"
        "00:00:00,300 --> 00:00:00,560\n"
        "No.\n"
        "\n"
        "3\n"
        "00:00:00,600 --> 00:00:01,500\n"
        "Well.\n"
        "\n"
        "4\n"
        "00:00:01,700 --> 00:00:02,600\n"
        "So.\n"
        "\n");
}

static void characters_of_east_asia_are_wide(void **state)
{
    (void)state;
    assert_written("h.srt",
        cut("\xe4\xbb\x8a\xe5\xa4\xa9\xe5\xa4\xa9\xe6\xb0\x94\xe3\x80\x82\xe5\xbe\x88\xe5\xa5\xbd\xef"
            "\xbc\x8c\xe6\x98\xaf"
            "\xe5\x90\x97\xef\xbc\x9f\xe5\xa5\xbd\xef\xbc\x81\xe6\x98\xaf",
            200, 150),
        "1\n"
        "00:00:00,000 --> 00:00:00,760\n"
        "\u4eca\u5929\u5929\u6c14\u3002\n"
        "\n"
        "2\n"
        "00:00:00,800 --> 00:00:01,560\n"
        "\u5f88\u597d\uff0c\u662f\u5417\uff1f\n"
        "\n"
        "3\n"
        "00:00:01,600 --> 00:00:01,760\n"
        "\u597d\uff01\n"
        "\n"
        "4\n"
        "00:00:01,800 --> 00:00:02,700\n"
        "\u662f\n"
        "\n");
}

static void a_line_ends_behind_a_wide_mark(void **state)
{
    (void)state;
    /* A line ends behind a mark where both fit, whatever is longer. */
    char text[256] = "";
    for (int i = 0; i < 26; i++) {
        strcat(text, i == 11 ? "\xe6\xb0\x94\xef\xbc\x8c" : "\xe5\xa4\xa9");
    }
    assert_written("i.srt", cut(text, 100, 90),
        "1\n"
        "00:00:00,000 --> 00:00:02,590\n"
        "\u5929\u5929\u5929\u5929\u5929\u5929\u5929\u5929\u5929\u5929\u5929\u6c14\uff0c\n"
        "\u5929\u5929\u5929\u5929\u5929\u5929\u5929\u5929\u5929\u5929\u5929\u5929\u5929\u5929\n"
        "\n");
    for (int i = 0; i < 18; i++) {
        strcat(text, "\xe5\xa5\xbd");
    }
    assert_written("j.srt", cut(text, 100, 90),
        "1\n"
        "00:00:00,000 --> 00:00:04,090\n"
        "\u5929\u5929\u5929\u5929\u5929\u5929\u5929\u5929\u5929\u5929\u5929\u6c14\uff0c\u5929\u5929"
        "\u5929\u5929\u5929\u5929\u5929\u5929\n"
        "\u5929\u5929\u5929\u5929\u5929\u5929\u597d\u597d\u597d\u597d\u597d\u597d\u597d\u597d\u597d"
        "\u597d\u597d\u597d\u597d\u597d\u597d\n"
        "\n"
        "2\n"
        "00:00:04,100 --> 00:00:05,000\n"
        "\u597d\u597d\u597d\n"
        "\n");
    /* Quotes that open go with what follows, those that close do not. */
    assert_written("k.srt",
        cut("\xe4\xbb\x96\xe8\xaf\xb4\xef\xbc\x9a\xe3\x80\x8c\xe5\xa5\xbd\xe3\x80\x8d\xe3\x80\x82\xe3"
            "\x80"
            "\x8c\xe6\x98\xaf\xe3\x80\x8d",
            1000, 900),
        "1\n"
        "00:00:00,000 --> 00:00:04,900\n"
        "\u4ed6\u8bf4\uff1a\u300c\u597d\u300d\u3002\n"
        "\n"
        "2\n"
        "00:00:05,000 --> 00:00:07,900\n"
        "\u300c\u662f\u300d\n"
        "\n");
}

static void players_mark_the_word_that_is_heard(void **state)
{
    (void)state;
    assert_written("a.vtt", cut("Fish & chips, <now>. \"Go\" (then) home.", 400, 300),
        "WEBVTT\n"
        "\n"
        "00:00:00.000 --> 00:00:01.100\n"
        "Fish &amp; <00:00:00.400>chips, <00:00:00.800>&lt;now&gt;.\n"
        "\n"
        "00:00:01.200 --> 00:00:02.300\n"
        "\"Go\" <00:00:01.600>(then) <00:00:02.000>home.\n"
        "\n");
    assert_written("a.ass",
        cut("A {b} c\\d. When the rain had gone over the hills, we went out to look at what it had "
            "done.",
            401, 300),
        ASS_HEAD
        "Dialogue: 0,0:00:00.00,0:00:01.50,Default,,0,0,0,,{\\k40}A {\\k40}(b) {\\k40}c{\\k30}/d.\n"
        "Dialogue: 0,0:00:01.60,0:00:08.32,Default,,0,0,0,,{\\k40}When {\\k41}the {\\k40}rain "
        "{\\k40}had {\\k40}gone {\\k40}over {\\k40}the {\\k40}hills,\\N{\\k40}we {\\k40}went "
        "{\\k41}out {\\k40}to {\\k40}look {\\k40}at {\\k40}what {\\k40}it {\\k30}had\n"
        "Dialogue: 0,0:00:08.42,0:00:09.32,Default,,0,0,0,,{\\k90}done.\n");
}

static void clocks_go_beyond_an_hour(void **state)
{
    (void)state;
    assert_written("l.vtt", cut("One. Two.", 3723456, 300),
        "WEBVTT\n"
        "\n"
        "00:00:00.000 --> 00:00:00.900\n"
        "One.\n"
        "\n"
        "01:02:03.456 --> 01:02:04.356\n"
        "Two.\n"
        "\n");
    assert_written("l.ass", cut("One. Two.", 3723456, 300),
        ASS_HEAD "Dialogue: 0,0:00:00.00,0:00:00.90,Default,,0,0,0,,{\\k90}One.\n"
                 "Dialogue: 0,1:02:03.46,1:02:04.36,Default,,0,0,0,,{\\k90}Two.\n");
    assert_written("l.srt", cut("One. Two.", 360000007, 300),
        "1\n"
        "00:00:00,000 --> 00:00:00,900\n"
        "One.\n"
        "\n"
        "2\n"
        "100:00:00,007 --> 100:00:00,907\n"
        "Two.\n"
        "\n");
}

/* Who listens hears the piece a second time: what was shown of it is over. */
static void a_piece_that_is_said_again_begins_a_cue(void **state)
{
    (void)state;
    struct times_file t;
    const char *text = cut("One two. Three four five. Six", 400, 300);
    open_file(&t, "again.srt", 1);
    times_file_text(&t, 0, strlen(text), text, strlen(text));
    times_file_piece(&t, 9);
    told_first = 0;
    told_n = 4;
    times_file_note(&t, NULL, 1e9);
    memmove(words + 6, words + 4, 2 * sizeof *words);
    memcpy(words + 4, words + 2, 2 * sizeof *words);
    for (size_t i = 4; i < 8; i++) {
        words[i].start = 400 * i;
        words[i].end = 400 * i + 300;
    }
    told_first = 3;
    told_n = 5;
    times_file_note(&t, NULL, 1e9);
    char *have = finish(&t, "again.srt", false);
    assert_string_equal(have, "1\n"
                              "00:00:00,000 --> 00:00:00,760\n"
                              "One two.\n"
                              "\n"
                              "2\n"
                              "00:00:00,800 --> 00:00:01,560\n"
                              "Three four\n"
                              "\n"
                              "3\n"
                              "00:00:01,600 --> 00:00:02,700\n"
                              "Three four five.\n"
                              "\n"
                              "4\n"
                              "00:00:02,800 --> 00:00:03,700\n"
                              "Six\n"
                              "\n");
    free(have);
}

/* Seconds are those of the sound as it leaves, and what is not written yet waits. */
static void words_wait_for_their_sound(void **state)
{
    (void)state;
    struct times_file t;
    const char *text = cut("One. Two. Three. Four.", 1000, 600);
    open_file(&t, "wait.json", 2);
    assert_true(t.scale == 0.0005);
    times_file_text(&t, 0, strlen(text), text, strlen(text));
    told_first = 0;
    told_n = 4;
    for (size_t i = 0; i <= 4; i++) {
        times_file_note(&t, NULL, 0.5 * (double)i); /* words begin at 0, 0.5, 1 and 1.5 */
        assert_int_equal(t.n_items, 0);             /* they are told again, and may change */
    }
    told_first = 4;
    told_n = 0;
    for (size_t i = 0; i <= 3; i++) {
        times_file_note(&t, NULL, 0.5 * (double)i);
        assert_int_equal(t.n_items, i);
    }
    times_file_note(&t, NULL, 1.51);
    assert_int_equal(t.n_items, 4);
    assert_int_equal(t.n, 1); /* by which the next begins */
    char *have = finish(&t, "wait.json", true);
    assert_string_equal(have,
        "{\"words\":[\n"
        "{\"text\":\"One\",\"at\":0,\"bytes\":3,\"start_s\":0.000,\"end_s\":0.300,\"certainty\":0.50,"
        "\"skipped\":false,\"final\":false},\n"
        "{\"text\":\"Two\",\"at\":5,\"bytes\":3,\"start_s\":0.500,\"end_s\":0.800,\"certainty\":0.50,"
        "\"skipped\":false,\"final\":false},\n"
        "{\"text\":\"Three\",\"at\":10,\"bytes\":5,\"start_s\":1.000,\"end_s\":1.300,\"certainty\":0."
        "50,\"skipped\":false,\"final\":false},\n"
        "{\"text\":\"Four\",\"at\":17,\"bytes\":4,\"start_s\":1.500,\"end_s\":1.800,\"certainty\":0.50,"
        "\"skipped\":false,\"final\":false}],\"approximate\":true}\n");
    free(have);
}

static void of_sound_that_is_not_written_there_are_no_words(void **state)
{
    (void)state;
    struct times_file t;
    size_t n;
    const char *text = cut("One. Two. Three. Four.", 1000, 600);
    open_file(&t, "cut.srt", 1);
    times_file_text(&t, 0, strlen(text), text, strlen(text));
    told_first = 0;
    told_n = 4;
    times_file_note(&t, NULL, 1e9);
    times_file_cut(&t, 2.0001);
    assert_int_equal(t.n, 3);
    times_file_cut(&t, 2);
    assert_int_equal(t.n, 2);
    char *have = finish(&t, "cut.srt", false);
    assert_string_equal(have, "1\n"
                              "00:00:00,000 --> 00:00:00,900\n"
                              "One.\n"
                              "\n"
                              "2\n"
                              "00:00:01,000 --> 00:00:01,900\n"
                              "Two.\n"
                              "\n");
    free(have);
    /* A file that was given up is not there. */
    open_file(&t, "given-up.vtt", 1);
    times_file_abort(&t);
    assert_null(support_read_file(support_path("given-up.vtt"), &n));
    times_file_abort(&t);
}

/* A text of any length: what is done with is forgotten. */
static void a_long_text_is_not_kept(void **state)
{
    (void)state;
    struct times_file t;
    char text[64], wanted[128], *at, *have;
    open_file(&t, "long.srt", 1);
    memset(words, 0, sizeof words);
    for (uint64_t i = 0; i < MOST_WORDS; i++) {
        int n = snprintf(text, sizeof text, "Word%04d. ", (int)i);
        times_file_text(&t, (uint64_t)n * i, (uint64_t)n, text, (size_t)n);
        times_file_piece(&t, (uint64_t)n * i);
        words[i] =
            (utter_word){.at = (uint64_t)n * i, .bytes = 8, .start = 1000 * i, .end = 1000 * i + 950};
        told_first = i;
        told_n = 1;
        times_file_note(&t, NULL, 1e9);
        assert_true(t.n <= 4 && t.written.n <= 64);
    }
    have = at = finish(&t, "long.srt", false);
    for (int i = 0; i < MOST_WORDS; i++) {
        snprintf(wanted, sizeof wanted, "%d\n00:%02d:%02d,000 --> 00:%02d:%02d,950\nWord%04d.\n\n",
            i + 1, i / 60, i % 60, i / 60, i % 60, i);
        assert_memory_equal(at, wanted, strlen(wanted));
        at += strlen(wanted);
    }
    free(have);
}

static void the_kind_is_by_the_name(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool known;
        enum times_kind kind;
    } names[] = {{"-", true, TIMES_JSON}, {"a.json", true, TIMES_JSON}, {"a.srt", true, TIMES_SRT},
        {"a.b.VTT", true, TIMES_VTT}, {".ass", true, TIMES_ASS}, {"a", false, TIMES_JSON},
        {"a.txt", false, TIMES_JSON}, {"srt", false, TIMES_JSON}, {"a.srt.txt", false, TIMES_JSON}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        enum times_kind kind = TIMES_ASS;
        assert_int_equal(times_kind_of(names[i].name, &kind), names[i].known);
        assert_int_equal(kind, names[i].kind);
    }
}

static void words_are_told_as_json(void **state)
{
    (void)state;
    assert_written("a.json", cut("Good \"morning\".\nYes", 400, 301),
        "{\"words\":[\n"
        "{\"text\":\"Good\",\"at\":0,\"bytes\":4,\"start_s\":0.000,\"end_s\":0.301,\"certainty\":0.50,"
        "\"skipped\":false,\"final\":false},\n"
        "{\"text\":\"morning\",\"at\":6,\"bytes\":7,\"start_s\":0.400,\"end_s\":0.701,\"certainty\":0."
        "50,\"skipped\":false,\"final\":false},\n"
        "{\"text\":\"Yes\",\"at\":16,\"bytes\":3,\"start_s\":0.800,\"end_s\":1.101,\"certainty\":0.50,"
        "\"skipped\":false,\"final\":false}],\"approximate\":false}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sentence_is_a_cue),
        cmocka_unit_test(two_lines_are_about_equally_long),
        cmocka_unit_test(a_mark_in_front_of_all_is_shown),
        cmocka_unit_test(a_full_cue_ends_at_a_mark),
        cmocka_unit_test(a_pause_ends_a_cue),
        cmocka_unit_test(a_cue_is_not_shown_for_long),
        cmocka_unit_test(a_short_cue_is_shown_for_long_enough),
        cmocka_unit_test(characters_of_east_asia_are_wide),
        cmocka_unit_test(a_line_ends_behind_a_wide_mark),
        cmocka_unit_test(players_mark_the_word_that_is_heard),
        cmocka_unit_test(clocks_go_beyond_an_hour),
        cmocka_unit_test(a_piece_that_is_said_again_begins_a_cue),
        cmocka_unit_test(words_wait_for_their_sound),
        cmocka_unit_test(of_sound_that_is_not_written_there_are_no_words),
        cmocka_unit_test(a_long_text_is_not_kept),
        cmocka_unit_test(the_kind_is_by_the_name),
        cmocka_unit_test(words_are_told_as_json),
    };
    return cmocka_run_group_tests_name("times", tests, NULL, NULL);
}
