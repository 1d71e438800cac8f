/* SPDX-License-Identifier: Apache-2.0
 * What a recording, a description and a posed library make a voice of: what is asked for, what is told of it, and
 * models of each size. */
#include <math.h>
#include <sys/stat.h>

#include "tests/cli/typed.h"

#define CHECKPOINTS "build/checkpoints/"
#define BASE " -m " CHECKPOINTS "tiny06-base --threads 1 --device cpu"
#define DESIGN                                                                                         \
    "--instruct Calm. --for " CHECKPOINTS "tiny06-base -m " CHECKPOINTS                                \
    "tiny06-voice_design --threads 1 --device cpu "

/* ---- The library ---- */

static utter_recording heard; /* what is heard in a recording */
static utter_status status;
static bool is_posed;
static int posed_width; /* of a voice; 0: its own */

static struct {
    char path[PATH_MAX], name[256], transcript[256], language[64], text[256], instruct[64];
    double from, to;
    uint64_t seed;
    bool goes_on;
} asked;

utter_status __real_utter_voice_clone(utter_voice **voice, utter_model *model, const char *path,
    const utter_clone_options *options, utter_recording *recording, utter_error *error);
utter_status __wrap_utter_voice_clone(utter_voice **voice, utter_model *model, const char *path,
    const utter_clone_options *options, utter_recording *recording, utter_error *error);
utter_status __wrap_utter_voice_design(utter_voice **voice, utter_model *designer, const char *instruct,
    utter_model *base, const utter_design_options *options, utter_error *error);
utter_status __real_utter_voice_get_info(const utter_voice *voice, utter_voice_info *info);
utter_status __wrap_utter_voice_get_info(const utter_voice *voice, utter_voice_info *info);

static void note_text(char *place, size_t size, const char *text)
{
    snprintf(place, size, "%s", text ? text : "none");
}

/* One that is posed complains as decoders do, and makes the voice of @ref.wav. */
utter_status __wrap_utter_voice_clone(utter_voice **voice, utter_model *model, const char *path,
    const utter_clone_options *options, utter_recording *recording, utter_error *error)
{
    if (!is_posed) {
        return __real_utter_voice_clone(voice, model, path, options, recording, error);
    }
    note_text(asked.path, sizeof asked.path, path);
    note_text(asked.name, sizeof asked.name, options->name);
    note_text(asked.transcript, sizeof asked.transcript, options->transcript);
    note_text(asked.language, sizeof asked.language, options->language);
    asked.from = options->from_seconds;
    asked.to = options->to_seconds;
    assert_int_equal(write(2, "a decoder complains\n", 20), 20);
    asked.goes_on = options->progress(options->progress_user, 0.5);
    assert_int_equal(recording->size, sizeof *recording);
    *recording = heard;
    if (status) {
        snprintf(error->text, sizeof error->text, "posed");
        return status;
    }
    return __real_utter_voice_clone(voice, model, support_path("ref.wav"), NULL, NULL, error);
}

utter_status __wrap_utter_voice_design(utter_voice **voice, utter_model *designer, const char *instruct,
    utter_model *base, const utter_design_options *options, utter_error *error)
{
    assert_true(designer != base);
    note_text(asked.instruct, sizeof asked.instruct, instruct);
    note_text(asked.name, sizeof asked.name, options->name);
    note_text(asked.text, sizeof asked.text, options->text);
    note_text(asked.language, sizeof asked.language, options->language);
    asked.seed = options->seed;
    asked.goes_on = options->progress(options->progress_user, 0.5);
    return __real_utter_voice_clone(voice, base, support_path("ref.wav"), NULL, NULL, error);
}

utter_status __wrap_utter_voice_get_info(const utter_voice *voice, utter_voice_info *info)
{
    utter_status got = __real_utter_voice_get_info(voice, info);
    info->width = posed_width ? posed_width : info->width;
    return got;
}

