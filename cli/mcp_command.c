/* SPDX-License-Identifier: Apache-2.0
 * utter mcp: tools for assistants on standard input and output, a message a line. What people should read goes to
 * standard error. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/tables/languages.h"
#include "cli/model/checkpoint.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/speak/player.h"
#include "cli/voice/voice_lookup.h"
#include "server/dialects/mcp/mcp_message.h"
#include "server/protocol/base64.h"
#include "server/sound/encode.h"

enum { MOST_LINE = 1 << 20, MOST_BYTES = 64 << 20 }; /* MOST_BYTES: of sound in an answer, 20 minutes */

struct session {
    const struct settings *settings;
    utter_model *model;
    utter_voice *voice;           /* of those who name none */
    utter_stream_options options; /* likewise */
    utter_model_info info;
    char *line; /* [MOST_LINE]: what has come and is not done with */
    size_t n;
    bool ended;
};

/* Reads more of what comes; with `wait`, until there is some. */
static void read_more(struct session *s, bool wait)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    if (s->ended || s->n == MOST_LINE || poll(&in, 1, wait ? -1 : 0) <= 0) {
        return;
    }
    ssize_t n = read(STDIN_FILENO, s->line + s->n, MOST_LINE - s->n);
    s->ended = n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN);
    s->n += n > 0 ? (size_t)n : 0;
}

static void put_answer(const json_t *answer)
{
    char *text = answer ? json_dumps(answer, JSON_COMPACT) : NULL;
    if (text) {
        puts(text);
        fflush(stdout);
    }
    free(text);
}

/* ---- Speaking ---- */

/* Whether a line that has come while it speaks takes the request back. */
static bool is_cancelled(struct session *s, const struct mcp_request *r)
{
    const char *feed;
    read_more(s, false);
    for (const char *at = s->line; (feed = memchr(at, '\n', s->n - (size_t)(at - s->line)));
         at = feed + 1) {
        if (mcp_cancels(at, (size_t)(feed - at), r->id)) {
            return true;
        }
    }
    return s->ended;
}

/* Where the sound goes: into memory, to a file, or to the device. */
struct sound {
    struct wire_out wav;
    utter_sound *file;
    struct player *player;
    size_t n_samples;
};

static void drop_sound(struct sound *out)
{
    wire_fini(&out->wav);
    utter_sound_abort(&out->file);
    player_close(out->player, false);
    *out = (struct sound){.n_samples = 0};
}

/* NULL, or why not. */
static const char *open_sound(
    struct sound *out, const struct session *s, const struct mcp_request *r, utter_error *error)
{
    *out = (struct sound){.n_samples = 0};
    if (r->file && access(r->file, F_OK) == 0) {
        return "the file is there already: nothing is overwritten";
    }
    if (r->file &&
        utter_sound_create(&out->file, r->file, NULL, UTTER_SAMPLE_S16, s->info.sample_rate, error)) {
        return error->text;
    }
    if (!r->file && r->play && !(out->player = player_open(s->info.sample_rate))) {
        return "there is no sound device to play on";
    }
    if (!r->file && !r->play) {
        samples_put_wav(&out->wav, SAMPLES_S16, s->info.sample_rate);
    }
    return NULL;
}

static const char *write_sound(struct sound *out, const float *pcm, size_t n, utter_error *error)
{
    out->n_samples += n;
    if (out->file) {
        return utter_sound_write(out->file, pcm, n, error) ? error->text : NULL;
    }
    if (out->player) {
        return player_write(out->player, pcm, n) ? NULL : "the sound device failed";
    }
    samples_put(&out->wav, SAMPLES_S16, pcm, n);
    return out->wav.failed           ? "out of memory"
           : out->wav.n > MOST_BYTES ? "the sound is too long for an answer (give a file, or play it)"
                                     : NULL;
}

/* Completes it and says what has become of it: a list of blocks. NULL: *why is filled in. */
static json_t *close_sound(struct sound *out, const struct session *s, const struct mcp_request *r,
    const char *remark, const char **why, utter_error *error)
{
    char said[256];
    snprintf(said, sizeof said, "%.1f s of speech%s%s", (double)out->n_samples / s->info.sample_rate,
        r->file   ? ", written"
        : r->play ? ", played"
                  : "",
        remark);
    json_t *content = mcp_texts(said);
    if (out->file && utter_sound_close(&out->file, error)) {
        *why = error->text;
        json_decref(content);
        return NULL;
    }
    player_close(out->player, true);
    out->player = NULL;
    if (out->wav.n) {
        encode_true_sizes(ENCODE_WAV, out->wav.bytes, out->wav.n, 0);
        json_array_append_new(
            content, json_pack("{s:s,s:o,s:s}", "type", "audio", "data",
                         base64_write(out->wav.bytes, out->wav.n), "mimeType", "audio/wav"));
    }
    return content;
}

