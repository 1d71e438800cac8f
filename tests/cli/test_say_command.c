/* SPDX-License-Identifier: Apache-2.0
 * utter say, as people type it: with how many lanes a model is opened, what the files of lines are called, text that is
 * only printed, text that arrives, and signals and failures in the middle. */
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>

#include "cli/speak/saying.h"
#include "cli/speak/text_source.h"
#include "tests/cli/typed.h"

#define ON_CPU " -m build/checkpoints/eos-first --threads 1 --device cpu "
#define LONG "They looked at each other for a long, long while, and said not one word of it. "

/* ---- The library ---- */

static int n_lanes; /* that were asked for */

utter_status __real_utter_model_open(
    utter_model **model, const char *path, const utter_model_options *options, utter_error *error);
utter_status __wrap_utter_model_open(
    utter_model **model, const char *path, const utter_model_options *options, utter_error *error);

utter_status __wrap_utter_model_open(
    utter_model **model, const char *path, const utter_model_options *options, utter_error *error)
{
    n_lanes = options->n_lanes;
    return __real_utter_model_open(model, path, options, error);
}

/* Standard input is this file. */
static int run_with_input(unsigned command, const char *words, const char *path)
{
    int input = dup(0), file = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(input >= 0 && file >= 0);
    dup2(file, 0);
    close(file);
    int code = typed_run(command, words);
    dup2(input, 0);
    close(input);
    return code;
}

static void put(const char *name, const char *text)
{
    support_write_file(support_path(name), text, strlen(text));
}

/* ---- Lanes ---- */

static void what_is_heard_or_short_takes_one_lane(void **state)
{
    (void)state;
    char text[256];
    memset(text, 'a', sizeof text);
    text[4] = ' ';
    text[180] = 0;
    put("short", text);
    text[180] = '.';
    text[181] = 0;
    put("long", text);
    static const struct {
        const char *words;
        int lanes; /* 0: as many as suit the device */
    } rows[] = {
        {"-o @a.wav -f @short", 1},
        {"-o @a.wav -f @long", 0},
        {"-o @a.wav --trace @t -f @long", 1},
        {"-o @a.wav --lanes 3 -f @short", 3},
        {"-o @a.wav Hi.", 1},
        {"--format wav -o @a.wav -f @long", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char words[512];
        n_lanes = -1;
        snprintf(words, sizeof words, "-q --retries 0 --max-frames 2" ON_CPU "%s", rows[i].words);
        typed_run(COMMAND_SAY, words);
        if (n_lanes != rows[i].lanes) {
            fail_msg("%s: %d: %s", rows[i].words, n_lanes, typed_said);
        }
    }
    /* How much a pipe will bring nobody knows; what goes into one is heard. */
    int ends[2], before = dup(0);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "Hi.", 3), 3);
    close(ends[1]);
    dup2(ends[0], 0);
    close(ends[0]);
    int code = typed_run(COMMAND_SAY, "-q -o @a.wav" ON_CPU "-");
    dup2(before, 0);
    close(before);
    assert_int_equal(code, 0);
    assert_int_equal(n_lanes, 0);
    assert_int_equal(pipe(ends), 0);
    before = dup(1);
    typed_parse(COMMAND_SAY, "-q --max-frames 1 -o -" ON_CPU "-f @long");
    fflush(stdout);
    dup2(ends[1], 1);
    code = typed.command->run(&typed);
    dup2(before, 1);
    close(before);
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(n_lanes, 1);
    assert_int_equal(code, 0); /* of a short text it was asked for */
}

/* ---- Lines ---- */

