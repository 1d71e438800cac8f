/* SPDX-License-Identifier: Apache-2.0
 * utter codec decode and encode: by which rule, where the sound goes, what is told of it, and what failures and signals
 * leave. And the bounds of a file of codes. */
#include <signal.h>
#include <sys/stat.h>

#include "cli/speak/codes_file.h"
#include "tests/cli/typed.h"

#include "tests/cli/posed_device.h"

#define BASE " -m build/checkpoints/tiny06-base --threads 1 --device cpu"

enum { FRAMES = 310, CODEBOOKS = 16, CODES = 64, FRAME = 1920 };

static int32_t codes[FRAMES * CODEBOOKS];

static void write_codes(const char *name, size_t n_frames)
{
    struct codes_file c;
    assert_int_equal(codes_file_open(&c, support_path(name), CODEBOOKS), 0);
    codes_file_add(&c, codes, n_frames);
    assert_int_equal(codes_file_finish(&c, UTTER_FINISH_EOS), 0);
    codes_file_abort(&c);
}

static int start(void **state)
{
    typed_start(state);
    typed_record();
    for (int i = 0; i < FRAMES * CODEBOOKS; i++) {
        codes[i] = (i * 7 + i / CODEBOOKS * 3) % CODES;
    }
    write_codes("long.json", FRAMES);
    write_codes("codes.json", 15);
    return 0;
}

/* ---- decode ---- */

static struct {
    float pcm[FRAMES * FRAME];
    size_t n;
} wanted;

static bool take(void *user, const float *pcm, size_t n)
{
    (void)user;
    memcpy(wanted.pcm + wanted.n, pcm, n * sizeof *pcm);
    wanted.n += n;
    return true;
}

/* As the library has it by each rule, which is not the same in a long text. */
static void codes_are_decoded_by_the_rule(void **state)
{
    (void)state;
    static const utter_codec_rule rules[] = {UTTER_CODEC_WHOLE, UTTER_CODEC_OFFICIAL_CHUNKS};
    static const char *const words[] = {"@long.json --format raw --sample f32 -o @whole" BASE,
        "@long.json --format raw --sample f32 --rule official -o @official" BASE};
    char *sounds[2];
    utter_model *model;
    assert_int_equal(utter_model_open(&model, "build/checkpoints/tiny06-base", NULL, NULL), UTTER_OK);
    for (int i = 0; i < 2; i++) {
        size_t n;
        wanted.n = 0;
        assert_int_equal(
            utter_codec_decode(model, codes, FRAMES, rules[i], 0, take, NULL, NULL), UTTER_OK);
        typed_assert(COMMAND_CODEC_DECODE, words[i], 0, "", "");
        sounds[i] = support_read_file(support_path(i ? "official" : "whole"), &n);
        assert_int_equal(n, sizeof *wanted.pcm * wanted.n);
        assert_memory_equal(sounds[i], wanted.pcm, n);
    }
    assert_memory_not_equal(sounds[0], sounds[1], sizeof *wanted.pcm * wanted.n);
    free(sounds[0]);
    free(sounds[1]);
    utter_model_close(&model);
}

static void sound_without_a_name_is_played_or_named(void **state)
{
    (void)state;
    char before[PATH_MAX], model[2 * PATH_MAX];
    size_t n;
    assert_non_null(getcwd(before, sizeof before));
    snprintf(model, sizeof model,
        "@codes.json -m %s/build/checkpoints/tiny06-base --threads 1 --device cpu", before);
    assert_int_equal(chdir(support_folder()), 0);
    device_is_installed = false;
    typed_assert(COMMAND_CODEC_DECODE, model, 0, "", "utter: note: 28800 samples are in utter.wav\n");
    assert_int_equal(unlink("utter.wav"), 0);
    typed_assert(COMMAND_CODEC_DECODE, strcat(model, " -q"), 0, "", "");
    assert_int_equal(unlink("utter.wav"), 0);
    model[strlen(model) - 3] = 0;
    assert_int_equal(chdir(before), 0);
    device_begin(support_path("played"));
    typed_assert(COMMAND_CODEC_DECODE, model, 0, "", "");
    assert_string_equal(getenv("PLAYED_END"), "all was heard");
    free(support_read_file(support_path("played"), &n));
    assert_int_equal(n, 15 * FRAME * sizeof(float));
    setenv("PLAYED_END", "", 1);
    typed_assert(COMMAND_SAY, "Hi. -m build/checkpoints/eos-first --threads 1 --device cpu", 0, "", "");
    assert_string_equal(getenv("PLAYED_END"), "all was heard");
    free(support_read_file(support_path("played"), &n));
    assert_int_equal(n, 2 * FRAME * sizeof(float));
    device_is_installed = false;
}

static void codes_come_from_standard_input(void **state)
{
    (void)state;
    for (int good = 0; good < 2; good++) {
        int input = dup(0),
            file = open(support_path(good ? "codes.json" : "ref.wav"), O_RDONLY | O_CLOEXEC);
        dup2(file, 0);
        close(file);
        int code = typed_run(COMMAND_CODEC_DECODE, "- -o @piped.wav" BASE);
        dup2(input, 0);
        close(input);
        assert_int_equal(code, !good);
        assert_int_equal(strncmp(typed_said, "utter: standard input: not usable JSON", 38) == 0, !good);
        assert_int_equal(access(support_path("piped.wav"), F_OK) == 0, good);
    }
}

