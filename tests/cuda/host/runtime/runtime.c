/* SPDX-License-Identifier: Apache-2.0
 * The runtime's door: one lock for all threads of the host, the last error of each, and the error that stays. */
#include "tests/cuda/host/runtime/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ---- The lock ---- */

/* Whoever comes first is served first: a thread that waits for the device gives the lock back now and then, and takes
 * it again only behind those that have come in the meantime. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t served = PTHREAD_COND_INITIALIZER;
static uint64_t next_ticket, serving;
static int device_now;               /* under the lock */
static _Thread_local int own_device; /* that the thread has set */

static void take_lock(void)
{
    pthread_mutex_lock(&gate);
    uint64_t mine = next_ticket++;
    while (serving != mine) {
        pthread_cond_wait(&served, &gate);
    }
    pthread_mutex_unlock(&gate);
}

static void give_lock(void)
{
    pthread_mutex_lock(&gate);
    serving++;
    pthread_cond_broadcast(&served);
    pthread_mutex_unlock(&gate);
}

void host_breathe(bool sleeps)
{
    const struct timespec nap = {.tv_nsec = 100000};
    const int device = device_now;
    give_lock();
    if (sleeps) {
        nanosleep(&nap, NULL);
    }
    take_lock();
    device_now = device;
}

void host_kernel_register(const struct host_kernel *kernel);
void host_kernel_register(const struct host_kernel *kernel)
{
    take_lock();
    if (!host_kernel_find(kernel->code)) {
        host_kernel_add(kernel);
    }
    give_lock();
}

/* ---- Devices ---- */

int host_device(void)
{
    return device_now;
}

int host_device_turn(int device)
{
    const int before = device_now;
    device_now = device;
    return before;
}

void host_device_set(int device)
{
    own_device = device_now = device;
}

/* ---- Chance ---- */

uint64_t host_seed(void)
{
    static uint64_t seed;
    static bool known;
    if (!known) {
        const char *text = getenv("HOST_SEED");
        seed = text ? strtoull(text, NULL, 10) : 1;
        known = true;
    }
    return seed;
}

uint32_t host_random(uint32_t n)
{
    static uint64_t state;
    static bool begun;
    if (!begun) {
        state = host_seed() * 0x9e3779b97f4a7c15u;
        begun = true;
    }
    state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return n ? (uint32_t)((z >> 32) * n >> 32) : 0;
}

/* ---- Errors ---- */

static _Thread_local cudaError_t last_error;
_Thread_local bool
    host_in_call; /* this thread is one that runs a host function of a stream (runtime_work.c) */
static cudaError_t lost[HOST_MOST_DEVICES];

/* After these nothing works any more until the process ends. */
static bool stays(cudaError_t error)
{
    switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorMisalignedAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorECCUncorrectable:
    case cudaErrorDevicesUnavailable:
        return true;
    default:
        return false;
    }
}

cudaError_t host_device_error(void)
{
    return lost[device_now];
}

void host_device_lost(cudaError_t error)
{
    if (!lost[device_now]) {
        lost[device_now] = error;
        host_streams_drop();
    }
}

cudaError_t host_enter(enum host_call call)
{
    take_lock();
    device_now = own_device;
    if (host_in_call) {
        host_finding(
            "%s: a host function of a stream may call nothing of the runtime", fault_call_name(call));
        return cudaErrorNotPermitted;
    }
    cudaError_t planted = fault_of_call(call);
    if (planted && stays(planted)) {
        host_device_lost(planted);
    }
    if (call == CALL_cudaDriverGetVersion) {
        return planted;
    }
    if (call == CALL_cudaGetDeviceCount) {
        return planted               ? planted
               : fault_driver() >= 0 ? cudaErrorInsufficientDriver
               : !host_card()        ? cudaErrorNoDevice
                                     : cudaSuccess;
    }
    const bool leaves = call == CALL_cudaSetDevice; /* a device that is lost may be left */
    return planted        ? planted
           : !host_card() ? cudaErrorNoDevice
           : leaves       ? cudaSuccess
                          : host_device_error();
}

cudaError_t host_enter_outside_capture(enum host_call call)
{
    cudaError_t result = host_enter(call);
    return !result && host_spoil_captures() ? cudaErrorStreamCaptureUnsupported : result;
}

cudaError_t host_leave(cudaError_t result)
{
    if (result != cudaSuccess) {
        last_error = result;
    }
    give_lock();
    return result;
}

cudaError_t cudaGetLastError(void)
{
    take_lock();
    cudaError_t result = lost[own_device] ? lost[own_device] : last_error;
    last_error = cudaSuccess;
    give_lock();
    return result;
}

const char *cudaGetErrorName(cudaError_t error)
{
    return fault_error_name(error);
}

const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
    case cudaSuccess:
        return "no error";
    case cudaErrorInvalidValue:
        return "invalid argument";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorInvalidConfiguration:
        return "invalid configuration argument";
    case cudaErrorDevicesUnavailable:
        return "CUDA-capable device(s) is/are busy or unavailable";
    case cudaErrorNoDevice:
        return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
        return "invalid device ordinal";
    case cudaErrorNoKernelImageForDevice:
        return "no kernel image is available for execution on the device";
    case cudaErrorNotReady:
        return "device not ready";
    case cudaErrorLaunchOutOfResources:
        return "too many resources requested for launch";
    case cudaErrorLaunchFailure:
        return "unspecified launch failure";
    case cudaErrorCooperativeLaunchTooLarge:
        return "too many blocks in cooperative launch";
    case cudaErrorUnknown:
        return "unknown error";
    default:
        return fault_error_name(error);
    }
}
