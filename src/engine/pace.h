/* SPDX-License-Identifier: Apache-2.0
 * Whether frames wait for their sound, so that a vocoder makes that of several in one call: its weights come from
 * memory once for all of them. Pure arithmetic on measured times; what is heard does not depend on it. */
#ifndef ENGINE_PACE_H
#define ENGINE_PACE_H

#include <stdbool.h>

struct pace {
    double codes_s;  /* that the codes of a frame take, mean so far */
    double sound_s;  /* the sound of a frame */
    double frame_s;  /* of sound in a frame */
    double waited_s; /* by the listener, in all, for sound that came late */
};

/* n frames (at least 1) have codes and no sound, and the listener has `ahead` seconds in hand (below zero: he waits).
 * True: one more frame can be made before. */
bool pace_waits(const struct pace *pace, int n, double ahead);

#endif
