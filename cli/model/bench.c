/* SPDX-License-Identifier: Apache-2.0
 * utter bench: one row for each length of text and number of lanes. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "base/minmax.h"
#include "cli/model/bandwidth.h"
#include "cli/model/checkpoint.h"
#include "cli/options.h"
#include "cli/report.h"

enum {
    MOST_LANES = 256,
    MOST_WORDS = 1000,
    MOST_ROWS = 16,
    WARM_UPS = 3,
    WARM_FRAMES = 24,
    FRAMES_A_WORD = 5
};

/* Words of the texts, over and over. */
static const char passage[] = "The lamp above the harbour had burned every night for sixty years, and "
                              "on most of those nights nobody "
                              "had looked at it. Sailors trusted it the way they trusted the floor of "
                              "their own kitchen. When the old "
                              "keeper fell ill, his daughter climbed the hundred and forty steps, "
                              "cleaned the glass, and wound the clock "
                              "that turns the mirror. She wrote down the hour, the wind and the height "
                              "of the water, as he had always "
                              "done. By morning three boats had come home through the fog. None of the "
                              "men on board knew that someone "
                              "else had kept the light, and she thought that this was the best thing "
                              "that anyone could say about her work.";

/* Values of one row, one for each frame, stream or run. */
struct series {
    double *at;
    size_t n, capacity;
};

static bool series_add(struct series *series, double value)
{
    if (series->n == series->capacity) {
        size_t capacity = series->capacity ? 2 * series->capacity : 1024;
        double *grown = realloc(series->at, capacity * sizeof *grown);
        if (!grown) {
            return false;
        }
        series->at = grown;
        series->capacity = capacity;
    }
    series->at[series->n++] = value;
    return true;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value that `share` of the values do not exceed (nearest rank); 0 of none. */
static double series_rank(struct series *series, double share)
{
    if (series->n == 0) {
        return 0;
    }
    qsort(series->at, series->n, sizeof *series->at, compare_doubles);
    size_t rank = (size_t)(share * (double)series->n);
    rank += (double)rank < share * (double)series->n;
    return series->at[rank > 0 ? rank - 1 : 0];
}

static double series_median(struct series *series)
{
    if (series->n == 0) {
        return 0;
    }
    qsort(series->at, series->n, sizeof *series->at, compare_doubles);
    return (series->at[(series->n - 1) / 2] + series->at[series->n / 2]) / 2;
}

struct row {
    int words, lanes;
    double frames; /* of all lanes in the last run */
    struct series ttfc, frame, talker, predictor, vocoder, prefill, wall, rtf;
    struct series prompt; /* of ttfc: text -> rows */
    struct series made;   /* of ttfc: the first frame and its sound */
    struct series rest;   /* of ttfc: what no stage accounts for */
    struct series wait;   /* of a frame: the thread waits for the device */
    struct series busy;   /* of a run: the thread's share of a core */
};

static void row_free(struct row *row)
{
    struct series *all[] = {&row->ttfc, &row->frame, &row->talker, &row->predictor, &row->vocoder,
        &row->prefill, &row->wall, &row->rtf, &row->prompt, &row->made, &row->rest, &row->wait,
        &row->busy};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        free(all[i]->at);
    }
}

struct bench {
    const struct settings *settings;
    utter_model *model;
    utter_model_info info;
    utter_voice *voice;
    utter_stream *streams[MOST_LANES];
    double first_s[MOST_LANES];           /* when the stream's first samples came; 0: not yet */
    utter_stream_stats first[MOST_LANES]; /* as they were then */
    bool ended[MOST_LANES];
    double limit_gb; /* 1e9 bytes a second that this machine reads */
};

/* The first n words of the passage, repeated as needed. The caller frees. */
static char *text_of(int n_words)
{
    char *text = malloc((size_t)n_words * 16 + 1);
    if (!text) {
        return NULL;
    }
    char *out = text;
    const char *at = passage;
    for (int i = 0; i < n_words; i++) {
        size_t length = strcspn(at, " ");
        memcpy(out, at, length);
        out += length;
        *out++ = i + 1 < n_words ? ' ' : 0;
        at = at[length] ? at + length + 1 : passage;
    }
    return text;
}

static void note_first(struct bench *bench, int lane, double begin_s)
{
    if (bench->first_s[lane] == 0) {
        bench->first_s[lane] = clock_seconds() - begin_s;
        bench->first[lane] = (utter_stream_stats){.size = sizeof *bench->first};
        utter_stream_get_stats(bench->streams[lane], &bench->first[lane]);
    }
}

enum { PIECE = 4 * 1920 };