static void files_of_lines_have_numbers(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"@out.wav", "out-0002.wav"},
        {"@a.b/out.wav", "a.b/out-0002.wav"},
        {"@a.b/out", "a.b/out-0002"},
        {"@a.b/.wav", "a.b/.wav-0002"},
        {"@two.dots.flac", "two.dots-0002.flac"},
    };
    mkdir(support_path("a.b"), 0700);
    put("lines", "\nHi.\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char words[256];
        snprintf(words, sizeof words, "-q --lines -f @lines%s -o %s" ON_CPU,
            strchr(rows[i][1], '.') && strstr(rows[i][1], "-0002.") ? "" : " --format wav", rows[i][0]);
        assert_int_equal(typed_run(COMMAND_SAY, words), 0);
        assert_int_equal(unlink(support_path(rows[i][1])), 0);
    }
    char before[PATH_MAX], words[3 * PATH_MAX];
    assert_non_null(getcwd(before, sizeof before));
    snprintf(words, sizeof words,
        "-q --lines -f @lines --format wav --threads 1 --device cpu -m "
        "%.2000s/build/checkpoints/eos-first",
        before);
    assert_int_equal(chdir(support_folder()), 0);
    int code = typed_run(COMMAND_SAY, words);
    assert_int_equal(chdir(before), 0);
    assert_int_equal(code, 0);
    assert_int_equal(unlink(support_path("utter-0002.wav")), 0);
    /* A name of 4,090 bytes has room for its number, and no longer one. */
    for (int more = 0; more < 2; more++) {
        char name[PATH_MAX];
        size_t n = (size_t)(PATH_MAX - 6 + more);
        memset(name, 'n', n);
        name[n] = 0;
        snprintf(words, sizeof words, "-q --lines -f @lines --format wav -o %s" ON_CPU, name);
        assert_int_equal(typed_run(COMMAND_SAY, words), more ? 1 : 2);
        assert_int_equal(strstr(typed_said, ": the name is too long\n") != NULL, more);
    }
    /* What is no sound is not replaced, whatever the number. */
    put("out-0002.wav", "a text");
    assert_int_equal(typed_run(COMMAND_SAY, "-q --lines -f @lines -o @out.wav" ON_CPU), 1);
    assert_string_equal(typed_said,
        typed_in_folder(
            "utter: line 2: say: @out-0002.wav holds a text, which would be lost (choose another name, "
            "or remove it)\n"));
    /* A machine that fails fails for all: the rest is not tried. */
    put("lines", "Hi.\nHo.\n");
    assert_int_equal(typed_run(COMMAND_SAY, "-q --lines -f @lines -o @no/out.wav" ON_CPU), 2);
    assert_string_equal(typed_said, typed_in_folder("utter: line 1: @no/out-0001.wav: cannot create: "
                                                    "No such file or directory (check the name)\n"));
}

/* ---- Text alone ---- */

static void a_text_may_be_printed_as_it_would_be_spoken(void **state)
{
    (void)state;
    put("lexicon", "Hello = Hullo\n");
    put("text", "Hello 12 there.");
    typed_assert(COMMAND_SAY, "--print-text Hello there.", 0, "Hello there.\n", "");
    typed_assert(
        COMMAND_SAY, "--print-text -l english --spell-out -f @text", 0, "Hello twelve there.\n", "");
    typed_assert(COMMAND_SAY, "--print-text --lexicon @lexicon -f @text", 0, "Hullo 12 there.\n", "");
    typed_assert(
        COMMAND_SAY, "--print-text -f @none", 1, "", "utter: @none: No such file or directory\n");
    typed_assert(COMMAND_SAY, "--print-text --lexicon @none Hi.", 1, "",
        "utter: @none: No such file or directory\n");
    assert_int_equal(typed_run(COMMAND_SAY, "--print-text --markup ssml <speak>Hi."), 1);
    assert_string_equal(typed_printed, "");
    /* What is left out is told, unless nobody wants to know. */
    assert_int_equal(
        typed_run(COMMAND_SAY, "--print-text --markup ssml <speak><audio/>Hi.</speak>"), 0);
    assert_int_equal(strncmp(typed_said, "utter: note: ", 13), 0);
    assert_int_equal(
        typed_run(COMMAND_SAY, "-q --print-text --markup ssml <speak><audio/>Hi.</speak>"), 0);
    assert_string_equal(typed_said, "");
}

/* ---- Text that arrives ---- */

static void who_sends_something_is_heard(void **state)
{
    (void)state;
    struct text_source source;
    static const char *const sent[] = {"text", "text", NULL, NULL};
    put("text", "Hello there.");
    assert_int_equal(
        run_with_input(COMMAND_TOKENS, "-m build/checkpoints/eos-first", support_path("text")), 0);
    assert_string_equal(typed_printed, "709 293 78 261 305 13\n");
    for (size_t i = 0; i < 4; i++) { /* a file, a pipe, a device, nothing */
        const struct command say = {.name = "say"};
        const struct invocation nothing = {.command = &say};
        int ends[2], before = dup(0);
        assert_int_equal(pipe(ends), 0);
        int from = i == 0   ? open(support_path("text"), O_RDONLY)
                   : i == 1 ? dup(ends[0])
                            : open("/dev/null", O_RDONLY);
        dup2(from, 0);
        close(from);
        heard_begin();
        if (i == 3) {
            close(0);
        }
        int code = text_source_open(&source, &nothing);
        dup2(before, 0);
        heard_assert(sent[i] ? "" : "utter: say: no text (give it, or - to read standard input)");
        close(before);
        close(ends[0]);
        close(ends[1]);
        assert_int_equal(code, sent[i] == NULL);
        assert_int_equal(source.descriptor, sent[i] ? 0 : -1);
    }
    /* Standard streams are not the source's to close; a signal is no end. */
    for (int i = 0; i < 3; i++) {
        source.descriptor = i;
        text_source_close(&source);
        assert_int_equal(source.descriptor, -1);
        assert_true(fcntl(i, F_GETFD) >= 0);
    }
    char piece[16];
    size_t n;
    source.descriptor = open(support_path("text"), O_RDONLY | O_CLOEXEC);
    support_fail_read_at(1);
    support_fail_with(EINTR);
    assert_int_equal(text_source_read(&source, piece, sizeof piece, &n), 0);
    assert_true(support_failed());
    support_fail_off();
    assert_int_equal(n, 12);
    assert_memory_equal(piece, "Hello there.", 12);
    int kept = source.descriptor;
    errno = EINTR; /* of that read, which is over */
    assert_int_equal(text_source_read(&source, piece, sizeof piece, &n), 0);
    assert_int_equal(n, 0);
    assert_true(fcntl(kept, F_GETFD) < 0);
}

