/* SPDX-License-Identifier: Apache-2.0
 * utter bench of a posed model on a posed clock: what each number is made of, in which order rows come, what is asked
 * of a model, and what becomes of failures. */
#include <sys/resource.h>
#include <time.h>

#include "cli/model/bandwidth.h"
#include "tests/cli/typed.h"

#define WITH_MODEL " -m build/checkpoints/eos-first"

enum { MOST_OPENED = 64, MS = 1000000 };

/* ---- The machine ---- */

static struct {
    int64_t now_ns;
    double device_gb;   /* a second, that the device tells; 0: none */
    int lanes, threads; /* that were asked for */
    int n_models;       /* that are open */
} machine;

int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
double __wrap_bandwidth_measure(int n_threads);
int __wrap_getrusage(int who, struct rusage *usage);

/* A thread has a quarter of the time. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
    int64_t ns = clock == CLOCK_THREAD_CPUTIME_ID ? machine.now_ns / 4 : machine.now_ns;
    *t = (struct timespec){ns / 1000000000, ns % 1000000000};
    return 0;
}

double __wrap_bandwidth_measure(int n_threads)
{
    machine.threads = n_threads;
    return 8;
}

int __wrap_getrusage(int who, struct rusage *usage)
{
    assert_int_equal(who, RUSAGE_SELF);
    *usage = (struct rusage){.ru_maxrss = 125000};
    return 0;
}

/* ---- The model ---- */

struct utter_stream {
    bool is_open, has_text, is_finished;
    int frames, most, taken;
};

static struct utter_stream streams[256];
static int n_open, n_runs, n_steps;
static const int factors[] = {10, 10, 10, 1, 3, 2, 5};

/* How slow this run is. */
static int factor(void)
{
    return factors[(size_t)n_runs % (sizeof factors / sizeof *factors)];
}

/* What streams were asked for. */
static struct {
    int max_frames;
    bool guard;
    char text[2048];
} opened[MOST_OPENED];
static int n_opened, n_texts;

/* The call that fails: its name, and how often it ends well before. */
static struct {
    const char *name;
    int left;
} failing;

static utter_status fails(const char *name, utter_error *error)
{
    if (!failing.name || strcmp(failing.name, name) != 0 || failing.left-- != 0) {
        return UTTER_OK;
    }
    snprintf(error->text, sizeof error->text, "%s fails", name);
    return UTTER_E_DEVICE;
}

utter_status __wrap_utter_model_open(
    utter_model **model, const char *path, const utter_model_options *options, utter_error *error);
void __wrap_utter_model_close(utter_model **model);
utter_status __wrap_utter_model_get_info(const utter_model *model, utter_model_info *info);
const char *__wrap_utter_model_voice_name(const utter_model *model, int index);
utter_status __wrap_utter_stream_options_init_sized(
    utter_stream_options *options, size_t size, const utter_model *model);
utter_status __wrap_utter_stream_open(
    utter_stream **stream, utter_model *model, const utter_stream_options *options, utter_error *error);
utter_status __wrap_utter_stream_text(
    utter_stream *stream, const char *text, size_t bytes, utter_error *error);
utter_status __wrap_utter_stream_finish(utter_stream *stream, utter_error *error);
utter_status __wrap_utter_stream_read(
    utter_stream *stream, float *pcm, size_t capacity, size_t *n, utter_error *error);
utter_status __wrap_utter_stream_take(
    utter_stream *stream, float *pcm, size_t capacity, size_t *n, utter_error *error);
utter_status __wrap_utter_stream_get_stats(const utter_stream *stream, utter_stream_stats *stats);
void __wrap_utter_stream_free(utter_stream **stream);

utter_status __wrap_utter_model_open(
    utter_model **model, const char *path, const utter_model_options *options, utter_error *error)
{
    assert_string_equal(path, "build/checkpoints/eos-first");
    utter_status status = fails("open_model", error);
    if (status == UTTER_OK) {
        machine.lanes = options->n_lanes;
        *model = (utter_model *)&machine;
        machine.n_models++;
    }
    return status;
}

void __wrap_utter_model_close(utter_model **model)
{
    machine.n_models -= *model != NULL;
    *model = NULL;
}

utter_status __wrap_utter_model_get_info(const utter_model *model, utter_model_info *info)
{
    assert_ptr_equal(model, &machine);
    *info = (utter_model_info){.size = sizeof *info,
        .kind_name = "posed",
        .size_name = "0b6",
        .device = "cpu",
        .kernels = "plain",
        .weights = "bf16",
        .sample_rate = 24000,
        .frame_samples = 1920,
        .n_threads = 3,
        .frame_bytes = 4740000,
        .talker_frame_bytes = 1600000,
        .predictor_frame_bytes = 2400000,
        .vocoder_frame_bytes = 740000,
        .device_gb_per_s = machine.device_gb};
    return UTTER_OK;
}

