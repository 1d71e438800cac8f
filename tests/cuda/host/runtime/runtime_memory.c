/* SPDX-License-Identifier: Apache-2.0
 * Device memory and pinned memory of the host. Each area lies alone between pages that nobody may touch, and ends or
 * begins at one of them, as the seed says; a freed one is never given out again. Where there are several devices,
 * nobody may touch the pages of those whose turn it is not. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/cuda/host/runtime/findings.h"
#include "tests/cuda/host/runtime/runtime.h"
#include "tests/cuda/host/thread.h"

/* Programs without an engine (tests of a single part) have no threads. */
extern struct host_thread *host_now __attribute__((weak));
extern void host_trap(const char *why) __attribute__((weak, noreturn));

static const size_t PAGE = 4096, GUARD = 1 << 20, ALIGN = 256, GRAIN = 2 << 20;
/* What the driver keeps for itself, of a card that is not asked to be smaller. */
static const uint64_t DRIVER_BYTES = 600u << 20;
static const size_t MOST_FILLED = 32 << 20; /* of larger areas only both ends have something in them */
enum { FRESH = 0xcd, CANARY = 0xb7, ALT_STACK = 64 << 10, EXIT_FINDINGS = 3 };

static struct host_area *areas;
static int n_areas;
static size_t held[HOST_MOST_DEVICES], held_pinned;
static int standing; /* the device whose memory can be touched */

static size_t up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

size_t host_memory_held(void)
{
    return up(held[host_device()], GRAIN); /* a driver takes pages of 2 MB and shares them out */
}

size_t host_pinned_held(void)
{
    return held_pinned;
}

uint64_t host_memory_total(void)
{
    return fault_memory() ? fault_memory() : host_card()->memory_bytes;
}

uint64_t host_memory_free(void)
{
    uint64_t used = host_memory_held() + (fault_memory() ? 0 : DRIVER_BYTES);
    used += host_card()->unified ? held_pinned : 0;
    return used < host_memory_total() ? host_memory_total() - used : 0;
}

const struct host_area *host_area_of(const void *at)
{
    for (const struct host_area *a = areas; a; a = a->next) {
        if ((const char *)at >= a->mapped && (const char *)at < a->mapped + a->mapped_bytes) {
            return a;
        }
    }
    return NULL;
}

static const char *kind_name(const struct host_area *a)
{
    return a->kind == HOST_GLOBAL ? "device" : "pinned";
}

bool host_area_holds(const void *at, size_t pitch, size_t bytes, size_t rows, const char *call)
{
    const struct host_area *a = host_area_of(at);
    size_t all = rows > 0 && bytes > 0 ? (rows - 1) * pitch + bytes : 0;
    if (!a || all == 0) {
        return true;
    }
    if (a->kind == HOST_CONSTANT) {
        host_finding("%s: memory %d has been freed", call, a->number);
        return false;
    }
    const char *from = at;
    if (from < a->at || from > a->at + a->bytes || all > (size_t)(a->at + a->bytes - from)) {
        host_finding("%s: %zu bytes at offset %td of %s memory %d, which has %zu bytes", call, all,
            from - a->at, kind_name(a), a->number, a->bytes);
        return false;
    }
    return true;
}

bool host_area_reached(const struct host_area *a, int device, const char *call)
{
    if (!a || a->kind != HOST_GLOBAL || a->device == device) {
        return true;
    }
    host_finding(
        "%s: memory %d of device %d in a stream of device %d", call, a->number, a->device, device);
    return false;
}

void host_fill(void *at, int value, size_t bytes)
{
    char *from = at, *end = from + bytes;
    char *first = (char *)up((size_t)from, PAGE), *last = (char *)((size_t)end / PAGE * PAGE);
    if (value != 0 || last < first || (size_t)(last - first) < GUARD) {
        memset(at, value, bytes);
        return;
    }
    memset(from, 0, (size_t)(first - from));
    if (madvise(first, (size_t)(last - first), MADV_DONTNEED) != 0) {
        memset(first, 0, (size_t)(last - first));
    }
    memset(last, 0, (size_t)(end - last));
}

/* ---- Guards ---- */

/* The pages of the area that are neither guard nor its own. */
static char *pages_of(const struct host_area *a, char **end)
{
    *end = a->mapped + a->mapped_bytes - GUARD;
    return a->mapped + GUARD;
}

