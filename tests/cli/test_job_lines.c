/* SPDX-License-Identifier: Apache-2.0
 * What lines of a manifest get that say nothing themselves, what they are known by, and what is told of them: from the
 * options that were typed, on a posed clock. */
#include "cli/job/job_lines.h"

#include <signal.h>
#include <time.h>

#include "base/memory.h"
#include "cli/voice/voice_lookup.h"
#include "tests/cli/typed.h"

#define MODEL "build/checkpoints/eos-first"
#define WITH_MODEL " -m " MODEL

static int64_t now_ns = 1000000000000;

int __wrap_clock_gettime(clockid_t clock, struct timespec *t);

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
    (void)clock;
    *t = (struct timespec){now_ns / 1000000000, now_ns % 1000000000};
    return 0;
}

static struct job_lines lines;

static int open_lines(const char *words, bool make)
{
    typed_parse(COMMAND_JOB_SUBMIT, words);
    return job_lines_open(&lines, &typed, make);
}

static void lines_get_what_was_typed(void **state)
{
    (void)state;
    char hash[IDENTITY_SIZE], name[64];
    const struct line_rules *r = &lines.job.rules;
    identity_of_model(hash, MODEL, NULL);
    assert_int_equal(open_lines("@lines" WITH_MODEL, false), 0);
    assert_null(r->defaults.voice);
    assert_string_equal(r->defaults.language, "auto");
    assert_null(r->defaults.instruct);
    assert_string_equal(r->defaults.format, "flac");
    assert_string_equal(r->defaults.markup, "none");
    assert_int_equal(r->defaults.seed, 0);
    snprintf(name, sizeof name, "%.16s/stored", hash);
    assert_string_equal(r->model, name);
    assert_string_equal(r->folder, lines.job.manifest.folder);
    assert_null(lines.job.results);
    assert_false(lines.job.quick);
    assert_false(lines.job.stop());
    job_lines_close(&lines);
    assert_null(lines.model);
    assert_int_equal(
        open_lines("@lines -v ryan -l german --instruct Calm. --format mp3 --markup tags --seed "
                   "9223372036854775807 --weights q8 --quick --results @results" WITH_MODEL,
            true),
        0);
    assert_string_equal(r->defaults.voice, "ryan");
    assert_string_equal(r->defaults.language, "german");
    assert_string_equal(r->defaults.instruct, "Calm.");
    assert_string_equal(r->defaults.format, "mp3");
    assert_string_equal(r->defaults.markup, "tags");
    assert_true(r->defaults.seed == INT64_MAX);
    assert_string_equal(r->model + 16, "/q8");
    assert_non_null(lines.job.results);
    assert_false(lines.job.results->stop());
    assert_true(lines.job.quick);
    job_lines_close(&lines);
    /* Results are made for who brings some, and looked for else. */
    assert_int_equal(access(support_path("results"), F_OK), 0);
    heard_begin();
    int code = open_lines("@lines --results @none" WITH_MODEL, false);
    assert_non_null(strstr(heard_end(), support_path("none")));
    job_lines_close(&lines);
    assert_int_equal(code, 1);
    assert_int_not_equal(access(support_path("none"), F_OK), 0);
}

static void languages_are_the_models(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool is_known;
    } rows[] = {{"english", true}, {"English", true}, {"en", true}, {"pt-BR", true}, {"auto", true},
        {"AUTO", true}, {"tlh", false}, {"", false}};
    utter_error error;
    assert_int_equal(open_lines("@lines" WITH_MODEL, false), 0);
    const struct line_rules *r = &lines.job.rules;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[128];
        utter_status status = r->check_language(r->user, rows[i].name, &error);
        assert_int_equal(status, rows[i].is_known ? UTTER_OK : UTTER_E_ARGUMENT);
        snprintf(
            text, sizeof text, "unknown language \"%s\" (utter info lists the model's)", rows[i].name);
        assert_true(rows[i].is_known || strcmp(error.text, text) == 0);
    }
    job_lines_close(&lines);
}

/* Each is looked for once, as long as not too many others are asked for. */
static void voices_are_kept_by_their_names(void **state)
{
    (void)state;
    char hash[IDENTITY_SIZE], wanted[IDENTITY_SIZE], name[24];
    utter_error error;
    assert_int_equal(open_lines("@lines --voices @" WITH_MODEL, false), 0);
    const struct line_rules *r = &lines.job.rules;
    voice_identity_preset(wanted, "ryan");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(r->hash_voice(r->user, "ryan", hash, &error), UTTER_OK);
        assert_string_equal(hash, wanted);
        assert_int_equal(lines.n_voices, 1);
    }
    voice_identity_preset(wanted, utter_model_voice_name(lines.model, 0));
    assert_int_equal(r->hash_voice(r->user, "", hash, &error), UTTER_OK);
    assert_string_equal(hash, wanted);
    assert_int_equal(lines.n_voices, 2);
    assert_int_equal(r->hash_voice(r->user, "nobody", hash, &error), UTTER_E_ARGUMENT);
    assert_int_equal(lines.n_voices, 2);
    /* One more than there is room for takes the place of the oldest. */
    while (lines.n_voices < N_JOB_VOICES) {
        snprintf(name, sizeof name, "posed%u", (unsigned)lines.n_voices);
        lines.voices[lines.n_voices].name = memory_string(name);
        snprintf(lines.voices[lines.n_voices++].hash, IDENTITY_SIZE, "hash of %s", name);
    }
    assert_int_equal(r->hash_voice(r->user, "posed255", hash, &error), UTTER_OK);
    assert_string_equal(hash, "hash of posed255");
    assert_int_equal(lines.n_voices, N_JOB_VOICES);
    assert_int_equal(r->hash_voice(r->user, "vivian", hash, &error), UTTER_OK);
    assert_int_equal(lines.n_voices, N_JOB_VOICES + 1);
    assert_string_equal(lines.voices[0].name, "vivian");
    assert_string_equal(lines.voices[1].name, "");
    voice_identity_preset(wanted, "vivian");
    assert_int_equal(r->hash_voice(r->user, "vivian", hash, &error), UTTER_OK);
    assert_string_equal(hash, wanted);
    assert_int_equal(lines.n_voices, N_JOB_VOICES + 1);
    job_lines_close(&lines);
}

