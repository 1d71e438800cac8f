/* SPDX-License-Identifier: Apache-2.0
 * The shapes of a checkpoint's weights on the GPU, for what is reckoned before anything is allocated. */
#ifndef CUDA_DEVICE_SHAPES_H
#define CUDA_DEVICE_SHAPES_H

#include "cuda/device/weights.h"

/* All but the addresses of *weights, which cuda_weights_open takes as it takes zeros. */
void cuda_weights_shapes(struct cuda_weights *weights, const struct model *model);

#endif