/* What cannot be written is told once, and nothing is left of it. */
static void a_full_disk_ends_it(void **state)
{
    (void)state;
    for (long n = 1; n <= 3; n++) {
        support_fail_write_at(n); /* the first are those of the test itself, and of the sound then */
        int code = typed_run(COMMAND_CODEC_DECODE, "@long.json --format raw -o @full.raw" BASE);
        bool failed = support_failed();
        support_fail_off();
        assert_true(failed);
        assert_int_equal(code, 2);
        assert_non_null(strstr(typed_said, "No space left on device"));
        assert_ptr_equal(strchr(typed_said, '\n'), typed_said + strlen(typed_said) - 1);
        assert_int_not_equal(access(support_path("full.raw"), F_OK), 0);
    }
    assert_int_equal(typed_run(COMMAND_CODEC_DECODE, "@codes.json -o @no/there.wav" BASE), 2);
}

/* ---- encode ---- */

static void complain(void)
{
    if (write(2, "a coder complains\n", 18) != 18) {
        abort();
    }
}

/* How often the command makes this call. */
static long calls_of(enum support_call call, unsigned command, const char *words)
{
    typed_parse(command, words);
    long before = support_calls(call);
    assert_int_equal(typed.command->run(&typed), 0);
    return support_calls(call) - before;
}

#define ENCODE "@ref.wav -q -o @stopped.json" BASE

/* The last memory that it asks for is that of the codes. */
static void what_coders_say_is_not_heard(void **state)
{
    (void)state;
    long n = calls_of(SUPPORT_MALLOC, COMMAND_CODEC_ENCODE, ENCODE);
    typed_parse(COMMAND_CODEC_ENCODE, ENCODE);
    support_happens_at(SUPPORT_MALLOC, n, complain);
    heard_begin();
    int code = typed.command->run(&typed);
    bool happened = support_failed();
    support_fail_off();
    complain();
    heard_assert("a coder complains"); /* the second time */
    assert_true(happened);
    assert_int_equal(code, 0);
}

/* ---- Signals ---- */

static enum support_call stopped_at;
static long stopped_in;
static unsigned stopped_command;
static const char *stopped_words;

static void interrupt(void)
{
    raise(SIGTERM);
}

static void work_until_a_signal(void)
{
    typed_parse(stopped_command, stopped_words);
    support_happens_at(stopped_at, stopped_in, interrupt);
    _exit(typed.command->run(&typed));
}

static void assert_stopped(enum support_call at, long n, unsigned command, const char *words,
    const char *result, const char *said)
{
    unlink(support_path(result));
    stopped_at = at;
    stopped_in = n;
    stopped_command = command;
    stopped_words = words;
    fflush(stdout);
    heard_begin();
    int code = support_child_end(work_until_a_signal);
    heard_assert(said);
    assert_int_equal(code, 128 + SIGTERM);
    assert_int_not_equal(access(support_path(result), F_OK), 0);
}

static void a_signal_leaves_nothing(void **state)
{
    (void)state;
    assert_stopped(SUPPORT_WRITE, 1, COMMAND_CODEC_DECODE, "@long.json -q -o @stopped.wav" BASE,
        "stopped.wav", "utter: interrupted");
    long n = calls_of(SUPPORT_READ, COMMAND_CODEC_ENCODE, ENCODE);
    assert_stopped(SUPPORT_READ, n, COMMAND_CODEC_ENCODE, ENCODE, "stopped.json",
        "utter: interrupted: nothing was written");
}

/* ---- Bounds ---- */

static void assert_codes(const char *path, const char *says)
{
    int32_t *read;
    size_t n;
    heard_begin();
    int code = codes_file_read(&read, &n, path, CODEBOOKS, CODES);
    const char *said = heard_end();
    if (!strstr(said, says)) {
        fail_msg("%s", said);
    }
    assert_int_equal(code, 1);
    assert_null(read);
}

static void a_file_of_codes_has_bounds(void **state)
{
    (void)state;
    enum { MOST_BYTES = 64 << 20, MOST_CODES = 1 << 21 };
    static char commas[MOST_CODES];
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", support_path("bounds"));
    memset(commas, ',', sizeof commas);
    support_write_file(path, commas, MOST_CODES - 1);
    assert_codes(path, "not usable JSON");
    support_write_file(path, commas, MOST_CODES);
    assert_codes(path, "has more than 2097152 values");
    assert_int_equal(truncate(path, 0) || truncate(path, MOST_BYTES), 0);
    assert_codes(path, "not usable JSON");
    assert_int_equal(truncate(path, MOST_BYTES + 1), 0);
    assert_codes(path, "67108864");
    unlink(path);
}

static void codes_that_memory_lacks_for_are_told(void **state)
{
    (void)state;
    bool was_told = false;
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, i)
    {
        int32_t *read;
        size_t n;
        heard_begin();
        int code = codes_file_read(&read, &n, support_path("codes.json"), CODEBOOKS, CODES);
        const char *said = heard_end();
        was_told = was_told || strcmp(said, "utter: out of memory\n") == 0;
        assert_int_equal(code, support_failed() ? 2 : 0);
        assert_int_equal(said[0] != 0, support_failed());
        assert_int_equal(read != NULL, !support_failed());
        free(read);
    }
    assert_true(was_told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes_are_decoded_by_the_rule),
        cmocka_unit_test(sound_without_a_name_is_played_or_named),
        cmocka_unit_test(codes_come_from_standard_input),
        cmocka_unit_test(a_full_disk_ends_it),
        cmocka_unit_test(what_coders_say_is_not_heard),
        cmocka_unit_test(a_signal_leaves_nothing),
        cmocka_unit_test(a_file_of_codes_has_bounds),
        cmocka_unit_test(codes_that_memory_lacks_for_are_told),
    };
    return cmocka_run_group_tests_name("codec_commands", tests, start, typed_end);
}
