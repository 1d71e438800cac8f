/* SPDX-License-Identifier: Apache-2.0
 * A text that is spoken from the command line, by small models that end as they were made to: what is written, what is
 * said of words that are missing and where they stand, and what the exit code is. */
#include "cli/speak/saying.h"

#include <limits.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "cli/model/checkpoint.h"
#include "cli/report.h"
#include "tests/cli/heard.h"

#define CHECKPOINTS "build/checkpoints/"

/* Three pieces, of which a model that ends at once says too little. */
#define ONE "The train left the old station at noon, and nobody in the town was told of it.\n"
#define TWO "They looked at each other for a long, long while, and said not one word of it.\n\n"
#define THREE "It was a warm day in the middle of the summer, and the river was quite still."

enum { FRAME = 1920 };

static struct {
    char name[64];
    utter_model *model;
} opened;

static int start(void **state)
{
    (void)state;
    return setenv("XDG_CACHE_HOME", support_folder(), 1);
}

static int end(void **state)
{
    (void)state;
    utter_model_close(&opened.model);
    return 0;
}

/* ---- A speech ---- */

static struct invocation typed;
static struct saying saying;
static char said[8192];

static void parse(unsigned command, const char *words)
{
    static char kept[8192];
    static char *arguments[32];
    int n = 0;
    size_t i = 0;
    while (command_table[i].bit != command) {
        assert_true(++i < n_commands);
    }
    snprintf(kept, sizeof kept, "%s", words);
    for (char *word = strtok(kept, " "); word; word = strtok(NULL, " ")) {
        arguments[n++] = word;
    }
    free(typed.words);
    assert_true(options_parse(&typed, &command_table[i], n, arguments));
}

/* Opens the speech of these options, -o sound apart. */
static int open_saying(const char *model, const char *options)
{
    char words[8192];
    utter_stream_options stream;
    utter_voice *voice;
    snprintf(
        words, sizeof words, "--device cpu --threads 1 -o %s %s", support_path("sound.wav"), options);
    parse(COMMAND_SAY, words);
    if (strcmp(model, opened.name) != 0) {
        char folder[PATH_MAX];
        utter_model_close(&opened.model);
        snprintf(opened.name, sizeof opened.name, "%s", model);
        snprintf(folder, sizeof folder, CHECKPOINTS "%s", model);
        assert_int_equal(checkpoint_open_folder(&opened.model, folder, &typed.settings, 1), 0);
    }
    assert_int_equal(checkpoint_stream_options(&stream, &voice, opened.model, &typed.settings), 0);
    unlink(support_path("sound.wav"));
    int code = saying_open(&saying, &typed.settings, opened.model, &stream);
    utter_voice_free(&voice);
    return code;
}

/* Speaks what was given, in pieces of so many bytes. */
static int go_on(const char *text, size_t piece)
{
    utter_status status = UTTER_OK;
    int code = 0;
    size_t n = strlen(text);
    for (size_t at = 0; at < n && code == 0; at += piece) {
        code = saying_give(&saying, text + at, n - at < piece ? n - at : piece, at + piece >= n);
    }
    while (code == 0 && status != UTTER_END) {
        code = saying_move(&saying, &status);
    }
    return code ? code : saying_finish(&saying);
}

/* The exit code. What is said on standard error is in `said`; what is printed, in the file "printed". */
static int speak(const char *model, const char *options, const char *text)
{
    int code = open_saying(model, options);
    heard_begin();
    printed_begin("printed");
    code = code ? code : go_on(text, SIZE_MAX / 2);
    free(printed_end("printed"));
    snprintf(said, sizeof said, "%s", heard_end());
    saying_close(&saying);
    return code;
}

/* Samples in the file; -1: there is none. */
static long samples_written(void)
{
    struct stat about;
    return stat(support_path("sound.wav"), &about) == 0 ? (about.st_size - 44) / 2 : -1;
}

/* ---- What is said of it ---- */

