/* SPDX-License-Identifier: Apache-2.0
 * A reading, what becomes of its pieces, and the reports on it. */
#include "cli/speak/saying.h"
#include "base/minmax.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli/interrupt.h"
#include "cli/model/checkpoint.h"
#include "cli/report.h"

/* For the progress line only: frames that a text token takes in ordinary speech. */
static const double frames_a_token = 4;

static utter_reading_stats stats_of(const struct saying *s)
{
    utter_reading_stats stats = {.size = sizeof stats};
    utter_reading_get_stats(s->reading, &stats);
    return stats;
}

static const char *why(utter_finish finish)
{
    switch (finish) {
    case UTTER_FINISH_LOOP:
        return "the same codes came over and over";
    case UTTER_FINISH_CEILING:
        return "it was far too long for its text";
    case UTTER_FINISH_SILENCE:
        return "nothing but silence came any more";
    case UTTER_FINISH_SAID:
        return "all was said, and it went on";
    case UTTER_FINISH_STUCK:
        return "it did not get on in its text";
    case UTTER_FINISH_EOS: /* by its length, or by a word */
        return "it does not fit its text";
    default:
        return "it reached the most frames of a piece";
    }
}

/* ---- Pieces ---- */

static size_t count_lines(const char *text, size_t n)
{
    size_t lines = 0;
    for (size_t i = 0; i < n; i++) {
        lines += text[i] == '\n';
    }
    return lines;
}

/* Forgets the text before `at`. */
static void drop_text(struct saying *s, uint64_t at)
{
    size_t n = at > s->text_at ? (size_t)(at - s->text_at) : 0;
    n = min(n, s->text_n);
    s->text_line += count_lines(s->text, n);
    s->text_at += n;
    s->text_n -= n;
    memmove(s->text, s->text + n, s->text_n);
}

/* What comes now, n bytes, is the last piece. */
static void note_place(struct saying *s, size_t n)
{
    char words[2 * sizeof s->last.words];
    n = min(n, sizeof words);
    for (size_t i = 0; i < n; i++) {
        words[i] = s->text[i] == '\n' ? ' ' : s->text[i];
    }
    s->last = (struct text_place){.line = s->text_line, .byte = s->text_at};
    error_quote(s->last.words, sizeof s->last.words, words, n);
}

/* A utter_piece_fn. */
static void on_piece(void *user, const utter_piece *piece)
{
    struct saying *s = user;
    drop_text(s, piece->at);
    note_place(s, min((size_t)piece->bytes, s->text_n));
    if (s->codes.file.lines) {
        codes_file_add(&s->codes, piece->codes, piece->n_frames);
    }
    drop_text(s, piece->at + piece->bytes);
    times_file_piece(&s->times, piece->at + piece->bytes);
    bool asked = piece->finish == UTTER_FINISH_CANCELLED ||
                 (piece->finish == UTTER_FINISH_MAX_FRAMES && s->settings->max_frames.given);
    if (piece->whole || asked) {
        return;
    }
    if (s->n_broken++ == 0) {
        s->broken = s->last;
        s->broken_finish = piece->finish;
    }
    /* Of a text that is one piece the last line of all says it. */
    if (!s->settings->quiet.given && !(piece->index == 0 && s->ended && s->text_n == 0)) {
        note("line %zu, byte %zu, \"%s\": words may be missing (%s, %d %s)", s->last.line, s->last.byte,
            s->last.words, why(piece->finish), piece->tries, piece->tries == 1 ? "try" : "tries");
    }
}

/* ---- Life ---- */

int saying_open(struct saying *s, const struct settings *settings, utter_model *model,
    const utter_stream_options *voice)
{
    utter_stream_options v = *voice;
    utter_reading_options o;
    utter_error error = {0};
    *s = (struct saying){.settings = settings, .model = model, .text_line = 1};
    s->info.size = sizeof s->info;
    utter_model_get_info(model, &s->info);
    int code = 0;
    if (settings->times.given) {
        v.words = true;
        code = times_file_open(
            &s->times, settings->times.text, s->info.sample_rate, settings->speed.number);
    }
    code = code ? code : output_open(&s->output, settings, true, s->info.sample_rate);
    if (code) {
        return code;
    }
    utter_reading_options_init(&o);
    o.live = s->output.player || output_is_heard(s->output.path);
    o.lanes =
        s->settings->trace.given ? 1 : checkpoint_lanes(model, (int)settings->reading_lanes.integer);
    o.retries = (int)settings->retries.integer;
    o.max_frames = settings->max_frames.given ? v.max_frames : 0;
    o.piece = on_piece;
    o.piece_user = s;
    o.written = settings->times.given ? times_file_text : NULL;
    o.written_user = &s->times;
    if ((code = markup_open(&s->markup, &o, settings, model))) {
        return code;
    }
    utter_status status = utter_reading_open(&s->reading, model, &v, &o, &error);
    if (status) {
        return fail_status(status, &error);
    }
    if (!interrupt_watch(s->reading)) {
        return fail(2, "the system refuses a signal handler");
    }
    if (settings->trace.given && (code = trace_open(&s->trace, settings->trace.text))) {
        return code;
    }
    s->begin_s = clock_seconds();
    return settings->codes.given ? codes_file_open(&s->codes, settings->codes.text, s->info.n_codebooks)
                                 : 0;
}

