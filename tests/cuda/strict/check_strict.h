/* SPDX-License-Identifier: Apache-2.0
 * What the cases of the strict checker are written with. A case is a small program of several threads, told step by
 * step: whole it must be silent; with one thing left out it must be found, and for the right reason. */
#ifndef TESTS_CUDA_STRICT_CHECK_STRICT_H
#define TESTS_CUDA_STRICT_CHECK_STRICT_H

#ifndef HOST_STRICT
#define HOST_STRICT
#endif
#include "tests/cuda/host/host.h"

enum { N = 96, BLOCKS = 4, PAGE = 4096, GLOBAL = 16 * PAGE, SHARED = 2 * PAGE };

static const struct host_dim ALL_BLOCKS = {BLOCKS, 1, 1}, ALONE = {1, 1, 1};

struct strict_case {
    void (*run)(bool left_out);
    const char *name, *said; /* said: in the finding */
};

/* Each ends with a row of NULL. */
extern const struct strict_case strict_cases_order[], strict_cases_memory[];

/* The launch of the case, on stream 1: BLOCKS blocks of N threads, in clusters of two. */
extern struct strict_op *op;
extern struct strict_grid *grid;
extern uint32_t global[GLOBAL / 4];         /* written */
extern uint32_t shared[BLOCKS][SHARED / 4]; /* not written */
extern int turn[BLOCKS];                    /* of each block's barrier: two objects in turn */

/* The address of the code is part of what is told once, so these are not functions. */
#define R(at) strict_read((at), 4, STRICT_PLAIN, STRICT_CTA)
#define W(at) strict_write((at), 4, STRICT_PLAIN, STRICT_CTA)

/* The current thread. */
void be(int block, int thread);
/* Threads from..to of the block reach a barrier. */
void barrier_of(int block, int from, int to);
void barrier(int block);
/* The lanes of the mask leave __syncwarp. */
void warp_sync(int block, int warp, uint32_t mask);
/* A launch, and its end: its time. */
void begin(int stream, const char *name);
uint64_t end(void);
/* An operation that writes memory by itself. */
uint64_t copy_in(int stream, void *at, size_t bytes);

#endif
