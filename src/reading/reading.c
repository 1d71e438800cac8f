/* SPDX-License-Identifier: Apache-2.0
 * The life of a reading: text to pieces, pieces to streams, their samples through the seam. Pieces are judged in their
 * order, by the pace of those before, so that what is said again depends on nothing else. */
#include "reading/reading_parts.h"

#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"

enum { MOST_LANES = 256, MOST_TRIES = 100 };

static utter_status fail_with(utter_reading *r, utter_status status, const utter_error *error)
{
    r->finish = UTTER_FINISH_ERROR;
    r->failure = error ? *error : (utter_error){.text = "the reading failed"};
    r->failure.code = status;
    return status;
}

static utter_status copy_voice(utter_reading *r, const utter_stream_options *voice, utter_error *error)
{
    r->voice = *voice;
    r->voice.voice = voice_share(voice->voice);
    r->language = voice->language ? memory_string(voice->language) : NULL;
    r->instruct = voice->instruct ? memory_string(voice->instruct) : NULL;
    r->voice.language = r->language;
    r->voice.instruct = r->instruct;
    return (voice->language && !r->language) || (voice->instruct && !r->instruct)
               ? error_memory(error, "the options of a reading")
               : UTTER_OK;
}

utter_status reading_open(utter_reading **reading, struct engine *engine,
    const utter_stream_options *voice, const utter_reading_options *options, utter_error *error)
{
    const struct config *c = engine->context.model->config;
    utter_reading *r = memory_new(1, sizeof *r);
    *reading = NULL;
    if (!r) {
        return error_memory(error, "a reading");
    }
    bool small = c->talker.width <= READING_SMALL_WIDTH;
    r->engine = engine;
    r->options = *options;
    r->source.cutter.most = options->piece_length > 0 ? (size_t)options->piece_length
                            : small                   ? READING_SMALL_PIECE
                                                      : READING_PIECE;
    r->seam.rate = r->seam.stress.rate = c->codec.sample_rate;
    /* What a limit leaves for a piece, and what it goes on from, is known when those before have ended. */
    bool together = !options->live && options->max_frames == 0 && !options->carry;
    r->random = voice->talker.temperature > 0 || voice->predictor.temperature > 0;
    r->n_lanes = together ? min(min(options->lanes, engine->n_lanes), MOST_LANES) : 1;
    r->n_room = r->n_lanes > 1 ? 2 * r->n_lanes : 1;
    r->works = memory_new((size_t)r->n_room, sizeof *r->works);
    utter_status status = r->works ? copy_voice(r, voice, error) : error_memory(error, "a reading");
    r->speakers = (struct speakers){.find = options->find_voice, .user = options->find_voice_user};
    const struct script_options script = {.markup = options->markup,
        .cast = options->cast,
        .lexicon = options->lexicon,
        .spell_out = options->spell_out,
        .language = voice->language,
        .voice = voice->voice ? voice->voice->name : NULL,
        .written = options->written,
        .written_user = options->written_user};
    status = status ? status : carry_check(r, error);
    status = status ? status : source_open(&r->source, &script, error);
    if (status || (status = works_open_stream(r, &r->spare, NULL, r->voice.seed, error))) {
        reading_free(&r);
        return status;
    }
    engine_note_stream(r->spare);
    r->streams = prompt_streams(r->spare->prompt);
    *reading = r;
    return UTTER_OK;
}

void reading_free(utter_reading **reading)
{
    utter_reading *r = *reading;
    if (r) {
        for (int i = 0; i < r->n_works; i++) {
            works_drop(&r->works[i]);
        }
        engine_free_stream(&r->spare);
        carry_drop(r);
        voice_free((utter_voice **)&r->voice.voice);
        memory_free(r->language);
        memory_free(r->instruct);
        memory_free(r->works);
        source_fini(&r->source);
        speakers_fini(&r->speakers);
        seam_fini(&r->seam);
        samples_fini(&r->out);
        heard_fini(&r->heard);
        memory_free(r);
    }
    *reading = NULL;
}

