/* SPDX-License-Identifier: Apache-2.0
 * The way of a speech through its text: at each frame one place (a token), never back, that explains best what the
 * watched heads look at (Viterbi). Comes in: each frame's shares of attention. Goes out: the place of each frame; of
 * the last few frames it may still change. */
#ifndef WORDS_PATH_H
#define WORDS_PATH_H

#include "base/error.h"

enum {
    /* Places that a frame looks at: others are too far from the best one of the frame before. */
    PATH_BAND = 64,
    PATH_BEHIND = 16,  /* of them so many lie behind that one */
    PATH_MOST = 24,    /* places passed in one frame */
    PATH_SETTLED = 12, /* frames after which a place stays */
};

/* Zero it, then path_init. */
struct path {
    int room;      /* frames */
    int n;         /* frames that have come */
    int32_t *base; /* [room]: the first place of the frame's band */
    /* [room]: how many places the best way into each came over in this frame. */
    uint8_t (*back)[PATH_BAND];
    uint8_t (*share)[PATH_BAND]; /* [room]: the attention that each got, of 255 */
    int32_t *place;              /* [room]: the best way */
    float score[PATH_BAND];      /* of the newest frame, logarithms; the best is 0 */
};

utter_status path_init(struct path *p, int room, utter_error *error);
void path_fini(struct path *p);
/* One frame: how much of the attention each of n places gets (their sum is 1). With room for it, n at least 1. */
void path_step(struct path *p, const float *shares, int n);
/* Attention of a frame on places from `from` to `to`, 0 to 1. */
float path_share(const struct path *p, int frame, int from, int to);
/* The first frame from `frame` on whose place is `place` or behind it; n when there is none. */
int path_enter(const struct path *p, int frame, int place);
/* When the way enters `place`, in frames: between two of them by their attention. `frame` is what path_enter gave. */
double path_moment(const struct path *p, int frame, int place);

#endif
