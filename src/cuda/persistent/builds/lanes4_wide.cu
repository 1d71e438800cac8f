/* SPDX-License-Identifier: Apache-2.0
 * The frame kernel for up to four lanes and a talker of width 2048. */
#define FRAME_LANES 4
#define FRAME_LANES_WIDTH 2048
#include "cuda/persistent/lanes/frame_lanes.cuh"

extern "C" struct frame_build frame_build_lanes4_wide(void)
{
    return lanes_build();
}
