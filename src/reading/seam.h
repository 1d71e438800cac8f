/* SPDX-License-Identifier: Apache-2.0
 * Joins the sound of pieces: of the quiet between two of them as much is left, or added, as the pause is to last,
 * and what is cut off ends in a short fade. Samples in, samples out; what is loud passes, but for the stress of a
 * beginning (stress.h). Who changes what comes out counts up sound_rule (cli/speak/read_plan.c). */
#ifndef READING_SEAM_H
#define READING_SEAM_H

#include "base/error.h"
#include "reading/stress.h"

struct samples {
    float *at;
    size_t n, room;
};

utter_status samples_add(
    struct samples *s, const float *pcm, size_t n, utter_error *error); /* NULL: silence */
void samples_fini(struct samples *s);

/* Zero it, set `rate`. */
struct seam {
    int rate;
    struct samples held; /* of the piece: what may be cut off */
    /* Samples since the last loud one: those held, and those that are out. */
    size_t n_quiet;
    size_t most_quiet; /* that may leave: the pause behind the piece */
    /* Nothing loud has come of this piece, and what is quiet belongs to the seam before it. */
    bool lead;
    size_t keep;     /* of the quiet in front of the piece */
    bool fill;       /* there is to be so much of it, not less */
    bool exact;      /* the pause behind the piece: so many samples between two loud ones */
    size_t n_behind; /* of it, those in front of the next piece */
    /* The first samples of the piece, while it is open what they are. */
    bool opening;
    struct samples onset;
    struct stress stress; /* its `rate` is set as well */
};

/* A piece begins, behind which a pause of pause_s comes. `first`: its beginning stays as it is. */
void seam_begin(struct seam *seam, double pause_s, bool first);
/* Of a piece that has begun before its pause was known, with one of 0. */
void seam_pause(struct seam *seam, double pause_s);
utter_status seam_put(
    struct seam *seam, const float *pcm, size_t n, struct samples *out, utter_error *error);
/* Of a piece that has begun: the pause behind it lasts exactly so long. `last`: nothing comes behind that. */
void seam_exact(struct seam *seam, double pause_s, bool last);
/* A pause before the first piece, or one more before another; the piece is to begin. */
utter_status seam_silence(struct seam *seam, double pause_s, struct samples *out, utter_error *error);
/* The piece ends. `last`: its end stays as it is. */
utter_status seam_end(struct seam *seam, bool last, struct samples *out, utter_error *error);
void seam_fini(struct seam *seam);

#endif