/* All that was left out, and languages that the model does not speak. */
static void tell_notes(utter_reading *r)
{
    const char *note = r->source.script ? script_note(r->source.script) : NULL;
    for (; note; note = script_note(r->source.script)) {
        engine_log(r->engine, note);
    }
}

/* What has failed stays so. */
static utter_status earlier_failure(const utter_reading *r, utter_error *error)
{
    if (r->failure.code != UTTER_OK && error) {
        *error = r->failure;
    }
    return r->failure.code;
}

utter_status reading_text(utter_reading *r, const char *text, size_t bytes, utter_error *error)
{
    if (r->failure.code != UTTER_OK) {
        return earlier_failure(r, error);
    }
    if (r->source.finished) {
        return error_set(error, UTTER_E_ARGUMENT, "text after the end of the text");
    }
    utter_status status = source_text(&r->source, text, bytes, error);
    return status || (status = works_check_spans(r, error)) || (status = works_grow(r, error))
               ? fail_with(r, status, error)
               : UTTER_OK;
}

utter_status reading_finish(utter_reading *r, utter_error *error)
{
    if (r->failure.code != UTTER_OK) {
        return earlier_failure(r, error);
    }
    if (r->source.finished) {
        return UTTER_OK;
    }
    utter_status status = source_finish(&r->source, error);
    status = status ? status : works_check_spans(r, error);
    if (status) {
        return fail_with(r, status, error);
    }
    tell_notes(r);
    /* What a stream finds wrong with a text of one piece is told at once. */
    status = works_start_pieces(r, error);
    if (status == UTTER_OK && r->n_cut == 0 && r->spare && source_is_done(&r->source)) {
        status = stream_finish(r->spare, error); /* there is nothing to speak */
    }
    return status < 0 ? fail_with(r, status, error) : UTTER_OK;
}

/* What is not whole is said again. */
static bool may_repeat(const utter_reading *r, const struct work *w)
{
    return r->random && w->tries <= min(r->options.retries, MOST_TRIES);
}

/* The sound of a piece begins: the quiet around it is known. */
static utter_status begin_sound(utter_reading *r, struct work *w, utter_error *error)
{
    const struct effects_settings effects = {.speed = w->speed, .volume = w->volume};
    bool first = w->index == 0 && (w->tries == 1 || !r->options.live);
    bool changed = w->speed < 1 || w->speed > 1 || w->volume < 1 || w->volume > 1;
    utter_status status = w->lead_s > 0 && (w->tries == 1 || !r->options.live)
                              ? seam_silence(&r->seam, w->lead_s, &r->out, error)
                              : UTTER_OK;
    seam_begin(&r->seam, w->growing ? 0 : works_pause(r, w->end), first);
    if (w->pause_s >= 0) {
        seam_exact(&r->seam, w->pause_s, w->last);
    }
    w->begun = true;
    if (status == UTTER_OK && changed && !(w->effects = effects_new(&effects, r->seam.rate))) {
        status = error_memory(error, "a piece of sound");
    }
    return status;
}

/* Through the effects of the piece, which want samples of their own; `last`: what they hold comes out. */
static utter_status put(
    utter_reading *r, struct work *w, const float *pcm, size_t n, bool last, utter_error *error)
{
    if (!w->effects) {
        return seam_put(&r->seam, pcm, n, &r->out, error);
    }
    struct samples own = {0};
    utter_status status = samples_add(&own, pcm, n, error);
    float *made = own.at;
    if (status == UTTER_OK && !effects_feed(w->effects, &made, &n, last)) {
        status = error_memory(error, "a piece of sound");
    }
    status = status ? status : seam_put(&r->seam, made, n, &r->out, error);
    samples_fini(&own);
    return status;
}

static utter_status join(
    utter_reading *r, struct work *w, const float *pcm, size_t n, utter_error *error)
{
    if (w->only && !w->begun) {
        return samples_add(&r->out, pcm, n, error);
    }
    utter_status status = w->begun ? UTTER_OK : begin_sound(r, w, error);
    return status ? status : put(r, w, pcm, n, false, error);
}

