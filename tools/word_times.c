/* SPDX-License-Identifier: Apache-2.0
 * When a model says each word: of its own speech, or led along recordings of the text (teacher-forced), for which the
 * times are known otherwise.
 *
 *     word_times [--cuda] MODEL [HEADS] < LIST
 *
 * LIST has a line for each utterance: recording, or - for the model's own speech, or = for that with the text given
 * byte by byte; voice; full or stream; seed; text; between them tabulators. Prints a line of JSON for each: the words
 * as they were in the end, when each was first told (`told`, in frames) and with which start (`first`); samples of
 * recordings count from the recording's beginning. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audio/sound_read.h"
#include "base/memory.h"
#include "engine/engine.h"

/* Recordings begin behind so many frames of silence, as the built-in voice has learnt it in the stream layout; the full
 * layout leaves them out. */
enum { LEAD = 2, MOST_WORDS = 4096, MOST_LINE = 1 << 16 };

struct line {
    const char *sound, *voice, *text;
    utter_layout layout;
    uint64_t seed;
};

/* What was told first of each word. */
struct first {
    size_t n;
    uint64_t start[MOST_WORDS];
    int frame[MOST_WORDS];
};

static void must(utter_status status, const utter_error *error)
{
    if (status < 0) {
        fprintf(stderr, "word_times: %s\n", error->text);
        exit(1);
    }
}

static void note(struct first *first, const struct words *w, int frame)
{
    for (; first->n < w->n_told && first->n < MOST_WORDS; first->n++) {
        first->start[first->n] = w->at[first->n].start;
        first->frame[first->n] = frame;
    }
}

static void print_words(const char *finish, const struct words *w, const struct first *first, int lead)
{
    printf(
        "{\"n_samples\": %lld, \"n_words\": %zu, \"approximate\": %s, \"finish\": \"%s\", \"words\": [",
        (long long)w->n_samples - lead, w->segmenter.n, words_approximate(w) ? "true" : "false",
        finish);
    for (size_t i = 0; i < w->n_told; i++) {
        const utter_word *word = &w->at[i];
        bool known = i < first->n;
        printf("%s{\"at\": %llu, \"bytes\": %llu, \"start\": %lld, \"end\": %lld, \"certainty\": %.3f, "
               "\"first\": %lld, \"told\": %d, \"skipped\": %s}",
            i ? ", " : "", (unsigned long long)word->at, (unsigned long long)word->bytes,
            (long long)word->start - lead, (long long)word->end - lead, (double)word->certainty,
            (long long)(known ? first->start[i] : word->start) - lead, known ? first->frame[i] : -1,
            word->skipped ? "true" : "false");
    }
    printf("]}\n");
}

/* ---- Its own speech ---- */

static void speak(struct engine *engine, const struct line *line, const utter_voice *voice)
{
    utter_error error;
    struct first first = {0};
    const struct config *c = engine->context.model->config;
    utter_stream_options o = {.voice = voice,
        .layout = line->layout,
        .seed = line->seed,
        .talker = c->talker_sampling,
        .predictor = c->predictor_sampling};
    o.max_frames = c->max_new_tokens - 1;
    o.guard = o.words = true;
    utter_stream *stream;
    must(engine_open_stream(&stream, engine, &o, &error), &error);
    static float pcm[1 << 16];
    size_t n_text = strlen(line->text), each = line->sound[0] == '=' ? 1 : n_text;
    for (size_t at = 0; at < n_text; at += each) {
        must(stream_text(stream, line->text + at, each, &error), &error);
        if (each < n_text) { /* what can be said of it is */
            must(engine_step(engine, false, &error), &error);
            stream_drain(stream, pcm, sizeof pcm / sizeof *pcm);
        }
    }
    must(stream_finish(stream, &error), &error);
    while (stream->finish == UTTER_FINISH_NONE && engine_step(engine, false, &error) == UTTER_OK) {
        note(&first, stream->words, stream->n_frames);
        stream_drain(stream, pcm, sizeof pcm / sizeof *pcm);
    }
    size_t n;
    stream_words(stream, &n);
    note(&first, stream->words, stream->n_frames);
    print_words(utter_finish_text(stream->finish), stream->words, &first, 0);
    engine_free_stream(&stream);
}