static int start(void **state)
{
    typed_start(state);
    typed_record();
    return typed_run(COMMAND_CLONE, "@ref.wav -q -o @ann.voice --text One" BASE);
}

/* ---- clone ---- */

static void a_recording_is_told_as_it_was_heard(void **state)
{
    (void)state;
    static const struct {
        int channels;
        double rms_db, peak, clipped;
        const char *says;
    } rows[] = {
        {1, -20.25, 0.5, 0.125, "1 channel, level -20.2 dB, peak 0.50, 12.50% clipped"},
        {2, -INFINITY, 0, 0, "2 channels, digital silence, peak 0.00, 0.00% clipped"},
        {6, -3.5, 1, 1, "6 channels, level -3.5 dB, peak 1.00, 100.00% clipped"},
    };
    is_posed = true;
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        char says[256];
        heard = (utter_recording){.size = sizeof heard,
            .sample_rate = 44100,
            .channels = rows[i / 2].channels,
            .seconds = 12.345,
            .peak = rows[i / 2].peak,
            .rms_db = rows[i / 2].rms_db,
            .clipped = rows[i / 2].clipped};
        status = i % 2 ? UTTER_E_FILE : UTTER_OK; /* also of one that is no voice */
        snprintf(says, sizeof says, "utter: note: heard 12.35 s at 44100 Hz, %s\n%s", rows[i / 2].says,
            status ? "utter: posed\n" : "");
        int code = typed_run(COMMAND_CLONE, "@ref.wav -o @new.voice" BASE);
        /* What the library itself says of the recording stands in front. */
        const char *at = strstr(typed_said, "utter: note: heard");
        assert_non_null(at);
        assert_string_equal(at, says);
        assert_null(strstr(typed_said, "decoder"));
        assert_int_equal(code, status ? 1 : 0);
        assert_int_equal(unlink(support_path("new.voice")) == 0, !status);
    }
    status = UTTER_OK;
    heard.sample_rate = 0; /* nothing was heard */
    assert_int_equal(typed_run(COMMAND_CLONE, "@ref.wav -o @new.voice" BASE), 0);
    assert_null(strstr(typed_said, "heard"));
    heard.sample_rate = 8000;
    assert_int_equal(typed_run(COMMAND_CLONE, "@ref.wav -q -o @new.voice" BASE), 0);
    assert_string_equal(typed_said, "");
    is_posed = false;
}

static void a_clone_is_asked_for_what_was_typed(void **state)
{
    (void)state;
    is_posed = true;
    heard = (utter_recording){.size = sizeof heard};
    assert_int_equal(typed_run(COMMAND_CLONE, "@ref.wav -q --json" BASE), 0);
    assert_string_equal(asked.path, support_path("ref.wav"));
    assert_string_equal(asked.name, "none");
    assert_string_equal(asked.transcript, "none");
    assert_string_equal(asked.language, "none");
    assert_true(asked.from == 0 && asked.to == 0 && asked.goes_on);
    assert_int_equal(typed_run(COMMAND_CLONE,
                         "@ref.wav -q -o @deep.er.voice --text One. -l de --from 0.5 --to 0:01" BASE),
        0);
    assert_string_equal(asked.name, "deep.er");
    assert_string_equal(asked.transcript, "One.");
    assert_string_equal(asked.language, "german");
    assert_true(asked.from == 0.5 && asked.to == 1);
    assert_int_equal(typed_run(COMMAND_CLONE, "@ref.wav -q -o @new.voice --name Ann" BASE), 0);
    assert_string_equal(asked.name, "Ann");
    is_posed = false;
    typed_assert(COMMAND_CLONE, "@ref.wav -q -o @no/new.voice" BASE, 2, "",
        "utter: @no/new.voice: cannot create: No such file or directory (check the name)\n");
    /* Where there is somebody to be told, who looks at a terminal. */
    for (int quiet = 0; quiet < 2; quiet++) {
        char words[256], wanted[PATH_MAX + 64];
        snprintf(words, sizeof words, "ann ann:2 --name Both --voices @ -o @both.voice%s",
            quiet ? " -q" : "");
        typed_parse(COMMAND_VOICES_MIX, words);
        terminal_begin();
        int code = typed.command->run(&typed);
        const char *shown = terminal_end();
        snprintf(wanted, sizeof wanted, "utter: note: the voice \"Both\" is in %s\r\n",
            support_path("both.voice"));
        assert_string_equal(shown, quiet ? "" : wanted);
        assert_int_equal(code, 0);
    }
}