/* 256 MiB, and a byte more. */
static void a_text_has_a_bound(void **state)
{
    (void)state;
    enum { MOST = 1 << 28 };
    if (SUPPORT_SANITIZED) {
        skip();
    }
    for (int more = 0; more < 2; more++) {
        struct text_source source = {.name = "it"};
        put("bound", "");
        assert_int_equal(truncate(support_path("bound"), MOST + more), 0);
        source.descriptor = open(support_path("bound"), O_RDONLY | O_CLOEXEC);
        heard_begin();
        int code = text_source_read_all(&source);
        heard_assert(more ? "utter: it: more than 256 MB of text" : "");
        assert_int_equal(code, more);
        free(source.text);
        text_source_close(&source);
    }
    unlink(support_path("bound"));
}

static void words_that_memory_lacks_for_are_told(void **state)
{
    (void)state;
    struct text_source source;
    typed_parse(COMMAND_SAY, "Hello there.");
    support_fail_malloc_at(1);
    heard_begin();
    int code = text_source_open(&source, &typed);
    heard_assert("utter: out of memory");
    assert_int_equal(code, 2);
    source = (struct text_source){.name = "it"};
    source.descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
    support_fail_malloc_at(1);
    heard_begin();
    code = text_source_read_all(&source);
    support_fail_off();
    heard_assert("utter: out of memory");
    assert_int_equal(code, 2);
    text_source_close(&source);
}

/* ---- A signal ---- */

static void interrupt(void)
{
    raise(SIGINT);
}

/* While the sound is written, behind its head. */
static void say_until_a_signal(void)
{
    typed_parse(COMMAND_SAY, "-q -o @stopped.wav -f @sentences" ON_CPU);
    support_happens_at(SUPPORT_WRITE, 2, interrupt);
    _exit(command_say(&typed));
}

static void say_lines_until_a_signal(void)
{
    typed_parse(COMMAND_SAY, "-q --lines -f @lines -o @stopped.wav" ON_CPU);
    support_happens_at(SUPPORT_FSYNC, 1, interrupt);
    _exit(command_say(&typed));
}

static void a_signal_leaves_a_whole_file(void **state)
{
    (void)state;
    struct stat about;
    put("sentences", LONG LONG LONG LONG);
    fflush(stdout);
    heard_begin();
    int code = support_child_end(say_until_a_signal);
    heard_end();
    assert_int_equal(code, 128 + SIGINT);
    int there = stat(support_path("stopped.wav"), &about);
    assert_true(there != 0 || about.st_size > 44);
    /* Of lines the first, which was being completed. */
    put("lines", "Hi.\nHo.\nHa.\n");
    heard_begin();
    code = support_child_end(say_lines_until_a_signal);
    heard_end();
    assert_int_equal(code, 128 + SIGINT);
    assert_int_not_equal(access(support_path("stopped-0002.wav"), F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_heard_or_short_takes_one_lane),
        cmocka_unit_test(files_of_lines_have_numbers),
        cmocka_unit_test(a_text_may_be_printed_as_it_would_be_spoken),
        cmocka_unit_test(who_sends_something_is_heard),
        cmocka_unit_test(a_text_has_a_bound),
        cmocka_unit_test(words_that_memory_lacks_for_are_told),
        cmocka_unit_test(a_signal_leaves_a_whole_file),
    };
    return cmocka_run_group_tests_name("say_command", tests, typed_start, typed_end);
}