const char *__wrap_utter_model_voice_name(const utter_model *model, int index)
{
    (void)model, (void)index;
    return NULL;
}

utter_status __wrap_utter_stream_options_init_sized(
    utter_stream_options *options, size_t size, const utter_model *model)
{
    (void)model;
    assert_int_equal(size, sizeof *options);
    *options = (utter_stream_options){.size = size, .max_frames = 4096};
    return UTTER_OK;
}

/* The first streams end one frame after the other. */
utter_status __wrap_utter_stream_open(
    utter_stream **stream, utter_model *model, const utter_stream_options *options, utter_error *error)
{
    assert_ptr_equal(model, &machine);
    utter_status status = fails("open", error);
    if (status) {
        return status;
    }
    int before = options->max_frames - (n_open < 3 ? 2 - n_open : 0);
    streams[n_open] = (utter_stream){.is_open = true, .most = before > 1 ? before : 1};
    if (n_opened < MOST_OPENED) {
        opened[n_opened].max_frames = options->max_frames;
        opened[n_opened++].guard = options->guard;
    }
    *stream = &streams[n_open++];
    n_steps = 0;
    return UTTER_OK;
}

utter_status __wrap_utter_stream_text(
    utter_stream *stream, const char *text, size_t bytes, utter_error *error)
{
    assert_int_equal(bytes, strlen(text));
    stream->has_text = true;
    if (n_texts < MOST_OPENED) {
        snprintf(opened[n_texts++].text, sizeof opened->text, "%s", text);
    }
    return fails("text", error);
}

utter_status __wrap_utter_stream_finish(utter_stream *stream, utter_error *error)
{
    assert_true(stream->has_text);
    stream->is_finished = true;
    return fails("finish", error);
}

/* The sound of the first frames of stream i comes with frame i + 1. */
static utter_status give(utter_stream *stream, size_t *n)
{
    const bool has_ended = stream->frames == stream->most;
    const int ready = stream->frames > stream - streams || has_ended ? stream->frames : 0;
    *n = (size_t)(1920 * (ready - stream->taken));
    stream->taken = ready;
    return *n > 0 ? UTTER_OK : has_ended ? UTTER_END : UTTER_AGAIN;
}

/* All streams move a frame ahead, in the third step two: 100 ms for the first, then 22, 24, 26 ... */
utter_status __wrap_utter_stream_read(
    utter_stream *stream, float *pcm, size_t capacity, size_t *n, utter_error *error)
{
    assert_non_null(pcm);
    assert_int_equal(capacity, 4 * 1920);
    assert_true(stream->is_finished && stream->frames < stream->most); /* one that goes on */
    machine.now_ns += (int64_t)MS * factor() * (n_steps ? 20 + 2 * n_steps : 100);
    for (int i = 0; i < n_open; i++) {
        utter_stream *one = &streams[i];
        one->frames += n_steps == 2 ? 2 : 1;
        one->frames = one->frames < one->most ? one->frames : one->most;
    }
    n_steps++;
    utter_status status = fails("read", error);
    return status ? status : give(stream, n);
}

utter_status __wrap_utter_stream_take(
    utter_stream *stream, float *pcm, size_t capacity, size_t *n, utter_error *error)
{
    assert_non_null(pcm);
    assert_int_equal(capacity, 4 * 1920);
    utter_status status = fails("take", error);
    return status ? status : give(stream, n);
}

utter_status __wrap_utter_stream_get_stats(const utter_stream *stream, utter_stream_stats *stats)
{
    assert_int_equal(stats->size, sizeof *stats);
    const double scale = (double)(stream - streams + 1) * factor(), frames = stream->frames;
    *stats = (utter_stream_stats){.size = sizeof *stats,
        .n_frames = stream->frames,
        .prompt_s = 0.001 * scale,
        .prefill_s = 0.004 * scale,
        .talker_s = 0.003 * frames * scale,
        .predictor_s = 0.002 * frames * scale,
        .vocoder_s = 0.001 * frames * scale,
        .wait_s = 0.0005 * frames * scale};
    return UTTER_OK;
}

/* The run ends with its last stream. */
void __wrap_utter_stream_free(utter_stream **stream)
{
    if (*stream) {
        assert_true((*stream)->is_open);
        (*stream)->is_open = false;
        *stream = NULL;
        n_open--;
        n_runs += n_open == 0;
    }
}

/* ---- A measurement ---- */

