/* SPDX-License-Identifier: Apache-2.0
 * The frame kernel for a talker of width 2048, weights in bf16. */
#define FRAME_LANES 1
#define FRAME_LANES_WIDTH 0
#include "cuda/persistent/persistent.cuh"

extern "C" struct frame_build frame_build_bf16_wide(void)
{
    return frame_build_of<2048, 6144, false, false>();
}
