/* SPDX-License-Identifier: Apache-2.0
 * One transformer stack on the CPU, as the talker, the predictor and the vocoder use it: pre-norm, rotary
 * positions (split halves), grouped heads, SwiGLU. The cache is the caller's. */
#ifndef CPU_STACK_STACK_H
#define CPU_STACK_STACK_H

#include "cpu/kernels/kern.h"
#include "model/backend.h"

struct cpu_tap {
    backend_tap_fn *fn; /* NULL: off */
    void *user;
};

/* Everything that does not change with the position. */
struct cpu_stack {
    const struct stack_config *shape;
    const struct stack_weights *weights;
    const struct kern *kern;
    struct pool *pool;
    float *inv_freq; /* [head / 2] */
};

/* Keys and values: [n_layers][capacity][n_kv_heads * head] each. With a window the capacity may be smaller
 * than the number of positions: then slots are a ring, position p in slot p % capacity, and only slots that
 * were written are attended to. */
struct cpu_cache {
    float *keys, *values;
    int64_t capacity;
};

/* Scratch for up to n_columns columns, shared by all stacks of a backend. */
struct cpu_scratch;
struct cpu_scratch *cpu_scratch_new(const struct stack_config *const *shapes, int n_shapes,
    int n_columns, int64_t n_keys, int n_threads);
void cpu_scratch_free(struct cpu_scratch *scratch);
uint64_t cpu_scratch_bytes(const struct cpu_scratch *scratch);
/* For products with packed weights of up to the widest matrix of the shapes, between runs of a stack. */
struct kern_rounded *cpu_scratch_rounded(struct cpu_scratch *scratch);

utter_status cpu_stack_init(struct cpu_stack *stack, const struct stack_config *shape,
    const struct stack_weights *weights, const struct kern *kern, struct pool *pool,
    utter_error *error);
void cpu_stack_fini(struct cpu_stack *stack);

/* Heads whose scores a column tells, and of which rows. */
struct cpu_look {
    const struct talker_head *heads; /* [n_heads] */
    int n_heads;
    int64_t begin, end; /* rows, of which those up to the column's own are told */
    float *scores;      /* [n_heads][rows told], out: scaled products of query and key */
};

/* A column is one position of one sequence: several positions of one lane (prefill), or one of each of
 * several lanes (frame). */
struct cpu_column {
    struct cpu_cache *cache;
    int64_t position; /* rotary position and cache slot; columns of one cache come in rising order */
    const struct cpu_look *look; /* NULL: none; not for a cache that is a ring */
};

/* How many rows a column at `position` tells of. */
int cpu_look_rows(const struct cpu_look *look, int64_t position);

/* x[n][width] in and out: through all layers, without the final norm. `tap_name` NULL: no tap. n is at most the
 * scratch's
 * n_columns. A column's result does not depend on n or on the other caches' columns. */
void cpu_stack_run(const struct cpu_stack *stack, float *x, const struct cpu_column *columns, int n,
    struct cpu_scratch *scratch, const struct cpu_tap *tap, const char *tap_name);

#endif
