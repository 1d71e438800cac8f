/* SPDX-License-Identifier: Apache-2.0
 * Attention over one short page of each lane, as the predictor has it: what cuda_attend_queue does with it. */
#ifndef CUDA_GRAPH_ATTEND_PAGE_H
#define CUDA_GRAPH_ATTEND_PAGE_H

#include "cuda/parts/steps.h"

#ifdef __cplusplus
extern "C" {
#endif

cudaError_t cuda_attend_page_open(void);
bool cuda_attend_page_suits(const struct cuda_attend *attend);
cudaError_t cuda_attend_page_queue(const struct cuda_queue *queue, const struct cuda_attend *attend);

#ifdef __cplusplus
}
#endif

#endif
