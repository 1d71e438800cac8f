/* SPDX-License-Identifier: Apache-2.0
 * One utterance: text -> prompt -> prefill -> frames -> samples in the ring, and its end. */
#include "engine/stream.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "base/tables/parameters.h"

/* Frames before which no utterance ends: the official package's min_new_tokens. */
enum { LEAST_FRAMES = 2 };

static int n_codebooks(const utter_stream *s)
{
    return s->context->model->config->n_codebooks;
}

utter_status stream_check_options(
    const struct stream_context *context, const utter_stream_options *o, utter_error *error)
{
    utter_status status = parameters_check(o, error);
    if (status) {
        return status;
    }
    if (o->max_frames < 1) {
        return error_set(error, UTTER_E_ARGUMENT, "max_frames %d is not at least 1", o->max_frames);
    }
    if (o->layout < UTTER_LAYOUT_AUTO || o->layout > UTTER_LAYOUT_STREAM) {
        return error_set(error, UTTER_E_ARGUMENT, "layout %d does not exist", (int)o->layout);
    }
    return o->voice ? voice_fits(o->voice, context->model, error) : UTTER_OK;
}

/* What lives as long as the stream: all of it is taken here, nothing while it speaks. */
static utter_status stream_allocate(utter_stream *s, utter_error *error)
{
    const struct config *c = s->context->model->config;
    s->codes = memory_new((size_t)s->max_frames * (size_t)c->n_codebooks, sizeof *s->codes);
    s->ring_size = (size_t)STREAM_RING_FRAMES * (size_t)c->codec.frame_samples;
    s->ring = memory_new(s->ring_size, sizeof *s->ring);
    return s->codes && s->ring ? UTTER_OK : error_memory(error, "stream");
}

/* Heads that become known while the stream speaks are for later ones. */
static utter_status words_open(utter_stream *s, utter_error *error)
{
    static const struct heads none = {.n = 0};
    const struct config *c = s->context->model->config;
    utter_status status = learn_begin(&s->context->learning, s, error);
    const struct heads *heads = s->context->heads.n > 0 ? &s->context->heads : &none;
    if (status) {
        return status;
    }
    s->words = memory_new(1, sizeof *s->words);
    return s->words ? words_init(s->words, heads, c->max_positions, s->max_frames,
                          c->codec.frame_samples, c->codec.sample_rate, error)
                    : error_memory(error, "words");
}

utter_status stream_open(utter_stream **stream, struct stream_context *context, int lane,
    const utter_stream_options *o, utter_error *error)
{
    *stream = NULL;
    utter_stream *s = memory_new(1, sizeof *s);
    if (!s) {
        return error_memory(error, "stream");
    }
    const struct config *c = context->model->config;
    s->context = context;
    s->lane = lane;
    s->voice = voice_share(o->voice);
    s->settings = (struct lane_settings){
        .talker = o->talker, .predictor = o->predictor, .seed = o->seed, .min_frames = LEAST_FRAMES};
    s->settings.predictor.repetition_penalty = 1; /* it has none */
    s->max_frames = min(o->max_frames, c->max_positions);
    s->use_guard = o->guard;
    struct prompt_request request = {o->voice, o->language, o->instruct, o->layout, o->plain};
    utter_status status;
    if ((status = stream_allocate(s, error)) || (o->words && (status = words_open(s, error))) ||
        (status = prompt_open(&s->prompt, c, context->tokenizer, &request, error)) ||
        (status = context->ops->lane_reset(context->backend, lane, &s->settings, error))) {
        stream_free(&s);
    }
    *stream = s;
    return status;
}

bool stream_learnt(const utter_stream *s)
{
    int n_tokens = s->prompt ? prompt_text_tokens(s->prompt) : 0;
    return learn_end(&s->context->learning, s, n_tokens, s->finish);
}

void stream_free(utter_stream **stream)
{
    utter_stream *s = *stream;
    if (s) {
        stream_learnt(s);
        prompt_close(&s->prompt);
        voice_free(&s->voice);
        if (s->words) {
            words_fini(s->words);
        }
        doubt_fini(&s->doubt);
        memory_free(s->words);
        memory_free(s->codes);
        memory_free(s->ring);
        memory_free(s);
    }
    *stream = NULL;
}

/* Text calls are timed, and the clock of the first sound starts when the rows became certain. */
static utter_status text_done(utter_stream *s, double begin, utter_status status)
{
    int n_rows;
    double now = clock_seconds();
    s->stats.prompt_s += now - begin;
    if (status == UTTER_OK && s->text_since == 0 && prompt_rows(s->prompt, &n_rows)) {
        s->text_since = begin;
    }
    return status;
}

