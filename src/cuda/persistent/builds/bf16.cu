/* SPDX-License-Identifier: Apache-2.0
 * The frame kernel for a talker of width 1024, weights in bf16. */
#include "cuda/persistent/persistent.cuh"

extern "C" const void *frame_code_bf16(void)
{
    return ptx_kernel(frame_kernel<1024, 3072, false, false>);
}
