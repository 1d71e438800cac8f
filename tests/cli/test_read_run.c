/* SPDX-License-Identifier: Apache-2.0
 * A run of utter read around a posed speaker, joiner and sink, on a posed clock: what each is asked for, what is told
 * of it, and what failures and signals leave. */
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#include "book/joiner.h"
#include "book/loudness.h"
#include "cli/speak/saying.h"
#include "tests/cli/typed.h"

/* Two sections of eleven bytes. */
#define BOOK "# AAAA\n\nBBBB.\n\n# CCCC\n\nDDDD.\n"
#define WITH_MODEL " @book.md -m build/checkpoints/eos-first --threads 1 --device cpu"

/* ---- What is posed ---- */

static struct {
    int64_t now_ns;
    bool is_loud, has_encoder;
    utter_status start, open, join, close; /* what these calls end with */
    struct speaker_state state;            /* of the speaker */
    size_t n_ready;                        /* sections */
    uint64_t samples;                      /* of each */
    const struct joiner *told;             /* what the joiner has to tell */
    void (*at_look)(void), (*at_join)(void), (*at_close)(void);
    size_t n_found; /* sections that an earlier run has left: the last ones, or all */
    int n_started, n_closed;
} world;

static struct speaker_settings asked_speaker;
static utter_stream_options asked_voice;
static utter_reading_options asked_reading;
static struct sink_settings asked_sink;
static char sink_path[PATH_MAX], sink_format[16], sink_folder[PATH_MAX];
static struct joiner asked_joiner;
static struct task *tasks;
static struct sink *the_sink;

int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
bool __wrap_loudness_is_here(void);
bool __wrap_encoder_is_here(void);
utter_status __wrap_speaker_start(struct speaker **speaker, const struct speaker_settings *settings,
    struct task *the_tasks, size_t n, struct store *store, utter_error *error);
int __wrap_speaker_descriptor(const struct speaker *s);
struct speaker_state __wrap_speaker_look(struct speaker *s);
bool __wrap_speaker_is_ready(struct speaker *s, size_t i);
void __wrap_speaker_free(struct speaker *s);
utter_status __wrap_sink_open(struct sink *sink, const struct sink_settings *settings,
    const struct book *book, utter_error *error);
utter_status __wrap_sink_close(struct sink *sink, bool (*stop)(void), utter_error *error);
size_t __wrap_joiner_reach(const struct joiner *j, size_t n_ready);
utter_status __wrap_joiner_move(struct joiner *j, utter_error *error);
const struct store_entry *__wrap_store_find(const struct store *store, const char *key);

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
    (void)clock;
    *t = (struct timespec){world.now_ns / 1000000000, world.now_ns % 1000000000};
    return 0;
}

bool __wrap_loudness_is_here(void)
{
    return world.is_loud;
}

bool __wrap_encoder_is_here(void)
{
    return world.has_encoder;
}

static utter_status end_with(utter_status status, utter_error *error)
{
    if (status < 0) {
        snprintf(error->text, sizeof error->text, "posed");
    }
    return status;
}

utter_status __wrap_speaker_start(struct speaker **speaker, const struct speaker_settings *settings,
    struct task *the_tasks, size_t n, struct store *store, utter_error *error)
{
    assert_true(n == 2 && store);
    asked_speaker = *settings;
    asked_voice = *settings->voice;
    asked_reading = *settings->reading;
    tasks = the_tasks;
    *speaker = world.start ? NULL : (struct speaker *)&world;
    world.n_started += !world.start;
    return end_with(world.start, error);
}

int __wrap_speaker_descriptor(const struct speaker *s)
{
    assert_ptr_equal(s, &world);
    return 0;
}

struct speaker_state __wrap_speaker_look(struct speaker *s)
{
    assert_ptr_equal(s, &world);
    if (world.at_look) {
        world.at_look();
    }
    return world.state;
}

bool __wrap_speaker_is_ready(struct speaker *s, size_t i)
{
    assert_ptr_equal(s, &world);
    return i < world.n_ready;
}

void __wrap_speaker_free(struct speaker *s)
{
    world.n_started -= s != NULL;
}

utter_status __wrap_sink_open(struct sink *sink, const struct sink_settings *settings,
    const struct book *book, utter_error *error)
{
    assert_non_null(book);
    asked_sink = *settings;
    snprintf(sink_path, sizeof sink_path, "%s", settings->path);
    snprintf(sink_format, sizeof sink_format, "%s", settings->format ? settings->format : "");
    snprintf(sink_folder, sizeof sink_folder, "%s", settings->folder);
    *sink = (struct sink){.settings = *settings};
    the_sink = sink;
    return end_with(world.open, error);
}

