/* SPDX-License-Identifier: Apache-2.0
 * Which word is heard when. Comes in, as an utterance is made: its text, its tokens' places in it, of each frame what
 * the watched heads look at, its samples. Goes out: the words that have begun, those of the last second still open to
 * change. Where no heads are known the times are shares of the sound (approximate). */
#ifndef WORDS_WORDS_H
#define WORDS_WORDS_H

#include "words/heads.h"
#include "words/loudness.h"
#include "words/path.h"
#include "words/segment.h"

/* Zero it, then words_init. */
struct words {
    const struct heads *heads; /* n 0: none */
    int frame_samples, sample_rate;
    struct segmenter segmenter;
    struct path path;
    struct loudness loudness;
    float *shares; /* [n_shares], scratch: the attention on each token */
    int n_shares;
    float *surprise;            /* [path.room]: of each frame, in nats */
    bool weighed;               /* it is known better than by attention which word was not said: */
    int64_t missed;             /* this one, -1: none */
    int64_t n_samples;          /* that have come */
    utter_word *at;             /* [n_told], room for all words of the text so far */
    struct words_place *places; /* the same */
    size_t room, n_told, n_final;
    bool ended;
};

/* The tokens of the text so far, borrowed: where each begins in it. */
struct words_tokens {
    const uint64_t *begin;
    int n;
    bool finished; /* there will be no more */
};

/* Most tokens that can be told apart, and frames; heads stay the caller's. */
utter_status words_init(struct words *w, const struct heads *heads, int n_tokens, int n_frames,
    int frame_samples, int sample_rate, utter_error *error);
void words_fini(struct words *w);
bool words_approximate(const struct words *w);

utter_status words_text(struct words *w, const char *text, size_t bytes, utter_error *error);
utter_status words_finish(struct words *w, utter_error *error);
/* A frame was chosen: [heads][n_scores] of the backend. Nothing is allocated, here and below. */
void words_frame(struct words *w, const float *scores, int n_scores, const struct words_tokens *tokens);
/* How much less likely than usual the code of a frame was to the model, in nats. */
void words_surprise(struct words *w, int frame, float nats);
void words_sound(
    struct words *w, const float *pcm, size_t n_samples, const struct words_tokens *tokens);
/* The token that the newest frame was at, tokens->n where it was behind them all; -1: not known. */
int words_place(const struct words *w);
/* Frames that it has been there, by the way that explains all frames best: one that strays and is taken back does not
 * count. 0: not known. */
int words_there(const struct words *w);
/* Words that the speech went past without saying them, of those that are final. Known heads alone tell. */
size_t words_skipped(const struct words *w);
/* Words that may not have been said: the way passes them over, or their frames surprise. Those that surprise most, and
 * first -> at[WORDS_DOUBTS]; how many. For speech that has ended by itself. */
enum { WORDS_DOUBTS = 4 };
struct words_doubt {
    size_t word;
    int from, to; /* its tokens */
    double surprise;
};
int words_doubts(const struct words *w, const struct words_tokens *tokens, struct words_doubt *at);
/* All doubts were looked into: which of the words that the speech went past was not said, or -1. Before words_end. */
void words_weighed(struct words *w, int64_t missed);
/* No more sound. `whole`: the speech ended by itself, so that words not heard yet are told, too. */
void words_end(struct words *w, bool whole, const struct words_tokens *tokens);

#endif
