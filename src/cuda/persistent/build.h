/* SPDX-License-Identifier: Apache-2.0
 * The builds of the persistent kernel, a file of builds/ each: the only files that compile its body, and all that the
 * host knows of what depends on a build. */
#ifndef CUDA_PERSISTENT_BUILD_H
#define CUDA_PERSISTENT_BUILD_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct frame_build {
    int n_lanes, talker_width; /* the most lanes of a launch */
    const void *code;
    size_t ring_at;        /* in a block's shared memory */
    size_t exchange_bytes; /* in device memory */
};

/* One lane: weights in bf16, the predictor's or all of them in 8 bits; for a talker of width 1024 or 2048. */
struct frame_build frame_build_bf16(void);
struct frame_build frame_build_bf16_wide(void);
struct frame_build frame_build_mixed(void);
struct frame_build frame_build_mixed_wide(void);
struct frame_build frame_build_packed(void);
struct frame_build frame_build_packed_wide(void);
/* Several, with weights in bf16. */
struct frame_build frame_build_lanes4(void);
struct frame_build frame_build_lanes4_wide(void);
struct frame_build frame_build_lanes8(void);

#ifdef __cplusplus
}
#endif

#endif
