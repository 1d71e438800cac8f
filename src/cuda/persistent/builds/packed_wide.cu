/* SPDX-License-Identifier: Apache-2.0
 * The frame kernel for a talker of width 2048, all weights in 8 bits. */
#include "cuda/persistent/persistent.cuh"

extern "C" const void *frame_code_packed_wide(void)
{
    return ptx_kernel(frame_kernel<2048, 6144, true, true>);
}
