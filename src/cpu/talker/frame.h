/* SPDX-License-Identifier: Apache-2.0
 * The talker, the choice of codes, and the predictor: rows -> hidden state and logits; lanes -> frames. */
#ifndef CPU_TALKER_FRAME_H
#define CPU_TALKER_FRAME_H

#include "cpu/stack/embed.h"
#include "cpu/talker/lane.h"

/* Shared by all lanes. Buffers hold n_columns columns. */
struct cpu_frame {
    const struct model *model;
    const struct kern *kern;
    struct pool *pool;
    struct cpu_stack talker, predictor;
    struct cpu_scratch *scratch;
    struct cpu_embed embed;
    struct cpu_tap tap;
    int n_columns;
    struct cpu_column *columns;
    float *input;   /* [n_columns][talker width]: the predictor's input before its projection */
    float *x;       /* [n_columns][widest stack] */
    float *normed;  /* [n_columns][widest stack] */
    float *logits;  /* [n_columns][largest vocabulary] */
    float *scores;  /* [largest vocabulary], for the sampler */
    int32_t *order; /* [largest vocabulary], for the sampler */
    uint64_t bytes; /* of all these buffers */
};

/* All-zero frame in. n_positions: the most that a lane can hold. */
utter_status cpu_frame_init(struct cpu_frame *f, const struct model *model, const struct kern *kern,
    struct pool *pool, int n_positions, utter_error *error);
void cpu_frame_fini(struct cpu_frame *f);

/* n rows (at least 1) through the talker; the caller has checked that they fit the tables and the lane. */
void cpu_frame_prefill(struct cpu_frame *f, struct cpu_lane *lane, const struct row *rows, int n);

/* The same, and how likely the codes are that come behind them (backend.h, weigh). */
void cpu_frame_weigh(struct cpu_frame *f, struct cpu_lane *lane, const struct row *rows, int n,
    const int32_t *codes, struct likelihood *likelihoods);

/* One frame for each lane; in[i] belongs to lanes[i] and was checked. */
void cpu_frame_run(
    struct cpu_frame *f, struct cpu_lane *const *lanes, const struct frame_in *in, int n);

#endif