/* ---- design ---- */

static void a_design_is_asked_for_what_was_typed(void **state)
{
    (void)state;
    assert_int_equal(typed_run(COMMAND_DESIGN, DESIGN "-q -o @made.voice"), 0);
    assert_string_equal(asked.instruct, "Calm.");
    assert_string_equal(asked.name, "made");
    assert_string_equal(asked.text, "none");
    assert_string_equal(asked.language, "auto");
    assert_true(asked.seed == 0 && asked.goes_on);
    assert_int_equal(
        typed_run(COMMAND_DESIGN, DESIGN "-q -o @made.voice --name Eve --text One. -l german --seed 5"),
        0);
    assert_string_equal(asked.name, "Eve");
    assert_string_equal(asked.text, "One.");
    assert_string_equal(asked.language, "german");
    assert_int_equal(asked.seed, 5);
}

/* ---- Sizes ---- */

static void a_width_says_which_size_it_fits(void **state)
{
    (void)state;
    static const int widths[] = {1023, 1024, 1025, 2047, 2048, 2049};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        char wanted[128];
        const char *size = widths[i] == 1024 ? " (0.6B)" : widths[i] == 2048 ? " (1.7B)" : "";
        posed_width = widths[i];
        assert_int_equal(typed_run(COMMAND_VOICES, "@ann.voice"), 0);
        snprintf(wanted, sizeof wanted, "\nfits         base models of width %d%s\n", widths[i], size);
        assert_non_null(strstr(typed_printed, wanted));
        assert_int_equal(typed_run(COMMAND_VOICES, "--voices @ -m " CHECKPOINTS "tiny06-base"), 0);
        snprintf(wanted, sizeof wanted, "\nann              1.2 s in context   width %d%s  ", widths[i],
            size);
        assert_non_null(strstr(typed_printed, wanted));
    }
    posed_width = 0;
}

/* A name of 4,095 bytes is the longest. */
static void a_name_has_a_bound(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++) {
        char words[5000];
        size_t n = (size_t)(4095 + more);
        memset(words, 'n', n);
        snprintf(words + n, sizeof words - n, ":2 --voices @ -o @both.voice");
        assert_int_equal(typed_run(COMMAND_VOICES_MIX, words), 1);
        assert_int_equal(strncmp(typed_said, "utter: voices mix: 'nnn", 23) == 0, more);
        assert_int_equal(strncmp(typed_said, "utter: unknown voice \"nnn", 25) == 0, !more);
    }
}

static void memory_that_is_lacking_mixes_nothing(void **state)
{
    (void)state;
    typed_parse(COMMAND_VOICES_MIX, "ann ann --voices @ -o @lacking.voice");
    for (long i = 1; i < 3; i++) {
        support_fail_malloc_at(i);
        heard_begin();
        int code = typed.command->run(&typed);
        support_fail_off();
        heard_assert("utter: out of memory");
        assert_int_equal(code, 2);
    }
    assert_int_not_equal(access(support_path("lacking.voice"), F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recording_is_told_as_it_was_heard),
        cmocka_unit_test(a_clone_is_asked_for_what_was_typed),
        cmocka_unit_test(a_design_is_asked_for_what_was_typed),
        cmocka_unit_test(a_width_says_which_size_it_fits),
        cmocka_unit_test(a_name_has_a_bound),
        cmocka_unit_test(memory_that_is_lacking_mixes_nothing),
    };
    return cmocka_run_group_tests_name("make_voice", tests, start, typed_end);
}