static void a_speech_ends_with_what_is_missing(void **state)
{
    (void)state;
    static const char many[] =
        "utter: note: line 1, byte 0, \"The train left the old station at noon, and ...\": words may "
        "be "
        "missing (it does not fit its text, 1 try)\n"
        "utter: note: line 2, byte 79, \"They looked at each other for a long, long w...\": words may "
        "be "
        "missing (it does not fit its text, 1 try)\n"
        "utter: note: line 4, byte 159, \"It was a warm day in the middle of the summe...\": words may "
        "be missing (it does not fit its text, 1 try)\n"
        "utter: 3 of 3 pieces of the text may lack words, the first at line 1, byte 0, \"The train "
        "left "
        "the old station at noon, and ...\"\n";
    static const char cut[] =
        "utter: the speech was cut after 3 frames, as --max-frames says, at line 1, byte 0, \"";
    const struct {
        const char *model, *options, *text;
        int code, frames; /* -1: not looked at */
        const char *said; /* as far as it goes */
    } rows[] = {
        {"eos-first", "", "Hi.", 0, 2, ""},
        {"eos-first", "--retries 0", ONE TWO THREE, EXIT_NOT_WHOLE, -1, many},
        {"eos-first", "--retries 0 --max-frames 50", ONE TWO THREE, EXIT_NOT_WHOLE, -1, many},
        {"eos-first", "--retries 0 -q", ONE TWO THREE, EXIT_NOT_WHOLE, -1, strstr(many, "utter: 3 of")},
        /* Of one piece there is one line. */
        {"eos-first", "--retries 0 --markup tags", "[rate:1.2]" THREE, EXIT_NOT_WHOLE, -1,
            "utter: words may be missing from the speech: it does not fit its text\n"},
        {"eos-first", "", " \n<speak>" THREE "</speak>", 0, 2,
            "utter: note: the text begins like SSML, and its tags are spoken (give --markup ssml)\n"},
        {"eos-first", "-q", "<speak>" THREE "</speak>", 0, 2, ""},
        {"eos-first", "--markup ssml", "<speak>Hi.</speak>", 0, 2, ""},
        {"loop", "--greedy --retries 0", "Hi.", EXIT_NOT_WHOLE, -1,
            "utter: the guard ended the speech: the same codes came over and over (--no-guard lets it "
            "go "
            "on)\n"},
        {"loop", "--greedy --retries 0 --no-guard --max-frames 3", "Hi.", 0, 3, ""},
        /* What was asked for is no news, unless there was more to say. */
        {"endless", "--max-frames 3", "Hi. \r\n\t ", 0, 3, ""},
        {"endless", "--max-frames 3 -q", ONE TWO THREE, EXIT_NOT_WHOLE, 3, cut},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int code = speak(rows[i].model, rows[i].options, rows[i].text);
        const char *wanted = rows[i].said;
        if (code != rows[i].code || strncmp(said, wanted, strlen(wanted)) != 0 ||
            (!wanted[0] && said[0])) {
            fail_msg("row %zu: %d: %s", i, code, said);
        }
        if (rows[i].frames >= 0) {
            assert_int_equal(samples_written(), FRAME * rows[i].frames);
        }
    }
}

/* The place of a piece is that of the text, however the text came. */
static void a_place_does_not_depend_on_how_the_text_came(void **state)
{
    (void)state;
    static const char text[] = " \n" ONE TWO THREE "\n";
    static const size_t pieces[] = {1, 7, 80, 4096};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        assert_int_equal(open_saying("eos-first", "--retries 0 -q"), 0);
        heard_begin();
        int code = go_on(text, pieces[i]);
        heard_assert("utter: 3 of 3 pieces of the text may lack words, the first at line 2, byte 2, "
                     "\"The train left the old station at noon, and ...\"");
        assert_int_equal(code, EXIT_NOT_WHOLE);
        assert_int_equal(saying.last.line, 5);
        assert_int_equal(saying.last.byte, 2 + strlen(ONE TWO));
        assert_string_equal(saying.last.words, "It was a warm day in the middle of the summe...");
        assert_int_equal(saying.n_given, strlen(text));
        assert_true(saying_waiting(&saying) <= 1);
        saying_close(&saying);
    }
}

/* ---- What is written ---- */

/* Who listens later does not hear what was said again. */
static void a_file_has_the_last_try_alone(void **state)
{
    (void)state;
    long tries[3];
    for (int i = 0; i < 3; i++) {
        char options[64];
        snprintf(options, sizeof options, "--greedy --retries %d -q", i);
        assert_int_equal(speak("loop", options, "Hi."), EXIT_NOT_WHOLE);
        tries[i] = samples_written();
    }
    assert_true(tries[0] > FRAME);
    assert_int_equal(tries[1], tries[0]);
    assert_int_equal(tries[2], tries[0]);
}

