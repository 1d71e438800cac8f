/* SPDX-License-Identifier: Apache-2.0
 * Which heads of the talker follow the text, where the checkpoint does not say: what an earlier run has left in the
 * cache, else learnt from the first utterances whose words are asked for, one at a time. Their own times are
 * approximate. Nothing is looked for before somebody asks. */
#ifndef ENGINE_LEARN_H
#define ENGINE_LEARN_H

#include "words/rank.h"

/* Utterances from which no head is found end the search. */
enum { LEARN_MOST_UTTERANCES = 8 };

struct learning {
    const struct backend_ops *ops;
    struct backend *backend;
    const struct model *model;
    struct heads *heads; /* the engine's: what is known */
    char *folder;        /* of the cache, or NULL: what is learnt is kept for this run */
    struct rank rank;
    const utter_stream *by; /* whose frames are ranked */
    int n_tried;
    bool begun; /* the cache has been read */
    bool over;
    bool listens; /* until learn_finish, which decides; utterances that a limit cut count, too */
    char note[256];
};

/* A stream whose words are asked for is opened: what it needs is watched. */
utter_status learn_begin(struct learning *l, const utter_stream *s, utter_error *error);
/* A frame of the stream that is ranked. */
void learn_frame(struct learning *l, const float *scores, int n_scores, int n_tokens, bool finished);
/* A stream has ended, or goes: one of n_tokens. True: l->note says what has been learnt. */
bool learn_end(struct learning *l, const utter_stream *s, int n_tokens, utter_finish finish);
/* From here on every utterance is listened to, whatever is known; nobody speaks. */
utter_status learn_anew(struct learning *l, utter_error *error);
/* Decides, and keeps what was found in `path`, or where it is NULL in the cache. */
utter_status learn_finish(struct learning *l, const char *path, utter_error *error);
void learn_fini(struct learning *l);

#endif
