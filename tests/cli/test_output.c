/* SPDX-License-Identifier: Apache-2.0
 * Where the sound goes: samples as they are in a file, or on a posed sound device, and what is said where neither can
 * be. */
#include "cli/speak/output.h"

#include <sys/stat.h>

#include "tests/cli/heard.h"
#include "tests/cli/posed_device.h"

enum { RATE = 24000, N = 5000 };

/* ---- The library's names ---- */

static const char *lacking; /* the one that it has not; NULL: it has all */

void *__real_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name);

void *__wrap_dlsym(void *library, const char *name)
{
    return lacking && strcmp(name, lacking) == 0 ? NULL : __real_dlsym(library, name);
}

/* ---- An output ---- */

static struct invocation typed;
static struct output output;
static float ramp[N];

static int start(void **state)
{
    (void)state;
    for (int i = 0; i < N; i++) {
        ramp[i] = (float)(i % 101 - 50) / 64;
    }
    return 0;
}

static int end(void **state)
{
    (void)state;
    free(typed.words);
    return 0;
}

static void parse(const char *words)
{
    static char kept[PATH_MAX];
    static char *arguments[32];
    int n = 0;
    snprintf(kept, sizeof kept, "%s", words);
    for (char *word = strtok(kept, " "); word; word = strtok(NULL, " ")) {
        arguments[n++] = word;
    }
    free(typed.words);
    assert_int_equal(command_table[0].bit, COMMAND_SAY);
    assert_true(options_parse(&typed, &command_table[0], n, arguments));
}

static int open_output(const char *words, bool may_play)
{
    parse(words);
    return output_open(&output, &typed.settings, may_play, RATE);
}

/* The file's bytes, to be freed. */
static char *write_ramp(const char *options, size_t *bytes)
{
    char words[PATH_MAX];
    snprintf(words, sizeof words, "-o %s %s", support_path("sound"), options);
    assert_int_equal(open_output(words, true), 0);
    assert_null(output.player);
    for (size_t at = 0; at < N; at += 4000) {
        assert_int_equal(output_write(&output, ramp + at, at ? N - 4000 : 4000), 0);
    }
    assert_int_not_equal(access(support_path("sound"), F_OK), 0); /* it is not whole yet */
    assert_int_equal(output_close(&output, true), 0);
    char *all = support_read_file(support_path("sound"), bytes);
    assert_non_null(all);
    unlink(support_path("sound"));
    return all;
}

static void samples_are_written_as_they_are(void **state)
{
    (void)state;
    size_t n;
    char *all = write_ramp("--format raw --sample f32", &n);
    assert_int_equal(n, sizeof ramp);
    assert_memory_equal(all, ramp, sizeof ramp);
    assert_int_equal(output.n_samples, N);
    assert_int_equal(output.rate, RATE);
    free(all);
    output_abort(&output);
    output_abort(&output);
    all = write_ramp("--format raw", &n);
    assert_int_equal(n, 2 * N);
    free(all);
    output_abort(&output);
    all = write_ramp("--format wav --sample f32", &n);
    assert_true(n > sizeof ramp);
    assert_memory_equal(all, "RIFF", 4);
    free(all);
    output_abort(&output);
}

static void effects_are_those_that_were_asked_for(void **state)
{
    (void)state;
    static const struct {
        const char *options;
        int rate;
        double length;
    } rows[] = {{"--speed 2", RATE, 0.5}, {"--speed 0.5", RATE, 2}, {"--rate 12000", 12000, 0.5},
        {"--rate 48000 --volume 2", 48000, 2}};
    size_t n;
    char options[128];
    char *all = write_ramp("--format raw --sample f32 --volume 0.5", &n);
    assert_int_equal(n, sizeof ramp);
    for (int i = 0; i < N; i++) {
        float sample;
        memcpy(&sample, all + i * sizeof sample, sizeof sample);
        assert_true(sample == ramp[i] / 2);
    }
    free(all);
    output_abort(&output);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(options, sizeof options, "--format raw --sample f32 %s", rows[i].options);
        free(write_ramp(options, &n));
        assert_int_equal(output.rate, rows[i].rate);
        assert_int_equal(n, output.n_samples * sizeof *ramp);
        /* All of it, also what an effect keeps until the end; sound that is stretched is so long about. */
        assert_true((double)output.n_samples > 0.85 * N * rows[i].length);
        assert_true((double)output.n_samples < 1.15 * N * rows[i].length);
        output_abort(&output);
    }
}

