/* SPDX-License-Identifier: Apache-2.0
 * How long the first sound takes with each of some voices, in turns in one process, so that a busy machine is as busy
 * for all: the first utterance with a voice, and the median of the later ones, which go on from its snapshot.
 *
 *     first_sound [-d DEVICE] [-t THREADS] MODEL ROUNDS [full:|stream:]VOICE...     VOICE: a preset or a voice file
 *
 * A line for each voice: prompt rows, rows from the snapshot, then wall and processor time in ms of the first utterance
 * and of the median later one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "utter.h"

enum { MOST_ROUNDS = 100 };

struct candidate {
    const char *name;
    utter_voice *voice;
    utter_layout layout;
    double wall[MOST_ROUNDS], processor[MOST_ROUNDS];
    utter_stream_stats stats;
};

/* Thirteen words; one differs from round to round, so that nothing but the voice is the same. */
static const char *const NUMBERS[] = {"one", "two", "three", "four", "five", "six", "seven"};

static void check(utter_status status, const utter_error *error)
{
    if (status != UTTER_OK) {
        fprintf(stderr, "first_sound: %s\n", error->text);
        exit(1);
    }
}

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void speak(utter_model *model, struct candidate *c, int round)
{
    utter_stream_options options;
    utter_stream *stream;
    utter_error error = {0};
    char text[160];
    float pcm[1920];
    size_t n;
    snprintf(text, sizeof text, "The %s of us walked along the river and came to the old market.",
        NUMBERS[round % 7]);
    utter_stream_options_init(&options, model);
    options.voice = c->voice;
    options.layout = c->layout;
    options.max_frames = 1;
    check(utter_stream_open(&stream, model, &options, &error), &error);
    double wall = seconds(CLOCK_MONOTONIC), processor = seconds(CLOCK_PROCESS_CPUTIME_ID);
    check(utter_stream_text(stream, text, strlen(text), &error), &error);
    check(utter_stream_finish(stream, &error), &error);
    check(utter_stream_read(stream, pcm, 1920, &n, &error), &error);
    c->wall[round] = 1000 * (seconds(CLOCK_MONOTONIC) - wall);
    c->processor[round] = 1000 * (seconds(CLOCK_PROCESS_CPUTIME_ID) - processor);
    c->stats.size = sizeof c->stats;
    utter_stream_get_stats(stream, &c->stats);
    utter_stream_free(&stream);
}

static void find_voice(struct candidate *c, const utter_model *model, const char *typed)
{
    utter_error error = {0};
    c->name = typed;
    c->layout = strncmp(typed, "full:", 5) == 0     ? UTTER_LAYOUT_FULL
                : strncmp(typed, "stream:", 7) == 0 ? UTTER_LAYOUT_STREAM
                                                    : UTTER_LAYOUT_AUTO;
    const char *colon = strchr(typed, ':'), *name = colon ? colon + 1 : typed;
    check(strstr(name, ".voice") ? utter_voice_load(&c->voice, name, &error)
                                 : utter_voice_preset(&c->voice, model, name, &error),
        &error);
}

static int rising(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, rising);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

int main(int n_arguments, char **arguments)
{
    utter_model *model;
    utter_model_options options;
    utter_error error = {0};
    utter_model_options_init(&options);
    for (int letter; (letter = getopt(n_arguments, arguments, "d:t:")) != -1;) {
        if (letter == 'd') {
            options.device = optarg;
        } else if (letter == 't') {
            options.n_threads = atoi(optarg);
        } else {
            return 1;
        }
    }
    char **voices = arguments + optind + 2;
    int n = n_arguments - optind - 2, rounds = n > 0 ? atoi(arguments[optind + 1]) : 0;
    if (n < 1 || rounds < 2 || rounds > MOST_ROUNDS) {
        fprintf(stderr,
            "usage: first_sound [-d DEVICE] [-t THREADS] MODEL ROUNDS [full:|stream:]VOICE...\n");
        return 1;
    }
    check(utter_model_open(&model, arguments[optind], &options, &error), &error);
    struct candidate *candidates = calloc((size_t)n, sizeof *candidates);
    if (!candidates) {
        return 2;
    }
    for (int i = 0; i < n; i++) {
        find_voice(&candidates[i], model, voices[i]);
    }
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < n; i++) {
            speak(model, &candidates[i], round);
        }
    }
    printf("rows  kept     first wall, processor     later wall, processor\n");
    for (int i = 0; i < n; i++) {
        struct candidate *c = &candidates[i];
        printf("%4d  %4d  %11.2f %11.2f  %11.2f %11.2f  %s\n", c->stats.n_rows, c->stats.n_kept_rows,
            c->wall[0], c->processor[0], median(c->wall + 1, rounds - 1),
            median(c->processor + 1, rounds - 1), c->name);
        utter_voice_free(&c->voice);
    }
    free(candidates);
    utter_model_close(&model);
    return 0;
}