utter_status stream_text(utter_stream *s, const char *text, size_t bytes, utter_error *error)
{
    double begin = clock_seconds();
    utter_status status = prompt_text(s->prompt, text, bytes, error);
    if (status == UTTER_OK && s->words) {
        status = words_text(s->words, text, bytes, error);
    }
    return text_done(s, begin, status);
}

utter_status stream_finish(utter_stream *s, utter_error *error)
{
    double begin = clock_seconds();
    utter_status status = prompt_finish(s->prompt, error);
    if (status == UTTER_OK && s->words) {
        status = words_finish(s->words, error);
    }
    return text_done(s, begin, status);
}

/* There is text for another frame, and room for its sound and that of those before. */
static bool can_go_on(const utter_stream *s)
{
    int n_rows;
    size_t n_new = (size_t)(s->n_made - s->n_frames + 1);
    return prompt_rows(s->prompt, &n_rows) &&
           (s->n_made == 0 || prompt_trailing(s->prompt, s->n_made - 1) >= 0) &&
           s->ring_n + n_new * (size_t)s->context->model->config->codec.frame_samples <= s->ring_size;
}

/* The bound that allows no further frame, or NONE. */
static utter_finish reached_bound(const utter_stream *s)
{
    int n_rows = 0;
    prompt_rows(s->prompt, &n_rows);
    return s->n_made >= s->max_frames ? UTTER_FINISH_MAX_FRAMES
           : s->prefilled && n_rows + s->n_made >= s->context->model->config->max_positions
               ? UTTER_FINISH_CONTEXT
               : UTTER_FINISH_NONE;
}

bool stream_ready(utter_stream *s)
{
    if (s->finish != UTTER_FINISH_NONE) {
        return false;
    }
    if (__atomic_load_n(&s->cancelled, __ATOMIC_RELAXED)) {
        s->finish = UTTER_FINISH_CANCELLED;
        return false;
    }
    if (s->held || stream_doubts(s)) {
        return !s->held;
    }
    s->finish = reached_bound(s); /* also of a stream that has no text for another frame */
    return s->finish == UTTER_FINISH_NONE && can_go_on(s);
}

/* Runs the recording's codes through the vocoder first, so that the speech goes on from its sound; what comes out
 * is the recording and is dropped. */
static utter_status prime_vocoder(utter_stream *s, utter_error *error)
{
    const utter_voice *v = s->voice;
    const struct backend_ops *ops = s->context->ops;
    utter_status status = UTTER_OK;
    int n_frames = v && v->codes ? v->n_frames : 0;
    if (n_frames && ops->prime) {
        return ops->prime(s->context->backend, s->lane, v->codes, n_frames, error);
    }
    for (int at = 0; at < n_frames && status == UTTER_OK;) {
        struct lane_out out;
        int n = min(n_frames - at, BACKEND_MAX_FEED);
        const int32_t *codes = v->codes + (size_t)at * (size_t)v->n_codebooks;
        if ((status = ops->feed(s->context->backend, s->lane, codes, n, error)) == UTTER_OK &&
            (status = ops->vocode(s->context->backend, &s->lane, 1, error)) == UTTER_OK) {
            status = ops->collect(s->context->backend, s->lane, &out, error);
        }
        at += n;
    }
    return status;
}

/* The tokens of the text, as words look them up. */
static struct words_tokens tokens_of(const utter_stream *s)
{
    return (struct words_tokens){
        prompt_token_begins(s->prompt), prompt_text_tokens(s->prompt), prompt_finished(s->prompt)};
}

/* Whether the heads that are watched tell something of this stream. */
static bool is_watched(const utter_stream *s)
{
    return s->words && (!words_approximate(s->words) || s->context->learning.by == s);
}

/* The lane looks at the rows of the text: all of them, and the end behind it; in the stream layout as many as there can
 * be frames. */
static utter_status look_at_text(utter_stream *s, utter_error *error)
{
    int begin = prompt_text_position(s->prompt), positions = s->context->model->config->max_positions;
    int most = s->context->learning.by == s ? min(s->max_frames, RANK_FRAMES) : s->max_frames;
    int n = prompt_streams(s->prompt) ? most + 1 : prompt_text_tokens(s->prompt) + 1;
    return is_watched(s) ? s->context->ops->look(s->context->backend, s->lane, begin,
                               begin + min(n, positions - begin), error)
                         : UTTER_OK;
}

