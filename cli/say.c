/* SPDX-License-Identifier: Apache-2.0
 * utter say: text in, speech out. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "checkpoint.h"
#include "codes_file.h"
#include "interrupt.h"
#include "options.h"
#include "output.h"
#include "overwrite.h"
#include "report.h"
#include "text_source.h"
#include "trace.h"

/* For the progress line only: frames that a text token takes in ordinary speech. */
static const double frames_a_token = 4;

struct speech {
    const struct settings *settings;
    struct text_source source;
    utter_model *model;
    utter_model_info info;
    utter_voice *voice;
    utter_stream *stream;
    struct output output;
    struct text_file codes;
    struct trace trace;
    double begin_s, end_s, told_s; /* on the clock: the first text, the end, the last progress line */
};

static utter_stream_stats stats_of(const struct speech *speech)
{
    utter_stream_stats stats = {.size = sizeof stats};
    utter_stream_get_stats(speech->stream, &stats);
    return stats;
}

/* Standard output takes one thing, and so does a file. */
static int check_outputs(const struct settings *s)
{
    const struct setting *const outputs[] = {&s->output, &s->codes, &s->trace};
    enum { N_OUTPUTS = sizeof outputs / sizeof *outputs };
    int n_dashes = s->json.given;
    for (int i = 0; i < N_OUTPUTS; i++) {
        struct stat about;
        const char *name = outputs[i]->text;
        bool dash = outputs[i]->given && strcmp(name, "-") == 0;
        n_dashes += dash;
        for (int k = 0; k < i && outputs[i]->given && !dash; k++) {
            bool same = outputs[k]->given && overwrite_same_file(outputs[k]->text, name);
            if (same && (stat(name, &about) != 0 || S_ISREG(about.st_mode))) {
                return fail(1, "say: %s: one file cannot take two of -o, --codes and --trace", name);
            }
        }
    }
    return n_dashes > 1
               ? fail(1, "say: standard output can take one of -o -, --codes -, --trace - and --json")
               : 0;
}

static int speech_open(struct speech *speech, const struct invocation *invocation)
{
    const struct settings *settings = &invocation->settings;
    speech->settings = settings;
    speech->source.descriptor = -1;
    int code = check_outputs(settings);
    if (code || (code = text_source_open(&speech->source, invocation)) ||
        (code = checkpoint_open(&speech->model, settings, 1))) {
        return code;
    }
    speech->info = checkpoint_info(speech->model);
    utter_stream_options options;
    if ((code = checkpoint_stream_options(&options, &speech->voice, speech->model, settings))) {
        return code;
    }
    if (speech->info.kind == UTTER_MODEL_BASE && !speech->voice && !settings->quiet.given) {
        note("a base model speaks with cloned voices (-v NAME.voice); without one the voice is left to "
             "chance");
    }
    utter_error error = {0};
    utter_status status = utter_stream_open(&speech->stream, speech->model, &options, &error);
    if (status) {
        return fail_status(status, &error);
    }
    if (!interrupt_watch(speech->stream)) {
        return fail(2, "the system refuses a signal handler");
    }
    if ((code = output_open(&speech->output, settings, true, speech->info.sample_rate))) {
        return code;
    }
    if (settings->trace.given && (code = trace_open(&speech->trace, settings->trace.text))) {
        return code;
    }
    return settings->codes.given ? text_file_open(&speech->codes, settings->codes.text) : 0;
}

static void speech_close(struct speech *speech)
{
    interrupt_forget();
    output_abort(&speech->output);
    text_file_abort(&speech->codes);
    trace_abort(&speech->trace);
    utter_stream_free(&speech->stream);
    utter_voice_free(&speech->voice);
    utter_model_close(&speech->model);
    text_source_close(&speech->source);
    free(speech->source.text);
}

static double seconds_spoken(const struct speech *speech)
{
    return (double)speech->output.n_samples / speech->info.sample_rate;
}

static void show_progress(struct speech *speech)
{
    double now = clock_seconds();
    if (speech->settings->quiet.given || !progress_shown() || now - speech->told_s < 0.1) {
        return;
    }
    speech->told_s = now;
    utter_stream_stats stats = stats_of(speech);
    double spoken = seconds_spoken(speech),
           frame_s = (double)speech->info.frame_samples / speech->info.sample_rate;
    double expected = frames_a_token * stats.n_text_tokens * frame_s;
    if (speech->source.descriptor < 0 && expected > spoken) {
        progress("%.1f s spoken of about %.0f s, %.2f x real time", spoken, expected,
            spoken / (now - speech->begin_s));
    } else {
        progress("%.1f s spoken, %.2f x real time", spoken, spoken / (now - speech->begin_s));
    }
}

static int give_text(struct speech *speech, const char *text, size_t bytes, bool last)
{
    utter_error error = {0};
    utter_status status = bytes ? utter_stream_text(speech->stream, text, bytes, &error) : UTTER_OK;
    if (status == UTTER_OK && last) {
        status = utter_stream_finish(speech->stream, &error);
    }
    return status < 0 ? fail_status(status, &error) : 0;
}

/* Passes on the text that has arrived; with `wait`, waits for some. */
static int take_text(struct speech *speech, bool wait)
{
    char piece[4096];
    size_t n;
    if (!interrupt_poll(speech->source.descriptor, wait) || interrupt_signal()) {
        return 0;
    }
    int code = text_source_read(&speech->source, piece, sizeof piece, &n);
    return code ? code : give_text(speech, piece, n, n == 0);
}

