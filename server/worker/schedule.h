/* SPDX-License-Identifier: Apache-2.0
 * Which speeches get the next frame. Pure: a table of speeches in, marks out. */
#ifndef SERVER_SCHEDULE_H
#define SERVER_SCHEDULE_H

#include <stdbool.h>

#include "server/protocol/wire.h"

/* Speeches are heard at their own speed once their first frame is out, so each frame has a time by which it must be
 * there. Times in seconds of one clock. */
struct schedule_speech {
    bool can_step;  /* open, has text, its client reads */
    bool has_sound; /* the first frame is out */
    /* When the listener has used up what was made; before the first frame, and in the background: when it came. */
    double due;
    /* Before the first frame of a piece of its text: what a step would read of its prompt, in bytes of text or about
     * so; and all of it. Then 0. */
    double prompt, whole;
    bool chosen;     /* out */
    bool background; /* nobody waits for it: of these the first that came goes first */
};

enum { SCHEDULE_MOST_LANES = 256 };

/* What steps cost: so much, and so much for each lane (a line through the last steps, sums of which are kept, older
 * ones with less weight). Where a step of just so many lanes was made lately, that counts more than the line: some
 * devices are quick up to so many lanes and slow beyond. On top of it come the prompts of first frames. Zero it but for
 * what the device is. */
struct schedule_clock {
    /* It makes its lanes one after the other, as a processor does: many in a step gain little. */
    bool one_by_one;
    double weight, lanes, lanes_lanes, seconds, lanes_seconds;
    struct {
        double weight, seconds;
        unsigned step; /* when it was counted last, in steps */
    } by_lanes[SCHEDULE_MOST_LANES + 1];
    double prompt_s; /* for each byte of a prompt */
    unsigned n_steps;
};

enum {
    SCHEDULE_LEAD_MS = 500,
    SCHEDULE_STAND_BACK_MS = 200,
    SCHEDULE_FIRST_MS = 100,
    SCHEDULE_SAFE_MS = 50,
    SCHEDULE_LONG_MS = 500,
    SCHEDULE_STEP_MS = WIRE_STEP_MS,
    SCHEDULE_SHORT_MS = 15,
    SCHEDULE_ONE_BY_ONE_MS = 8,
    SCHEDULE_WAY_MS = 10, /* sound may take so long from the end of a step to the listener */
    SCHEDULE_BACKGROUND_MS = 4
};

/* A step of n_lanes (0: of frames it tells nothing) took `seconds`, without its prompts, which took prompt_s for all
 * their `prompt` bytes. */
void schedule_learn(
    struct schedule_clock *clock, int n_lanes, double seconds, double prompt, double prompt_s);
/* The same of a width that does not pay, which says nothing of others: the line does not bend for it. */
void schedule_learn_width(struct schedule_clock *clock, int n_lanes, double seconds);
/* What a step of n_lanes with prompts of so many bytes will take. */
double schedule_step_s(const struct schedule_clock *clock, int n_lanes, double prompt);
/* What a step may take, so that its lanes pay: hardly more than one of fewer lanes and one of the others. */
double schedule_most_s(double fewer_s, double others_s);
/* Not even one speech can be made as fast as it is heard, in frames of frame_s. */
bool schedule_falls_behind(const struct schedule_clock *clock, double frame_s);
/* How many speeches can be; 1 to n_lanes. When not even one can, there is nothing to keep up with: n_lanes. */
int schedule_capacity(const struct schedule_clock *clock, int n_lanes, double frame_s);

/* Marks those that step now and returns how many, at least one if any can. n: all lanes, free ones too. They go by due
 * time, where a first frame is due SCHEDULE_FIRST_MS after it was asked for, as many as fit into the step and make it
 * longer by less than a step of their own (a width that did not when it was made last bars all beyond it):
 * - Who has less than SCHEDULE_SAFE_MS in hand goes before all prompts. Where those have run dry, as on a device slower
 *   than hearing, a prompt that has waited for SCHEDULE_LONG_MS passes them all.
 * - Of prompts the shortest goes first, so that a sentence does not wait for a page, but behind those that have waited
 *   for SCHEDULE_FIRST_MS, the oldest of them first, as else a page waits for as long as sentences come; in every
 *   fourth step the shortest goes first, whoever has waited.
 * - While someone waits for the first sound, those with SCHEDULE_STAND_BACK_MS in hand stand back, so that the step is
 *   short, and nothing is made in the background.
 * - A step takes SCHEDULE_STEP_MS at most. While not all lanes are at work somebody may come, who waits for its end:
 *   frames of those with more than SCHEDULE_SAFE_MS in hand make it no longer than SCHEDULE_SHORT_MS then, or than it
 *   must be to give nine tenths of the frames a second that the best does; where lanes are made one by one, no longer
 *   than SCHEDULE_ONE_BY_ONE_MS.
 * - It takes four fifths of what the first of its listeners to run dry has in hand beyond SCHEDULE_WAY_MS: only frames
 *   of those with less than SCHEDULE_SAFE_MS in hand, and prompts that have waited for SCHEDULE_LONG_MS, may make it
 *   longer.
 * - While nobody waits, the background has what is left of SCHEDULE_BACKGROUND_MS (one lane at least where nobody
 *   steps), as long as all listeners' next frames are there in time behind it; while a listener has less than
 *   SCHEDULE_LEAD_MS in hand, it may make the step longer by a tenth. */
int schedule_choose(
    struct schedule_speech *speeches, int n, double now, const struct schedule_clock *clock);

#endif