/* The last sample that the piece has passed is the last one that there is, whatever was cut off in front. */
static void note_shift(const utter_reading *r, struct work *w)
{
    size_t held = w->begun ? r->seam.held.n : 0;
    w->shift =
        (int64_t)(r->n_given + r->out.n - r->out_from + held) - (int64_t)((double)w->passed / w->speed);
}

static utter_status give_out(
    utter_reading *r, struct work *w, const float *pcm, size_t n, utter_error *error)
{
    utter_status status = join(r, w, pcm, n, error);
    w->passed += n;
    note_shift(r, w);
    return status;
}

/* Nothing more comes of the piece: its words are where they are heard, with what its effects have held. */
static utter_status end_words(utter_reading *r, struct work *w, utter_error *error)
{
    utter_status status = w->effects ? put(r, w, NULL, 0, true, error) : UTTER_OK;
    effects_free(w->effects);
    w->effects = NULL;
    note_shift(r, w);
    return status || w->passed == 0 ? status : heard_piece(&r->heard, w, error);
}

/* Samples of the front piece go to who listens as they come; where not live, once it is not said again. */
static utter_status pass(
    utter_reading *r, struct work *w, const float *pcm, size_t n, utter_error *error)
{
    if (!r->options.live && (w != r->works || may_repeat(r, w))) {
        return samples_add(&w->made, pcm, n, error);
    }
    utter_status status = w->made.n ? give_out(r, w, w->made.at, w->made.n, error) : UTTER_OK;
    w->made.n = 0;
    return status ? status : give_out(r, w, pcm, n, error);
}

static utter_status collect(utter_reading *r, utter_error *error)
{
    enum { PIECE = 1920 };
    float pcm[PIECE];
    utter_status status = UTTER_OK;
    for (int i = 0; i < r->n_works && status == UTTER_OK; i++) {
        struct work *w = &r->works[i];
        for (size_t n;
             status == UTTER_OK && w->stream && (n = stream_drain(w->stream, pcm, PIECE)) > 0;) {
            status = pass(r, w, pcm, n, error);
        }
        if (w->stream && w->stream->failure.code != UTTER_OK && status == UTTER_OK) {
            status = w->stream->failure.code;
            if (error) {
                *error = w->stream->failure;
            }
        } else if (i > 0 && w->stream && w->stream->finish != UTTER_FINISH_NONE) {
            engine_release_lane(w->stream); /* it waits for its turn, and others need not wait for it */
        }
    }
    return status;
}

/* The limit that the caller has set is reached with this piece. */
static bool at_limit(const utter_reading *r, const struct work *w)
{
    return w->stream->finish == UTTER_FINISH_MAX_FRAMES && r->options.max_frames > 0 &&
           (int64_t)r->stats.n_frames + w->stream->n_frames >= r->options.max_frames;
}

/* Adds what the stream of a piece has done so far. */
static void count(utter_reading_stats *t, const struct work *w)
{
    const utter_stream *s = w->stream;
    t->n_text_tokens += (uint64_t)prompt_text_tokens(s->prompt);
    t->n_rows += (uint64_t)s->stats.n_rows;
    t->prompt_s += s->stats.prompt_s;
    t->prefill_s += s->stats.prefill_s;
    t->talker_s += s->stats.talker_s;
    t->predictor_s += s->stats.predictor_s;
    t->vocoder_s += s->stats.vocoder_s;
    t->wait_s += s->stats.wait_s;
    t->n_frames += (uint64_t)s->n_frames;
}