/* Text in and sound out until the end. 0, or an exit code after a message. */
static int speak(struct speech *speech)
{
    struct text_source *source = &speech->source;
    float pcm[4096];
    bool needs_text = false;
    speech->begin_s = clock_seconds();
    int code = source->text ? give_text(speech, source->text, source->bytes, true) : 0;
    while (code == 0) {
        if (source->descriptor >= 0 && !interrupt_signal()) {
            code = take_text(speech, needs_text);
            if (code) {
                break;
            }
        }
        size_t n = 0;
        utter_error error = {0};
        double read_s = clock_seconds();
        utter_status status =
            utter_stream_read(speech->stream, pcm, sizeof pcm / sizeof *pcm, &n, &error);
        utter_stream_stats stats = stats_of(speech);
        trace_call(&speech->trace, &stats, read_s, clock_seconds());
        needs_text = status == UTTER_AGAIN;
        if (status == UTTER_END || (needs_text && interrupt_signal())) {
            break;
        }
        if (status < 0) {
            code = fail_status(status, &error);
        } else if (status == UTTER_OK) {
            code = output_write(&speech->output, pcm, n);
            show_progress(speech);
        }
    }
    speech->end_s = clock_seconds();
    return code;
}

static void print_stats(const struct speech *speech, const utter_stream_stats *s)
{
    double spoken = seconds_spoken(speech), took = speech->end_s - speech->begin_s;
    double per_frame = s->n_frames > 0 ? 1000.0 / s->n_frames : 0;
    fprintf(stderr, "finish       %s\n", utter_finish_text(s->finish));
    fprintf(stderr, "speech       %.2f s, %d frames\n", spoken, s->n_frames);
    fprintf(stderr, "text         %d tokens, %d prompt rows\n", s->n_text_tokens, s->n_rows);
    fprintf(stderr, "first sound  %.1f ms\n", 1000 * s->first_sound_s);
    fprintf(stderr, "prompt       %.1f ms\n", 1000 * s->prompt_s);
    fprintf(stderr, "prefill      %.1f ms\n", 1000 * s->prefill_s);
    fprintf(stderr, "each frame   talker %.2f ms, predictor %.2f ms, vocoder %.2f ms\n",
        per_frame * s->talker_s, per_frame * s->predictor_s, per_frame * s->vocoder_s);
    fprintf(stderr, "in all       %.2f s, %.2f x real time\n", took, took > 0 ? spoken / took : 0);
}

static int print_json(const struct speech *speech, const utter_stream_stats *s)
{
    json_t *object = json_pack("{s:o,s:s,s:i,s:f,s:i,s:i,s:f,s:f,s:f,s:f,s:f,s:f,s:f}", "output",
        json_name(speech->output.path), "finish", utter_finish_text(s->finish), "frames", s->n_frames,
        "seconds", seconds_spoken(speech), "text_tokens", s->n_text_tokens, "prompt_rows", s->n_rows,
        "first_sound_s", s->first_sound_s, "prompt_s", s->prompt_s, "prefill_s", s->prefill_s,
        "talker_s", s->talker_s, "predictor_s", s->predictor_s, "vocoder_s", s->vocoder_s, "wall_s",
        speech->end_s - speech->begin_s);
    return report_json(object);
}

static void tell_end(const struct speech *speech, const utter_stream_stats *s)
{
    switch (s->finish) {
    case UTTER_FINISH_LOOP:
        note(
            "the guard ended the speech: the same codes came over and over (--no-guard lets it go on)");
        break;
    case UTTER_FINISH_CEILING:
        note("the guard ended the speech: it was far too long for its text (--no-guard lets it go on)");
        break;
    case UTTER_FINISH_SILENCE:
        note(
            "the guard ended the speech: nothing but silence came any more (--no-guard lets it go on)");
        break;
    case UTTER_FINISH_MAX_FRAMES:
        if (!speech->settings->max_frames.given) {
            note(
                "the speech was cut at the checkpoint's limit of %d frames (--max-frames sets another)",
                s->n_frames);
        }
        break;
    case UTTER_FINISH_CONTEXT:
        note("the speech was cut: the model's %d positions are used up", speech->info.max_positions);
        break;
    default:
        break;
    }
    const char *path = speech->output.path;
    if (path && strcmp(path, "-") != 0 && (progress_shown() || !speech->settings->output.given)) {
        note("%.1f s of speech are in %s", seconds_spoken(speech), path);
    }
}

/* Completes what was asked for and tells how it went. */
static int speech_finish(struct speech *speech)
{
    progress_clear();
    if (interrupt_signal() && speech->output.n_samples == 0) {
        return fail(128 + interrupt_signal(), "interrupted before anything was spoken");
    }
    utter_stream_stats stats = stats_of(speech);
    int code = output_close(&speech->output);
    if (code == 0) {
        code = trace_close(&speech->trace);
    }
    if (code == 0 && speech->codes.lines) {
        size_t n_frames = 0;
        const int32_t *codes = utter_stream_codes(speech->stream, &n_frames);
        code =
            codes_file_finish(&speech->codes, codes, n_frames, speech->info.n_codebooks, stats.finish);
    }
    if (code) {
        return code;
    }
    if (!speech->settings->quiet.given) {
        tell_end(speech, &stats);
    }
    if (speech->settings->stats.given) {
        print_stats(speech, &stats);
    }
    if (speech->settings->json.given) {
        code = print_json(speech, &stats);
    }
    return interrupt_signal() && code == 0 ? 128 + interrupt_signal() : code;
}

int command_say(const struct invocation *invocation)
{
    struct speech speech = {0};
    int code = speech_open(&speech, invocation);
    if (code == 0) {
        code = speak(&speech);
    }
    if (code == 0) {
        code = speech_finish(&speech);
    }
    speech_close(&speech);
    return code;
}
