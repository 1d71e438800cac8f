/* SPDX-License-Identifier: Apache-2.0
 * Opens one GPU, and keeps the first failure of any call to it. */
#include "cuda/device/device.h"

#include "base/file.h"
#include "base/memory.h"
#include "cuda/device/arch_read.h"
#include "cuda/device/contact.h"
#include "cuda/device/unified.h"

#include <stdio.h>
#include <string.h>

#ifndef CUDA_PATIENCE_S /* seconds; a build for a device that is slower than any GPU sets more */
#define CUDA_PATIENCE_S 20
#endif

enum { OLDEST_CAPABILITY = 80 };

/* The first call of the runtime: no driver, no right to use it, or no GPU. */
static cudaError_t count(int *n)
{
    *n = 0;
    const cudaError_t result = cudaGetDeviceCount(n);
    cudaGetLastError(); /* no driver is an answer, not a failure that stays */
    *n = result == cudaSuccess ? *n : 0;
    return result;
}

int cuda_device_count(void)
{
    int n;
    count(&n);
    return n;
}

utter_status cuda_device_offered(utter_error *error)
{
    int n;
    const cudaError_t result = count(&n);
    char why[512];
    if (n > 0) {
        return UTTER_OK;
    }
    cuda_contact_why(why, sizeof why, result, &(struct cuda_contact){.name = ""});
    return error_set(error, UTTER_E_DEVICE, "no usable GPU: %s", why);
}

bool cuda_device_name(char *name, size_t size, int index)
{
    struct cudaDeviceProp properties;
    utter_error why;
    if (cuda_device_offered(&why) != UTTER_OK) {
        snprintf(name, size, "%s", why.text);
        return false;
    }
    if (index < 0 || index >= cuda_device_count() ||
        cudaGetDeviceProperties(&properties, index) != cudaSuccess) {
        cudaGetLastError();
        snprintf(name, size, "there is no GPU %d", index);
        return false;
    }
    snprintf(name, size, "%s", properties.name);
    return true;
}

static int attribute(enum cudaDeviceAttr which, int index)
{
    int value = 0;
    return cudaDeviceGetAttribute(&value, which, index) == cudaSuccess ? value : 0;
}

static void describe(struct cuda_device *d, const struct cudaDeviceProp *p)
{
    snprintf(d->name, sizeof d->name, "%s", p->name);
    d->clock_hz = 1e3 * (double)attribute(cudaDevAttrClockRate, d->index);
    d->unified = p->integrated != 0;
    d->total_bytes = p->totalGlobalMem;
    double clock = 1e3 * (double)attribute(cudaDevAttrMemoryClockRate, d->index);
    d->bytes_per_s = 2 * clock * (double)p->memoryBusWidth / 8; /* two transfers a clock */
}

/* The failure of a call by which the device is opened. */
static utter_status refuse(const struct cuda_device *d, cudaError_t result,
    const struct cuda_contact *contact, utter_error *error)
{
    char why[512];
    cudaGetLastError();
    cuda_contact_why(why, sizeof why, result, contact);
    return error_set(error, UTTER_E_DEVICE, "cuda:%d: %s (device cpu needs none)", d->index, why);
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
    utter_error none;
    utter_status status = cuda_device_offered(&none);
    if (status) {
        return error_set(error, status, "cuda: %s (device cpu needs none)", none.text);
    }
    const int n = cuda_device_count();
    if (index < 0 || index >= n) {
        return error_set(
            error, UTTER_E_DEVICE, "cuda:%d: there is no such GPU (cuda:0 to cuda:%d)", index, n - 1);
    }
    cudaError_t result = cudaGetDeviceProperties(&properties, index);
    if (result != cudaSuccess) {
        return refuse(d, result, &(struct cuda_contact){.name = ""}, error);
    }
    describe(d, &properties);
    struct cuda_contact contact = {.capability = cuda_arch_capability(&properties),
        .mode = attribute(cudaDevAttrComputeMode, index)};
    snprintf(contact.name, sizeof contact.name, "%s", d->name);
    if (contact.capability < OLDEST_CAPABILITY) {
        return error_set(error, UTTER_E_DEVICE,
            "cuda:%d: %s has compute capability %d.%d, and 8.0 is needed (device cpu needs none)",
            index, d->name, contact.capability / 10, contact.capability % 10);
    }
    result = cudaSetDevice(index);
    result = result == cudaSuccess ? cuda_arch_read(&d->arch, &properties, as) : result;
    return result == cudaSuccess ? UTTER_OK : refuse(d, result, &contact, error);
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

bool cuda_device_refused(cudaError_t result)
{
    return result == cudaErrorMemoryAllocation || result == cudaErrorLaunchOutOfResources ||
           result == cudaErrorCooperativeLaunchTooLarge;
}

utter_status cuda_device_check(
    struct cuda_device *d, cudaError_t result, const char *what, utter_error *error)
{
    if (result == cudaSuccess) {
        return UTTER_OK;
    }
    cudaGetLastError(); /* kept here from now on */
    if (cuda_device_refused(result)) {
        return error_set(error, UTTER_E_MEMORY,
            "cuda:%d: %s: %s (end what else uses the GPU, or open the model with fewer lanes)",
            d->index, what, cudaGetErrorString(result));
    }
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

/* As the system tells it; else `known`. */
static uint64_t unified_bytes(const struct cuda_device *d, uint64_t known)
{
    enum { MOST_MEMINFO = 1 << 16 };
    char *text = NULL;
    size_t bytes;
    if (file_read_any("/proc/meminfo", MOST_MEMINFO, &text, &bytes, NULL) == UTTER_OK) {
        cuda_unified_bytes(text, d->total_bytes, &known);
    }
    memory_free(text);
    return known;
}

static cudaError_t ask_memory(const struct cuda_device *d, uint64_t *bytes)
{
    size_t available = 0, total = 0;
    cudaError_t result = cudaSetDevice(d->index);
    result = result ? result : cudaMemGetInfo(&available, &total);
    *bytes = result ? 0 : d->unified ? unified_bytes(d, available) : available;
    return result;
}

uint64_t cuda_device_free_bytes(const struct cuda_device *d)
{
    uint64_t bytes = 0;
    if (!d->broken.code && ask_memory(d, &bytes)) {
        cudaGetLastError();
    }
    return bytes;
}

utter_status cuda_device_memory(struct cuda_device *d, uint64_t *bytes, utter_error *error)
{
    *bytes = 0;
    utter_status status = cuda_device_enter(d, error);
    return status ? status : cuda_device_check(d, ask_memory(d, bytes), "ask for its memory", error);
}
