/* SPDX-License-Identifier: Apache-2.0
 * Attention of many vectors over the pages of their lanes: what cuda_attend_queue does with many lanes, to the bit.
 * */
#ifndef CUDA_GRAPH_ATTEND_MANY_H
#define CUDA_GRAPH_ATTEND_MANY_H

#include "cuda/parts/steps.h"

#ifdef __cplusplus
extern "C" {
#endif

cudaError_t cuda_attend_many_open(void);
bool cuda_attend_many_suits(const struct cuda_attend *attend);
cudaError_t cuda_attend_many_queue(const struct cuda_queue *queue, const struct cuda_attend *attend);

#ifdef __cplusplus
}
#endif

#endif
