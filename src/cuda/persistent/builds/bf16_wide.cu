/* SPDX-License-Identifier: Apache-2.0
 * The frame kernel for a talker of width 2048, weights in bf16. */
#include "cuda/persistent/persistent.cuh"

extern "C" const void *frame_code_bf16_wide(void)
{
    return ptx_kernel(frame_kernel<2048, 6144, false, false>);
}
