/* SPDX-License-Identifier: Apache-2.0
 * How many lanes suit a GPU, where nobody says how many there should be. */
#ifndef CUDA_CUDA_SUIT_H
#define CUDA_CUDA_SUIT_H

#include "model/backend.h"

/* As many as take seven eighths of the memory that is free, each with CUDA_LANE_POSITIONS positions of cache: the rest
 * is for recordings, snapshots and other programs. Not more than a frame takes at once; not fewer than CUDA_FEW_LANES,
 * if so many can be opened at all. CUDA_FEW_LANES too where there is no such GPU: opening says why. */
int cuda_suiting_lanes(const struct model *model, const struct backend_options *options);
enum { CUDA_FEW_LANES = 24 };

#endif
