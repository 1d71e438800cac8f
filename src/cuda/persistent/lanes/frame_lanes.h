/* SPDX-License-Identifier: Apache-2.0
 * A frame of several lanes in one launch of the persistent kernel: what the host passes, and the builds there are.
 * Each lane gets the bits that the kernel for one lane gives it, whatever its company. */
#ifndef CUDA_PERSISTENT_LANES_FRAME_LANES_H
#define CUDA_PERSISTENT_LANES_FRAME_LANES_H

#include "cuda/persistent/args.h"

#ifdef __cplusplus
extern "C" {
#endif

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

/* A build of the kernel for so many lanes, with weights in bf16; code NULL: none for this talker. */
struct frame_lanes_build {
    int n_lanes;
    const void *code;
    size_t ring_at, exchange_bytes; /* of shared memory; of the exchange */
};
struct frame_lanes_build frame_lanes_four(int talker_width);
struct frame_lanes_build frame_lanes_four_wide(int talker_width);
struct frame_lanes_build frame_lanes_eight(int talker_width);

#ifdef __cplusplus
}
#endif

#endif