utter_status __wrap_sink_close(struct sink *sink, bool (*stop)(void), utter_error *error)
{
    assert_ptr_equal(sink, the_sink);
    world.n_closed++;
    if (world.at_close) {
        world.at_close();
        assert_true(stop());
    } else {
        assert_int_equal(stop(), world.at_join != NULL);
    }
    sink->n_files = 3;
    return end_with(world.close, error);
}

/* Subtitles may be written as soon as they are ready. */
size_t __wrap_joiner_reach(const struct joiner *j, size_t n_ready)
{
    assert_int_equal(j->n_tasks, 2);
    return n_ready;
}

utter_status __wrap_joiner_move(struct joiner *j, utter_error *error)
{
    assert_false(j->stop());
    asked_joiner = *j;
    j->next++;
    j->sink->n_samples += world.samples;
    if (world.told) {
        j->n_quiet = world.told->n_quiet;
        j->n_late = world.told->n_late;
        j->n_hurried = world.told->n_hurried;
        j->most_short_lu = world.told->most_short_lu;
        j->most_late_s = world.told->most_late_s;
    }
    if (world.at_join) {
        world.at_join();
    }
    return end_with(world.join, error);
}

const struct store_entry *__wrap_store_find(const struct store *store, const char *key)
{
    static const struct store_entry entry = {.n_pieces = 5};
    static size_t n_asked;
    assert_true(store && key);
    n_asked++;
    return n_asked % 2 == 1 ? (world.n_found > 0 ? &entry : NULL) : world.n_found > 1 ? &entry : NULL;
}

/* ---- A run ---- */

static void pose(void)
{
    memset(&world, 0, sizeof world);
    world.now_ns = 1000000000000;
    world.is_loud = world.has_encoder = true;
    world.n_ready = 2;
    world.samples = 24000;
}

static int read_out(const char *words)
{
    int code = typed_run(COMMAND_READ, words);
    assert_int_equal(world.n_started, 0);
    return code;
}

static void each_is_asked_for_what_was_typed(void **state)
{
    (void)state;
    pose();
    assert_int_equal(read_out("-q -o @b.wav" WITH_MODEL), 0);
    assert_string_equal(sink_path, support_path("b.wav"));
    assert_string_equal(sink_format, "");
    assert_string_equal(sink_folder, support_path("b.wav.parts"));
    assert_false(asked_sink.split);
    assert_int_equal(asked_sink.rate, 24000);
    const struct joiner_settings *j = &asked_joiner.settings;
    assert_true(j->effects.speed == 1 && j->effects.volume == 1 && j->effects.sample_rate == 0);
    assert_true(j->lufs == 0 && j->fit == 1.5 && j->rate == 24000);
    assert_ptr_equal(asked_joiner.sink, the_sink);
    assert_ptr_equal(asked_joiner.tasks, tasks);
    assert_int_equal(asked_reading.retries, 2);
    assert_true(asked_voice.plain);
    assert_string_equal(asked_voice.language, "auto");
    assert_true(asked_speaker.lanes > 0 && asked_speaker.lanes <= 4);
    assert_int_equal(world.n_closed, 1);
    pose();
    assert_int_equal(
        read_out("-q -o @b.mp3 --split --rate 16000 --speed 2 --volume 0.5 --loudness -18 --fit 3 "
                 "--lanes 2 --retries 5 -l german --format mp3" WITH_MODEL),
        0);
    assert_string_equal(sink_format, "mp3");
    assert_true(asked_sink.split);
    assert_int_equal(asked_sink.rate, 16000);
    assert_true(j->effects.speed == 2 && j->effects.volume == 0.5 && j->effects.sample_rate == 16000);
    assert_true(j->lufs == -18 && j->fit == 3 && j->rate == 24000);
    assert_int_equal(asked_reading.retries, 5);
    assert_int_equal(asked_speaker.lanes, 2);
    assert_string_equal(asked_voice.language, "german");
    pose();
    assert_int_equal(read_out("-q -o @b.m4b" WITH_MODEL), 0);
    assert_string_equal(sink_format, "m4b");
    pose();
    world.is_loud = false;
    assert_int_equal(read_out("-o @b.wav --loudness -18" WITH_MODEL), 1);
    assert_string_equal(typed_said,
        "utter: --loudness: needs libebur128, which is not here (apt-get install libebur128-1)\n");
}

/* ---- What is told ---- */

static char shown[4096];

