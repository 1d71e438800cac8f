/* SPDX-License-Identifier: Apache-2.0
 * The frame kernel for up to four lanes and a talker of width 1024. */
#define FRAME_LANES 4
#define FRAME_LANES_WIDTH 1024
#include "cuda/persistent/lanes/frame_lanes.cuh"

extern "C" struct frame_build frame_build_lanes4(void)
{
    return lanes_build();
}