static void note_piece(utter_reading *r, const struct work *w, bool whole)
{
    const utter_stream *s = w->stream;
    count(&r->stats, w);
    r->stats.first_sound_s = w->index == 0 ? s->stats.first_sound_s : r->stats.first_sound_s;
    r->stats.n_pieces++;
    r->stats.n_broken += !whole;
    r->broken = whole ? r->broken : s->finish == UTTER_FINISH_EOS ? UTTER_FINISH_SILENCE : s->finish;
    whole_learn(r, w);
    utter_piece piece = {.size = sizeof piece,
        .index = w->index,
        .at = w->at,
        .bytes = w->bytes,
        .seed = r->voice.seed + (uint64_t)w->tries - 1,
        .finish = s->finish,
        .tries = w->tries,
        .whole = whole,
        .seconds = whole_seconds(r, w) / w->speed,
        .codes = s->codes,
        .n_frames = (size_t)s->n_frames,
        .begin = r->n_told,
        .end = r->n_given + r->out.n - r->out_from,
        .text = w->text,
        .text_bytes = w->text_bytes,
        .origins = w->origins,
        .heading = w->heading};
    r->n_told = piece.end;
    if (r->options.piece) {
        r->options.piece(r->options.piece_user, &piece);
    }
}

/* The front piece has been heard: the next one takes its place. */
static utter_status go_on(utter_reading *r, utter_error *error)
{
    struct work *w = &r->works[0];
    bool last = w->last || r->finish != UTTER_FINISH_NONE;
    works_drop(w);
    r->n_works--;
    memmove(r->works, r->works + 1, (size_t)r->n_works * sizeof *r->works);
    r->works[r->n_works] = (struct work){0};
    /* A lane stays ours, while text is waited for, and for what is said again. */
    return last || works_lanes(r) > 0 ? UTTER_OK
                                      : works_open_stream(r, &r->spare, NULL, r->voice.seed, error);
}

/* The front piece has ended: it is said again, or it is done. */
static utter_status end_piece(utter_reading *r, utter_error *error)
{
    struct work *w = &r->works[0];
    bool cut = at_limit(r, w) || w->stream->finish == UTTER_FINISH_CANCELLED, whole = whole_is(r, w);
    /* The sound of a live piece that is all has gone out as it was made. */
    bool again = !whole && !cut && may_repeat(r, w) && !(w->only && r->options.live);
    bool last = w->only || ((w->last || cut) && !again && (whole || cut));
    utter_status status = again ? UTTER_OK : give_out(r, w, w->made.at, w->made.n, error);
    status = status ? status : end_words(r, w, error);
    if (w->begun && status == UTTER_OK) {
        status = seam_end(&r->seam, last && w->pause_s < 0, &r->out, error);
    }
    if (status) {
        return status;
    }
    if (again) {
        r->stats.n_retries++;
        count(&r->stats, w);
        r->stats.n_frames -= r->options.live ? 0 : (uint64_t)w->stream->n_frames; /* not heard */
        w->made.n = 0;
        w->begun = false;
        w->passed = 0;
        engine_free_stream(&w->stream);
        w->waits = !works_has_lane(r);
        return w->waits ? UTTER_OK : works_start(r, w, error);
    }
    if (cut) {
        r->finish = w->stream->finish;
    }
    note_piece(r, w, whole);
    status = carry_piece(r, w, whole, error);
    return status ? status : go_on(r, error);
}

static size_t give(utter_reading *r, float *pcm, size_t capacity)
{
    size_t n = min(capacity, r->out.n - r->out_from);
    if (n > 0) {
        memcpy(pcm, r->out.at + r->out_from, n * sizeof *pcm);
        r->out_from += n;
        r->n_given += n;
    }
    if (r->out_from == r->out.n) {
        r->out_from = r->out.n = 0;
    }
    return n;
}

/* All that was made goes out, and nothing more is. */
static utter_status stop(utter_reading *r, utter_error *error)
{
    struct work *w = &r->works[0];
    utter_status status = collect(r, error);
    if (r->n_works > 0 && status == UTTER_OK) {
        status = give_out(r, w, w->made.at, w->made.n, error);
    }
    if (r->n_works > 0 && w->stream) {
        w->stream->finish = UTTER_FINISH_CANCELLED;
        status = status ? status : end_words(r, w, error);
    }
    if (r->n_works > 0 && w->begun && status == UTTER_OK) {
        status = seam_end(&r->seam, w->pause_s < 0, &r->out, error);
    }
    if (r->n_works > 0 && w->stream) {
        note_piece(r, w, false);
    }
    for (int i = 0; i < r->n_works; i++) {
        works_drop(&r->works[i]);
    }
    r->n_works = 0;
    engine_free_stream(&r->spare);
    r->finish = UTTER_FINISH_CANCELLED;
    return status;
}

