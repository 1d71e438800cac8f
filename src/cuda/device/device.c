/* SPDX-License-Identifier: Apache-2.0
 * Opens one GPU, and keeps the first failure of any call to it. */
#include "cuda/device/device.h"

#include "cuda/device/arch_read.h"

#include <stdio.h>
#include <string.h>

#ifndef CUDA_PATIENCE_S /* seconds; a build for a device that is slower than any GPU sets more */
#define CUDA_PATIENCE_S 20
#endif

enum { OLDEST_CAPABILITY = 80 };

int cuda_device_count(void)
{
    int n = 0;
    if (cudaGetDeviceCount(&n) != cudaSuccess) {
        cudaGetLastError(); /* no driver is an answer, not a failure that stays */
        return 0;
    }
    return n;
}

static int attribute(enum cudaDeviceAttr which, int index)
{
    int value = 0;
    return cudaDeviceGetAttribute(&value, which, index) == cudaSuccess ? value : 0;
}

static void describe(struct cuda_device *d, const struct cudaDeviceProp *p)
{
    snprintf(d->name, sizeof d->name, "%s", p->name);
    double clock = 1e3 * (double)attribute(cudaDevAttrMemoryClockRate, d->index);
    d->bytes_per_s = 2 * clock * (double)p->memoryBusWidth / 8; /* two transfers a clock */
}

/* Where there is no driver at all, too, the runtime says that it is too old. */
static const char *why_none(cudaError_t result)
{
    return result == cudaSuccess ? "there is none"
           : result == cudaErrorInsufficientDriver
               ? "NVIDIA's driver is not here or too old; containers get the host's by --gpus all"
               : cudaGetErrorString(result);
}

utter_status cuda_device_open(struct cuda_device *d, int index, utter_error *error)
{
    return cuda_device_open_as(d, index, NULL, error);
}

utter_status cuda_device_open_as(
    struct cuda_device *d, int index, const struct cuda_arch *as, utter_error *error)
{
    struct cudaDeviceProp properties;
    *d = (struct cuda_device){.index = index, .patience_s = CUDA_PATIENCE_S};
    int n = 0;
    cudaError_t result = cudaGetDeviceCount(&n);
    if (result != cudaSuccess || n == 0) {
        cudaGetLastError();
        return error_set(
            error, UTTER_E_DEVICE, "cuda: no usable GPU: %s (device cpu needs none)", why_none(result));
    }
    if (index < 0 || index >= n) {
        return error_set(
            error, UTTER_E_DEVICE, "cuda:%d: there is no such GPU (cuda:0 to cuda:%d)", index, n - 1);
    }
    utter_status status =
        cuda_device_check(d, cudaGetDeviceProperties(&properties, index), "read its properties", error);
    if (status || (status = cuda_device_check(d, cudaSetDevice(index), "open it", error))) {
        return status;
    }
    describe(d, &properties);
    const int capability = cuda_arch_capability(&properties);
    if (capability < OLDEST_CAPABILITY) {
        return error_set(error, UTTER_E_DEVICE,
            "cuda:%d: %s has compute capability %d.%d, and 8.0 is needed (device cpu needs none)",
            index, d->name, capability / 10, capability % 10);
    }
    return cuda_device_check(d, cuda_arch_read(&d->arch, &properties, as), "find code for it", error);
}

utter_status cuda_device_enter(struct cuda_device *d, utter_error *error)
{
    if (d->broken.code) {
        if (error) {
            *error = d->broken;
        }
        return d->broken.code;
    }
    return cuda_device_check(d, cudaSetDevice(d->index), "use it", error);
}

utter_status cuda_device_check(
    struct cuda_device *d, cudaError_t result, const char *what, utter_error *error)
{
    if (result == cudaSuccess) {
        return UTTER_OK;
    }
    cudaGetLastError(); /* kept here from now on */
    char why[256];
    snprintf(why, sizeof why, "%s: %s", what, cudaGetErrorString(result));
    return cuda_device_fail(d, why, error);
}

utter_status cuda_device_fail(struct cuda_device *d, const char *why, utter_error *error)
{
    if (!d->broken.code) {
        error_set(&d->broken, UTTER_E_DEVICE, "cuda:%d: %s (open the model again, or use device cpu)",
            d->index, why);
    }
    if (error) {
        *error = d->broken;
    }
    return UTTER_E_DEVICE;
}

utter_status cuda_device_give_up(struct cuda_device *d, utter_error *error)
{
    d->hangs = true;
    return cuda_device_fail(d, "the GPU does not answer", error);
}

uint64_t cuda_device_free_bytes(const struct cuda_device *d)
{
    size_t available = 0, total = 0;
    if (d->broken.code || cudaSetDevice(d->index) != cudaSuccess) {
        return 0;
    }
    return cudaMemGetInfo(&available, &total) == cudaSuccess ? available : 0;
}
