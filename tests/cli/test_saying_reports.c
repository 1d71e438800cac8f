/* SPDX-License-Identifier: Apache-2.0
 * What is said of a speech, with a posed clock and posed numbers: progress on a terminal, statistics, JSON, and each
 * reason why words may be missing. And what a reading is asked for. */
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "cli/model/checkpoint.h"
#include "cli/speak/saying.h"
#include "tests/cli/typed.h"

#define MODEL "build/checkpoints/eos-first"

/* ---- The reading ---- */

static int64_t now_ns = 1000000000000; /* it stands still */
static utter_reading_stats posed;      /* what a reading tells of itself */
static utter_stream_options voice_asked;
static utter_reading_options asked;
static utter_status read_status;

int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
utter_status __real_utter_reading_open(utter_reading **reading, utter_model *model,
    const utter_stream_options *voice, const utter_reading_options *options, utter_error *error);
utter_status __wrap_utter_reading_open(utter_reading **reading, utter_model *model,
    const utter_stream_options *voice, const utter_reading_options *options, utter_error *error);
utter_status __wrap_utter_reading_read(
    utter_reading *reading, float *pcm, size_t capacity, size_t *n, utter_error *error);
utter_status __wrap_utter_reading_get_stats(const utter_reading *reading, utter_reading_stats *stats);

static const utter_reading *cancelled;

void __wrap_utter_reading_cancel(utter_reading *reading);

void __wrap_utter_reading_cancel(utter_reading *reading)
{
    cancelled = reading;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
    (void)clock;
    *t = (struct timespec){now_ns / 1000000000, now_ns % 1000000000};
    return 0;
}

utter_status __wrap_utter_reading_open(utter_reading **reading, utter_model *model,
    const utter_stream_options *voice, const utter_reading_options *options, utter_error *error)
{
    voice_asked = *voice;
    asked = *options;
    return __real_utter_reading_open(reading, model, voice, options, error);
}

/* A frame of silence. */
utter_status __wrap_utter_reading_read(
    utter_reading *reading, float *pcm, size_t capacity, size_t *n, utter_error *error)
{
    assert_non_null(reading);
    assert_int_equal(capacity, 1920);
    memset(pcm, 0, capacity * sizeof *pcm);
    *n = capacity;
    snprintf(error->text, sizeof error->text, "%s", read_status < 0 ? "posed" : "");
    return read_status;
}

utter_status __wrap_utter_reading_get_stats(const utter_reading *reading, utter_reading_stats *stats)
{
    assert_non_null(reading);
    assert_int_equal(stats->size, sizeof *stats);
    *stats = posed;
    return UTTER_OK;
}

/* ---- A speech ---- */

static utter_model *model;
static struct saying saying;

static int start(void **state)
{
    typed_start(state);
    typed_parse(COMMAND_SAY, "--device cpu --threads 1 -m " MODEL);
    return checkpoint_open(&model, &typed.settings, 6);
}

static int end(void **state)
{
    utter_model_close(&model);
    return typed_end(state);
}

static int open_saying(const char *words)
{
    utter_stream_options stream;
    utter_voice *voice;
    typed_parse(COMMAND_SAY, words);
    assert_int_equal(checkpoint_stream_options(&stream, &voice, model, &typed.settings), 0);
    posed = (utter_reading_stats){.size = sizeof posed, .finish = UTTER_FINISH_EOS, .n_pieces = 1};
    read_status = UTTER_OK;
    int code = saying_open(&saying, &typed.settings, model, &stream);
    utter_voice_free(&voice);
    return code;
}

/* The exit code of a speech that is over; what it says and prints is compared. */
static void assert_finished(int code, const char *prints, const char *says)
{
    heard_begin();
    printed_begin("printed");
    int ended = saying_finish(&saying);
    char *printed = printed_end("printed");
    const char *said = heard_end();
    assert_string_equal(said, typed_in_folder(says));
    assert_string_equal(printed, typed_in_folder(prints));
    assert_int_equal(ended, code);
    free(printed);
}

/* ---- What is asked ---- */

