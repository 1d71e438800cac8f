/* SPDX-License-Identifier: Apache-2.0
 * The guard's rules over the codes and samples of each frame. Comes in: a frame. Goes out: why to end, or not. */
#include "engine/guard.h"

#include <math.h>

static bool is_silent(const float *pcm, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (fabsf(pcm[i]) > GUARD_SILENCE_PEAK) {
            return false;
        }
    }
    return true;
}

static bool in_loop(struct guard *g, int32_t code)
{
    bool loop = false;
    for (int period = 1; period <= GUARD_LOOP_PERIOD; period++) {
        bool same =
            g->n_frames >= period && g->recent[(g->n_frames - period) % GUARD_LOOP_PERIOD] == code;
        g->repeats[period - 1] = same ? g->repeats[period - 1] + 1 : 0;
        loop |= g->repeats[period - 1] >= GUARD_LOOP_FRAMES;
    }
    g->recent[g->n_frames % GUARD_LOOP_PERIOD] = code;
    return loop;
}

utter_finish guard_look(
    struct guard *guard, int32_t code, const float *pcm, size_t n_samples, bool consumed, int n_tokens)
{
    bool loop = in_loop(guard, code);
    guard->n_frames++;
    bool silent = consumed && guard->n_frames > n_tokens && is_silent(pcm, n_samples);
    guard->n_silent = silent ? guard->n_silent + 1 : 0;
    if (loop) {
        return UTTER_FINISH_LOOP;
    }
    if (guard->n_silent >= GUARD_SILENCE_FRAMES) {
        return UTTER_FINISH_SILENCE;
    }
    int64_t ceiling = GUARD_CEILING_FRAMES + (int64_t)GUARD_CEILING_FRAMES_PER_TOKEN * n_tokens;
    return consumed && guard->n_frames >= ceiling ? UTTER_FINISH_CEILING : UTTER_FINISH_NONE;
}

utter_finish guard_follow(int n_there, bool said)
{
    return said && n_there >= GUARD_SAID_FRAMES     ? UTTER_FINISH_SAID
           : !said && n_there >= GUARD_STUCK_FRAMES ? UTTER_FINISH_STUCK
                                                    : UTTER_FINISH_NONE;
}