/* The speaker's state so many milliseconds later, and what a terminal was shown before. */
static void go_on(void)
{
    static const struct {
        int later_ms;
        uint64_t ready, spoken;
        size_t n_ready;
    } steps[] = {{100000, 0, 0, 0}, {199, 11, 11, 1}, {2, 11, 11, 1}, {149799, 11, 2, 1},
        {3350000, 11, 11, 1}, {300, 22, 11, 2}};
    static size_t i;
    world.now_ns += (int64_t)steps[i].later_ms * 1000000;
    world.state.ready_bytes = steps[i].ready;
    world.state.spoken_bytes = steps[i].spoken;
    world.state.spoken_s = 50;
    world.n_ready = steps[i].n_ready;
    i = (i + 1) % (sizeof steps / sizeof *steps);
}

static void a_terminal_shows_how_far_the_book_is(void **state)
{
    (void)state;
    for (int quiet = 0; quiet < 2; quiet++) {
        pose();
        world.at_look = go_on;
        /* Standard input is ready, so that nothing is waited for. */
        int input = dup(0), file = open("/dev/null", O_RDONLY | O_CLOEXEC);
        dup2(file, 0);
        close(file);
        typed_parse(COMMAND_READ, quiet ? "-q -o @b.wav" WITH_MODEL : "-o @b.wav" WITH_MODEL);
        terminal_begin();
        int code = command_read(&typed);
        snprintf(shown, sizeof shown, "%.4000s", terminal_end());
        dup2(input, 0);
        close(input);
        assert_int_equal(code, 0);
        assert_string_equal(shown,
            quiet ? ""
                  : typed_in_folder(
                        "chapter 1 of 2, 0 % of the text"
                        "\r\033[Kchapter 2 of 2, 50 % of the text, 0.5 x real time, 0:01:40 left"
                        "\r\033[Kchapter 2 of 2, 50 % of the text, 0.2 x real time, 0:22:55 left"
                        "\r\033[Kchapter 2 of 2, 50 % of the text, 0.0 x real time, 1:00:00 left"
                        "\r\033[Kchapter 2 of 2, 100 % of the text, 0.0 x real time, 0:00:00 left"
                        "\r\033[Kutter: note: 0:00:02 of speech are in @b.wav\r\n"));
    }
}

static void what_does_not_fit_is_told(void **state)
{
    (void)state;
    static const struct joiner told = {
        .n_quiet = 2, .n_late = 3, .n_hurried = 1, .most_short_lu = 1.25, .most_late_s = 2.5};
    pose();
    world.told = &told;
    world.samples = 24000ULL * 3723 / 2;
    assert_int_equal(read_out("-o @b.wav --loudness -18.5 --fit 2.5" WITH_MODEL), 0);
    assert_string_equal(typed_said,
        typed_in_folder(
            "utter: note: 2 chapters stay up to 1.2 LU below -18.5 LUFS: louder, their peaks would be "
            "cut\n"
            "utter: note: 1 of 2 subtitles are spoken faster to fit, at most 2.5 times (--fit)\n"
            "utter: note: 3 of 2 subtitles begin late, up to 2.5 s: those before are too long for "
            "their time\n"
            "utter: note: 1:02:03 of speech are in @b.wav\n"));
    pose();
    world.told = &told;
    assert_int_equal(read_out("-q -o @b.wav" WITH_MODEL), 0);
    assert_string_equal(typed_said, "");
    pose();
    world.samples = 24000ULL * 1800;
    assert_int_equal(read_out("-o @b.wav" WITH_MODEL), 0);
    assert_string_equal(typed_said, typed_in_folder("utter: note: 1:00:00 of speech are in @b.wav\n"));
}

static void lose_words(void)
{
    tasks[0].entry.n_pieces = 3;
    tasks[1].entry.n_pieces = 4;
    tasks[1].entry.n_broken = 2;
}

static void a_report_counts_all(void **state)
{
    (void)state;
    pose();
    world.at_look = lose_words;
    world.samples = 36000;
    assert_int_equal(read_out("--json -o @b.wav" WITH_MODEL), EXIT_NOT_WHOLE);
    assert_string_equal(typed_printed, typed_in_folder("{\"output\":\"@b.wav\",\"files\":3,\"seconds\":"
                                                       "3.0,\"chapters\":2,\"sections\":2,\"kept\":0,"
                                                       "\"not_whole\":2}\n"));
    assert_string_equal(typed_said,
        typed_in_folder(
            "utter: note: 0:00:03 of speech are in @b.wav\n"
            "utter: 2 of 7 pieces of the text may lack words, the first in chapter 2, after "
            "\"CCCC\\n\\nDDDD.\"\n"));
    for (int found = 1; found < 3; found++) {
        char says[128];
        pose();
        world.n_found = (size_t)found;
        assert_int_equal(read_out("--json -o @b.wav" WITH_MODEL), 0);
        assert_int_equal(typed_number(NULL, "kept"), found);
        snprintf(says, sizeof says,
            "utter: note: %d of 2 sections were spoken before (--fresh begins anew)\n", found);
        assert_int_equal(strncmp(typed_said, says, strlen(says)), 0);
    }
    pose();
    world.n_found = 1;
    assert_int_equal(read_out("-q -o @b.wav" WITH_MODEL), 0);
    assert_string_equal(typed_said, "");
}