/* What the lane can have without computing rows: a kept beginning, or the sound of the recording. */
static utter_status begin_lane(
    utter_stream *s, const struct beginning *beginning, int n_rows, utter_error *error)
{
    int positions = s->context->model->config->max_positions;
    bool found;
    if (n_rows >= positions) {
        return error_set(error, UTTER_E_ARGUMENT,
            "the text takes %d positions, this model has %d (split it)", n_rows, positions);
    }
    utter_status status = snapshot_resume(&s->context->snapshots, s->lane, beginning, &found, error);
    s->n_read = s->stats.n_kept_rows = found ? beginning->n_rows : 0;
    status = status ? status : look_at_text(s, error);
    s->begun = status == UTTER_OK;
    return status || found ? status : prime_vocoder(s, error);
}

/* How many of the next n rows are read in this step: pieces of about the same size, in the time that was asked for. */
static int piece_of(const struct prompt_clock *clock, int n)
{
    double most = clock->row_s > 0 ? clock->most_s / clock->row_s : 0;
    most = max(most, STREAM_LEAST_ROWS);
    if (clock->most_s <= 0 || n <= most) {
        return n;
    }
    int n_pieces = (int)ceil(n / most);
    return (n + n_pieces - 1) / n_pieces;
}

/* Few rows tell nothing of what many take. */
static void learn_rows(struct prompt_clock *clock, int n, double seconds)
{
    if (n >= STREAM_LEAST_ROWS / 2) {
        clock->row_s += (clock->row_s > 0 ? 0.3 : 1) * (seconds / n - clock->row_s);
    }
}

/* Behind a piece that is not the last: a device that has only queued it would make the next step's frames wait for all
 * pieces of a prompt at once. */
static utter_status end_piece(utter_stream *s, double begun, utter_error *error)
{
    struct lane_out out;
    utter_status status = s->context->ops->collect(s->context->backend, s->lane, &out, error);
    s->stats.wait_s += out.wait_s;
    if (status == UTTER_OK) {
        learn_rows(&s->context->prompt_clock, s->n_piece, clock_seconds() - begun);
    }
    return status;
}

utter_status stream_prefill(utter_stream *s, utter_error *error)
{
    int n_rows;
    const struct row *rows = prompt_rows(s->prompt, &n_rows);
    const struct beginning beginning = {s->voice, rows, prompt_fixed_rows(s->prompt)};
    double begin = clock_seconds();
    utter_status status = s->begun ? UTTER_OK : begin_lane(s, &beginning, n_rows, error);
    double begun = clock_seconds();
    int n = piece_of(&s->context->prompt_clock, n_rows - s->n_read), n_before = s->n_read;
    if (status == UTTER_OK) {
        status = s->context->ops->prefill(s->context->backend, s->lane, rows + s->n_read, n, error);
    }
    if (status == UTTER_OK) {
        s->n_read += n;
        s->n_piece = n;
        s->piece_s = clock_seconds() - begun;
        status = s->n_read < n_rows ? end_piece(s, begun, error) : UTTER_OK;
    }
    if (status == UTTER_OK && n_before < beginning.n_rows && s->n_read >= beginning.n_rows) {
        status = snapshot_keep(&s->context->snapshots, s->lane, &beginning, error);
    }
    s->prefilled = status == UTTER_OK && s->n_read == n_rows;
    s->stats.n_rows = s->n_read;
    s->stats.prefill_s += clock_seconds() - begin;
    return status;
}

/* At the first frame a device tells what the last piece took where it had only been queued. */
static void learn_prompt(utter_stream *s, double prefill_s)
{
    bool in_one = s->n_piece == s->n_read - s->stats.n_kept_rows;
    if (prefill_s >= 0) {
        learn_rows(&s->context->prompt_clock, s->n_piece, prefill_s > 0 ? prefill_s : s->piece_s);
    }
    if (prefill_s > 0) {
        s->stats.prefill_s = in_one ? prefill_s : s->stats.prefill_s - s->piece_s + prefill_s;
    }
}

struct frame_in stream_frame_in(const utter_stream *s)
{
    int32_t text = s->n_made == 0 ? -1 : prompt_trailing(s->prompt, s->n_made - 1);
    return (struct frame_in){.lane = s->lane, .text = text};
}