/* Everything that can be done without a new frame. */
static utter_status settle(utter_reading *r, utter_error *error)
{
    utter_status status = UTTER_OK;
    bool moved = true;
    while (moved && status == UTTER_OK && r->finish == UTTER_FINISH_NONE) {
        if (__atomic_load_n(&r->cancelled, __ATOMIC_RELAXED)) {
            return stop(r, error);
        }
        bool spent = r->n_works == 0 && r->options.max_frames > 0 && !source_is_done(&r->source) &&
                     r->stats.n_frames >= (uint64_t)r->options.max_frames;
        if (spent) {
            r->finish = UTTER_FINISH_MAX_FRAMES;
            break;
        }
        if ((status = works_start_pieces(r, error)) || (status = collect(r, error))) {
            break;
        }
        if (r->n_works == 0) {
            bool done = source_is_done(&r->source);
            r->finish =
                done ? r->broken != UTTER_FINISH_NONE ? r->broken : UTTER_FINISH_EOS : r->finish;
            break;
        }
        const struct work *w = &r->works[0];
        if (w->waits) {
            moved = works_has_lane(r);
            continue;
        }
        stream_ready(w->stream); /* notices a bound that has been reached */
        moved = w->stream->finish != UTTER_FINISH_NONE && w->stream->ring_n == 0 &&
                (!w->growing || at_limit(r, w));
        status = moved ? end_piece(r, error) : UTTER_OK;
    }
    return status;
}

utter_status reading_take(utter_reading *r, float *pcm, size_t capacity, size_t *n, utter_error *error)
{
    utter_error local = {.text = ""};
    *n = give(r, pcm, capacity);
    if (*n == 0 && r->failure.code == UTTER_OK && r->finish == UTTER_FINISH_NONE) {
        utter_status status = settle(r, &local);
        if (status < 0) {
            fail_with(r, status, &local);
        }
        *n = give(r, pcm, capacity);
    }
    if (*n > 0) {
        return UTTER_OK;
    }
    if (r->failure.code != UTTER_OK) {
        return earlier_failure(r, error);
    }
    return r->finish == UTTER_FINISH_NONE ? UTTER_AGAIN : UTTER_END;
}

bool reading_ready(utter_reading *r)
{
    bool ready = false;
    for (int i = 0; i < r->n_works; i++) {
        ready |= r->works[i].stream && stream_ready(r->works[i].stream);
    }
    return ready || __atomic_load_n(&r->cancelled, __ATOMIC_RELAXED);
}

struct engine *reading_engine(const utter_reading *r)
{
    return r->engine;
}

void reading_hold(utter_reading *r, bool held)
{
    r->held = held;
    for (int i = 0; i < r->n_works; i++) {
        if (r->works[i].stream) {
            r->works[i].stream->held = held;
        }
    }
}

void reading_cancel(utter_reading *r)
{
    __atomic_store_n(&r->cancelled, 1, __ATOMIC_RELAXED);
}

const utter_word *reading_words(utter_reading *r, uint64_t *first, size_t *n)
{
    return heard_words(&r->heard, r->n_works > 0 ? &r->works[0] : NULL, first, n);
}

void reading_stats(const utter_reading *r, utter_reading_stats *stats)
{
    *stats = r->stats;
    stats->finish = r->finish;
    stats->words_approximate = r->heard.approximate;
    const struct work *w = &r->works[0];
    if (r->n_works > 0 && w->stream) {
        const utter_stream *s = w->stream;
        count(stats, w);
        stats->at = w->at;
        stats->bytes = w->bytes;
        stats->first_sound_s = w->index == 0 ? s->stats.first_sound_s : stats->first_sound_s;
    }
}
