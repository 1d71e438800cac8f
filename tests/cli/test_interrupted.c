/* SPDX-License-Identifier: Apache-2.0
 * Signals, posed: commands that may not watch for any, text that is waited for, what of it is read ahead, and how
 * long a speech goes on behind one. The reading and the clock are posed as well. */
#include <signal.h>
#include <time.h>

#include "cli/interrupt.h"
#include "cli/speak/saying.h"
#include "cli/speak/text_source.h"
#include "tests/cli/typed.h"

#define SPEAKER " -m build/checkpoints/eos-first --threads 1 --device cpu"
#define BASE " -m build/checkpoints/tiny06-base --threads 1 --device cpu"

/* ---- What is posed ---- */

static bool refuses;           /* to watch for signals */
static int came, comes_at;     /* the signal; at which read of the reading it does, 0: none */
static int polled, n_polled;   /* which descriptor was waited for last, and how often */
static bool poll_waits, ready; /* whether that was until there is something; whether there is */
static int64_t now_ns;
static int n_reads;
static size_t n_text; /* bytes that the reading was given */
static utter_status read_status;
static int most_reads; /* then the speech ends */

bool __wrap_interrupt_watch(utter_reading *reading);
int __wrap_interrupt_signal(void);
bool __wrap_interrupt_poll(int descriptor, bool wait);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
utter_status __wrap_utter_reading_text(
    utter_reading *reading, const char *text, size_t bytes, utter_error *error);
utter_status __wrap_utter_reading_finish(utter_reading *reading, utter_error *error);
utter_status __wrap_utter_reading_read(
    utter_reading *reading, float *pcm, size_t capacity, size_t *n, utter_error *error);

bool __wrap_interrupt_watch(utter_reading *reading)
{
    (void)reading;
    return !refuses;
}

int __wrap_interrupt_signal(void)
{
    return came;
}

bool __wrap_interrupt_poll(int descriptor, bool wait)
{
    polled = descriptor;
    poll_waits = wait;
    n_polled++;
    return ready;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
    (void)clock;
    *t = (struct timespec){now_ns / 1000000000, now_ns % 1000000000};
    return 0;
}

utter_status __wrap_utter_reading_text(
    utter_reading *reading, const char *text, size_t bytes, utter_error *error)
{
    assert_true(reading && text && error);
    n_text += bytes;
    return UTTER_OK;
}

utter_status __wrap_utter_reading_finish(utter_reading *reading, utter_error *error)
{
    assert_true(reading && error);
    return UTTER_OK;
}

/* Each takes ten milliseconds. */
utter_status __wrap_utter_reading_read(
    utter_reading *reading, float *pcm, size_t capacity, size_t *n, utter_error *error)
{
    assert_true(reading && error);
    now_ns += 10000000;
    if (++n_reads == comes_at) {
        came = SIGTERM;
    }
    memset(pcm, 0, capacity * sizeof *pcm);
    *n = capacity;
    return n_reads > most_reads ? UTTER_END : read_status;
}

static void pose(void)
{
    now_ns = 1000000000000;
    refuses = poll_waits = false;
    ready = true;
    came = comes_at = n_reads = n_polled = 0;
    n_text = 0;
    read_status = UTTER_OK;
    most_reads = 100;
}

static int run_with_input(const char *words, const char *path)
{
    int input = dup(0), file = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(input >= 0 && file >= 0);
    dup2(file, 0);
    close(file);
    int code = typed_run(COMMAND_SAY, words);
    dup2(input, 0);
    close(input);
    return code;
}

/* ---- Watching ---- */

static void without_a_handler_nothing_is_begun(void **state)
{
    (void)state;
    static const struct {
        unsigned command;
        const char *words;
    } rows[] = {
        {COMMAND_SAY, "-o @a.wav Hi." SPEAKER},
        {COMMAND_READ, "-q -o @a.wav @book.md" SPEAKER},
        {COMMAND_CODEC_DECODE, "@codes.json -o @a.wav" BASE},
        {COMMAND_CODEC_ENCODE, "@ref.wav -o @a.json" BASE},
        {COMMAND_CLONE, "@ref.wav -o @a.voice" BASE},
        {COMMAND_QUANTIZE, "--weights q8 -o @a.packed -m build/checkpoints/eos-first"},
        {COMMAND_PULL, "me/mine"},
        {COMMAND_JOB_SUBMIT, "@lines --queue @queue --results @results -m build/checkpoints/eos-first"},
        {COMMAND_JOB_WORK, "--queue @queue --results @results" SPEAKER},
    };
    pose();
    assert_int_equal(typed_run(COMMAND_CODEC_ENCODE, "@ref.wav -o @codes.json" BASE), 0);
    refuses = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        typed_assert(
            rows[i].command, rows[i].words, 2, "", "utter: the system refuses a signal handler\n");
        assert_int_not_equal(access(support_path("a.wav"), F_OK), 0);
    }
}