/* What an effect keeps until the end is part of a file, and of what is heard where all of it is. */
static void the_end_of_an_effect_is_written(void **state)
{
    (void)state;
    size_t n[4];
    char words[PATH_MAX], path[PATH_MAX];
    snprintf(path, sizeof path, "%s", support_path("played"));
    device_begin(path);
    for (int i = 0; i < 4; i++) { /* a file, then the device; the rest is dropped, or is not */
        snprintf(
            words, sizeof words, i < 2 ? "--speed 0.5 -o %s" : "--speed 0.5", support_path("slow.wav"));
        assert_int_equal(open_output(words, true), 0);
        assert_int_equal(output_write(&output, ramp, N), 0);
        assert_int_equal(output_close(&output, i % 2), 0);
        n[i] = output.n_samples;
        output_abort(&output);
    }
    device_is_installed = false;
    assert_int_equal(n[0], n[1]);
    assert_int_equal(n[3], n[1]);
    assert_true(n[2] < n[3]);
}

static void what_is_dropped_leaves_nothing(void **state)
{
    (void)state;
    char words[PATH_MAX];
    snprintf(words, sizeof words, "-o %s", support_path("dropped.wav"));
    assert_int_equal(open_output(words, true), 0);
    assert_int_equal(output_write(&output, ramp, N), 0);
    output_abort(&output);
    assert_null(output.sound);
    assert_null(output.effects);
    assert_int_not_equal(access(support_path("dropped.wav"), F_OK), 0);
    heard_begin();
    int code = open_output("-o /no/where/a.wav", true);
    assert_non_null(strstr(heard_end(), "/no/where/a.wav"));
    assert_int_equal(code, 2);
    output_abort(&output);
}

/* ---- Without a name ---- */

static void what_cannot_be_played_has_a_name(void **state)
{
    (void)state;
    char before[PATH_MAX];
    device_is_installed = false;
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(support_folder()), 0);
    static const struct {
        const char *words;
        bool may_play;
    } rows[] = {{"", true}, {"", false}, {"--format wav", true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(open_output(rows[i].words, rows[i].may_play), 0);
        assert_string_equal(output.path, "utter.wav");
        assert_int_equal(output_close(&output, true), 0);
        output_abort(&output);
        assert_int_equal(unlink("utter.wav"), 0);
    }
    heard_begin();
    int code = open_output("--format flac", true);
    heard_assert("utter: --format flac: needs a name for the file (-o FILE)");
    assert_int_equal(code, 1);
    output_abort(&output);
    assert_int_equal(chdir(before), 0);
}

static void a_terminal_gets_no_samples(void **state)
{
    (void)state;
    int far = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(far >= 0 && grantpt(far) == 0 && unlockpt(far) == 0);
    int near = open(ptsname(far), O_RDWR | O_NOCTTY | O_CLOEXEC);
    fflush(stdout);
    int before = dup(1);
    dup2(near, 1);
    heard_begin();
    int code = open_output("-o - --rate 8000", true);
    dup2(before, 1);
    close(before);
    close(near);
    close(far);
    heard_assert("utter: -o -: standard output is a terminal (send it somewhere: | aplay -t raw -f "
                 "S16_LE -r 8000)");
    assert_int_equal(code, 1);
    output_abort(&output);
}

static void a_pipe_is_heard(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    int before = dup(1);
    dup2(ends[1], 1);
    bool pipe_is_heard = output_is_heard("-"), none = output_is_heard(NULL),
         name = output_is_heard("a");
    dup2(before, 1);
    close(before);
    close(ends[0]);
    close(ends[1]);
    printed_begin("printed");
    bool file_is_heard = output_is_heard("-");
    free(printed_end("printed"));
    assert_true(pipe_is_heard);
    assert_false(file_is_heard);
    assert_false(none || name);
}

static void a_place_is_tried_before_long_work(void **state)
{
    (void)state;
    char path[PATH_MAX];
    support_write_file(support_path("there.wav"), "before", 6);
    int files = support_count_files(support_folder());
    assert_int_equal(output_check(support_path("there.wav")), 0);
    assert_int_equal(output_check(support_path("new.wav")), 0);
    assert_int_equal(output_check("/dev/null"), 0);
    assert_int_equal(support_count_files(support_folder()), files); /* and is as it was */
    size_t n;
    char *text = support_read_file(support_path("there.wav"), &n);
    assert_string_equal(text, "before");
    free(text);
    snprintf(path, sizeof path, "%s", support_path("fifo"));
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(output_check(path), 0);
    static const char *const wrong[] = {"/no/where/a.wav", "/"};
    for (int i = 0; i < 2; i++) {
        heard_begin();
        int code = output_check(wrong[i]);
        assert_int_equal(strncmp(heard_end(), "utter: /", 8), 0);
        assert_int_equal(code, 2);
    }
}

/* ---- A sound device ---- */

