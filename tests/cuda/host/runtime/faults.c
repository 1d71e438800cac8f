/* SPDX-License-Identifier: Apache-2.0
 * Planted failures, and how often each function of the runtime was called. */
#include "tests/cuda/host/runtime/faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FAULTS = 16, ANY = HOST_N_CALLS, DEVICE, LAUNCH, EXIT_USAGE = 2 };

struct fault {
    int what; /* a call, or ANY, DEVICE, LAUNCH */
    long from;
    bool on; /* from there on */
    cudaError_t error;
    enum fault_launch launch;
};

static struct fault faults[MOST_FAULTS];
static int n_faults;
static uint64_t memory_bytes;
static bool known;
static long n_calls[HOST_N_CALLS], n_any, n_launches;

/* ---- Names ---- */

#define CALL_NAME(name, error) #name,
#define CALL_ERROR(name, error) error,
static const char *const call_names[] = {HOST_CALLS(CALL_NAME)};
static const cudaError_t call_errors[] = {HOST_CALLS(CALL_ERROR)};

#define NAMED(error)                                                                                   \
    {                                                                                                  \
        error, #error                                                                                  \
    }
static const struct {
    cudaError_t error;
    const char *name;
} error_names[] = {NAMED(cudaErrorUnknown), NAMED(cudaSuccess), NAMED(cudaErrorInvalidValue),
    NAMED(cudaErrorMemoryAllocation), NAMED(cudaErrorInitializationError),
    NAMED(cudaErrorInvalidConfiguration), NAMED(cudaErrorInvalidPitchValue),
    NAMED(cudaErrorInvalidMemcpyDirection), NAMED(cudaErrorInsufficientDriver),
    NAMED(cudaErrorDevicesUnavailable), NAMED(cudaErrorInvalidDeviceFunction), NAMED(cudaErrorNoDevice),
    NAMED(cudaErrorInvalidDevice), NAMED(cudaErrorNoKernelImageForDevice),
    NAMED(cudaErrorECCUncorrectable), NAMED(cudaErrorInvalidResourceHandle),
    NAMED(cudaErrorIllegalState), NAMED(cudaErrorNotReady), NAMED(cudaErrorIllegalAddress),
    NAMED(cudaErrorLaunchOutOfResources), NAMED(cudaErrorLaunchTimeout),
    NAMED(cudaErrorMisalignedAddress), NAMED(cudaErrorLaunchFailure),
    NAMED(cudaErrorCooperativeLaunchTooLarge), NAMED(cudaErrorNotPermitted),
    NAMED(cudaErrorNotSupported), NAMED(cudaErrorStreamCaptureUnsupported),
    NAMED(cudaErrorStreamCaptureInvalidated), NAMED(cudaErrorStreamCaptureUnmatched),
    NAMED(cudaErrorStreamCaptureImplicit), NAMED(cudaErrorCapturedEvent),
    NAMED(cudaErrorStreamCaptureWrongThread), NAMED(cudaErrorInvalidClusterSize)};
enum { N_ERRORS = sizeof error_names / sizeof *error_names };

const char *fault_error_name(cudaError_t error)
{
    for (int i = 0; i < N_ERRORS; i++) {
        if (error_names[i].error == error) {
            return error_names[i].name;
        }
    }
    return error_names[0].name;
}

const char *fault_call_name(enum host_call call)
{
    return call_names[call];
}

/* ---- HOST_FAULT ---- */

__attribute__((noreturn)) static void wrong(const char *text)
{
    fprintf(stderr, "HOST_FAULT: %s is none (tests/cuda/host/runtime/faults.h)\n", text);
    exit(EXIT_USAGE);
}

static int target_of(const char *name, const char *whole)
{
    if (strcmp(name, "any") == 0 || strcmp(name, "device") == 0 || strcmp(name, "launch") == 0) {
        return name[0] == 'a' ? (int)ANY : name[0] == 'd' ? (int)DEVICE : (int)LAUNCH;
    }
    for (int i = 0; i < HOST_N_CALLS; i++) {
        if (strcmp(name, call_names[i]) == 0) {
            return i;
        }
    }
    wrong(whole);
}

