/* SPDX-License-Identifier: Apache-2.0
 * Reads a text aloud as utter.h's readings do and tells what became of each piece, for the scripts of tools/quality.
 *
 *     read_pieces [-m MODEL] [-v VOICE] [-s SEED] [-l LANES] [-p LETTERS] [-t THREADS] [-L] [-w] TEXTFILE [SOUNDFILE]
 *
 * -l: so many pieces at a time; -p: the length of a piece; -L: live. SOUNDFILE gets 32-bit floats, 24 kHz, mono. Lines
 * of JSON on standard output: one for each piece as it ends (-w: and one for each word, in samples and bytes of the
 * text), then one for the whole. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "utter.h"

enum { TEXT_BYTES = 4096, MOST_SAMPLES = 9600 };

struct asked {
    const char *model, *voice, *text, *sound;
    unsigned long long seed;
    int lanes, letters, threads;
    bool live, words;
};

static void check(utter_status status, const utter_error *error)
{
    if (status < 0) {
        fprintf(stderr, "read_pieces: %s\n", error->text);
        exit(1);
    }
}

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct asked read_options(int argc, char **argv)
{
    struct asked a = {.lanes = 1};
    for (int option; (option = getopt(argc, argv, "m:v:s:l:p:t:Lw")) != -1;) {
        switch (option) {
        case 'm':
            a.model = optarg;
            break;
        case 'v':
            a.voice = optarg;
            break;
        case 's':
            a.seed = strtoull(optarg, NULL, 10);
            break;
        case 'l':
            a.lanes = atoi(optarg);
            break;
        case 'p':
            a.letters = atoi(optarg);
            break;
        case 't':
            a.threads = atoi(optarg);
            break;
        case 'L':
            a.live = true;
            break;
        case 'w':
            a.words = true;
            break;
        default: /* getopt has said why */
            exit(1);
        }
    }
    if (optind >= argc) {
        fprintf(stderr, "read_pieces: name a file of text\n");
        exit(1);
    }
    a.text = argv[optind];
    a.sound = argv[optind + 1];
    return a;
}

static void on_piece(void *user, const utter_piece *p)
{
    (void)user;
    printf("{\"piece\":%llu,\"at\":%llu,\"bytes\":%llu,\"seed\":%llu,\"finish\":\"%s\",\"tries\":%d,"
           "\"whole\":%s,\"frames\":%zu,\"begin\":%llu,\"end\":%llu}\n",
        (unsigned long long)p->index, (unsigned long long)p->at, (unsigned long long)p->bytes,
        (unsigned long long)p->seed, utter_finish_text(p->finish), p->tries,
        p->whole ? "true" : "false", p->n_frames, (unsigned long long)p->begin,
        (unsigned long long)p->end);
    fflush(stdout);
}

/* Words that will not change any more; they come once. */
static void print_words(utter_reading *reading)
{
    size_t n;
    const utter_word *words = utter_reading_words(reading, NULL, &n);
    for (size_t i = 0; i < n; i++) {
        if (words[i].final) {
            printf("{\"word\":%llu,\"bytes\":%llu,\"start\":%llu,\"end\":%llu}\n",
                (unsigned long long)words[i].at, (unsigned long long)words[i].bytes,
                (unsigned long long)words[i].start, (unsigned long long)words[i].end);
        }
    }
}

/* Gives the text as it is wanted, so that little of it is in memory, and writes the sound. Returns its samples. */
static unsigned long long read_all(utter_reading *reading, FILE *text, FILE *sound, double *first)
{
    char bytes[TEXT_BYTES];
    float pcm[MOST_SAMPLES];
    unsigned long long total = 0;
    utter_error error = {0};
    utter_status status = UTTER_AGAIN;
    while (status != UTTER_END) {
        size_t n = 0;
        status = utter_reading_read(reading, pcm, MOST_SAMPLES, &n, &error);
        check(status, &error);
        print_words(reading);
        if (n > 0) {
            *first = *first > 0 ? *first : seconds(CLOCK_MONOTONIC);
            total += n;
            if (sound && fwrite(pcm, sizeof *pcm, n, sound) != n) {
                perror("read_pieces");
                exit(1);
            }
        } else if (status == UTTER_AGAIN) {
            size_t got = fread(bytes, 1, sizeof bytes, text);
            check(got ? utter_reading_text(reading, bytes, got, &error)
                      : utter_reading_finish(reading, &error),
                &error);
        }
    }
    return total;
}

int main(int argc, char **argv)
{
    struct asked a = read_options(argc, argv);
    utter_model_options m;
    utter_stream_options v;
    utter_reading_options o;
    utter_model *model;
    utter_reading *reading;
    utter_voice *voice = NULL;
    utter_error error = {0};
    FILE *text = fopen(a.text, "rb"), *sound = a.sound ? fopen(a.sound, "wb") : NULL;
    if (!text || (a.sound && !sound)) {
        perror("read_pieces");
        return 1;
    }
    utter_model_options_init(&m);
    m.n_lanes = a.lanes;
    m.n_threads = a.threads;
    check(utter_model_open(&model, a.model, &m, &error), &error);
    utter_stream_options_init(&v, model);
    utter_reading_options_init(&o);
    if (a.voice) {
        check(strstr(a.voice, ".voice") ? utter_voice_load(&voice, a.voice, &error)
                                        : utter_voice_preset(&voice, model, a.voice, &error),
            &error);
    }
    v.voice = voice;
    v.seed = a.seed;
    v.words = a.words;
    o.lanes = a.lanes;
    o.live = a.live;
    o.piece_length = a.letters;
    o.piece = on_piece;
    check(utter_reading_open(&reading, model, &v, &o, &error), &error);
    double begin = seconds(CLOCK_MONOTONIC), processor = seconds(CLOCK_PROCESS_CPUTIME_ID), first = 0;
    unsigned long long n_samples = read_all(reading, text, sound, &first);
    double took = seconds(CLOCK_MONOTONIC) - begin;
    processor = seconds(CLOCK_PROCESS_CPUTIME_ID) - processor;
    utter_reading_stats stats = {.size = sizeof stats};
    utter_reading_get_stats(reading, &stats);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"finish\":\"%s\",\"pieces\":%llu,\"said_again\":%llu,\"not_whole\":%llu,\"samples\":%llu,"
           "\"first_s\":%.6f,\"wall_s\":%.3f,\"processor_s\":%.3f,\"peak_kb\":%ld}\n",
        utter_finish_text(stats.finish), (unsigned long long)stats.n_pieces,
        (unsigned long long)stats.n_retries, (unsigned long long)stats.n_broken, n_samples,
        first - begin, took, processor, usage.ru_maxrss);
    utter_reading_free(&reading);
    utter_voice_free(&voice);
    utter_model_close(&model);
    fclose(text);
    return sound && fclose(sound) != 0;
}