/* Takes what the stream has; sets ended and first_s. */
static utter_status drain(struct bench *bench, int lane, double begin_s, utter_error *error)
{
    float pcm[PIECE];
    size_t n = 0;
    utter_status status;
    while ((status = utter_stream_take(bench->streams[lane], pcm, PIECE, &n, error)) == UTTER_OK) {
        note_first(bench, lane, begin_s);
    }
    bench->ended[lane] = status == UTTER_END;
    return status < 0 ? status : UTTER_OK;
}

/* What a program does that wants the sound of all lanes: it reads one that goes on, which moves the others too. */
static utter_status read_lanes(
    struct bench *bench, const struct row *row, double begin_s, utter_error *error)
{
    float pcm[PIECE];
    size_t n = 0;
    int lane = 0;
    while (lane < row->lanes - 1 && bench->ended[lane]) {
        lane++;
    }
    utter_status status = utter_stream_read(bench->streams[lane], pcm, PIECE, &n, error);
    if (status == UTTER_OK) {
        note_first(bench, lane, begin_s);
    }
    status = status < 0 ? status : UTTER_OK;
    for (int i = 0; i < row->lanes && status == UTTER_OK; i++) {
        status = bench->ended[i] ? UTTER_OK : drain(bench, i, begin_s, error);
    }
    return status;
}

/* Frames of the lane that has most. */
static int most_frames(const struct bench *bench, const struct row *row)
{
    int most = 0;
    for (int i = 0; i < row->lanes; i++) {
        utter_stream_stats stats = {.size = sizeof stats};
        utter_stream_get_stats(bench->streams[i], &stats);
        most = max(stats.n_frames, most);
    }
    return most;
}

static utter_status open_streams(
    struct bench *bench, const struct row *row, const char *text, bool kept, utter_error *error)
{
    utter_stream_options options;
    int code = checkpoint_stream_options(&options, &bench->voice, bench->model, bench->settings);
    if (code) {
        return UTTER_END; /* it has been said */
    }
    options.guard = false;
    options.max_frames =
        bench->settings->max_frames.given ? options.max_frames : FRAMES_A_WORD * row->words;
    if (!kept && options.max_frames > WARM_FRAMES) {
        options.max_frames = WARM_FRAMES;
    }
    utter_status status = UTTER_OK;
    for (int i = 0; i < row->lanes && status == UTTER_OK; i++) {
        bench->first_s[i] = 0;
        bench->ended[i] = false;
        status = utter_stream_open(&bench->streams[i], bench->model, &options, error);
    }
    for (int i = 0; i < row->lanes && status == UTTER_OK; i++) {
        status = utter_stream_text(bench->streams[i], text, strlen(text), error);
        if (status == UTTER_OK) {
            status = utter_stream_finish(bench->streams[i], error);
        }
    }
    return status;
}

static void close_streams(struct bench *bench)
{
    for (int i = 0; i < MOST_LANES; i++) {
        utter_stream_free(&bench->streams[i]);
    }
    utter_voice_free(&bench->voice);
}

/* Where the time of a stream's first sound went. */
static bool keep_first(const struct bench *bench, struct row *row, int lane)
{
    const utter_stream_stats *s = &bench->first[lane];
    double made_s = s->talker_s + s->predictor_s + s->vocoder_s;
    double rest_s = bench->first_s[lane] - s->prompt_s - s->prefill_s - made_s;
    return series_add(&row->prompt, 1000 * s->prompt_s) && series_add(&row->made, 1000 * made_s) &&
           series_add(&row->rest, 1000 * rest_s);
}

/* Processor time of this thread. */
static double thread_seconds(void)
{
    struct timespec t;
    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0 ? (double)t.tv_sec + 1e-9 * (double)t.tv_nsec
                                                           : 0;
}

static bool keep_run(struct bench *bench, struct row *row, double wall_s, double thread_s)
{
    double frames = 0;
    bool kept = series_add(&row->wall, 1000 * wall_s) && series_add(&row->busy, thread_s / wall_s);
    for (int i = 0; i < row->lanes; i++) {
        utter_stream_stats stats = {.size = sizeof stats};
        utter_stream_get_stats(bench->streams[i], &stats);
        double per_frame = stats.n_frames > 0 ? 1000.0 / stats.n_frames : 0;
        frames += stats.n_frames;
        kept = kept && keep_first(bench, row, i) && series_add(&row->wait, per_frame * stats.wait_s) &&
               series_add(&row->ttfc, 1000 * bench->first_s[i]) &&
               series_add(&row->prefill, 1000 * stats.prefill_s) &&
               series_add(&row->talker, per_frame * stats.talker_s) &&
               series_add(&row->predictor, per_frame * stats.predictor_s) &&
               series_add(&row->vocoder, per_frame * stats.vocoder_s);
    }
    row->frames = frames;
    double audio_s = frames * bench->info.frame_samples / bench->info.sample_rate;
    return kept && series_add(&row->rtf, audio_s > 0 ? wall_s / audio_s : 0);
}