static int bench(const char *words)
{
    machine.now_ns = 5000000000;
    n_runs = n_opened = n_texts = n_open = 0;
    int code = typed_run(COMMAND_BENCH, words);
    assert_int_equal(n_open, 0);
    assert_int_equal(machine.n_models, 0);
    failing.name = NULL;
    return code;
}

struct number {
    const char *object, *name;
    double value;
};

static void assert_numbers(const struct number *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double have = typed_number(numbers[i].object, numbers[i].name);
        if (fabs(have - numbers[i].value) > 1e-6) {
            fail_msg("%s %s: %.9g", numbers[i].object, numbers[i].name, have);
        }
    }
}

/* The runs that warm up are ten times slower, and are not in it. */
static void each_number_is_of_its_part(void **state)
{
    (void)state;
    static const struct number numbers[] = {{NULL, "lanes", 3}, {NULL, "words", 3},
        {NULL, "frames", 42}, {"ttfc_ms", "median", 296}, {"ttfc_ms", "p95", 730},
        {"frame_ms", "median", 79}, {"frame_ms", "p95", 210}, {"first_ms", "prompt", 4.5},
        {"first_ms", "prefill", 18}, {"first_ms", "frame", 60}, {"first_ms", "rest", 177.5},
        {NULL, "wait_ms", 2.25}, {NULL, "thread_share", 0.25}, {NULL, "talker_ms", 13.5},
        {NULL, "predictor_ms", 9}, {NULL, "vocoder_ms", 4.5}, {NULL, "prefill_ms", 18},
        {NULL, "wall_ms", 1355}, {NULL, "rtf", 1355 / 3360.0}, {NULL, "peak_mb", 128},
        {NULL, "gb_per_s", 0.06}, {NULL, "limit_gb_per_s", 8}, {"bound_ms", "talker", 0.2},
        {"bound_ms", "predictor", 0.3}, {"bound_ms", "vocoder", 0.0925}};
    machine.device_gb = 0;
    assert_int_equal(bench("--json --words 3 --lanes 3 --runs 4 --threads 2" WITH_MODEL), 0);
    assert_string_equal(typed_said, "");
    assert_numbers(numbers, sizeof numbers / sizeof *numbers);
    assert_non_null(
        strstr(typed_printed, "{\"model\":\"0b6 posed\",\"device\":\"cpu\",\"weights\":\"bf16\","
                              "\"kernel\":\"plain\",\"lanes\":3,"));
    assert_int_equal(machine.threads, 2);
    assert_int_equal(machine.lanes, 3);
    assert_int_equal(n_runs, 3 + 4);
    /* Of twenty the nineteenth is at 95 per cent. A device knows how fast its memory is. */
    machine.device_gb = 16;
    assert_int_equal(bench("--json --words 3 --lanes 5 --runs 4" WITH_MODEL), 0);
    static const struct number more[] = {
        {"ttfc_ms", "p95", 730}, {NULL, "limit_gb_per_s", 16}, {"bound_ms", "talker", 0.1}};
    assert_numbers(more, sizeof more / sizeof *more);
}

static void a_row_is_a_line(void **state)
{
    (void)state;
    machine.device_gb = 0;
    assert_int_equal(bench("--words 2 --runs 4" WITH_MODEL), 0);
    assert_string_equal(typed_printed,
        "0b6 posed, cpu, weights bf16, kernels plain, threads 3\n"
        "the memory gives 8.00 GB/s; a frame reads 4.7 MB of weights\n"
        "reading them takes: talker 0.20 ms, predictor 0.30, vocoder 0.09\n"
        "times in ms, median and 95th percentile of 4 runs after 3 that warm up\n\n"
        "lanes words frames     ttfc     p95    frame     p95   talker predict vocoder  prefill      "
        "wall    rtf"
        "  peak MB   GB/s\n"
        "    1     2      8    250.0   500.0    60.00  150.00     7.50    5.00    2.50     10.0     "
        "655.0  1.023"
        "      128   0.08\n"
        "      ttfc: prompt 2.50, prefill 10.00, frame 15.00, rest 222.50; the thread uses 25% of a "
        "core, waits "
        "1.25 a frame\n");
    /* Lanes by lanes, and of each all lengths; the model has as many as the most. */
    assert_int_equal(bench("--words 2,1 --lanes 2,4,1 --runs 1 --max-frames 3" WITH_MODEL), 0);
    static const int rows[][2] = {{2, 2}, {2, 1}, {4, 2}, {4, 1}, {1, 2}, {1, 1}};
    const char *at = strstr(typed_printed, "GB/s\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int lanes, words;
        assert_int_equal(sscanf(at + 5, "%d %d ", &lanes, &words), 2);
        assert_true(lanes == rows[i][0] && words == rows[i][1]);
        at = strstr(at + 5, "a frame\n") + 3;
    }
    assert_int_equal(machine.lanes, 4);
}