void host_memory_stand(int device)
{
    for (const struct host_area *a = device == standing ? NULL : areas; a; a = a->next) {
        char *end, *at = pages_of(a, &end);
        if (a->kind == HOST_GLOBAL && (a->device == device || a->device == standing)) {
            mprotect(at, (size_t)(end - at), a->device == device ? PROT_READ | PROT_WRITE : PROT_NONE);
        }
    }
    standing = device;
}

static void check_canaries(const struct host_area *a)
{
    host_memory_stand(a->device);
    char *end, *at = pages_of(a, &end);
    for (; at < end; at++) {
        if (at == a->at) {
            at += a->bytes;
        }
        if (at < end && *(unsigned char *)at != CANARY) {
            host_finding("%s memory %d of %zu bytes was written at offset %td", kind_name(a), a->number,
                a->bytes, at - a->at);
            return;
        }
    }
}

static void check_all(void)
{
    for (const struct host_area *a = areas; a; a = a->next) {
        if (a->kind != HOST_CONSTANT) {
            check_canaries(a);
        }
    }
}

/* Where a thread of a kernel goes on that has touched what it may not. */
static char fault_text[160];
static bool fault_in_kernel;

static void end_thread(void)
{
    host_trap(fault_text);
}

bool host_address_fault(void)
{
    return fault_in_kernel;
}

/* Returning from the signal with these registers is a call of end_thread on the thread's own stack. */
static void go_on_there(ucontext_t *context)
{
    const uintptr_t beside = 256; /* what the thread may have below its stack pointer */
#if defined(__x86_64__)
    greg_t *r = context->uc_mcontext.gregs;
    r[REG_RSP] = (greg_t)((((uintptr_t)r[REG_RSP] - beside) & ~(uintptr_t)15) - 8);
    r[REG_RIP] = (greg_t)(uintptr_t)end_thread;
#elif defined(__aarch64__)
    context->uc_mcontext.sp = (context->uc_mcontext.sp - beside) & ~(uintptr_t)15;
    context->uc_mcontext.pc = (uintptr_t)end_thread;
#endif
}

static void describe_fault(const char *at)
{
    const struct host_area *a = host_area_of(at);
    if (!a) {
        snprintf(fault_text, sizeof fault_text, "an access to %p, which is no memory of the device",
            (const void *)at);
    } else if (a->kind == HOST_GLOBAL && a->device != standing) {
        snprintf(fault_text, sizeof fault_text, "an access to memory %d of device %d by device %d",
            a->number, a->device, standing);
    } else if (a->kind == HOST_CONSTANT) {
        snprintf(fault_text, sizeof fault_text,
            "an access to memory %d at offset %td, after it was freed", a->number, at - a->at);
    } else {
        snprintf(fault_text, sizeof fault_text,
            "an access at offset %td of %s memory %d, which has %zu bytes", at - a->at, kind_name(a),
            a->number, a->bytes);
    }
}

/* An access that no page allows. One by a kernel ends its launch, as on a GPU; one by the host to memory of the device
 * ends the program. Any other is none of ours. */
static void tell_fault(int number, siginfo_t *info, void *context)
{
    const bool kernel = &host_now && host_now;
    if (!kernel && !host_area_of(info->si_addr)) {
        signal(number, SIG_DFL); /* the access is made again and kills the program as ever */
        return;
    }
    describe_fault(info->si_addr);
    if (kernel) {
        fault_in_kernel = true;
        go_on_there(context);
        return;
    }
    host_finding("%s", fault_text);
    fprintf(stderr, "host bench: %d findings, the last one ended the program\n", host_findings());
    host_end_program(EXIT_FINDINGS);
}