static cudaError_t error_of(const char *name, const char *whole)
{
    for (int i = 0; i < N_ERRORS; i++) {
        if (strcmp(name, error_names[i].name) == 0 && error_names[i].error) {
            return error_names[i].error;
        }
    }
    wrong(whole);
}

/* What follows the number: `+`, `:ERROR`, `=lost`, `=hangs`, `=gone`. */
static void read_rest(struct fault *f, const char *rest, const char *whole)
{
    if (f->what == LAUNCH || f->what == DEVICE) {
        f->launch = strcmp(rest, "=lost") == 0 ? FAULT_LOST : FAULT_HANGS;
        f->on = f->what == DEVICE;
        f->error = cudaErrorDevicesUnavailable;
        if (f->what == DEVICE ? strcmp(rest, "=gone") != 0
                              : f->launch == FAULT_HANGS && strcmp(rest, "=hangs") != 0) {
            wrong(whole);
        }
        return;
    }
    if (*rest == '+') {
        f->on = true;
        rest++;
    }
    f->error = f->what == ANY ? cudaSuccess : call_errors[f->what]; /* of any: the call's own */
    if (*rest == ':') {
        f->error = error_of(rest + 1, whole);
    } else if (*rest) {
        wrong(whole);
    }
}

static void read_fault(const char *text)
{
    char name[80];
    const char *colon = strchr(text, ':');
    if (strncmp(text, "memory=", 7) == 0) {
        memory_bytes = strtoull(text + 7, NULL, 10);
        return;
    }
    if (!colon || (size_t)(colon - text) >= sizeof name || n_faults == MOST_FAULTS) {
        wrong(text);
    }
    memcpy(name, text, (size_t)(colon - text));
    name[colon - text] = 0;
    char *rest;
    struct fault f = {.what = target_of(name, text), .from = strtol(colon + 1, &rest, 10)};
    if (f.from <= 0) {
        wrong(text);
    }
    read_rest(&f, rest, text);
    faults[n_faults++] = f;
}

static void write_counts(void)
{
    FILE *file = fopen(getenv("HOST_COUNT_CALLS"), "w");
    if (!file) {
        perror("HOST_COUNT_CALLS");
        _Exit(EXIT_USAGE);
    }
    fprintf(file, "any %ld\nlaunch %ld\n", n_any, n_launches);
    for (int i = 0; i < HOST_N_CALLS; i++) {
        fprintf(file, "%s %ld\n", call_names[i], n_calls[i]);
    }
    fclose(file);
}

static void know(void)
{
    if (known) {
        return;
    }
    known = true;
    const char *text = getenv("HOST_FAULT");
    char *copy = strdup(text ? text : ""), *save = NULL;
    for (char *one = strtok_r(copy, ",", &save); one; one = strtok_r(NULL, ",", &save)) {
        read_fault(one);
    }
    free(copy);
    if (getenv("HOST_COUNT_CALLS")) {
        atexit(write_counts);
    }
}

/* ---- Calls ---- */

static bool hits(const struct fault *f, long n)
{
    return n == f->from || (f->on && n > f->from);
}

cudaError_t fault_of_call(enum host_call call)
{
    know();
    n_calls[call]++;
    n_any++;
    for (int i = 0; i < n_faults; i++) {
        const struct fault *f = &faults[i];
        if ((f->what == (int)call && hits(f, n_calls[call])) ||
            ((f->what == ANY || f->what == DEVICE) && hits(f, n_any))) {
            return f->error ? f->error : call_errors[call];
        }
    }
    return cudaSuccess;
}

enum fault_launch fault_of_launch(void)
{
    know();
    n_launches++;
    for (int i = 0; i < n_faults; i++) {
        if (faults[i].what == LAUNCH && hits(&faults[i], n_launches)) {
            return faults[i].launch;
        }
    }
    return FAULT_NONE;
}

uint64_t fault_memory(void)
{
    know();
    return memory_bytes;
}
