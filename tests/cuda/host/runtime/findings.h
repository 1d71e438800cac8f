/* SPDX-License-Identifier: Apache-2.0
 * Where a finding is made (findings.c): whoever runs a launch says so. */
#ifndef TESTS_CUDA_HOST_RUNTIME_FINDINGS_H
#define TESTS_CUDA_HOST_RUNTIME_FINDINGS_H

#include "tests/cuda/host/host.h"

#ifdef __cplusplus
extern "C" {
#endif

/* From here on it is this launch that runs, the `number`-th of the program; NULL: code of the host. */
void finding_launch(const struct host_launch *launch, int number);

/* Ends the program at once; a build that counts lines has written them. */
void host_end_program(int status) __attribute__((noreturn));

#ifdef __cplusplus
}
#endif

#endif
