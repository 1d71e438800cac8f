/* SPDX-License-Identifier: Apache-2.0
 * The frame kernel for up to eight lanes and a talker of width 1024. */
#define FRAME_LANES 8
#define FRAME_LANES_WIDTH 1024
#include "cuda/persistent/lanes/frame_lanes.cuh"

extern "C" struct frame_build frame_build_lanes8(void)
{
    return lanes_build();
}
