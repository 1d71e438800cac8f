/* SPDX-License-Identifier: Apache-2.0
 * The state of one utterance, from text to samples. A stream owns its prompt, its codes and a ring of
 * samples; its lane of the backend holds everything the model remembers. */
#ifndef ENGINE_STREAM_H
#define ENGINE_STREAM_H

#include "engine/doubt.h"
#include "engine/guard.h"
#include "engine/learn.h"
#include "engine/pace.h"
#include "engine/snapshot.h"
#include "model/backend.h"
#include "prompt/prompt.h"
#include "words/words.h"

/* Frames of sound that a stream holds before a step passes it over. */
enum { STREAM_RING_FRAMES = 64 };

/* Rows of a prompt in one piece, however slow they are: one pass over the weights is worth so many. */
enum { STREAM_LEAST_ROWS = 16 };

/* How fast this device reads prompts, so that a piece of one takes the time that was asked for. */
struct prompt_clock {
    double most_s; /* that a step spends on one stream's prompt; 0: as long as it takes */
    double row_s;  /* that a row takes, running mean; 0: not known */
};

/* All that a stream sees of its engine, which owns it; the streams of an engine share one. */
struct stream_context {
    const struct backend_ops *ops;
    struct backend *backend;
    struct model *model;
    struct tokenizer *tokenizer;
    struct snapshot_store snapshots;
    struct prompt_clock prompt_clock;
    struct heads heads; /* that the backend watches for streams with words; n 0: none are known */
    struct learning learning;
    int n_together; /* frames of a stream that wait for their sound together, at most, in this step */
};

struct utter_stream {
    /* Whose stream it is, for the calls of utter.h: nothing here looks into it */
    struct engine *engine;
    struct stream_context *context;
    int lane; /* -1: it has ended and needs none */
    utter_voice *voice;
    struct prompt *prompt;
    struct lane_settings settings;
    int max_frames;
    bool use_guard;
    /* The lane is ready to read the prompt: a kept beginning, or the vocoder's past, is in it. */
    bool begun;
    bool prefilled; /* the lane holds the whole prompt */
    int n_read;     /* rows of the prompt in the lane */
    int n_piece;    /* rows that the last call of stream_prefill has read */
    double piece_s; /* which that call took */
    struct guard guard;
    utter_finish strayed; /* what the guard says to where the speech is in the text, or NONE */
    int strayed_at;       /* frames by then */
    struct words *words;  /* NULL: nobody asked */
    struct doubt doubt;
    int cancelled; /* atomic: any thread may set it */
    bool held;     /* passed over by the step */

    int32_t *codes;      /* [max_frames][n_codebooks] */
    int n_frames;        /* whose sound there is */
    int n_made;          /* whose codes there are */
    utter_finish coming; /* how the stream ends once all of these have their sound, or NONE */
    /* On the engine's clock: when the sound began, later by what the listener has waited */
    double heard_since;
    double waited_s; /* in all, for sound that came late */
    float *ring;     /* [STREAM_RING_FRAMES * frame_samples] */
    size_t ring_size, ring_from, ring_n;

    utter_finish finish;
    utter_error failure; /* code != 0: every read says so */
    utter_stream_stats stats;
    double text_since; /* when the text was there that the first frame waited for */
};

/* UTTER_E_ARGUMENT when the options ask for what does not exist, UTTER_E_MODEL when the model cannot do it. */
utter_status stream_check_options(
    const struct stream_context *context, const utter_stream_options *options, utter_error *error);
/* A stream on a lane that is free. The options are checked. engine_open_stream finds the lane. */
utter_status stream_open(utter_stream **stream, struct stream_context *context, int lane,
    const utter_stream_options *options, utter_error *error);
/* Frees the stream; what the lane holds stays. Accepts a pointer to NULL. */
void stream_free(utter_stream **stream);

utter_status stream_text(utter_stream *s, const char *text, size_t bytes, utter_error *error);
utter_status stream_finish(utter_stream *s, utter_error *error);

/* True when the next frame can be made now. Ends the stream where a bound is reached. */
bool stream_ready(utter_stream *s);
/* Reads the prompt's rows into the lane, or the next piece of them where the engine bounds its steps. */
utter_status stream_prefill(utter_stream *s, utter_error *error);
/* What the backend needs for the next frame. */
struct frame_in stream_frame_in(const utter_stream *s);
/* Takes in the codes of a frame, or that it is the end. */
void stream_take_codes(utter_stream *s, const struct lane_out *out);
/* Whether the next frame's sound should be made in the step that makes its codes. So it is when no frame waits for its
 * sound and waiting would leave the listener, or somebody else (`urgent`), without sound. */
bool stream_at_once(const utter_stream *s, bool urgent);
/* How many frames get their sound now: all that have none, or 0 when it is better to wait until there are more.
 * `urgent`: another stream would be held up by waiting. */
int stream_sound_due(const utter_stream *s, bool urgent);
/* Takes in the sound of that many. */
void stream_take_sound(utter_stream *s, const struct lane_out *out);
void stream_fail(utter_stream *s, utter_status status, const utter_error *error);

/* What words it skips is known by its codes, once it has ended by itself; else attention alone tells, which is now and
 * then wrong of what was said. */
bool stream_weighs(const utter_stream *s);
/* The speech has ended by itself, and words of it are looked at before that is told. */
bool stream_doubts(const utter_stream *s);
/* The next piece of that. */
utter_status stream_doubt(utter_stream *s, utter_error *error);

/* What this stream has shown of the model's heads is used. True: context->learning.note says what it was. */
bool stream_learnt(const utter_stream *s);

/* The words so far, or NULL. */
const utter_word *stream_words(utter_stream *s, size_t *n_words);

/* Moves up to `capacity` samples out of the ring. */
size_t stream_drain(utter_stream *s, float *pcm, size_t capacity);

#endif