static void codes_times_and_trace_are_written_beside(void **state)
{
    (void)state;
    char options[4 * PATH_MAX];
    size_t n;
    snprintf(options, sizeof options, "--codes %s --times %s --trace %s", support_path("codes.json"),
        support_path("times.json"), support_path("trace.json"));
    assert_int_equal(speak("eos-first", options, "Hi."), 0);
    assert_string_equal(said, "");
    json_t *codes = json_load_file(support_path("codes.json"), 0, NULL),
           *times = json_load_file(support_path("times.json"), 0, NULL),
           *trace = json_load_file(support_path("trace.json"), 0, NULL);
    assert_true(codes && times && trace);
    assert_int_equal(json_array_size(json_object_get(codes, "codes")), 2);
    assert_string_equal(json_string_value(json_object_get(codes, "finish")), "eos");
    json_t *word = json_array_get(json_object_get(times, "words"), 0);
    assert_int_equal(json_array_size(json_object_get(times, "words")), 1);
    assert_string_equal(json_string_value(json_object_get(word, "text")), "Hi");
    assert_true(json_number_value(json_object_get(word, "end_s")) <= 0.16);
    assert_true(json_array_size(trace) > 6);
    json_decref(codes);
    json_decref(times);
    json_decref(trace);
    /* Of several pieces each has its own, one behind the other. */
    assert_int_equal(
        speak("eos-first", strcat(options, " --retries 0 -q"), ONE TWO THREE), EXIT_NOT_WHOLE);
    codes = json_load_file(support_path("codes.json"), 0, NULL);
    times = json_load_file(support_path("times.json"), 0, NULL);
    const json_t *words = json_object_get(times, "words");
    const size_t n_words = json_array_size(words);
    assert_int_equal(json_array_size(json_object_get(codes, "codes")), 6);
    assert_int_equal(n_words, 3 * 17);
    word = json_array_get(words, n_words - 1);
    assert_string_equal(json_string_value(json_object_get(word, "text")), "still");
    assert_int_equal(json_integer_value(json_object_get(word, "at")), strlen(ONE TWO THREE) - 6);
    json_decref(codes);
    json_decref(times);
    /* Neither is where nobody asked. */
    static const char *const names[] = {"codes.json", "times.json", "trace.json"};
    for (size_t i = 0; i < 3; i++) {
        unlink(support_path(names[i]));
    }
    assert_int_equal(speak("eos-first", "", "Hi."), 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_not_equal(access(support_path(names[i]), F_OK), 0);
    }
    /* What cannot be written is told before anything is spoken. */
    heard_begin();
    int code = open_saying("eos-first", "--codes /no/where/codes.json");
    assert_non_null(strstr(heard_end(), "/no/where/codes.json"));
    assert_int_equal(code, 2);
    saying_close(&saying);
    assert_int_equal(samples_written(), -1);
    char *text = support_read_file(support_path("printed"), &n);
    assert_int_equal(n, 0);
    free(text);
}

static void reports_tell_what_was_spoken(void **state)
{
    (void)state;
    static const char head[] = "finish       silence\nspeech       ",
                      counts[] = "\npieces       3, said again 3, not whole 3\nfirst sound  ";
    assert_int_equal(speak("eos-first", "--stats", "Hi."), 0);
    static const char plain[] = "finish       eos\nspeech       0.16 s, 2 frames\n"
                                "text         3 tokens, 13 prompt rows\nfirst sound  ";
    assert_int_equal(strncmp(said, plain, sizeof plain - 1), 0);
    assert_int_equal(
        speak("eos-first", "--stats --json --retries 1 -q", ONE TWO THREE), EXIT_NOT_WHOLE);
    assert_int_equal(strncmp(said, head, sizeof head - 1), 0);
    assert_non_null(strstr(said, counts));
    json_t *report = json_load_file(support_path("printed"), 0, NULL);
    assert_non_null(report);
    static const struct {
        const char *name;
        int value;
    } numbers[] = {{"pieces", 3}, {"retries", 3}, {"not_whole", 3}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        assert_int_equal(
            json_integer_value(json_object_get(report, numbers[i].name)), numbers[i].value);
    }
    double spoken = json_number_value(json_object_get(report, "seconds"));
    assert_true(spoken > 0.32 && samples_written() == (long)(24000 * spoken + 0.5));
    assert_string_equal(
        json_string_value(json_object_get(report, "output")), support_path("sound.wav"));
    assert_string_equal(json_string_value(json_object_get(report, "finish")), "silence");
    static const char *const times[] = {
        "first_sound_s", "prefill_s", "talker_s", "vocoder_s", "wall_s"};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        double took = json_number_value(json_object_get(report, times[i]));
        assert_true(took > 0 && took <= json_number_value(json_object_get(report, "wall_s")));
    }
    json_decref(report);
}

