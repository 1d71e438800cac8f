/* SPDX-License-Identifier: Apache-2.0
 * utter say: text in, speech out; one speech, or with --lines one for each line. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/interrupt.h"
#include "cli/model/checkpoint.h"
#include "cli/overwrite.h"
#include "cli/report.h"
#include "cli/speak/saying.h"
#include "cli/speak/text_source.h"

enum {
    MOST_WAITING = 1 << 16, /* bytes of text that are read ahead */
    MOST_STUCK = 1 << 28,   /* that may come without anything to speak in them */
    MOST_PATH = 4096,
};
/* After a signal, for what was made and is not written: some formats take long for a piece. */
static const double parting_s = 0.03;

/* What the speeches of a command share. */
struct say {
    const struct invocation *invocation;
    struct text_source source;
    utter_model *model;
    utter_voice *voice;
    utter_stream_options options;
};

/* Standard output takes one thing, and so does a file. */
static int check_outputs(const struct settings *s)
{
    const struct setting *const outputs[] = {&s->output, &s->codes, &s->times, &s->trace};
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
                return fail(
                    1, "say: %s: one file cannot take two of -o, --codes, --times and --trace", name);
            }
        }
    }
    if (s->lines.given && (s->codes.given || s->times.given || s->trace.given ||
                              (s->output.given && strcmp(s->output.text, "-") == 0))) {
        return fail(
            1, "say: --lines makes a file of sound for each line (no -o -, --codes, --times, --trace)");
    }
    enum times_kind kind;
    if (s->times.given && !times_kind_of(s->times.text, &kind)) {
        return fail(1, "say: --times %s: the name says no kind of file (.json, .srt, .vtt, .ass)",
            s->times.text);
    }
    return n_dashes > 1 ? fail(1, "say: standard output can take one of -o -, --codes -, --times -, "
                                  "--trace - and --json")
                        : 0;
}

/* Bytes that the text will have; 0: nobody knows. */
static uint64_t text_bytes(const struct text_source *source)
{
    struct stat about;
    return source->text                                                       ? source->bytes
           : fstat(source->descriptor, &about) == 0 && S_ISREG(about.st_mode) ? (uint64_t)about.st_size
                                                                              : 0;
}

/* How many lanes the model is opened with; 0: as many as suit the device. What is heard as it is made, or is one piece,
 * takes one. */
static int lanes_of(const struct settings *s, const struct text_source *source)
{
    enum { ONE_PIECE = 180 }; /* bytes that no model gets in two */
    uint64_t bytes = text_bytes(source);
    bool to_file = s->output.given && !output_is_heard(s->output.text);
    return s->reading_lanes.given ? (int)s->reading_lanes.integer
           : to_file && !s->trace.given && (bytes == 0 || bytes > ONE_PIECE) ? 0
                                                                             : 1;
}

static int say_open(struct say *say, const struct invocation *invocation)
{
    const struct settings *settings = &invocation->settings;
    *say = (struct say){.invocation = invocation, .source.descriptor = -1};
    memory_keep_little();
    int code = check_outputs(settings);
    if (code || (code = text_source_open(&say->source, invocation)) ||
        (code = checkpoint_open(&say->model, settings, lanes_of(settings, &say->source))) ||
        (code = checkpoint_stream_options(&say->options, &say->voice, say->model, settings))) {
        return code;
    }
    if (checkpoint_info(say->model).kind == UTTER_MODEL_BASE && !say->voice && !settings->quiet.given) {
        note("a base model speaks with cloned voices (-v NAME.voice); without one the voice is left to "
             "chance");
    }
    return 0;
}

static void say_close(struct say *say)
{
    utter_voice_free(&say->voice);
    utter_model_close(&say->model);
    text_source_close(&say->source);
    free(say->source.text);
}

/* Passes on the text that has arrived, where it can be spoken soon; with `wait`, waits for some. */
static int take_text(struct saying *saying, struct text_source *source, bool wait)
{
    char piece[4096];
    size_t n;
    if ((!wait && saying_waiting(saying) > MOST_WAITING) || !interrupt_poll(source->descriptor, wait) ||
        interrupt_signal()) {
        return 0;
    }
    if (saying_waiting(saying) > MOST_STUCK) {
        return fail(1, "%s: more than %d MB of text without a word", source->name, MOST_STUCK >> 20);
    }
    int code = text_source_read(source, piece, sizeof piece, &n);
    return code ? code : saying_give(saying, piece, n, n == 0);
}