static void a_voice_file_is_known_by_what_it_holds(void **state)
{
    (void)state;
    static const char text[] = "[voice:ann]Hi.";
    const struct line line = {.text = text, .text_bytes = sizeof text - 1, .markup = "tags"};
    char none[IDENTITY_SIZE], hash[IDENTITY_SIZE], other[IDENTITY_SIZE];
    utter_error error;
    identity_of_bytes(none, NULL, 0);
    support_write_file(support_path("ann.voice"), "one", 3);
    assert_int_equal(open_lines("@lines --voices @" WITH_MODEL, false), 0);
    const struct line_rules *r = &lines.job.rules;
    assert_int_equal(r->hash_called(r->user, &line, hash, &error), UTTER_OK);
    assert_string_not_equal(hash, none);
    support_write_file(support_path("ann.voice"), "two", 3);
    assert_int_equal(r->hash_called(r->user, &line, other, &error), UTTER_OK);
    assert_string_not_equal(other, hash);
    /* Of what cannot be read it is told why. */
    const struct line broken = {.text = "<speak>", .text_bytes = 7, .markup = "ssml"};
    memset(&error, 0, sizeof error);
    assert_int_equal(r->hash_called(r->user, &broken, other, &error), UTTER_E_ARGUMENT);
    assert_int_not_equal(error.text[0], 0);
    job_lines_close(&lines);
}

/* ---- What is told ---- */

static void a_terminal_shows_which_line_it_is(void **state)
{
    (void)state;
    static const struct {
        uint64_t number, at;
        int later_ms;
        const char *shown;
    } rows[] = {
        {63, 50, 1000, ""},
        {64, 50, 0, "64 lines checked, 50 %"},
        {128, 60, 190, ""},
        {128, 60, 20, "\r\033[K128 lines checked, 60 %"},
        {129, 60, 1000, ""},
        {192, 99, 0, "\r\033[K192 lines checked, 99 %"},
    };
    for (int quiet = 0; quiet < 2; quiet++) {
        assert_int_equal(open_lines(quiet ? "@lines -q" WITH_MODEL : "@lines" WITH_MODEL, false), 0);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            const struct manifest m = {.number = rows[i].number, .at = rows[i].at, .bytes = 99};
            now_ns += (int64_t)rows[i].later_ms * 1000000;
            terminal_begin();
            lines.job.told(lines.job.user, "checked", &m);
            assert_string_equal(terminal_end(), quiet ? "" : rows[i].shown);
        }
        /* It goes, and so does the number that what is said begins with. */
        utter_error error = {.code = UTTER_E_ARGUMENT, .text = "no"};
        heard_begin();
        note("so");
        lines.job.fault(lines.job.user, 7, &error);
        int code = job_lines_told(UTTER_E_IO, &error), good = job_lines_told(UTTER_OK, &error);
        note("so");
        heard_assert(
            quiet ? "utter: note: line 192: so\nutter: line 7: no\nutter: no\nutter: note: so"
                  : "\r\033[Kutter: note: line 192: so\nutter: line 7: no\nutter: no\nutter: note: so");
        assert_int_equal(code, 2);
        assert_int_equal(good, 0);
        job_lines_close(&lines);
    }
}

static void a_signal_is_told(void **state)
{
    (void)state;
    const utter_error error = {.text = "no"};
    assert_int_equal(open_lines("@lines --results @results" WITH_MODEL, true), 0);
    raise(SIGTERM);
    assert_true(lines.job.stop() && lines.job.results->stop());
    for (int i = 0; i < 2; i++) {
        heard_begin();
        int code = job_lines_told(i ? UTTER_E_CANCELLED : UTTER_OK, &error);
        heard_assert("utter: interrupted");
        assert_int_equal(code, 128 + SIGTERM);
    }
    job_lines_close(&lines);
}

static int start(void **state)
{
    static const char text[] = "{\"id\":\"one\",\"text\":\"Hi.\"}\n";
    support_write_file(support_path("lines"), text, sizeof text - 1);
    return typed_start(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_get_what_was_typed), cmocka_unit_test(languages_are_the_models),
        cmocka_unit_test(voices_are_kept_by_their_names),
        cmocka_unit_test(a_voice_file_is_known_by_what_it_holds),
        cmocka_unit_test(a_terminal_shows_which_line_it_is),
        cmocka_unit_test(a_signal_is_told), /* which stays: the last */
    };
    return cmocka_run_group_tests_name("job_lines", tests, start, typed_end);
}
