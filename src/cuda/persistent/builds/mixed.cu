/* SPDX-License-Identifier: Apache-2.0
 * The frame kernel for a talker of width 1024, the predictor's weights in 8 bits. */
#include "cuda/persistent/persistent.cuh"

extern "C" const void *frame_code_mixed(void)
{
    return ptx_kernel(frame_kernel<1024, 3072, false, true>);
}