static void a_reading_is_asked_for_what_was_typed(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        int lanes, retries, max_frames;
        bool words_are_told;
    } rows[] = {
        {"-o @a.wav", 4, 2, 0, false}, /* more than four make a CPU no faster */
        {"-o @a.wav --lanes 5", 5, 2, 0, false},
        {"-o @a.wav --lanes 9", 6, 2, 0, false},
        {"-o @a.wav --lanes 1 --retries 7 --max-frames 8", 1, 7, 8, false},
        {"-o @a.wav --lanes 5 --trace @t", 1, 2, 0, false},
        {"-o @a.wav --times @t.json", 4, 2, 0, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(open_saying(rows[i].words), 0);
        assert_int_equal(asked.lanes, rows[i].lanes);
        assert_int_equal(asked.retries, rows[i].retries);
        assert_int_equal(asked.max_frames, rows[i].max_frames);
        assert_int_equal(asked.written != NULL, rows[i].words_are_told);
        assert_int_equal(voice_asked.words, rows[i].words_are_told);
        assert_false(asked.live);
        assert_ptr_equal(asked.piece_user, &saying);
        assert_ptr_equal(asked.written_user, &saying.times);
        assert_true(saying.begin_s == clock_seconds());
        saying_close(&saying);
        assert_null(saying.reading);
    }
    /* Who listens to a pipe hears it as it is made. */
    int ends[2], before = dup(1);
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    dup2(ends[1], 1);
    int code = open_saying("-o -");
    dup2(before, 1);
    close(before);
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(code, 0);
    assert_true(asked.live);
    saying_close(&saying);
}

/* ---- A terminal ---- */

static void progress_is_by_what_is_known(void **state)
{
    (void)state;
    static const struct {
        uint64_t total, at, bytes, tokens;
        double took_s;
        const char *shown;
    } rows[] = {
        {0, 0, 10, 50, 10, "8.0 s spoken, 0.80 x real time"},
        {0, 5, 10, 50, 10, "8.0 s spoken, 0.80 x real time"},
        {1000, 250, 10, 50, 10, "8.0 s spoken, 25 % of the text, 0.80 x real time, 0:30 left"},
        {15, 2, 10, 50, 10, "8.0 s spoken, 13 % of the text, 0.80 x real time, 1:05 left"},
        {1000, 1, 10, 50, 4, "8.0 s spoken, 0 % of the text, 2.00 x real time, 66:36 left"},
        {1000, 0, 1000, 50, 10, "8.0 s spoken of about 16 s, 0.80 x real time"},
        {1000, 0, 1001, 26, 10, "8.0 s spoken of about 8 s, 0.80 x real time"},
        {1000, 0, 999, 50, 10, "8.0 s spoken, 0.80 x real time"},
        {1000, 0, 1000, 25, 10,
            "8.0 s spoken, 0.80 x real time"}, /* it takes longer than was thought */
    };
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        const bool is_quiet = i % 2;
        assert_int_equal(open_saying(is_quiet ? "-q -o @a.wav" : "-o @a.wav"), 0);
        saying.total = rows[i / 2].total;
        saying.begin_s = 1000 - rows[i / 2].took_s;
        posed.at = rows[i / 2].at;
        posed.bytes = rows[i / 2].bytes;
        posed.n_text_tokens = rows[i / 2].tokens;
        posed.n_frames = 100;
        utter_status status;
        terminal_begin();
        int code = saying_move(&saying, &status);
        const char *shown = terminal_end();
        assert_int_equal(code, 0);
        assert_int_equal(status, UTTER_OK);
        assert_int_equal(strncmp(shown, "\r\033[K", 4) == 0, i > 1 && !is_quiet);
        assert_string_equal(shown + strspn(shown, "\r\033[K"), is_quiet ? "" : rows[i / 2].shown);
        assert_true(saying.told_s == (is_quiet ? 0 : clock_seconds()));
        assert_true(saying.end_s == clock_seconds());
        assert_int_equal(saying.output.n_samples, 1920);
        saying_close(&saying);
    }
    /* Ten times a second. */
    static const double told_s[] = {999.95, 999.85};
    for (int i = 0; i < 2; i++) {
        utter_status status;
        assert_int_equal(open_saying("-o @a.wav"), 0);
        saying.told_s = told_s[i];
        saying.begin_s = 990;
        terminal_begin();
        int code = saying_move(&saying, &status);
        const char *shown = terminal_end();
        assert_int_equal(code, 0);
        assert_string_equal(shown, i ? "\r\033[K0.0 s spoken, 0.00 x real time" : "");
        saying_close(&saying);
    }
    heard_begin();
    progress_clear(); /* what stands on no terminal any more */
    heard_end();
}

