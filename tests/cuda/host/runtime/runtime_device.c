/* SPDX-License-Identifier: Apache-2.0
 * What the posed GPUs say of themselves, and the profiler that there is not. */
#include <cuda_profiler_api.h>
#include <stdio.h>

#include "tests/cuda/host/runtime/runtime.h"

cudaError_t cudaDriverGetVersion(int *version)
{
    cudaError_t result = host_enter(CALL_cudaDriverGetVersion);
    if (!result) {
        *version = fault_driver() >= 0 ? fault_driver() : CUDART_VERSION;
    }
    return host_leave(result);
}

cudaError_t cudaGetDeviceCount(int *n)
{
    cudaError_t result = host_enter(CALL_cudaGetDeviceCount);
    *n = result ? 0 : host_n_devices();
    return host_leave(result);
}

cudaError_t cudaGetDevice(int *device)
{
    cudaError_t result = host_enter(CALL_cudaGetDevice);
    if (!result) {
        *device = host_device();
    }
    return host_leave(result);
}

static bool is_there(int device)
{
    return device >= 0 && device < host_n_devices();
}

cudaError_t cudaSetDevice(int device)
{
    cudaError_t result = host_enter(CALL_cudaSetDevice);
    result = result || !fault_mode() ? result : cudaErrorDevicesUnavailable;
    if (!result && !is_there(device)) {
        result = cudaErrorInvalidDevice;
    } else if (!result) {
        host_device_set(device);
        result = host_device_error();
    }
    return host_leave(result);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
    cudaError_t result = host_enter(CALL_cudaGetDeviceProperties);
    if (!result && !is_there(device)) {
        result = cudaErrorInvalidDevice;
    }
    if (!result) {
        host_device_turn(device);
        const struct host_card *c = host_card();
        *p = (struct cudaDeviceProp){
            .totalGlobalMem = host_memory_total(),
            .sharedMemPerBlock = 48 << 10,
            .sharedMemPerBlockOptin = (size_t)c->block_shared,
            .sharedMemPerMultiprocessor = (size_t)c->sm_shared,
            .reservedSharedMemPerBlock = 1 << 10,
            .major = c->major,
            .minor = c->minor,
            .multiProcessorCount = c->n_sms,
            .maxThreadsPerBlock = HOST_MOST_THREADS,
            .maxThreadsPerMultiProcessor = c->sm_threads,
            .warpSize = HOST_WARP,
            .memoryBusWidth = c->memory_bus_bits,
            .l2CacheSize = (int)c->l2_bytes,
            .regsPerBlock = 65536,
            .regsPerMultiprocessor = 65536,
            .integrated = c->unified,
            .unifiedAddressing = 1,
            .canMapHostMemory = 1,
            .cooperativeLaunch = 1,
        };
        snprintf(p->name, sizeof p->name, "%s", c->full_name);
    }
    return host_leave(result);
}

static cudaError_t attribute_of(const struct host_card *c, enum cudaDeviceAttr attribute, int *value)
{
    switch (attribute) {
    case cudaDevAttrClockRate:
        *value = c->sm_clock_khz;
        break;
    case cudaDevAttrMultiProcessorCount:
        *value = c->n_sms;
        break;
    case cudaDevAttrComputeMode:
        *value = fault_mode();
        break;
    case cudaDevAttrIntegrated:
        *value = c->unified;
        break;
    case cudaDevAttrMemoryClockRate:
        *value = c->memory_clock_khz;
        break;
    case cudaDevAttrGlobalMemoryBusWidth:
        *value = c->memory_bus_bits;
        break;
    case cudaDevAttrL2CacheSize:
        *value = (int)c->l2_bytes;
        break;
    case cudaDevAttrComputeCapabilityMajor:
        *value = c->major;
        break;
    case cudaDevAttrComputeCapabilityMinor:
        *value = c->minor;
        break;
    case cudaDevAttrCooperativeLaunch:
        *value = 1;
        break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = c->block_shared;
        break;
    default:
        return cudaErrorInvalidValue;
    }
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    cudaError_t result = host_enter(CALL_cudaDeviceGetAttribute);
    if (!result) {
        result = is_there(device) ? cudaSuccess : cudaErrorInvalidDevice;
    }
    if (!result) {
        host_device_turn(device);
        result = attribute_of(host_card(), attribute, value);
    }
    return host_leave(result);
}

cudaError_t cudaDeviceSynchronize(void)
{
    cudaError_t result = host_enter_outside_capture(CALL_cudaDeviceSynchronize);
    return host_leave(result ? result : host_wait_device("cudaDeviceSynchronize"));
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    cudaError_t result = host_enter(CALL_cudaMemGetInfo);
    if (!result) {
        *total_bytes = host_memory_total();
        *free_bytes = host_memory_free();
    }
    return host_leave(result);
}

/* ---- The profiler ---- */

static _Thread_local int n_ranges;
int nvtxRangePushA(const char *name); /* include/nvtx3 */
int nvtxRangePop(void);

cudaError_t cudaProfilerStart(void)
{
    return host_leave(host_enter(CALL_cudaProfilerStart));
}

cudaError_t cudaProfilerStop(void)
{
    return host_leave(host_enter(CALL_cudaProfilerStop));
}

int nvtxRangePushA(const char *name)
{
    (void)name;
    return n_ranges++;
}

int nvtxRangePop(void)
{
    if (n_ranges == 0) {
        host_finding("nvtxRangePop: no range is open on this thread");
        return -1;
    }
    return --n_ranges;
}