void saying_close(struct saying *s)
{
    interrupt_forget();
    output_abort(&s->output);
    codes_file_abort(&s->codes);
    times_file_abort(&s->times);
    trace_abort(&s->trace);
    utter_reading_free(&s->reading);
    markup_close(&s->markup);
    free(s->text);
    *s = (struct saying){0};
}

static bool keep_text(struct saying *s, const char *text, size_t bytes)
{
    if (s->text_n + bytes > s->text_room) {
        size_t room = s->text_n + bytes + s->text_room / 2;
        char *grown = realloc(s->text, room);
        if (!grown) {
            return false;
        }
        s->text = grown;
        s->text_room = room;
    }
    memcpy(s->text + s->text_n, text, bytes);
    s->text_n += bytes;
    return true;
}

int saying_give(struct saying *s, const char *text, size_t bytes, bool last)
{
    utter_error error = {0};
    utter_status status = UTTER_OK;
    if (bytes > 0) {
        if (!keep_text(s, text, bytes)) {
            return fail(2, "out of memory");
        }
        bool plain = strcmp(s->settings->markup.text, "none") == 0 && !s->settings->quiet.given;
        if (s->n_given == 0 && plain && markup_is_forgotten(text, bytes)) {
            note("the text begins like SSML, and its tags are spoken (give --markup ssml)");
        }
        s->n_given += bytes;
        status = utter_reading_text(s->reading, text, bytes, &error);
    }
    if (status == UTTER_OK && last) {
        s->ended = true;
        status = utter_reading_finish(s->reading, &error);
    }
    return status < 0 ? fail_status(status, &error) : 0;
}

size_t saying_waiting(const struct saying *s)
{
    return s->text_n;
}

static double seconds_spoken(const struct saying *s)
{
    return (double)s->output.n_samples / s->output.rate;
}

static void show_progress(struct saying *s, const utter_reading_stats *stats)
{
    double now = clock_seconds();
    if (s->settings->quiet.given || !progress_shown() || now - s->told_s < 0.1) {
        return;
    }
    s->told_s = now;
    double frame_s = (double)s->info.frame_samples / s->info.sample_rate, took = now - s->begin_s;
    double spoken = frame_s * (double)stats->n_frames;
    double expected = frames_a_token * (double)stats->n_text_tokens * frame_s;
    bool one = stats->at + stats->bytes >= s->total; /* the piece that is spoken, or the last one */
    if (s->total > 0 && stats->at > 0) {
        double part = (double)stats->at / (double)s->total;
        int left = (int)(took / part - took);
        progress("%.1f s spoken, %.0f %% of the text, %.2f x real time, %d:%02d left", spoken,
            100 * part, spoken / took, left / 60, left % 60);
    } else if (s->total > 0 && one && expected > spoken) {
        progress("%.1f s spoken of about %.0f s, %.2f x real time", spoken, expected, spoken / took);
    } else {
        progress("%.1f s spoken, %.2f x real time", spoken, spoken / took);
    }
}

int saying_move(struct saying *s, utter_status *status)
{
    enum { PIECE = 1920 }; /* of a player, so that it ends soon */
    float pcm[PIECE];
    size_t n = 0;
    utter_error error = {0};
    double read_s = clock_seconds();
    *status = utter_reading_read(s->reading, pcm, PIECE, &n, &error);
    utter_reading_stats stats = stats_of(s);
    trace_call(&s->trace, &stats, read_s, clock_seconds());
    if (s->times.file.lines) {
        times_file_note(&s->times, s->reading, seconds_spoken(s));
    }
    s->end_s = clock_seconds();
    if (*status < 0) {
        return fail_status(*status, &error);
    }
    if (*status == UTTER_OK) {
        show_progress(s, &stats);
        return output_write(&s->output, pcm, n);
    }
    return 0;
}

/* ---- Reports ---- */

static void print_stats(const struct saying *s, const utter_reading_stats *t)
{
    double spoken = seconds_spoken(s), took = s->end_s - s->begin_s;
    double per_frame = t->n_frames > 0 ? 1000.0 / (double)t->n_frames : 0;
    fprintf(stderr, "finish       %s\n", utter_finish_text(t->finish));
    fprintf(stderr, "speech       %.2f s, %llu frames\n", spoken, (unsigned long long)t->n_frames);
    fprintf(stderr, "text         %llu tokens, %llu prompt rows\n",
        (unsigned long long)t->n_text_tokens, (unsigned long long)t->n_rows);
    if (t->n_pieces > 1 || t->n_retries > 0) {
        fprintf(stderr, "pieces       %llu, said again %llu, not whole %llu\n",
            (unsigned long long)t->n_pieces, (unsigned long long)t->n_retries,
            (unsigned long long)t->n_broken);
    }
    fprintf(stderr, "first sound  %.1f ms\n", 1000 * t->first_sound_s);
    fprintf(stderr, "prompt       %.1f ms\n", 1000 * t->prompt_s);
    fprintf(stderr, "prefill      %.1f ms\n", 1000 * t->prefill_s);
    fprintf(stderr, "each frame   talker %.2f ms, predictor %.2f ms, vocoder %.2f ms\n",
        per_frame * t->talker_s, per_frame * t->predictor_s, per_frame * t->vocoder_s);
    fprintf(stderr, "in all       %.2f s, %.2f x real time\n", took, took > 0 ? spoken / took : 0);
}

