/* SPDX-License-Identifier: Apache-2.0
 * Planted failures, and how often each function of the runtime was called. */
#include "tests/cuda/host/runtime/faults.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_FAULTS = 16, ANY = HOST_N_CALLS, DEVICE, LAUNCH, EACH, EXIT_USAGE = 2 };

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
static int driver_version = -1, mode;
static struct fault each; /* from 0: none */
static long each_to;      /* up to this call; 0: to the end */
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
    NAMED(cudaErrorECCUncorrectable), NAMED(cudaErrorUnsupportedPtxVersion),
    NAMED(cudaErrorOperatingSystem), NAMED(cudaErrorSystemNotReady),
    NAMED(cudaErrorSystemDriverMismatch), NAMED(cudaErrorCompatNotSupportedOnDevice),
    NAMED(cudaErrorInvalidResourceHandle), NAMED(cudaErrorIllegalState), NAMED(cudaErrorNotReady),
    NAMED(cudaErrorIllegalAddress), NAMED(cudaErrorLaunchOutOfResources), NAMED(cudaErrorLaunchTimeout),
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
    if (strcmp(name, "each") == 0) {
        return EACH;
    }
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
static void read_rest(struct fault *f, char *rest, const char *whole)
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
    if (f->what == EACH && *rest == '-') {
        each_to = strtol(rest + 1, &rest, 10);
    }
    if (*rest == '+') {
        f->on = true;
        rest++;
    }
    f->error = f->what == ANY || f->what == EACH ? cudaSuccess
                                                 : call_errors[f->what]; /* of any: the call's own */
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
    if (sscanf(text, "driver=%d", &driver_version) == 1 || sscanf(text, "mode=%d", &mode) == 1) {
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
    if (f.what == EACH) {
        each = f;
    } else {
        faults[n_faults++] = f;
    }
}

/* The file that a name in the environment asks for cannot be made. */
__attribute__((noreturn)) static void no_file(const char *name)
{
    perror(name);
    _Exit(EXIT_USAGE);
}

static void write_counts(void)
{
    FILE *file = fopen(getenv("HOST_COUNT_CALLS"), "w");
    if (!file) {
        no_file("HOST_COUNT_CALLS");
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

/* ---- Parting ---- */

static void wait_for_child(pid_t child, enum host_call call)
{
    enum { NAP_NS = 1000000 };
    const char *seconds = getenv("HOST_FAULT_SECONDS"), *path = getenv("HOST_FAULT_LOG");
    long naps = (seconds ? atol(seconds) : 600) * (1000000000 / NAP_NS);
    int status = 0;
    const struct timespec nap = {.tv_nsec = NAP_NS};
    while (waitpid(child, &status, WNOHANG) == 0 && naps-- > 0) {
        nanosleep(&nap, NULL);
    }
    const bool late = naps < 0;
    if (late) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
    }
    FILE *log = path ? fopen(path, "a") : NULL;
    if (log) {
        fprintf(log, "%ld %s ", n_any, call_names[call]);
        fprintf(log,
            late                ? "late\n"
            : WIFEXITED(status) ? "exit %d\n"
                                : "signal %d\n",
            WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
        fclose(log);
    }
}

/* In a child: with a failure of this call planted. */
static void part(enum host_call call)
{
    fflush(NULL);
    const pid_t child = fork();
    if (child > 0) {
        wait_for_child(child, call);
    } else if (child == 0) {
        faults[n_faults] = each;
        faults[n_faults].what = ANY;
        faults[n_faults++].from = n_any;
        each.from = 0;
    }
}

/* Whether failures are for this program: those of HOST_FAULT_ONCE are for the first one that comes to any. */
static bool are_mine(void)
{
    static int mine; /* 1, -1: no */
    const char *path = getenv("HOST_FAULT_ONCE");
    if (path && mine == 0) {
        const int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST) {
            no_file("HOST_FAULT_ONCE");
        }
        mine = fd >= 0 ? 1 : -1;
        if (fd >= 0) {
            close(fd);
        }
    }
    return mine >= 0;
}

/* ---- Calls ---- */

/* Whether calls count yet: with HOST_FAULT_FROM they do once that file is there. */
static bool counts(void)
{
    static bool begun;
    const char *path = getenv("HOST_FAULT_FROM");
    begun = begun || !path || access(path, F_OK) == 0;
    return begun;
}

static bool hits(const struct fault *f, long n)
{
    return n == f->from || (f->on && n > f->from);
}

cudaError_t fault_of_call(enum host_call call)
{
    know();
    if (!counts()) {
        return cudaSuccess;
    }
    n_calls[call]++;
    n_any++;
    if (each.from > 0 && n_any % each.from == 0 && (each_to == 0 || n_any <= each_to)) {
        part(call);
    }
    for (int i = 0; i < n_faults; i++) {
        const struct fault *f = &faults[i];
        if (((f->what == (int)call && hits(f, n_calls[call])) ||
                ((f->what == ANY || f->what == DEVICE) && hits(f, n_any))) &&
            are_mine()) {
            return f->error ? f->error : call_errors[call];
        }
    }
    return cudaSuccess;
}

enum fault_launch fault_of_launch(void)
{
    know();
    if (!counts()) {
        return FAULT_NONE;
    }
    n_launches++;
    for (int i = 0; i < n_faults; i++) {
        if (faults[i].what == LAUNCH && hits(&faults[i], n_launches) && are_mine()) {
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

int fault_driver(void)
{
    know();
    return driver_version;
}

int fault_mode(void)
{
    know();
    return mode;
}