/* ---- Led along a recording ---- */

static int32_t *encode(struct engine *engine, const char *path, size_t *n_frames)
{
    utter_error error;
    const struct codec_config *codec = &engine->context.model->config->codec;
    size_t frame = (size_t)codec->frame_samples, n;
    float *sound;
    must(sound_read(&sound, &n, NULL, path, codec->sample_rate, NULL, &error), &error);
    size_t frames = (n + frame - 1) / frame + LEAD;
    float *pcm = memory_new(frames * frame, sizeof *pcm);
    int32_t *codes =
        memory_new(frames * (size_t)engine->context.model->config->n_codebooks, sizeof *codes);
    if (!pcm || !codes) {
        must(error_memory(&error, "a recording"), &error);
    }
    memcpy(pcm + LEAD * frame, sound, n * sizeof *pcm);
    must(engine->context.ops->encode(
             engine->context.backend, pcm, frames * frame, codes, frames, n_frames, NULL, NULL, &error),
        &error);
    memory_free(sound);
    memory_free(pcm);
    return codes;
}

static struct prompt *open_prompt(
    struct engine *engine, const struct line *line, const utter_voice *voice)
{
    utter_error error;
    struct prompt *prompt;
    const struct stream_context *m = &engine->context;
    struct prompt_request request = {
        .voice = voice, .language = NULL, .instruct = NULL, .layout = line->layout};
    must(prompt_open(&prompt, m->model->config, m->tokenizer, &request, &error), &error);
    must(prompt_text(prompt, line->text, strlen(line->text), &error), &error);
    must(prompt_finish(prompt, &error), &error);
    return prompt;
}

static void lead_frame(struct engine *engine, const struct prompt *prompt, struct words *w, int frame,
    const int32_t *codes)
{
    utter_error error;
    struct lane_out out;
    const int lane = 0;
    const struct stream_context *m = &engine->context;
    struct frame_in in = {lane, frame == 0 ? -1 : prompt_trailing(prompt, frame - 1), codes};
    const struct words_tokens tokens = {
        prompt_token_begins(prompt), prompt_text_tokens(prompt), prompt_finished(prompt)};
    must(m->ops->frame(m->backend, &in, 1, &error), &error);
    must(m->ops->collect(m->backend, lane, &out, &error), &error);
    words_frame(w, out.scores, out.n_scores, &tokens);
    must(m->ops->vocode(m->backend, &lane, 1, &error), &error);
    must(m->ops->collect(m->backend, lane, &out, &error), &error);
    words_sound(w, out.pcm, out.n_samples, &tokens);
}

/* Looks for a word that the codes do not say, as a stream does at its end. */
static void look_for_missed(struct engine *engine, const struct prompt *prompt,
    const utter_voice *voice, struct words *w, const int32_t *codes, int n_frames)
{
    utter_error error;
    const struct stream_context *m = &engine->context;
    struct lane_settings settings = {{.top_p = 1, .repetition_penalty = 1}, {.top_p = 1}, 0, 2};
    const struct doubt_in in = {m->ops, m->backend, &engine->context.snapshots, m->model->config, 0,
        &settings, voice, prompt, w, codes, n_frames};
    struct doubt doubt = {0};
    doubt_begin(&doubt, &in);
    while (doubt_pending(&doubt)) {
        must(doubt_step(&doubt, &in, m->model->config->max_positions, &error), &error);
    }
    doubt_fini(&doubt);
}