/* Before main: a sanitizer that has its own handler comes first. */
__attribute__((constructor)) static void watch_faults(void)
{
    static char stack[ALT_STACK];
    struct sigaction now, ours = {.sa_sigaction = tell_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaction(SIGSEGV, NULL, &now);
    if (now.sa_handler == SIG_DFL) {
        sigaltstack(&alternative, NULL); /* a fiber's own may be the one that is full */
        sigaction(SIGSEGV, &ours, NULL);
    }
}

/* ---- Areas ---- */

static size_t *held_of(const struct host_area *a)
{
    return a->kind == HOST_PINNED ? &held_pinned : &held[a->device];
}

static struct host_area *area_new(size_t bytes, enum host_memory kind)
{
    host_memory_stand(host_device());
    if (!n_areas++) {
        atexit(check_all);
    }
    const size_t room = up(bytes, ALIGN), pages = up(room, PAGE);
    struct host_area *a = calloc(1, sizeof *a);
    a->mapped_bytes = pages + 2 * GUARD;
    a->mapped =
        mmap(NULL, a->mapped_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (a->mapped == MAP_FAILED || mprotect(a->mapped + GUARD, pages, PROT_READ | PROT_WRITE) != 0) {
        free(a);
        return NULL;
    }
    a->at = a->mapped + GUARD + (host_random(4) ? pages - room : 0);
    a->bytes = bytes;
    a->kind = kind;
    a->device = host_device();
    a->number = n_areas;
    a->next = areas;
    areas = a;
    size_t filled = bytes < MOST_FILLED ? bytes : MOST_FILLED / 2;
    memset(a->mapped + GUARD, CANARY, (size_t)(a->at - a->mapped) - GUARD);
    memset(a->at, FRESH, filled);
    memset(a->at + bytes - filled, FRESH, filled);
    memset(a->at + bytes, CANARY, (size_t)(a->mapped + GUARD + pages - a->at) - bytes);
    *held_of(a) += room;
    char label[64];
    snprintf(label, sizeof label, "%s memory %d", kind_name(a), a->number);
    strict_memory_add(a->at, bytes, kind, label, kind == HOST_PINNED);
    return a;
}

/* Its addresses stay taken, and whoever touches them is told of (HOST_CONSTANT stands for freed). */
static void area_free(struct host_area *a)
{
    check_canaries(a);
    strict_memory_remove(a->at);
    *held_of(a) -= up(a->bytes, ALIGN);
    mmap(a->mapped, a->mapped_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
        -1, 0);
    a->kind = HOST_CONSTANT;
}

static struct host_area *area_begins(void *at, enum host_memory kind, const char *call)
{
    struct host_area *a = areas;
    while (a && a->at != at) {
        a = a->next;
    }
    if (!a || a->kind != kind) {
        host_finding("%s: %p is %s", call, at,
            !a                         ? "not the beginning of any memory"
            : a->kind == HOST_CONSTANT ? "free already"
            : kind == HOST_GLOBAL      ? "pinned memory of the host"
                                       : "device memory");
        return NULL;
    }
    return a;
}

/* ---- Calls ---- */

cudaError_t cudaMalloc(void **at, size_t bytes)
{
    cudaError_t result = host_enter_outside_capture(CALL_cudaMalloc);
    host_device_some(64);
    if (!result && bytes == 0) {
        *at = NULL;
    } else if (!result) {
        struct host_area *a = bytes <= host_memory_free() ? area_new(bytes, HOST_GLOBAL) : NULL;
        if (a) {
            *at = a->at;
        } else {
            result = cudaErrorMemoryAllocation;
        }
    }
    return host_leave(result);
}

/* Memory goes only when all that was queued has ended, and the host waits so long. */
static cudaError_t release(void *at, enum host_memory kind, const char *call)
{
    struct host_area *a = at ? area_begins(at, kind, call) : NULL;
    if (!a) {
        return at ? cudaErrorInvalidValue : cudaSuccess;
    }
    const int asker = host_device_turn(kind == HOST_GLOBAL ? a->device : host_device());
    cudaError_t result = host_wait_device(call);
    if (!result) {
        area_free(a);
    }
    host_device_turn(asker);
    return result;
}

cudaError_t cudaFree(void *at)
{
    cudaError_t result = host_enter_outside_capture(CALL_cudaFree);
    return host_leave(result ? result : release(at, HOST_GLOBAL, "cudaFree"));
}

cudaError_t cudaHostAlloc(void **at, size_t bytes, unsigned flags)
{
    (void)flags;
    cudaError_t result = host_enter_outside_capture(CALL_cudaHostAlloc);
    if (!result && bytes == 0) {
        *at = NULL;
    } else if (!result) {
        struct host_area *a = area_new(bytes, HOST_PINNED);
        *at = a ? a->at : NULL;
        result = a ? cudaSuccess : cudaErrorMemoryAllocation;
    }
    return host_leave(result);
}

cudaError_t cudaFreeHost(void *at)
{
    cudaError_t result = host_enter_outside_capture(CALL_cudaFreeHost);
    return host_leave(result ? result : release(at, HOST_PINNED, "cudaFreeHost"));
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags)
{
    cudaError_t result = host_enter(CALL_cudaHostGetDevicePointer);
    const struct host_area *a = host_area_of(host);
    if (!result && (flags != 0 || !a || a->kind != HOST_PINNED)) {
        result = cudaErrorInvalidValue;
    }
    if (!result) {
        *device = host;
    }
    return host_leave(result);
}
