/* SPDX-License-Identifier: Apache-2.0
 * Graphs or the persistent kernel, where nobody has asked for one of the two: a rule of what the GPU and the model are,
 * and nothing measured, so that every start gives the same bits. */
#ifndef CUDA_GRAPH_FRAME_RULE_H
#define CUDA_GRAPH_FRAME_RULE_H

#include "cuda/device/arch.h"

/* From this compute capability on: as many lanes of a model at most. Of 9.0, one launch for all lanes took 0.49 to 0.75
 * of the graphs' time (H100, H200; 0.6B with 1 to 8 lanes, 1.7B with 1 to 4), two launches 0.9 to 1.2 of it
 * (docs/log/gpu-frame-kernel.md). Those behind it are by the same rule, and have not been measured. */
static const struct {
    int capability, lanes;
} FRAME_RULES[] = {{90, 8}, {100, 8}, {120, 8}};

/* launch_lanes: lanes that the kernel takes in one launch, 0: it does not suit this GPU or checkpoint at all. */
static inline bool frame_rule(const struct cuda_arch *arch, int launch_lanes, int n_lanes)
{
    int most = 0;
    for (int i = 0; i < (int)(sizeof FRAME_RULES / sizeof *FRAME_RULES); i++) {
        most = arch->capability >= FRAME_RULES[i].capability ? FRAME_RULES[i].lanes : most;
    }
    return n_lanes > 0 && n_lanes <= most && n_lanes <= launch_lanes;
}

#endif
