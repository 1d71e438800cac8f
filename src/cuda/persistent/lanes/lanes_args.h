/* SPDX-License-Identifier: Apache-2.0
 * A frame of several lanes in one launch of the persistent kernel: what the host passes.
 * Each lane gets the bits that the kernel for one lane gives it, whatever its company. */
#ifndef CUDA_PERSISTENT_LANES_LANES_ARGS_H
#define CUDA_PERSISTENT_LANES_LANES_ARGS_H

#include "cuda/persistent/args.h"

enum { FRAME_MOST_LANES = 8 };

/* One constant parameter. `frame`: what all share; its state is lane 0's, its position, text, codes and `out` are not
 * used. FRAME_STEP holds for all lanes or for none; no other flag is known. */
struct frame_lanes_args {
    struct frame_args frame;
    int n; /* lanes; when it changes, the host clears the exchange: nobody writes the words of the others */
    struct {
        struct frame_state state;
        int position;
        const float *text;
        const int32_t *forced;
        struct cuda_frame_out *out;
    } lane[FRAME_MOST_LANES];
};

#endif