/* Speaks the text on all lanes; `kept` runs go into the row. */
static int run_once(struct bench *bench, struct row *row, const char *text, bool kept)
{
    utter_error error = {0};
    double begin_s = clock_seconds(), thread_s = thread_seconds();
    utter_status status = open_streams(bench, row, text, kept, &error);
    int open = row->lanes;
    bool stored = true;
    while (status == UTTER_OK && open > 0) {
        double step_s = clock_seconds();
        int before = most_frames(bench, row);
        bool first = bench->first_s[0] == 0;
        status = read_lanes(bench, row, begin_s, &error);
        open = 0;
        for (int i = 0; i < row->lanes; i++) {
            open += !bench->ended[i];
        }
        /* The first step holds the prefill, and has a column of its own. */
        int n = most_frames(bench, row) - before;
        if (kept && n > 0 && !first && stored) {
            stored = series_add(&row->frame, 1000 * (clock_seconds() - step_s) / n);
        }
    }
    double wall_s = clock_seconds() - begin_s;
    if (status == UTTER_OK && kept) {
        stored = stored && keep_run(bench, row, wall_s, thread_seconds() - thread_s);
    }
    close_streams(bench);
    if (status != UTTER_OK) {
        return status == UTTER_END ? 1 : fail_status(status, &error);
    }
    return stored ? 0 : fail(2, "out of memory");
}

static double peak_megabytes(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (double)usage.ru_maxrss * 1024 * 1e-6 : 0;
}

/* 1e9 bytes of weights a second, over a whole frame. */
static double weight_rate(const struct bench *bench, double frame_ms)
{
    return frame_ms > 0 ? 1e-6 * (double)bench->info.frame_bytes / frame_ms : 0;
}

/* Milliseconds that reading so many bytes takes at the least. */
static double bound_ms(const struct bench *bench, uint64_t bytes)
{
    return bench->limit_gb > 0 ? 1e-6 * (double)bytes / bench->limit_gb : 0;
}

static int print_row_json(const struct bench *bench, struct row *row)
{
    char model[64];
    snprintf(model, sizeof model, "%s %s", bench->info.size_name, bench->info.kind_name);
    double frame_ms = series_median(&row->frame);
    json_t *object = json_pack("{s:s,s:s,s:s,s:s,s:i,s:i,s:i,s:{s:f,s:f},s:{s:f,s:f}}", "model", model,
        "device", bench->info.device, "weights", bench->info.weights, "kernel", bench->info.kernels,
        "lanes", row->lanes, "words", row->words, "frames", (int)row->frames, "ttfc_ms", "median",
        series_median(&row->ttfc), "p95", series_rank(&row->ttfc, 0.95), "frame_ms", "median", frame_ms,
        "p95", series_rank(&row->frame, 0.95));
    json_t *rest = json_pack("{s:{s:f,s:f,s:f,s:f},s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:f}",
        "first_ms", "prompt", series_median(&row->prompt), "prefill", series_median(&row->prefill),
        "frame", series_median(&row->made), "rest", series_median(&row->rest), "wait_ms",
        series_median(&row->wait), "thread_share", series_median(&row->busy), "talker_ms",
        series_median(&row->talker), "predictor_ms", series_median(&row->predictor), "vocoder_ms",
        series_median(&row->vocoder), "prefill_ms", series_median(&row->prefill), "wall_ms",
        series_median(&row->wall), "rtf", series_median(&row->rtf), "peak_mb", peak_megabytes(),
        "gb_per_s", weight_rate(bench, frame_ms), "limit_gb_per_s", bench->limit_gb);
    json_t *bounds =
        json_pack("{s:f,s:f,s:f}", "talker", bound_ms(bench, bench->info.talker_frame_bytes),
            "predictor", bound_ms(bench, bench->info.predictor_frame_bytes), "vocoder",
            bound_ms(bench, bench->info.vocoder_frame_bytes));
    int lacks = json_object_update(object, rest);
    lacks |= json_object_set_new(object, "bound_ms", bounds);
    json_decref(rest);
    if (lacks) {
        json_decref(object);
        object = NULL;
    }
    int code = report_json(object);
    fflush(stdout);
    return code;
}