static void a_file_without_a_name_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        bool terminal;
        const char *says;
    } rows[] = {
        {"-o @a.wav", false, ""},
        {"-o @a.wav", true, "utter: note: 0.1 s of speech are in @a.wav\r\n"},
        {"-q -o @a.wav", true, ""},
        {"--format wav", false, "utter: note: 0.1 s of speech are in utter.wav\n"},
        {"-q --format wav", false, ""},
    };
    char before[PATH_MAX];
    assert_non_null(getcwd(before, sizeof before));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(chdir(support_folder()), 0);
        utter_status status;
        assert_int_equal(open_saying(rows[i].words), 0);
        assert_int_equal(saying_move(&saying, &status), 0);
        (rows[i].terminal ? terminal_begin : heard_begin)();
        int code = saying_finish(&saying);
        const char *said = rows[i].terminal ? terminal_end() : heard_end();
        assert_string_equal(said, typed_in_folder(rows[i].says));
        assert_int_equal(code, 0);
        saying_close(&saying);
        assert_int_equal(chdir(before), 0);
    }
}

/* ---- Reports ---- */

static void pose_numbers(void)
{
    posed.finish = UTTER_FINISH_CEILING;
    posed.n_frames = 50;
    posed.n_text_tokens = 12;
    posed.n_rows = 34;
    posed.first_sound_s = 0.0625;
    posed.prompt_s = 0.0011;
    posed.prefill_s = 0.0222;
    posed.talker_s = 1.25;
    posed.predictor_s = 2.5;
    posed.vocoder_s = 0.625;
    saying.output.n_samples = 96000;
    saying.end_s = saying.begin_s + 2.5;
}

