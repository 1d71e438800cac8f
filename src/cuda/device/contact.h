/* SPDX-License-Identifier: Apache-2.0
 * Why a machine's GPUs cannot be used by this program: what is known of driver, rights and device -> one sentence that
 * says what is missing, which version is needed and what to do. */
#ifndef CUDA_DEVICE_CONTACT_H
#define CUDA_DEVICE_CONTACT_H

#ifdef __cplusplus
extern "C" {
#endif

#include <cuda_runtime_api.h>
#include <stddef.h>

/* What a GPU said of itself before the call that failed; zeros where no GPU is concerned. */
struct cuda_contact {
    char name[256];
    int capability; /* 10 times the major part and the minor part */
    int mode;       /* enum cudaComputeMode: who may use it */
};

/* Why the call that returned `result` failed, or, where that is cudaSuccess, why the driver offers no GPU: a part of a
 * sentence, with no full stop. */
void cuda_contact_why(char *why, size_t size, cudaError_t result, const struct cuda_contact *contact);

#ifdef __cplusplus
}
#endif

#endif