static size_t count_blanks(const char *text)
{
    size_t n = 0;
    for (; *text; text++) {
        n += *text == ' ';
    }
    return n;
}

static void a_text_has_so_many_words_and_its_frames(void **state)
{
    (void)state;
    assert_int_equal(bench("--json --words 6,1 --lanes 2 --runs 1" WITH_MODEL), 0);
    static const int frames[] = {24, 24, 24, 24, 24, 24, 30, 30, 5, 5, 5, 5, 5, 5, 5, 5};
    assert_int_equal(n_opened, sizeof frames / sizeof *frames);
    for (int i = 0; i < n_opened; i++) {
        assert_int_equal(opened[i].max_frames, frames[i]);
        assert_false(opened[i].guard);
        assert_string_equal(opened[i].text, i < 8 ? "The lamp above the harbour had" : "The");
    }
    assert_int_equal(bench("--json --words 1 --runs 1 --max-frames 25" WITH_MODEL), 0);
    assert_int_equal(opened[2].max_frames, 24);
    assert_int_equal(opened[3].max_frames, 25);
    /* Behind its last word the passage begins anew. */
    assert_int_equal(bench("--json --words 240 --runs 1 --max-frames 3" WITH_MODEL), 0);
    const char *end = strstr(opened[0].text, " her work. The lamp above ");
    assert_non_null(end);
    assert_null(strstr(opened[0].text, "  "));
    assert_int_equal(count_blanks(opened[0].text), 239);
}

static void a_terminal_shows_which_run_it_is(void **state)
{
    (void)state;
    static const char *const lines[] = {"2 words, 1 lanes: run 1 of 4",
        "\r\033[K2 words, 1 lanes: run 2 of 4", "\r\033[K2 words, 1 lanes: run 4 of 4\r\033[K"};
    typed_parse(COMMAND_BENCH, "--json --words 2 --runs 1" WITH_MODEL);
    for (int quiet = 0; quiet < 2; quiet++) {
        typed.settings.quiet.given = quiet;
        n_runs = 0;
        printed_begin("printed");
        terminal_begin();
        int code = command_bench(&typed);
        const char *shown = terminal_end();
        free(printed_end("printed"));
        assert_int_equal(code, 0);
        for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
            assert_int_equal(strstr(shown, lines[i]) != NULL, !quiet);
        }
        assert_int_equal(strncmp(shown, lines[0], strlen(lines[0])) == 0, !quiet);
    }
}

static void a_failure_ends_it(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int left;
    } rows[] = {{"open_model", 0}, {"open", 0}, {"open", 1}, {"text", 0}, {"text", 1}, {"finish", 0},
        {"finish", 1}, {"read", 0}, {"read", 20}, {"take", 0}, {"take", 1}, {"take", 30}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char says[64];
        failing.name = rows[i].name;
        failing.left = rows[i].left;
        snprintf(says, sizeof says, "utter: %s fails\n", rows[i].name);
        assert_int_equal(bench("--json --words 2 --lanes 2,3 --runs 2" WITH_MODEL), 2);
        assert_string_equal(typed_said, says);
        assert_string_equal(typed_printed, "");
    }
    /* What was told is told once. */
    assert_int_equal(bench("--json --words 2 --runs 2 -v @none.voice" WITH_MODEL), 1);
    assert_string_equal(typed_said,
        typed_in_folder(
            "utter: @none.voice: cannot open: No such file or directory (check the name)\n"));
    assert_string_equal(typed_printed, "");
}

/* Each piece of memory that it asks for, but those of the words that were typed. */
static void without_memory_there_is_no_row(void **state)
{
    (void)state;
    typed_parse(COMMAND_BENCH, "--json --words 2 --runs 1" WITH_MODEL);
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, i)
    {
        machine.now_ns = n_runs = 0;
        heard_begin();
        printed_begin("printed");
        int code = command_bench(&typed);
        free(printed_end("printed"));
        const char *why = heard_end();
        if (support_failed()) {
            assert_string_equal(why, "utter: out of memory\n");
        }
        assert_int_equal(code, support_failed() ? 2 : 0);
        assert_int_equal(n_open + machine.n_models, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_number_is_of_its_part),
        cmocka_unit_test(a_row_is_a_line),
        cmocka_unit_test(a_text_has_so_many_words_and_its_frames),
        cmocka_unit_test(a_terminal_shows_which_run_it_is),
        cmocka_unit_test(a_failure_ends_it),
        cmocka_unit_test(without_memory_there_is_no_row),
    };
    return cmocka_run_group_tests_name("bench", tests, typed_start, typed_end);
}