/* Text in and sound out until the end. 0, or an exit code after a message. */
static int speak(struct saying *saying, struct text_source *source)
{
    utter_status status = UTTER_OK;
    double until_s = 0; /* 0: no signal has come */
    int code = source->text ? saying_give(saying, source->text, source->bytes, true) : 0;
    while (code == 0 && status != UTTER_END && (until_s <= 0 || clock_seconds() < until_s)) {
        if (source->descriptor >= 0 && !interrupt_signal()) {
            code = take_text(saying, source, status == UTTER_AGAIN);
        }
        code = code ? code : saying_move(saying, &status);
        if (interrupt_signal() && until_s <= 0) {
            until_s = clock_seconds() + parting_s;
        }
    }
    return code;
}

static int say_one(struct say *say, const struct settings *settings, struct text_source *source)
{
    struct saying saying;
    int code = saying_open(&saying, settings, say->model, &say->options);
    saying.total = text_bytes(source);
    code = code ? code : speak(&saying, source);
    code = code ? code : saying_finish(&saying);
    saying_close(&saying);
    return code;
}

/* ---- A file for each line ---- */

/* The name of line `number`: hello.wav gives hello-0001.wav. */
static int line_path(char path[MOST_PATH], const struct settings *s, size_t number)
{
    const char *name = s->output.given ? s->output.text : "utter.wav", *slash = strrchr(name, '/');
    const char *dot = strrchr(name, '.');
    size_t stem = dot && dot > (slash ? slash + 1 : name) ? (size_t)(dot - name) : strlen(name);
    int n = snprintf(path, MOST_PATH, "%.*s-%04zu%s", (int)stem, name, number, name + stem);
    return n < MOST_PATH ? 0 : fail(1, "%s: the name is too long", name);
}

static int say_line(struct say *say, size_t number, char *text, size_t bytes)
{
    char path[MOST_PATH];
    struct invocation invocation = *say->invocation;
    struct text_source source = {.text = text, .bytes = bytes, .descriptor = -1};
    int code = line_path(path, &invocation.settings, number);
    invocation.settings.output.given = true;
    invocation.settings.output.text = path;
    code = code ? code : overwrite_check(&invocation);
    return code ? code : say_one(say, &invocation.settings, &source);
}

static bool is_blank(const char *text, size_t bytes)
{
    size_t white = 0;
    while (white < bytes && strchr(" \t\r", text[white])) {
        white++;
    }
    return white == bytes;
}

/* A line that cannot be said, or not whole, does not hold up the others. */
static int say_lines(struct say *say)
{
    int worst = 0;
    for (size_t number = 1; !interrupt_signal(); number++) {
        char *line;
        size_t bytes;
        int code = text_source_line(&say->source, &line, &bytes);
        if (code || !line) {
            worst = code ? code : worst;
            break;
        }
        report_line(number);
        code = is_blank(line, bytes) ? 0 : say_line(say, number, line, bytes);
        report_line(0);
        if (code == 2) {
            return code;
        }
        worst = code == 1 || worst == 0 ? code : worst;
    }
    return interrupt_signal() ? 128 + interrupt_signal() : worst;
}

/* The text as it would be spoken; no model is asked. */
static int print_text(const struct invocation *invocation)
{
    const struct settings *s = &invocation->settings;
    struct text_source source;
    struct markup markup = {0};
    utter_reading_options options;
    utter_error error = {0};
    char *spoken = NULL;
    utter_reading_options_init(&options);
    int code = text_source_open(&source, invocation);
    code = code ? code : text_source_read_all(&source);
    code = code ? code : markup_open(&markup, &options, s, NULL);
    if (code == 0) {
        utter_status status = utter_text_spoken(&spoken, source.text, source.bytes, &options,
            s->language.text, s->voice.text, s->quiet.given ? NULL : note_from_library, NULL, &error);
        code = status ? fail_status(status, &error) : 0;
    }
    if (code == 0) {
        fputs(spoken, stdout); /* main tells where that cannot be */
    }
    utter_memory_free(spoken);
    markup_close(&markup);
    text_source_close(&source);
    free(source.text);
    return code;
}

int command_say(const struct invocation *invocation)
{
    struct say say;
    if (invocation->settings.print_text.given) {
        return print_text(invocation);
    }
    int code = say_open(&say, invocation);
    if (code == 0) {
        code = invocation->settings.lines.given ? say_lines(&say)
                                                : say_one(&say, &invocation->settings, &say.source);
    }
    say_close(&say);
    return code;
}