/* A frame's samples. The ring has room for whole frames, so none of them goes round its end. */
static void ring_put(utter_stream *s, const float *pcm, size_t n)
{
    size_t at = (s->ring_from + s->ring_n) % s->ring_size;
    memcpy(s->ring + at, pcm, n * sizeof *pcm);
    s->ring_n += n;
}

static void fail_number(utter_stream *s, int frame)
{
    utter_error error;
    stream_fail(s,
        error_set(&error, UTTER_E_NUMBER,
            "frame %d came out as something that is not a number (the weights are damaged)", frame),
        &error);
}

/* What a stream that has ended by itself is asked for words that it has skipped. */
static struct doubt_in doubt_of(utter_stream *s)
{
    struct stream_context *c = s->context;
    return (struct doubt_in){.ops = c->ops,
        .backend = c->backend,
        .snapshots = &c->snapshots,
        .config = c->model->config,
        .lane = s->lane,
        .settings = &s->settings,
        .voice = s->voice,
        .prompt = s->prompt,
        .words = s->words,
        .codes = s->codes,
        .n_frames = s->n_made};
}

/* What comes behind the last frame, once it has its sound. */
static void take_end(utter_stream *s)
{
    if (s->coming == UTTER_FINISH_EOS && stream_weighs(s) && prompt_finished(s->prompt)) {
        const struct doubt_in in = doubt_of(s);
        doubt_begin(&s->doubt, &in);
    }
    if (s->coming == UTTER_FINISH_ERROR) {
        fail_number(s, s->n_made);
    } else if (s->coming != UTTER_FINISH_NONE && !stream_doubts(s)) {
        s->finish = s->coming;
    }
}

bool stream_weighs(const utter_stream *s)
{
    return s->words && s->use_guard && s->context->ops->weigh;
}

bool stream_doubts(const utter_stream *s)
{
    return doubt_pending(&s->doubt);
}

/* Where others have taken the room of its rows meanwhile, what was said is not looked at. */
utter_status stream_doubt(utter_stream *s, utter_error *error)
{
    const struct doubt_in in = doubt_of(s);
    double begin = clock_seconds();
    int most = piece_of(&s->context->prompt_clock, s->context->model->config->max_positions);
    utter_status status = doubt_step(&s->doubt, &in, most, error);
    if (status == UTTER_E_MEMORY) {
        doubt_fini(&s->doubt);
        words_weighed(s->words, -1);
        status = UTTER_OK;
    }
    s->stats.prefill_s += clock_seconds() - begin;
    if (status == UTTER_OK && !stream_doubts(s)) {
        s->finish = s->coming;
    }
    return status;
}

/* Where the newest frame is in the text. What the guard says to it holds once that frame has its sound, which may come
 * together with that of others: so the end does not depend on when it comes. */
static void follow(utter_stream *s, const struct words_tokens *tokens)
{
    if (s->use_guard && s->strayed == UTTER_FINISH_NONE) {
        bool said = tokens->finished && words_place(s->words) >= tokens->n;
        s->strayed = guard_follow(words_there(s->words), said);
        s->strayed_at = s->n_made;
    }
}

void stream_take_codes(utter_stream *s, const struct lane_out *out)
{
    size_t n_codes = (size_t)n_codebooks(s);
    s->stats.talker_s += out->talker_s;
    s->stats.predictor_s += out->predictor_s;
    s->stats.wait_s += out->wait_s;
    s->doubt.log_p += (double)out->likelihood.log_p;
    if (s->n_made == 0) {
        learn_prompt(s, out->prefill_s);
    }
    if (out->not_a_number || out->end) {
        s->coming = out->not_a_number ? UTTER_FINISH_ERROR : UTTER_FINISH_EOS;
    } else {
        memcpy(s->codes + (size_t)s->n_made++ * n_codes, out->codes, n_codes * sizeof *s->codes);
        if (s->words) {
            const struct words_tokens tokens = tokens_of(s);
            words_frame(s->words, out->scores, out->n_scores, &tokens);
            words_surprise(
                s->words, s->n_made - 1, out->likelihood.usual_log_p - out->likelihood.log_p);
            follow(s, &tokens);
            if (s->context->learning.by == s) {
                learn_frame(
                    &s->context->learning, out->scores, out->n_scores, tokens.n, tokens.finished);
            }
        }
    }
    if (s->n_made == s->n_frames) {
        take_end(s);
    }
}

/* Seconds of sound that the listener has not heard yet; below zero: so long he has been waiting. */
static double in_hand(const utter_stream *s)
{
    const struct codec_config *c = &s->context->model->config->codec;
    return (double)s->n_frames * c->frame_samples / c->sample_rate - (clock_seconds() - s->heard_since);
}

