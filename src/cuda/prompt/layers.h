/* SPDX-License-Identifier: Apache-2.0
 * The layers of a long prompt in one kernel, for sm_90a: what the kernels of wide.h and
 * cuda_prompt_queue do one after the other, to the bit, without their beginnings and ends. */
#ifndef CUDA_PROMPT_LAYERS_H
#define CUDA_PROMPT_LAYERS_H

#include "cuda/prompt/wide.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CUDA_LAYERS_MOST = 40,             /* their pointers are parameters of the kernel */
    CUDA_LAYERS_FROM = 32,             /* rows: fewer are as fast without it, or faster */
    CUDA_LAYERS_FROM_WIDE = 16,        /* likewise where the width is more than 1,024 */
    CUDA_LAYERS_PATIENCE = 2000000000, /* clocks: a second */
};

struct cuda_layers {
    const struct cuda_stack *stack;
    int n_layers; /* the first so many, one at least; there is one behind them */
    struct cuda_attend
        attend; /* as for cuda_prompt_queue, with `partial`; mixed and operand are not used */
    float *x;   /* [n_vectors][x_stride] */
    int64_t x_stride;
    void *operand,
        *inner;    /* of products of the width; of attention's and the gate's results (wide.h) */
    float *scales; /* of the first product: cuda_wide_prepare has written operand and scales */
    float
        *squares;  /* [n_vectors][k tiles of the width][4]: what the last layer leaves beside operand */
    float *angles; /* [n_vectors][head]: scratch */
    uint64_t *told;      /* [2][CUDA_MAX_VECTORS]: scratch, zeros before the first launch */
    uint32_t *met;       /* counts blocks */
    uint32_t met_before; /* what it stands at: a launch adds cuda_layers_counts */
    int n_blocks;        /* cuda_layers_blocks */
    uint64_t patience;   /* clocks; past them a block waits for no other */
    uint32_t *lost; /* mapped: becomes 1 where a block did not wait: what was made is not to be used */
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