/* ---- A terminal ---- */

/* The last line of progress that says so: what of the text was spoken in per cent, and the seconds that are left. */
static void read_progress(const char *shown, double *part, int *left)
{
    double spoken, percent, speed;
    int minutes, seconds, n = 0;
    for (const char *at = shown; *at; at++) {
        if ((at == shown || !strchr("0123456789.", at[-1])) &&
            sscanf(at, "%lf s spoken, %lf %% of the text, %lf x real time, %d:%d left", &spoken,
                &percent, &speed, &minutes, &seconds) == 5) {
            assert_true(spoken > 0.1 && spoken < 1 && seconds >= 0 && seconds < 60);
            *part = percent;
            *left = 60 * minutes + seconds;
            n++;
        }
    }
    assert_true(n > 1);
}

static void a_terminal_shows_how_far_the_text_is(void **state)
{
    (void)state;
    static const char text[] = ONE TWO THREE;
    static const double began_s = 1000; /* ago */
    const double all = (double)strlen(text), parts[] = {strlen(ONE) / all, strlen(ONE TWO) / all};
    for (int is_quiet = 0; is_quiet < 2; is_quiet++) {
        utter_status status = UTTER_OK;
        assert_int_equal(open_saying("eos-first", is_quiet ? "--retries 0 -q" : "--retries 0"), 0);
        saying.total = strlen(text);
        saying.begin_s -= began_s;
        assert_int_equal(saying_give(&saying, text, strlen(text), true), 0);
        terminal_begin();
        while (status == UTTER_OK) {
            saying.told_s = 0;
            assert_int_equal(saying_move(&saying, &status), 0);
        }
        const char *shown = terminal_end();
        saying_close(&saying);
        if (is_quiet) {
            assert_string_equal(shown, "");
            continue;
        }
        double percent = 0;
        int left = 0;
        read_progress(shown, &percent, &left);
        /* In front of the second or third piece, of so long as it took up to there. */
        const double part = parts[percent > 50];
        assert_true(percent == (double)(int)(100 * part + 0.5));
        assert_true(left >= (int)(began_s / part - began_s));
        assert_true(left < 2 * (began_s / part - began_s));
    }
}

/* ---- What cannot be asked for ---- */

