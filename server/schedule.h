/* SPDX-License-Identifier: Apache-2.0
 * Which speeches get the next frame. Pure: a table of speeches in, marks out. */
#ifndef SERVER_SCHEDULE_H
#define SERVER_SCHEDULE_H

#include <stdbool.h>

/* Speeches are heard at their own speed once their first frame is out, so each frame has a time by which it must be
 * there. Times in seconds of one clock. */
struct schedule_speech {
    bool can_step;  /* open, has text, its client reads */
    bool has_sound; /* the first frame is out */
    double due;  /* when the listener has used up what was made; before the first frame: when it came */
    bool chosen; /* out */
};

/* What a lane adds to a step's time, learnt from the last ones. Zero it. */
struct schedule_clock {
    double lane_s;
    int n_seen;
};

enum { SCHEDULE_LEAD_MS = 2000, SCHEDULE_STEP_MS = 25 };

void schedule_learn(struct schedule_clock *clock, int n_lanes, double seconds);
/* Lanes that a step may take so that it ends within SCHEDULE_STEP_MS, at least 1. */
int schedule_width(const struct schedule_clock *clock, int n_lanes);

/* Marks those that step now and returns how many: first who has no sound yet, then by due time. While someone waits
 * for the first sound, those with SCHEDULE_LEAD_MS in hand stand back, so that the step is short. At most `width`. */
int schedule_choose(struct schedule_speech *speeches, int n, double now, int width);

#endif
