/* SPDX-License-Identifier: Apache-2.0
 * An end that always comes. About one utterance in 300 of the released models never chooses its end token;
 * the guard ends it by what it sees of codes and samples. The rules are generous: no real speech meets
 * them. docs/model.md gives them in words. */
#ifndef ENGINE_GUARD_H
#define ENGINE_GUARD_H

#include "base/error.h"

enum {
    /* A ceiling for the frames of a text: 10 seconds, and 2 seconds for each token. A spoken token takes 0.1 to
     * 0.6 seconds. */
    GUARD_CEILING_FRAMES = 125,
    GUARD_CEILING_FRAMES_PER_TOKEN = 25,
    /* A loop: code 0 repeats with a period of at most 8 frames for 10 seconds. */
    GUARD_LOOP_PERIOD = 8,
    GUARD_LOOP_FRAMES = 125,
    /* Endless silence: after all text has gone in, and at least one frame for each token was made, 5 seconds without a
     * sample above -60 dB. */
    GUARD_SILENCE_FRAMES = 62,
    /* Where words are followed: so long (5 s) behind the text, or (8 s) on one token of it. */
    GUARD_SAID_FRAMES = 62,
    GUARD_STUCK_FRAMES = 100,
};
#define GUARD_SILENCE_PEAK 0.001f

/* Zero it before use. */
struct guard {
    int32_t recent[GUARD_LOOP_PERIOD]; /* code 0 of the last frames, a ring */
    int repeats[GUARD_LOOP_PERIOD]; /* [period - 1]: frames in a row that equal the one a period ago */
    int n_frames;
    int n_silent; /* frames in a row */
};

/* Looks at one frame: its code 0 and its samples. `consumed`: all text has gone in. n_tokens: tokens of the
 * text so far. NONE, or the reason to end. The ceiling holds only once the text is consumed. */
utter_finish guard_look(
    struct guard *guard, int32_t code, const float *pcm, size_t n_samples, bool consumed, int n_tokens);

/* Looks at how many frames the speech has been at its token, or where it is `said` behind the last one. NONE, or the
 * reason to end. */
utter_finish guard_follow(int n_there, bool said);

#endif