static void outputs_that_contradict_each_other_are_refused(void **state)
{
    (void)state;
    static const char two[] = "one file cannot take two of -o, --codes, --times and --trace";
    static const char dashes[] = "say: standard output can take one of -o -, --codes -, --times -, "
                                 "--trace - and --json";
    static const char lines[] =
        "say: --lines makes a file of sound for each line (no -o -, --codes, --times, --trace)";
    static const struct {
        const char *options, *why;
    } rows[] = {
        {"-o a.json --codes a.json", two},
        {"--codes a.json --times ./a.json", two},
        {"-o a.json --trace a.json", two},
        {"-o a.wav --codes b.json --times c.json --trace c.json", two},
        {"-o - --json", dashes},
        {"-o - --codes -", dashes},
        {"--codes - --trace -", dashes},
        {"--trace - --json", dashes},
        {"--codes - --times -", dashes},
        {"--lines --codes a.json", lines},
        {"--lines --times a.json", lines},
        {"--lines --trace a.json", lines},
        {"--lines -o -", lines},
        {"--times a.txt",
            "say: --times a.txt: the name says no kind of file (.json, .srt, .vtt, .ass)"},
        /* These can be, and the model is looked for. */
        {"-o a.wav --codes b.json --times c.json --trace d.json", "/no/where"},
        {"-o - --codes b.json", "/no/where"},
        {"--json", "/no/where"},
        {"--codes /dev/null --trace /dev/null", "/no/where"}, /* which takes all */
        {"--codes -", "/no/where"},
        {"--lines -o a.wav", "/no/where"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char words[512];
        snprintf(words, sizeof words, "-m /no/where %s text", rows[i].options);
        parse(COMMAND_SAY, words);
        heard_begin();
        int code = command_say(&typed);
        const char *why = heard_end();
        assert_int_equal(code, 1);
        if (!strstr(why, rows[i].why)) {
            fail_msg("%s: %s", rows[i].options, why);
        }
    }
}

/* ---- A file for each line ---- */

#define LONG THREE " " THREE " " THREE

static void each_line_has_its_file_and_the_worst_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int code;
        const char *made; /* a digit for each line that has a file */
    } rows[] = {
        {"Hi.\n\n \t\r\nHi.", 0, "14"},
        {"Hi.\n\xff\nHi.\n", 1, "13"},
        {LONG "\nHi.\n", EXIT_NOT_WHOLE, "12"},
        {"Hi.\n" LONG "\n", EXIT_NOT_WHOLE, "12"},
        {LONG "\n\xff\n", 1, "1"},
        {"\xff\n" LONG "\n", 1, "2"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char words[3 * PATH_MAX], name[64], made[16] = "";
        support_write_file(support_path("lines"), rows[i].text, strlen(rows[i].text));
        snprintf(words, sizeof words,
            "--device cpu --threads 1 -m " CHECKPOINTS "eos-first --retries 0 -q --lines -f %s -o %s",
            support_path("lines"), support_path("out.wav"));
        parse(COMMAND_SAY, words);
        heard_begin();
        int code = command_say(&typed);
        const char *why = heard_end();
        if (code != rows[i].code) {
            fail_msg("row %zu: %d: %s", i, code, why);
        }
        /* What is said is said of a line. */
        assert_int_equal(why[0] != 0, code != 0);
        assert_true(!why[0] || strncmp(why, "utter: line ", 12) == 0);
        for (int line = 1; line <= 5; line++) {
            snprintf(name, sizeof name, "out-%04d.wav", line);
            if (unlink(support_path(name)) == 0) {
                made[strlen(made)] = (char)('0' + line);
            }
        }
        assert_string_equal(made, rows[i].made);
    }
}

/* ---- A signal, which stays: the last ---- */

static void a_signal_leaves_what_was_spoken(void **state)
{
    (void)state;
    static const char text[] = ONE TWO THREE;
    utter_status status = UTTER_OK;
    assert_int_equal(open_saying("eos-first", "--retries 0 -q"), 0);
    assert_int_equal(saying_give(&saying, text, strlen(text), true), 0);
    assert_int_equal(saying_move(&saying, &status), 0);
    assert_int_equal(status, UTTER_OK);
    raise(SIGINT);
    while (status == UTTER_OK) {
        assert_int_equal(saying_move(&saying, &status), 0);
    }
    assert_int_equal(status, UTTER_END);
    heard_begin();
    int code = saying_finish(&saying);
    heard_end();
    assert_int_equal(code, 128 + SIGINT);
    saying_close(&saying);
    assert_true(samples_written() >= FRAME);
    /* And of nothing there is no file. */
    assert_int_equal(open_saying("eos-first", "-q"), 0);
    heard_begin();
    code = saying_finish(&saying);
    heard_assert("utter: interrupted before anything was spoken");
    assert_int_equal(code, 128 + SIGINT);
    saying_close(&saying);
    assert_int_equal(samples_written(), -1);
    free(typed.words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_speech_ends_with_what_is_missing),
        cmocka_unit_test(a_place_does_not_depend_on_how_the_text_came),
        cmocka_unit_test(a_file_has_the_last_try_alone),
        cmocka_unit_test(codes_times_and_trace_are_written_beside),
        cmocka_unit_test(reports_tell_what_was_spoken),
        cmocka_unit_test(a_terminal_shows_how_far_the_text_is),
        cmocka_unit_test(outputs_that_contradict_each_other_are_refused),
        cmocka_unit_test(each_line_has_its_file_and_the_worst_is_told),
        cmocka_unit_test(a_signal_leaves_what_was_spoken),
    };
    return cmocka_run_group_tests_name("saying", tests, start, end);
}
