/* SPDX-License-Identifier: Apache-2.0
 * The layers of a long prompt in one kernel, for sm_90a: what the kernels of wide.h and
 * cuda_attend_rows_queue do one after the other, to the bit, without their beginnings and ends. */
#ifndef CUDA_PROMPT_LAYERS_H
#define CUDA_PROMPT_LAYERS_H

#include "cuda/prompt/wide.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CUDA_LAYERS_FROM = 32,             /* rows: fewer are as fast without it, or faster */
    CUDA_LAYERS_FROM_WIDE = 16,        /* likewise where the width is more than 1,024 */
    CUDA_LAYERS_PATIENCE = 2000000000, /* clocks: a second */
};

struct cuda_layers {
    const struct cuda_stack *stack;
    int n_layers; /* the first so many of the stack, one at least; the stack has one more behind them */
    /* As for cuda_attend_rows_queue, with `partial`; mixed and operand are not used. */
    struct cuda_attend attend;
    float *x; /* [n_vectors][x_stride]: read and written */
    int64_t x_stride;
    void *operand; /* of products of the width (wide.h): cuda_wide_prepare has written the first */
    void *inner;   /* of products of what attention and the gate give */
    /* [n_vectors]: factors of the first norm; cuda_wide_prepare has written them. */
    const float *scales;
    /* [n_vectors][k tiles of the width][4]: of the x that the last layer leaves in `operand`. */
    float *squares;
    float *angles; /* [n_vectors][head]: scratch */
    /* [2][CUDA_MAX_VECTORS]: words from block to block, each a number and its phase: factors of
     * norms, then signs that a part of attention is there. Zeros before the first launch. */
    uint64_t *signals;
    uint32_t *arrivals;       /* counts blocks at each barrier of all blocks, and is never set back */
    uint32_t arrivals_before; /* what it stands at: a launch adds cuda_layers_counts */
    int n_blocks;             /* cuda_layers_blocks */
    uint64_t patience;        /* clocks; past them a block waits for no other */
    /* Mapped: becomes 1 where a block did not wait: what was made is not to be used; and in device memory, for the
     * frames behind it: CUDA_PROMPT_LOST. */
    uint32_t *lost, *lost_on_device;
};

/* Once for a device: blocks of a launch, all on the device at once; 0: the device or the build cannot. */
int cuda_layers_blocks(const struct cuda_arch *arch);
/* Whether the kernel can take this stack. */
bool cuda_layers_suit(const struct cuda_stack *stack);
uint32_t cuda_layers_counts(const struct cuda_layers *layers);
cudaError_t cuda_layers_queue(const struct cuda_queue *queue, const struct cuda_layers *layers);

#ifdef __cplusplus
}
#endif

#endif