static void a_device_plays_what_has_no_name(void **state)
{
    (void)state;
    size_t n;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", support_path("played"));
    device_begin(path);
    for (int rest = 0; rest < 2; rest++) {
        heard_begin();
        int code = open_output("", true);
        fprintf(
            stderr, "said\n"); /* what the sound system prints is not heard, what comes behind it is */
        heard_assert("said");
        assert_int_equal(code, 0);
        assert_non_null(output.player);
        assert_null(output.path);
        assert_null(output.sound);
        assert_int_equal(output_write(&output, ramp, N), 0);
        assert_int_equal(output_close(&output, rest), 0);
        assert_null(output.player);
        assert_string_equal(getenv("PLAYED_END"), rest ? "all was heard" : "the rest was dropped");
        assert_int_equal(output.n_samples, N);
        output_abort(&output);
        char *all = support_read_file(path, &n);
        assert_int_equal(n, sizeof ramp);
        assert_memory_equal(all, ramp, sizeof ramp);
        free(all);
    }
    /* Who names a file, or its kind, wants a file. */
    char before[PATH_MAX], words[PATH_MAX + 8];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(support_folder()), 0);
    snprintf(words, sizeof words, "-o %s", support_path("a.wav"));
    const char *const named[] = {words, "--format wav"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(open_output(named[i], true), 0);
        assert_null(output.player);
        output_abort(&output);
    }
    assert_int_equal(open_output("", false), 0);
    assert_null(output.player);
    output_abort(&output);
    assert_int_equal(chdir(before), 0);
    /* One that fails, or is dropped in the middle. */
    setenv("PLAYED", "/dev/full", 1);
    assert_int_equal(open_output("", true), 0);
    heard_begin();
    int code = output_write(&output, ramp, N);
    heard_assert("utter: the sound device failed (-o FILE writes a file)");
    assert_int_equal(code, 2);
    setenv("PLAYED_END", "", 1);
    output_abort(&output);
    assert_string_equal(getenv("PLAYED_END"), "the rest was dropped");
}

/* Whatever a device has begun is ended, in its order, and its library goes. */
static void a_device_that_fails_is_given_back(void **state)
{
    (void)state;
    static const struct {
        const char *fails, *lacks, *life;
    } rows[] = {
        {"", NULL, "initialize info open start abort close terminate "},
        {"initialize", NULL, "initialize "},
        {"info", NULL, "initialize info terminate "},
        {"open", NULL, "initialize info open terminate "},
        {"start", NULL, "initialize info open start abort close terminate "},
        {"", "Pa_Initialize", ""},
        {"", "Pa_CloseStream", ""},
    };
    device_begin(support_path("played"));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int files = support_count_files("/proc/self/fd");
        setenv("PLAYED_FAILS", rows[i].fails, 1);
        setenv("PLAYED_LIFE", "", 1);
        lacking = rows[i].lacks;
        heard_begin();
        struct player *player = player_open(RATE);
        fprintf(stderr, "said\n");
        heard_assert("said"); /* and not what the library prints */
        assert_int_equal(player != NULL, i == 0);
        player_close(player, false);
        assert_string_equal(getenv("PLAYED_LIFE"), rows[i].life);
        assert_null(dlopen(device_library(), RTLD_NOW | RTLD_NOLOAD));
        assert_int_equal(support_count_files("/proc/self/fd"), files);
    }
    lacking = NULL;
    setenv("PLAYED_FAILS", "", 1);
    support_fail_malloc_at(1);
    assert_null(player_open(RATE));
    support_fail_off();
    /* Sound that comes late has a gap, and goes on. */
    setenv("PLAYED_FAILS", "write", 1);
    setenv("PLAYED_LIFE", "", 1);
    struct player *player = player_open(RATE);
    assert_true(player_write(player, ramp, N));
    player_close(player, true);
    assert_string_equal(
        getenv("PLAYED_LIFE"), "initialize info open start write stop close terminate ");
    setenv("PLAYED_FAILS", "", 1);
}

static void without_a_device_nothing_is_played(void **state)
{
    (void)state;
    device_is_installed = false;
    assert_null(player_open(RATE));
    device_begin(support_path("played"));
    assert_null(player_open(RATE + 1)); /* this one has one rate */
    unsetenv("PLAYED");
    heard_begin();
    struct player *player = player_open(RATE);
    fprintf(stderr, "said\n");
    heard_assert("said");
    assert_null(player);
    player_close(NULL, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_written_as_they_are),
        cmocka_unit_test(effects_are_those_that_were_asked_for),
        cmocka_unit_test(the_end_of_an_effect_is_written),
        cmocka_unit_test(what_is_dropped_leaves_nothing),
        cmocka_unit_test(what_cannot_be_played_has_a_name),
        cmocka_unit_test(a_terminal_gets_no_samples),
        cmocka_unit_test(a_pipe_is_heard),
        cmocka_unit_test(a_place_is_tried_before_long_work),
        cmocka_unit_test(a_device_plays_what_has_no_name),
        cmocka_unit_test(a_device_that_fails_is_given_back),
        cmocka_unit_test(without_a_device_nothing_is_played),
    };
    return cmocka_run_group_tests_name("output", tests, start, end);
}
