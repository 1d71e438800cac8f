/* SPDX-License-Identifier: Apache-2.0
 * One GPU, opened: what it can do, and the checks of every call to it. All files of the room include the CUDA runtime
 * through this header. A failed call is sticky, but for one that was refused: the first failure is kept, and
 * cuda_device_enter repeats it. */
#ifndef CUDA_DEVICE_DEVICE_H
#define CUDA_DEVICE_DEVICE_H

#ifdef __cplusplus
extern "C" {
#endif

#include <cuda_runtime_api.h>

#include "base/error.h"
#include "cuda/device/arch.h"

struct cuda_device {
    int index; /* as the CUDA runtime counts */
    char name[256];
    struct cuda_arch arch; /* what it can do */
    double bytes_per_s;    /* memory clock times bus width; 0: not known */
    double clock_hz;       /* of the multiprocessors at their boost; 0: not known */
    bool unified;          /* its memory is the system's */
    uint64_t total_bytes;  /* of memory */
    double patience_s;     /* a device that has not done what was queued in this time hangs (wait.h) */
    utter_error broken;    /* code != 0: a call has failed, and nothing works any more */
    /* It was given up: whoever touches it may wait for ever, and so nothing of it is freed. */
    bool hangs;
};

/* The number of GPUs that the driver offers; 0 without a driver. Never fails. */
int cuda_device_count(void);

/* Whether there is one; UTTER_E_DEVICE with the reason why not: driver, rights, what hides it (contact.h). */
utter_status cuda_device_offered(utter_error *error);

/* What GPU `index` is called; false: the driver offers no such one, and `name` says why. */
bool cuda_device_name(char *name, size_t size, int index);

/* Opens GPU `index` and makes it this thread's. UTTER_E_DEVICE: no driver, no such GPU, or one that is older than
 * compute capability 8.0. */
utter_status cuda_device_open(struct cuda_device *device, int index, utter_error *error);

/* The same with no more than the card `as` can do (arch.h): kernels are then chosen as that card chooses them. */
utter_status cuda_device_open_as(
    struct cuda_device *device, int index, const struct cuda_arch *as, utter_error *error);

/* Makes the device this thread's and repeats an earlier failure. First line of every call of the backend. */
utter_status cuda_device_enter(struct cuda_device *device, utter_error *error);

/* Whether a call that failed so has been refused: nothing of it has begun, the device is whole, and the same call may
 * be taken another time. Memory, or what else a launch needs, was lacking. */
bool cuda_device_refused(cudaError_t result);

/* So often a call that was refused, and work that was lost, is tried in all. */
enum { CUDA_TRIES = 3 };

/* Every call of the runtime goes through this: UTTER_OK; UTTER_E_MEMORY of a call that was refused, which concerns
 * its caller alone; or the failure noted as sticky. `what` is what was being done: "cuda: WHAT: reason (what to
 * do)". */
utter_status cuda_device_check(
    struct cuda_device *device, cudaError_t result, const char *what, utter_error *error);

/* The sticky failure by other means: a device that did not answer in time. */
utter_status cuda_device_fail(struct cuda_device *device, const char *why, utter_error *error);

/* The same for one that has not answered in time: nothing of it is touched any more. */
utter_status cuda_device_give_up(struct cuda_device *device, utter_error *error);

/* Bytes that can be allocated now; where the memory is the system's, without what that needs. 0 of a device that has
 * failed. Makes the device this thread's. */
uint64_t cuda_device_free_bytes(const struct cuda_device *device);
/* The same, and why it cannot be told. */
utter_status cuda_device_memory(struct cuda_device *device, uint64_t *bytes, utter_error *error);

#ifdef __cplusplus
}
#endif

#endif