/* ---- Text ---- */

static void a_line_is_waited_for(void **state)
{
    (void)state;
    char *line;
    size_t n;
    pose();
    struct text_source source = {
        .name = "it", .descriptor = open(support_path("lines"), O_RDONLY | O_CLOEXEC)};
    assert_int_equal(text_source_line(&source, &line, &n), 0);
    assert_int_equal(n, 23);
    assert_int_equal(polled, source.descriptor);
    assert_true(poll_waits);
    assert_int_equal(n_polled, 1);
    free(source.text);
    text_source_close(&source);
    /* A signal comes first: before there is something to read, or with it. */
    for (int i = 0; i < 2; i++) {
        ready = i;
        came = SIGTERM;
        source = (struct text_source){
            .name = "it", .descriptor = open(support_path("lines"), O_RDONLY | O_CLOEXEC)};
        assert_int_equal(text_source_line(&source, &line, &n), 0);
        assert_null(line);
        assert_null(source.text);
        text_source_close(&source);
    }
}

/* While sound is made 64 KiB are read ahead, and what comes with the last piece. */
static void text_is_read_ahead_so_far(void **state)
{
    (void)state;
    enum { PIECE = 4096, AHEAD = 1 << 16 };
    pose();
    assert_int_equal(run_with_input("-q -o @a.wav -" SPEAKER, "/dev/zero"), 0);
    assert_int_equal(n_text, AHEAD + PIECE);
    assert_int_equal(polled, 0);
    assert_false(poll_waits);
    /* Where there is nothing to speak it goes on, and waits; but not for ever. */
    pose();
    read_status = UTTER_AGAIN;
    most_reads = 1000000;
    if (SUPPORT_SANITIZED) {
        return;
    }
    assert_int_equal(run_with_input("-q -o @a.wav -" SPEAKER, "/dev/zero"), 1);
    assert_string_equal(typed_said, "utter: standard input: more than 256 MB of text without a word\n");
    assert_int_equal(n_text, (1 << 28) + PIECE);
    assert_true(poll_waits);
}

/* ---- A speech ---- */

static void a_speech_goes_on_for_a_moment_behind_a_signal(void **state)
{
    (void)state;
    static const struct {
        int comes_at, most, reads;
    } rows[] = {
        {0, 7, 8},   /* none comes */
        {5, 100, 8}, /* 30 ms are three more */
        {5, 6, 7},   /* it ends by itself before */
        {1, 100, 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pose();
        comes_at = rows[i].comes_at;
        most_reads = rows[i].most;
        assert_int_equal(
            typed_run(COMMAND_SAY, "-q -o @a.wav Hi." SPEAKER), comes_at ? 128 + SIGTERM : 0);
        if (n_reads != rows[i].reads) {
            fail_msg("row %zu: %d", i, n_reads);
        }
    }
    /* Of lines, the one that is spoken is the last. */
    pose();
    comes_at = 2;
    most_reads = 1;
    support_write_file(support_path("two"), "Hi.\nHo.\n", 8);
    unlink(support_path("a-0001.wav"));
    unlink(support_path("a-0002.wav"));
    assert_int_equal(typed_run(COMMAND_SAY, "-q --lines -f @two -o @a.wav" SPEAKER), 128 + SIGTERM);
    assert_int_equal(access(support_path("a-0001.wav"), F_OK), 0);
    assert_int_not_equal(access(support_path("a-0002.wav"), F_OK), 0);
}

static int start(void **state)
{
    static const char lines[] = "{\"id\":\"1\",\"text\":\"Hi.\"}\n";
    typed_start(state);
    typed_record();
    support_write_file(support_path("book.md"), "# One\n\nHi.\n", 11);
    support_write_file(support_path("lines"), lines, sizeof lines - 1);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_handler_nothing_is_begun),
        cmocka_unit_test(a_line_is_waited_for),
        cmocka_unit_test(text_is_read_ahead_so_far),
        cmocka_unit_test(a_speech_goes_on_for_a_moment_behind_a_signal),
    };
    return cmocka_run_group_tests_name("interrupted", tests, start, typed_end);
}