static void lead(struct engine *engine, const struct line *line, const utter_voice *voice)
{
    utter_error error;
    size_t n_frames;
    struct first first = {0};
    struct words w = {0};
    const struct stream_context *m = &engine->context;
    const struct config *c = m->model->config;
    int32_t *codes = encode(engine, line->sound, &n_frames);
    int skipped = line->layout == UTTER_LAYOUT_FULL ? LEAD : 0, n_rows;
    struct prompt *prompt = open_prompt(engine, line, voice);
    const struct row *rows = prompt_rows(prompt, &n_rows);
    struct lane_settings settings = {{.top_p = 1, .repetition_penalty = 1}, {.top_p = 1}, 0, 2};
    int begin = prompt_text_position(prompt), n = prompt_text_tokens(prompt);
    must(m->ops->lane_reset(m->backend, 0, &settings, &error), &error);
    must(m->ops->look(m->backend, 0, begin, begin + n + 1, &error), &error);
    must(m->ops->prefill(m->backend, 0, rows, n_rows, &error), &error);
    must(words_init(
             &w, &m->heads, n + 1, (int)n_frames, c->codec.frame_samples, c->codec.sample_rate, &error),
        &error);
    must(words_text(&w, line->text, strlen(line->text), &error), &error);
    must(words_finish(&w, &error), &error);
    for (int i = skipped; i < (int)n_frames; i++) {
        lead_frame(engine, prompt, &w, i - skipped, codes + (ptrdiff_t)i * c->n_codebooks);
        note(&first, &w, i - skipped);
    }
    const struct words_tokens tokens = {prompt_token_begins(prompt), n, true};
    look_for_missed(engine, prompt, voice, &w, codes + (ptrdiff_t)skipped * c->n_codebooks,
        (int)n_frames - skipped);
    words_end(&w, true, &tokens);
    note(&first, &w, (int)n_frames - skipped);
    print_words("led", &w, &first, (LEAD - skipped) * c->codec.frame_samples);
    words_fini(&w);
    prompt_close(&prompt);
    memory_free(codes);
}

/* ---- The program ---- */

static bool read_line(struct line *line, char *text)
{
    text[strcspn(text, "\n")] = 0;
    const char *field[5];
    for (int i = 0; i < 5; i++) {
        field[i] = text;
        text = i < 4 && text ? strchr(text, '\t') : NULL;
        if (i < 4 && !text) {
            return false;
        }
        if (text) {
            *text++ = 0;
        }
    }
    *line = (struct line){field[0], field[1], field[4],
        strcmp(field[2], "full") == 0 ? UTTER_LAYOUT_FULL : UTTER_LAYOUT_STREAM,
        strtoull(field[3], NULL, 10)};
    return true;
}

int main(int argc, char **argv)
{
    static struct engine engine;
    static char text[MOST_LINE];
    utter_error error;
    struct engine_options options = {.ops = &cpu_backend};
    options.backend.n_lanes = options.backend.n_threads = 1;
#ifdef UTTER_CUDA
    if (argc > 1 && strcmp(argv[1], "--cuda") == 0) {
        options.ops = &cuda_backend;
        argc--;
        argv++;
    }
#endif
    if (argc < 2) {
        fprintf(stderr, "word_times [--cuda] MODEL [HEADS] < LIST\n");
        return 1;
    }
    options.heads = argc > 2 ? argv[2] : NULL;
    must(engine_open(&engine, argv[1], &options, &error), &error);
    while (fgets(text, sizeof text, stdin)) {
        struct line line;
        utter_voice *voice = NULL;
        if (!read_line(&line, text)) {
            fprintf(stderr, "word_times: not a line of five fields\n");
            return 1;
        }
        must(voice_new_preset(&voice, engine.context.model->config, line.voice, &error), &error);
        (line.sound[1] == 0 ? speak : lead)(&engine, &line, voice);
        voice_free(&voice);
    }
    engine_close(&engine);
    return 0;
}