/* The listener has so much in hand that one more frame can be made before the sound of n. */
static bool can_wait(const utter_stream *s, int n, double ahead)
{
    const struct codec_config *c = &s->context->model->config->codec;
    const struct pace pace = {.codes_s = (s->stats.talker_s + s->stats.predictor_s) / s->n_made,
        .sound_s = s->stats.vocoder_s / s->n_frames,
        .frame_s = (double)c->frame_samples / c->sample_rate,
        .waited_s = s->waited_s};
    return pace_waits(&pace, n, ahead);
}

bool stream_at_once(const utter_stream *s, bool urgent)
{
    if (urgent || s->n_frames == 0 || s->context->n_together <= 1) {
        return s->n_made == s->n_frames;
    }
    double codes_s = (s->stats.talker_s + s->stats.predictor_s) / s->n_made;
    return s->n_made == s->n_frames && !can_wait(s, 1, in_hand(s) - codes_s);
}

int stream_sound_due(const utter_stream *s, bool urgent)
{
    int n = s->n_made - s->n_frames;
    if (n == 0) {
        return 0;
    }
    bool last = s->coming != UTTER_FINISH_NONE || reached_bound(s) != UTTER_FINISH_NONE;
    bool due = urgent || last || n >= s->context->n_together || s->n_frames == 0 || !can_go_on(s);
    return due || !can_wait(s, n, in_hand(s)) ? n : 0;
}

/* More sound is there, of which n_frames does not know yet. */
static void note_sound(utter_stream *s)
{
    if (s->n_frames == 0) {
        s->heard_since = clock_seconds();
        s->stats.first_sound_s = s->heard_since - s->text_since;
    } else {
        double late = max(-in_hand(s), 0.0);
        s->heard_since += late;
        s->waited_s += late;
    }
}

/* What the guard says to the newest frame with sound. */
static utter_finish guard_frame(utter_stream *s, const float *pcm, size_t n)
{
    int32_t code = s->codes[(ptrdiff_t)(s->n_frames - 1) * n_codebooks(s)];
    utter_finish finish = guard_look(&s->guard, code, pcm, n,
        prompt_consumed(s->prompt, s->n_frames - 1), prompt_text_tokens(s->prompt));
    return finish || s->n_frames < s->strayed_at ? finish : s->strayed;
}

void stream_take_sound(utter_stream *s, const struct lane_out *out)
{
    size_t n = (size_t)s->context->model->config->codec.frame_samples;
    s->stats.vocoder_s += out->vocoder_s;
    if (out->not_a_number) {
        fail_number(s, s->n_frames);
        return;
    }
    if (s->n_made > s->n_frames) {
        note_sound(s);
    }
    for (const float *pcm = out->pcm; s->n_frames < s->n_made; pcm += n) {
        ring_put(s, pcm, n);
        s->n_frames++;
        if (s->words) {
            const struct words_tokens tokens = tokens_of(s);
            words_sound(s->words, pcm, n, &tokens);
        }
        if (s->use_guard) {
            s->finish = guard_frame(s, pcm, n);
        }
        if (s->finish != UTTER_FINISH_NONE) { /* what comes after it was made in vain */
            s->n_made = s->n_frames;
            return;
        }
    }
    take_end(s);
}

void stream_fail(utter_stream *s, utter_status status, const utter_error *error)
{
    s->finish = UTTER_FINISH_ERROR;
    s->failure = *error;
    s->failure.code = status;
}

const utter_word *stream_words(utter_stream *s, size_t *n_words)
{
    if (s->words && s->finish != UTTER_FINISH_NONE) {
        const struct words_tokens tokens = tokens_of(s);
        words_end(s->words, s->finish == UTTER_FINISH_EOS, &tokens);
    }
    *n_words = s->words ? s->words->n_told : 0;
    return s->words ? s->words->at : NULL;
}

size_t stream_drain(utter_stream *s, float *pcm, size_t capacity)
{
    size_t n = min(s->ring_n, capacity);
    if (n == 0) { /* the ring of one that has ended is gone */
        return 0;
    }
    size_t first = min(s->ring_size - s->ring_from, n);
    memcpy(pcm, s->ring + s->ring_from, first * sizeof *pcm);
    memcpy(pcm + first, s->ring, (n - first) * sizeof *pcm);
    s->ring_from = (s->ring_from + n) % s->ring_size;
    s->ring_n -= n;
    return n;
}