static int print_row(const struct bench *bench, struct row *row)
{
    double frame_ms = series_median(&row->frame);
    printf(
        "%5d %5d %6.0f  %7.1f %7.1f  %7.2f %7.2f  %7.2f %7.2f %7.2f  %7.1f  %8.1f %6.3f  %7.0f %6.2f\n",
        row->lanes, row->words, row->frames, series_median(&row->ttfc), series_rank(&row->ttfc, 0.95),
        frame_ms, series_rank(&row->frame, 0.95), series_median(&row->talker),
        series_median(&row->predictor), series_median(&row->vocoder), series_median(&row->prefill),
        series_median(&row->wall), series_median(&row->rtf), peak_megabytes(),
        weight_rate(bench, frame_ms));
    printf("      ttfc: prompt %.2f, prefill %.2f, frame %.2f, rest %.2f; the thread uses %.0f%% of a "
           "core, "
           "waits %.2f a frame\n",
        series_median(&row->prompt), series_median(&row->prefill), series_median(&row->made),
        series_median(&row->rest), 100 * series_median(&row->busy), series_median(&row->wait));
    fflush(stdout);
    return 0;
}

static void print_head(const struct bench *bench)
{
    const utter_model_info *i = &bench->info;
    put_line("%s %s, %s, weights %s, kernels %s, threads %d", i->size_name, i->kind_name, i->device,
        i->weights, i->kernels, i->n_threads);
    printf("the memory gives %.2f GB/s; a frame reads %.1f MB of weights\n", bench->limit_gb,
        1e-6 * (double)i->frame_bytes);
    printf("reading them takes: talker %.2f ms, predictor %.2f, vocoder %.2f\n",
        bound_ms(bench, i->talker_frame_bytes), bound_ms(bench, i->predictor_frame_bytes),
        bound_ms(bench, i->vocoder_frame_bytes));
    printf("times in ms, median and 95th percentile of %d runs after %d that warm up\n\n",
        (int)bench->settings->runs.integer, WARM_UPS);
    printf("lanes words frames     ttfc     p95    frame     p95   talker predict vocoder  prefill     "
           " wall    rtf"
           "  peak MB   GB/s\n");
}

static int measure_row(struct bench *bench, int words, int lanes)
{
    struct row row = {.words = words, .lanes = lanes};
    int runs = (int)bench->settings->runs.integer;
    char *text = text_of(words);
    int code = text ? 0 : fail(2, "out of memory");
    for (int i = 0; i < WARM_UPS + runs && code == 0; i++) {
        if (!bench->settings->quiet.given) {
            progress("%d words, %d lanes: run %d of %d", words, lanes, i + 1, WARM_UPS + runs);
        }
        code = run_once(bench, &row, text, i >= WARM_UPS);
    }
    progress_clear();
    if (code == 0) {
        code = bench->settings->json.given ? print_row_json(bench, &row) : print_row(bench, &row);
    }
    free(text);
    row_free(&row);
    return code;
}

/* "1,2,4" -> numbers from 1 to `most`; how many, or 0 after a message. */
static int parse_list(int *list, const char *name, const char *text, int most)
{
    int n = 0;
    const char *at = text;
    do {
        char *end;
        long value = strtol(at, &end, 10);
        bool digit = *at >= '0' && *at <= '9';
        if (!digit || value < 1 || value > most || (*end && *end != ',') || n == MOST_ROWS) {
            say_no("--%s: '%s' is not a list of at most %d whole numbers from 1 to %d", name, text,
                MOST_ROWS, most);
            return 0;
        }
        list[n++] = (int)value;
        at = *end ? end + 1 : NULL;
    } while (at);
    return n;
}

int command_bench(const struct invocation *invocation)
{
    struct bench bench = {.settings = &invocation->settings};
    int words[MOST_ROWS], lanes[MOST_ROWS], most_lanes = 1;
    int n_words = parse_list(words, "words", bench.settings->words.text, MOST_WORDS);
    int n_lanes = n_words ? parse_list(lanes, "lanes", bench.settings->lanes.text, MOST_LANES) : 0;
    if (n_lanes == 0 || !checkpoint_folder(bench.settings)) {
        return 1;
    }
    for (int i = 0; i < n_lanes; i++) {
        most_lanes = max(lanes[i], most_lanes);
    }
    bench.limit_gb = bandwidth_measure((int)bench.settings->threads.integer);
    int code = checkpoint_open(&bench.model, bench.settings, most_lanes);
    if (code == 0) {
        bench.info = checkpoint_info(bench.model);
        if (bench.info.device_gb_per_s > 0) {
            bench.limit_gb = bench.info.device_gb_per_s;
        }
        if (!bench.settings->json.given) {
            print_head(&bench);
        }
    }
    for (int i = 0; i < n_lanes && code == 0; i++) {
        for (int j = 0; j < n_words && code == 0; j++) {
            code = measure_row(&bench, words[j], lanes[i]);
        }
    }
    utter_model_close(&bench.model);
    return code;
}