/* All of the text. NULL, or why not; *cancelled: nobody wants it any more. */
static const char *read_out(struct session *s, const struct mcp_request *r, utter_reading *reading,
    struct sound *out, bool *cancelled, utter_error *error)
{
    float pcm[1920];
    size_t n;
    utter_status status = utter_reading_text(reading, r->text, strlen(r->text), error);
    status = status < 0 ? status : utter_reading_finish(reading, error);
    while (status >= 0 && status != UTTER_END) {
        status = utter_reading_read(reading, pcm, sizeof pcm / sizeof *pcm, &n, error);
        const char *why = status == UTTER_OK ? write_sound(out, pcm, n, error) : NULL;
        *cancelled = is_cancelled(s, r);
        if (why || *cancelled) {
            return why;
        }
    }
    return status < 0 ? error->text : NULL;
}

/* The answer's blocks; NULL with *why, or cancelled. */
static json_t *speak(struct session *s, const struct mcp_request *r,
    const utter_stream_options *options, const char **why, bool *cancelled, utter_error *error)
{
    struct sound out;
    utter_reading *reading = NULL;
    utter_reading_options how;
    utter_reading_options_init(&how);
    how.live = r->play;
    json_t *content = NULL;
    *why = open_sound(&out, s, r, error);
    if (!*why && utter_reading_open(&reading, s->model, options, &how, error) != UTTER_OK) {
        *why = error->text;
    }
    *why = *why ? *why : read_out(s, r, reading, &out, cancelled, error);
    if (!*why && !*cancelled) {
        utter_reading_stats stats = {.size = sizeof stats};
        utter_reading_get_stats(reading, &stats);
        content =
            close_sound(&out, s, r, stats.n_broken ? "; some words may be missing" : "", why, error);
    }
    utter_reading_free(&reading);
    drop_sound(&out);
    return content;
}

static void answer_speak(struct session *s, const struct mcp_request *r)
{
    utter_error error = {.text = ""};
    utter_stream_options options = s->options;
    utter_voice *voice = NULL;
    const char *why = NULL;
    bool cancelled = false;
    json_t *content = NULL;
    if (r->voice && voice_lookup(&voice, s->model, s->settings, r->voice)) {
        why = "no such voice (list_voices names them)";
    } else {
        options.voice = r->voice ? voice : options.voice;
        options.language = r->language ? language_name(r->language) : options.language;
        options.instruct = r->instructions ? r->instructions : options.instruct;
        content = speak(s, r, &options, &why, &cancelled, &error);
    }
    if (!cancelled) {
        json_t *answer =
            mcp_result(r, utter_version_text(), content ? content : mcp_texts(why), !content);
        put_answer(answer);
        json_decref(answer);
    }
    utter_voice_free(&voice);
}

static void answer_voices(const struct session *s, const struct mcp_request *r)
{
    json_t *content = json_array();
    char line[512];
    for (int i = 0; i < s->info.n_voices; i++) {
        snprintf(line, sizeof line, "voice %s", utter_model_voice_name(s->model, i));
        json_array_append_new(content, mcp_text(line));
    }
    for (int i = 0; i < s->info.n_languages; i++) {
        snprintf(line, sizeof line, "language %s", utter_model_language_name(s->model, i));
        json_array_append_new(content, mcp_text(line));
    }
    json_t *answer = mcp_result(r, utter_version_text(), content, false);
    put_answer(answer);
    json_decref(answer);
}

/* ---- Lines ---- */

static void take_line(struct session *s, const char *line, size_t n)
{
    struct mcp_request r;
    switch (mcp_take(&r, line, n, utter_version_text())) {
    case MCP_SPEAK:
        answer_speak(s, &r);
        break;
    case MCP_VOICES:
        answer_voices(s, &r);
        break;
    case MCP_ANSWER:
        put_answer(r.answer);
        break;
    case MCP_NOTHING:
        break;
    }
    mcp_fini(&r);
}

/* Until the other end closes. What comes while a line is served stays behind it. */
static int serve(struct session *s)
{
    for (;;) {
        char *feed = memchr(s->line, '\n', s->n);
        size_t n = feed ? (size_t)(feed - s->line) : 0;
        if (feed) {
            char *line = malloc(n + 1);
            if (!line) {
                return fail(2, "out of memory");
            }
            memcpy(line, s->line, n);
            s->n -= n + 1;
            memmove(s->line, feed + 1, s->n);
            if (n > 0) {
                take_line(s, line, n);
            }
            free(line);
        } else if (s->n == MOST_LINE) {
            return fail(1, "mcp: a message of more than 1 MiB");
        } else if (s->ended) {
            return 0;
        } else {
            read_more(s, true);
        }
    }
}

int command_mcp(const struct invocation *invocation)
{
    struct session s = {.settings = &invocation->settings};
    int code = checkpoint_open(&s.model, s.settings, 1);
    code = code ? code : checkpoint_stream_options(&s.options, &s.voice, s.model, s.settings);
    s.options.plain = true; /* whatever an assistant is made to say */
    if (code == 0) {
        s.info = checkpoint_info(s.model);
        s.line = malloc(MOST_LINE);
        code = s.line ? serve(&s) : fail(2, "out of memory");
    }
    free(s.line);
    utter_voice_free(&s.voice);
    utter_model_close(&s.model);
    return code;
}
