/* SPDX-License-Identifier: Apache-2.0
 * Which heads of a talker follow the text: of all heads, how well a way through the text that never goes back explains
 * what each looks at while utterances are made. Comes in: scores of every head. Goes out: heads, the best first. */
#ifndef WORDS_RANK_H
#define WORDS_RANK_H

#include "words/heads.h"
#include "words/path.h"

enum {
    RANK_FRAMES = 400, /* of an utterance that are looked at: half a minute */
    /* So much must have been heard before a head is believed. */
    RANK_LEAST_FRAMES = 100,
    RANK_LEAST_TOKENS = 30,
    RANK_LEAST_UTTERANCES = 2,
};

/* A head that explains less of its attention follows nothing; those of random weights come to a third of it. */
#define RANK_LEAST_SCORE 0.3

struct ranked_head {
    struct talker_head head;
    double score; /* 0 .. 1: attention on the way, times how much of the text it covers */
};

/* Zero it, then rank_init. */
struct rank {
    struct talker_head *heads; /* [n]: all of the talker, as the backend is to watch them */
    struct path *paths;        /* [n], of the utterance that is made */
    double *sums;              /* [n]: of scores, by frames */
    float *shares;             /* [n_shares], scratch */
    int n, n_shares;
    int n_frames, n_tokens, n_utterances; /* that have been counted */
};

utter_status rank_init(struct rank *r, const struct config *config, utter_error *error);
void rank_fini(struct rank *r); /* accepts a zeroed one */
/* A frame of the utterance: [n][n_scores] of the backend, over n_places places (tokens, and the end). */
void rank_frame(struct rank *r, const float *scores, int n_scores, int n_places);
/* Its end. Only a `whole` one, which the model ended itself, is counted. */
void rank_end(struct rank *r, int n_tokens, bool whole);
/* Enough has been heard. */
bool rank_enough(const struct rank *r);
/* All heads, the best first: at[n]. */
void rank_order(const struct rank *r, struct ranked_head *at);
/* The best one alone, where it explains enough; n 0: none does. Others that explain nearly as much may look ahead of it
 * or behind, and the mean with them is off by that. */
utter_status rank_choose(const struct rank *r, struct heads *heads, utter_error *error);

#endif