static int print_json(const struct saying *s, const utter_reading_stats *t)
{
    json_t *object = json_pack("{s:o,s:s,s:I,s:f,s:I,s:I,s:f,s:f,s:f,s:f,s:f,s:f,s:f,s:I,s:I,s:I}",
        "output", json_name(s->output.path), "finish", utter_finish_text(t->finish), "frames",
        (json_int_t)t->n_frames, "seconds", seconds_spoken(s), "text_tokens",
        (json_int_t)t->n_text_tokens, "prompt_rows", (json_int_t)t->n_rows, "first_sound_s",
        t->first_sound_s, "prompt_s", t->prompt_s, "prefill_s", t->prefill_s, "talker_s", t->talker_s,
        "predictor_s", t->predictor_s, "vocoder_s", t->vocoder_s, "wall_s", s->end_s - s->begin_s,
        "pieces", (json_int_t)t->n_pieces, "retries", (json_int_t)t->n_retries, "not_whole",
        (json_int_t)t->n_broken);
    return report_json(object);
}

/* Only white space is left. */
static bool is_all(const struct saying *s)
{
    size_t white = 0;
    while (white < s->text_n && strchr(" \t\r\n", s->text[white])) {
        white++;
    }
    return s->ended && white == s->text_n;
}

/* Whether all words were said: 0, or EXIT_NOT_WHOLE after a line that says where not. What the caller asked for of a
 * text of one piece is no news. */
static int tell_whole(const struct saying *s, const utter_reading_stats *t)
{
    if (t->finish == UTTER_FINISH_MAX_FRAMES && s->settings->max_frames.given &&
        !(t->n_pieces == 1 && is_all(s))) {
        return fail(EXIT_NOT_WHOLE,
            "the speech was cut after %llu frames, as --max-frames says, at line %zu, byte %zu, \"%s\"",
            (unsigned long long)t->n_frames, s->last.line, s->last.byte, s->last.words);
    }
    if (s->n_broken == 0) {
        return 0;
    }
    if (t->n_pieces > 1) {
        return fail(EXIT_NOT_WHOLE,
            "%llu of %llu pieces of the text may lack words, the first at line %zu, byte %zu, \"%s\"",
            (unsigned long long)s->n_broken, (unsigned long long)t->n_pieces, s->broken.line,
            s->broken.byte, s->broken.words);
    }
    switch (s->broken_finish) {
    case UTTER_FINISH_MAX_FRAMES:
        return fail(EXIT_NOT_WHOLE,
            "the speech was cut at the checkpoint's limit of %llu frames (--max-frames sets another)",
            (unsigned long long)t->n_frames);
    case UTTER_FINISH_EOS:
        return fail(EXIT_NOT_WHOLE, "words may be missing from the speech: %s", why(s->broken_finish));
    case UTTER_FINISH_CONTEXT:
        return fail(EXIT_NOT_WHOLE, "the speech was cut: the model's %d positions are used up",
            s->info.max_positions);
    default:
        return fail(EXIT_NOT_WHOLE, "the guard ended the speech: %s (--no-guard lets it go on)",
            why(s->broken_finish));
    }
}

int saying_finish(struct saying *s)
{
    progress_clear();
    if (interrupt_signal() && s->output.n_samples == 0) {
        return fail(128 + interrupt_signal(), "interrupted before anything was spoken");
    }
    utter_reading_stats stats = stats_of(s);
    int code = output_close(&s->output, interrupt_signal() == 0);
    if (code == 0) {
        code = trace_close(&s->trace);
    }
    if (code == 0 && s->codes.file.lines) {
        code = codes_file_finish(&s->codes, stats.finish);
    }
    if (code == 0 && s->times.file.lines) {
        if (interrupt_signal()) {
            times_file_cut(&s->times, seconds_spoken(s));
        }
        code = times_file_finish(&s->times, stats.words_approximate);
    }
    if (code) {
        return code;
    }
    const char *path = s->output.path;
    bool named = progress_shown() || !s->settings->output.given;
    if (path && strcmp(path, "-") != 0 && named && !s->settings->quiet.given) {
        note("%.1f s of speech are in %s", seconds_spoken(s), path);
    }
    if (s->settings->stats.given) {
        print_stats(s, &stats);
    }
    if (s->settings->json.given) {
        code = print_json(s, &stats);
    }
    code = code ? code : tell_whole(s, &stats);
    return interrupt_signal() && (code == 0 || code == EXIT_NOT_WHOLE) ? 128 + interrupt_signal()
                                                                       : code;
}
