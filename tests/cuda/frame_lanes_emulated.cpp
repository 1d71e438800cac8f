/* SPDX-License-Identifier: Apache-2.0
 * The frame kernel for four lanes on the host: a file of its own, for the kernel for one has other sizes. */
#define FRAME_LANES 4
#define FRAME_LANES_WIDTH 1024
#include "tests/cuda/frame_emulated.h"

#include "cuda/frame_lanes.cuh"

static const struct frame_lanes_args *launched;

static void run_lanes()
{
    lanes_kernel<1024, 3072>(*launched);
}

extern "C" struct frame_lanes_build frame_lanes_four(int talker_width)
{
    return lanes_build(talker_width);
}

/* Runs the kernel if the code is its. */
extern "C" bool lanes_emulated(const void *code, const void *args)
{
    if (code != lanes_build(1024).code) {
        return false;
    }
    launched = (const struct frame_lanes_args *)args;
    fibers_run(run_lanes);
    return true;
}