/* ---- What fails ---- */

static void what_fails_is_told_once(void **state)
{
    (void)state;
    utter_status *const statuses[] = {&world.start, &world.open, &world.join, &world.close};
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        pose();
        *statuses[i] = UTTER_E_FILE;
        /* Where it is written to is the machine's. */
        assert_int_equal(read_out("-o @b.wav" WITH_MODEL), i == 0 ? 1 : 2);
        assert_string_equal(typed_said, "utter: posed\n");
        assert_int_equal(access(support_path("b.wav.parts"), F_OK) == 0, i > 1);
        assert_int_equal(world.n_closed, i == 3);
    }
    pose();
    world.n_ready = 1;
    world.state = (struct speaker_state){
        .ended = true, .status = UTTER_E_DEVICE, .error.text = "the speaker failed"};
    assert_int_equal(read_out("-o @b.wav" WITH_MODEL), 2);
    assert_string_equal(typed_said, "utter: the speaker failed\n");
    assert_int_equal(world.n_closed, 0);
    /* One that has ended, with all that there is, has not failed. */
    pose();
    world.state = (struct speaker_state){.ended = true};
    assert_int_equal(read_out("-q -o @b.wav" WITH_MODEL), 0);
    assert_int_not_equal(access(support_path("b.wav.parts"), F_OK), 0);
}

/* ---- Signals ---- */

static void interrupt(void)
{
    raise(SIGTERM);
}

static const char *stopped_words = "-o @b.wav" WITH_MODEL;

static void run_child(void)
{
    typed_parse(COMMAND_READ, stopped_words);
    int code = command_read(&typed);
    _exit(code == 128 + SIGTERM ? 1 : code); /* it ends the process itself */
}

static void assert_interrupted(const char *says)
{
    fflush(stdout);
    heard_begin();
    int code = support_child_end(run_child);
    const char *said = heard_end();
    assert_string_equal(said, typed_in_folder(says));
    assert_int_equal(code, 128 + SIGTERM);
}

static void a_signal_leaves_what_there_is(void **state)
{
    (void)state;
    static const char kept[] = "utter: interrupted; what was spoken is kept in @b.wav.parts, and the "
                               "same command goes on from there\n";
    /* Before anything was written. */
    pose();
    world.at_look = interrupt;
    world.n_ready = 0;
    assert_interrupted(kept);
    /* Behind the first section, which is a file then. */
    pose();
    world.at_join = interrupt;
    world.samples = 24000 * 65;
    assert_interrupted(
        "utter: interrupted; the first 0:01:05 are in @b.wav, and the same command goes on from "
        "there\n");
    world.close = UTTER_E_IO;
    assert_interrupted("utter: interrupted: posed\n");
    /* An earlier run's file had more. */
    pose();
    world.at_join = interrupt;
    world.n_found = 2;
    assert_interrupted(
        "utter: note: 2 of 2 sections were spoken before (--fresh begins anew)\n"
        "utter: interrupted; what was spoken is kept in @b.wav.parts, and the same command goes on "
        "from there\n");
    /* It had as much. */
    pose();
    world.at_join = interrupt;
    world.n_found = 1;
    assert_interrupted(
        "utter: note: 1 of 2 sections were spoken before (--fresh begins anew)\n"
        "utter: interrupted; the first 0:00:01 are in @b.wav, and the same command goes on from "
        "there\n");
    /* While the file was completed. */
    pose();
    world.at_close = interrupt;
    world.close = UTTER_AGAIN;
    assert_interrupted(
        "utter: interrupted; the first 0:00:02 are in @b.wav, and the same command goes on from "
        "there\n");
}

static int start(void **state)
{
    support_write_file(support_path("book.md"), BOOK, sizeof BOOK - 1);
    return typed_start(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_asked_for_what_was_typed),
        cmocka_unit_test(a_terminal_shows_how_far_the_book_is),
        cmocka_unit_test(what_does_not_fit_is_told),
        cmocka_unit_test(a_report_counts_all),
        cmocka_unit_test(what_fails_is_told_once),
        cmocka_unit_test(a_signal_leaves_what_there_is),
    };
    return cmocka_run_group_tests_name("read_run", tests, start, typed_end);
}
