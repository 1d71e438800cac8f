/* SPDX-License-Identifier: Apache-2.0
 * The frame kernel for a talker of width 1024, all weights in 8 bits. */
#define FRAME_LANES 1
#define FRAME_LANES_WIDTH 0
#include "cuda/persistent/persistent.cuh"

extern "C" struct frame_build frame_build_packed(void)
{
    return frame_build_of<1024, 3072, true, true>();
}
