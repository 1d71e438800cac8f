/* SPDX-License-Identifier: Apache-2.0
 * What CUDA C offers to code of the device, as the host bench does it. */
#ifndef TESTS_CUDA_HOST_DEVICE_FUNCTIONS_H
#define TESTS_CUDA_HOST_DEVICE_FUNCTIONS_H

#endif