static void statistics_are_told_one_by_one(void **state)
{
    (void)state;
    static const struct {
        uint64_t pieces, retries, broken;
        const char *line;
    } rows[] = {{1, 0, 0, ""}, {2, 0, 1, "pieces       2, said again 0, not whole 1\n"},
        {1, 3, 1, "pieces       1, said again 3, not whole 1\n"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char says[1024];
        assert_int_equal(open_saying("--stats -o @a.wav"), 0);
        pose_numbers();
        posed.n_pieces = rows[i].pieces;
        posed.n_retries = rows[i].retries;
        posed.n_broken = rows[i].broken;
        snprintf(says, sizeof says,
            "finish       ceiling\n"
            "speech       4.00 s, 50 frames\n"
            "text         12 tokens, 34 prompt rows\n"
            "%s"
            "first sound  62.5 ms\n"
            "prompt       1.1 ms\n"
            "prefill      22.2 ms\n"
            "each frame   talker 25.00 ms, predictor 50.00 ms, vocoder 12.50 ms\n"
            "in all       2.50 s, 1.60 x real time\n",
            rows[i].line);
        assert_finished(0, "", says);
        saying_close(&saying);
    }
    /* Of nothing there is no rate. */
    assert_int_equal(open_saying("--stats -o @a.wav"), 0);
    saying.end_s = saying.begin_s;
    assert_finished(0, "",
        "finish       eos\nspeech       0.00 s, 0 frames\ntext         0 tokens, 0 prompt rows\n"
        "first sound  0.0 ms\nprompt       0.0 ms\nprefill      0.0 ms\n"
        "each frame   talker 0.00 ms, predictor 0.00 ms, vocoder 0.00 ms\n"
        "in all       0.00 s, 0.00 x real time\n");
    saying_close(&saying);
}

static void json_has_all_numbers(void **state)
{
    (void)state;
    assert_int_equal(open_saying("--json -o @a.wav"), 0);
    pose_numbers();
    posed.n_pieces = 4;
    posed.n_retries = 5;
    posed.n_broken = 6;
    assert_finished(0,
        "{\"output\":\"@a.wav\",\"finish\":\"ceiling\",\"frames\":50,\"seconds\":4.0,\"text_tokens\":"
        "12,"
        "\"prompt_rows\":34,\"first_sound_s\":0.0625,\"prompt_s\":0.0011,\"prefill_s\":0.0222,"
        "\"talker_s\":1.25,\"predictor_s\":2.5,\"vocoder_s\":0.625,\"wall_s\":2.5,\"pieces\":4,"
        "\"retries\":5,\"not_whole\":6}\n",
        "");
    saying_close(&saying);
}

/* ---- What is missing ---- */

static void each_end_has_its_reason(void **state)
{
    (void)state;
    static const struct {
        utter_finish finish;
        const char *why, *last; /* of a piece, and of a text that is one */
    } rows[] = {
        {UTTER_FINISH_LOOP, "the same codes came over and over", "the guard ended the speech: "},
        {UTTER_FINISH_CEILING, "it was far too long for its text", "the guard ended the speech: "},
        {UTTER_FINISH_SILENCE, "nothing but silence came any more", "the guard ended the speech: "},
        {UTTER_FINISH_SAID, "all was said, and it went on", "the guard ended the speech: "},
        {UTTER_FINISH_STUCK, "it did not get on in its text", "the guard ended the speech: "},
        {UTTER_FINISH_EOS, "it does not fit its text", "words may be missing from the speech: "},
        {UTTER_FINISH_MAX_FRAMES, "it reached the most frames of a piece",
            "the speech was cut at the checkpoint's limit of 50 frames (--max-frames sets another)"},
        {UTTER_FINISH_CONTEXT, "it reached the most frames of a piece",
            "the speech was cut: the model's 32768 positions are used up"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int tries = 1; tries < 3; tries++) {
            char says[512];
            const bool is_last = rows[i].last[strlen(rows[i].last) - 1] != ' ';
            const bool is_guarded = rows[i].last[4] == 'g';
            utter_piece piece = {
                .size = sizeof piece, .index = 0, .bytes = 6, .finish = rows[i].finish, .tries = tries};
            /* The first of two pieces is told of at once. */
            assert_int_equal(open_saying("-o @a.wav"), 0);
            assert_int_equal(saying_give(&saying, "Hello.\nYou.", 11, true), 0);
            posed.n_frames = 50;
            heard_begin();
            asked.piece(asked.piece_user, &piece);
            snprintf(says, sizeof says,
                "utter: note: line 1, byte 0, \"Hello.\": words may be missing (%s, %d %s)",
                rows[i].why, tries, tries == 1 ? "try" : "tries");
            heard_assert(says);
            assert_int_equal(saying.n_broken, 1);
            assert_int_equal(saying_waiting(&saying), 5);
            posed.n_pieces = 2;
            assert_finished(EXIT_NOT_WHOLE, "",
                "utter: 1 of 2 pieces of the text may lack words, the first at line 1, byte 0, "
                "\"Hello.\"\n");
            saying_close(&saying);
            /* Of one piece the end tells it. */
            assert_int_equal(open_saying("-o @a.wav"), 0);
            assert_int_equal(saying_give(&saying, "Hello.", 6, true), 0);
            posed.n_frames = 50;
            heard_begin();
            asked.piece(asked.piece_user, &piece);
            heard_assert("");
            snprintf(says, sizeof says, "utter: %s%s%s\n", rows[i].last, is_last ? "" : rows[i].why,
                is_guarded && !is_last ? " (--no-guard lets it go on)" : "");
            assert_finished(EXIT_NOT_WHOLE, "", says);
            saying_close(&saying);
        }
    }
}

static void what_was_asked_for_is_not_missing(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        utter_finish finish;
        bool whole;
        int n_broken;
    } rows[] = {{"-o @a.wav", UTTER_FINISH_EOS, true, 0}, {"-o @a.wav", UTTER_FINISH_EOS, false, 1},
        {"-o @a.wav", UTTER_FINISH_CANCELLED, false, 0},
        {"-o @a.wav", UTTER_FINISH_MAX_FRAMES, false, 1},
        {"-o @a.wav --max-frames 9", UTTER_FINISH_MAX_FRAMES, false, 0},
        {"-o @a.wav --max-frames 9", UTTER_FINISH_EOS, false, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const utter_piece piece = {.size = sizeof piece,
            .at = 1,
            .bytes = 5,
            .index = 1,
            .finish = rows[i].finish,
            .tries = 1,
            .whole = rows[i].whole};
        assert_int_equal(open_saying(rows[i].words), 0);
        assert_int_equal(saying_give(&saying, "\nA\nBCDE", 7, false), 0);
        heard_begin();
        asked.piece(asked.piece_user, &piece);
        const char *said = heard_end();
        assert_int_equal(said[0] != 0, rows[i].n_broken);
        assert_true(!said[0] || strstr(said, "line 2, byte 1, \"A BCD\": words may be missing ("));
        assert_int_equal(saying.n_broken, rows[i].n_broken);
        assert_int_equal(saying.last.line, 2);
        assert_int_equal(saying.last.byte, 1);
        assert_int_equal(saying.times.spoken_at, 6);
        assert_int_equal(saying.text_line, 3);
        saying_close(&saying);
    }
}

/* ---- Failures ---- */

static void what_fails_is_told(void **state)
{
    (void)state;
    utter_status status;
    assert_int_equal(open_saying("-o @a.wav"), 0);
    read_status = UTTER_E_DEVICE;
    heard_begin();
    int code = saying_move(&saying, &status);
    heard_assert("utter: posed");
    assert_int_equal(code, 2);
    assert_int_equal(status, UTTER_E_DEVICE);
    /* What is read has no end there, and no sound. */
    read_status = UTTER_AGAIN;
    assert_int_equal(saying_move(&saying, &status), 0);
    assert_int_equal(status, UTTER_AGAIN);
    assert_int_equal(saying.output.n_samples, 0);
    support_fail_malloc_at(1);
    heard_begin();
    code = saying_give(&saying, "Hello.", 6, true);
    support_fail_off();
    heard_assert("utter: out of memory");
    assert_int_equal(code, 2);
    assert_false(saying.ended);
    heard_begin();
    code = saying_give(&saying, "\xff", 1, true);
    const char *why = heard_end();
    assert_int_equal(strncmp(why, "utter: ", 7), 0);
    assert_int_equal(code, 1);
    saying_close(&saying);
}

/* A signal ends a speech that there is, and no other. */
static void speak_and_be_interrupted(void)
{
    if (open_saying("-o @a.wav") != 0) {
        _exit(1);
    }
    raise(SIGTERM);
    if (!cancelled || cancelled != saying.reading) {
        _exit(2);
    }
    saying_close(&saying);
}

static void be_interrupted_behind_a_speech(void)
{
    if (open_saying("-o @a.wav") != 0) {
        _exit(1);
    }
    saying_close(&saying);
    raise(SIGTERM);
    _exit(cancelled ? 2 : 0);
}

static void a_signal_is_for_the_speech_that_there_is(void **state)
{
    (void)state;
    assert_int_equal(support_child_end(speak_and_be_interrupted), 0);
    assert_int_equal(support_child_end(be_interrupted_behind_a_speech), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reading_is_asked_for_what_was_typed),
        cmocka_unit_test(progress_is_by_what_is_known),
        cmocka_unit_test(a_file_without_a_name_is_named),
        cmocka_unit_test(statistics_are_told_one_by_one),
        cmocka_unit_test(json_has_all_numbers),
        cmocka_unit_test(each_end_has_its_reason),
        cmocka_unit_test(what_was_asked_for_is_not_missing),
        cmocka_unit_test(what_fails_is_told),
        cmocka_unit_test(a_signal_is_for_the_speech_that_there_is),
    };
    return cmocka_run_group_tests_name("saying_reports", tests, start, end);
}
