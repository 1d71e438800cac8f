/* SPDX-License-Identifier: Apache-2.0
 * A reading as its own files see it: pieces on their lanes (works.c), what becomes of their
 * sound (reading.c), whether they are whole (whole.c), what they go on from (carry.c). */
#ifndef READING_PARTS_H
#define READING_PARTS_H

#include "effects/effects.h"
#include "reading/reading.h"
#include "reading/source.h"
#include "reading/speaker.h"

/* A piece that is being made, or waits for its turn. */
struct work {
    uint64_t index, at, bytes;
    char *text;
    size_t text_bytes, units, length; /* length: whole_length */
    enum cut_end end;
    bool only;    /* the text is one piece */
    bool last;    /* no other comes behind it */
    int tries;    /* that have begun */
    size_t n_fed; /* bytes of the text that the stream has */
    bool growing; /* they are all that is known of it */
    utter_stream *stream;
    struct samples made; /* not live: its sound */
    bool begun;          /* the seam knows it */
    bool waits;          /* it is said again when a lane is free; stream is NULL */
    /* How it is spoken: NULL, 1 as the reading. */
    const utter_voice *voice;
    const char *language;
    double speed, volume;
    bool heading;
    double lead_s, pause_s; /* as of a source_piece */
    size_t *origins, *ends; /* as of a source_piece, or NULL; of one block */
    struct effects *effects;
    /* Of its words: the piece as the source has it (NULL: the same as the text), and where the text begins there; the
     * samples of this try that the seam has, and by how much the reading's count is more. */
    char *source;
    size_t source_bytes;
    uint64_t text_at, passed;
    int64_t shift;
};

/* Words of pieces that have ended, and behind them those of the piece that is spoken. */
struct heard {
    utter_word *at; /* [room] */
    size_t n, n_ended, n_seen, room;
    uint64_t first; /* of the reading: so many have been given and dropped */
    bool approximate;
};
/* A piece's try has ended and was heard: its words stay. */
utter_status heard_piece(struct heard *heard, const struct work *work, utter_error *error);
/* Drops what was given as ended before. `spoken`: the piece that is spoken, or NULL. */
const utter_word *heard_words(
    struct heard *heard, const struct work *spoken, uint64_t *first, size_t *n);
void heard_fini(struct heard *heard);

/* How long a letter took in each of the last pieces that ended by themselves, whole or not: few that were not, or were
 * slow, are outvoted. */
enum { PACE_KEPT = 9 };
struct pace_seen {
    double unit_s[PACE_KEPT];
    size_t n; /* in all */
};

struct utter_reading {
    struct engine *engine;
    utter_stream_options voice;
    utter_reading_options options;
    char *language, *instruct;
    struct source source;
    struct speakers speakers;
    struct seam seam;
    utter_stream *spare; /* keeps the lane while no piece is being made */
    /* [n_room], in their order; of those that have ended some wait for the one in front */
    struct work *works;
    int n_works, n_room, n_lanes;
    struct samples out;
    size_t out_from;
    struct heard heard;
    /* Samples that were taken, and those up to the end of the last piece. */
    uint64_t n_given, n_told;
    bool held;
    bool streams;                /* the layout is that of streams */
    bool random;                 /* another seed gives other sound */
    int cancelled;               /* atomic: any thread may set it */
    utter_finish finish, broken; /* broken: why the last piece that was not whole ended */
    utter_error failure;
    struct pace_seen pace;
    uint64_t n_cut;
    /* options.carry: what the next piece goes on from, if it is spoken by carried_from; NULL: it begins anew */
    utter_voice *carried;
    const utter_voice *carried_from;
    utter_reading_stats stats;
};

/* How long the quiet behind a piece is. */
double works_pause(const struct utter_reading *r, enum cut_end end);
/* A stream for a piece, or, where it is NULL, with the settings of the reading. UTTER_AGAIN: no lane is free. */
utter_status works_open_stream(struct utter_reading *r, utter_stream **stream, const struct work *w,
    uint64_t seed, utter_error *error);
/* The voices of all spans that are known, so that a wrong name is told before anything is spoken. */
utter_status works_check_spans(struct utter_reading *r, utter_error *error);
/* Lanes that are the reading's; whether it may begin something now. */
int works_lanes(const struct utter_reading *r);
bool works_has_lane(const struct utter_reading *r);
/* The next try of a piece begins; a lane is free. */
utter_status works_start(struct utter_reading *r, struct work *w, utter_error *error);
/* In the stream layout speech begins with the first words, before it is known where the first piece ends. */
utter_status works_grow(struct utter_reading *r, utter_error *error);
/* Makes streams of the next pieces of the text, as many as there are lanes; what is said again comes first. */
utter_status works_start_pieces(struct utter_reading *r, utter_error *error);
void works_drop(struct work *w);

/* Of options.carry. A voice that cannot be carried is refused. */
utter_status carry_check(const struct utter_reading *r, utter_error *error);
/* The voice that a piece goes on with; NULL: its own. */
const utter_voice *carry_voice(const struct utter_reading *r, const struct work *w);
/* A piece has ended in its last try: the next goes on from it. */
utter_status carry_piece(struct utter_reading *r, const struct work *w, bool whole, utter_error *error);
void carry_drop(struct utter_reading *r);

/* How long a text takes to say, pauses among its words included, in letters. */
size_t whole_length(const char *text, size_t n);
/* A piece that has ended, as it was made: whether all of it seems to be there; its sound. */
bool whole_is(const struct utter_reading *r, const struct work *w);
double whole_seconds(const struct utter_reading *r, const struct work *w);
/* The last try of a piece has ended: those behind it are measured by it as well. */
void whole_learn(struct utter_reading *r, const struct work *w);

#endif
