/* SPDX-License-Identifier: Apache-2.0
 * What the bench found wrong: told at once with the place, counted, and a failure of the program at its end. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/cuda/host/runtime/findings.h"
#include "tests/cuda/host/runtime/runtime.h"
#include "tests/cuda/host/thread.h"

enum { MOST_TOLD = 40, EXIT_FINDINGS = 3 };

/* Programs without an engine (tests of a single part) have no threads. */
extern struct host_thread *host_now __attribute__((weak));

static int n_findings;
static const struct host_launch *launch_now;
static int number_now;

void finding_launch(const struct host_launch *launch, int number)
{
    launch_now = launch;
    number_now = number;
}

static void tell_place(void)
{
    const struct host_thread *t = &host_now ? host_now : NULL;
    if (launch_now) {
        fprintf(stderr, "\n    in launch %d of %s, seed %llu", number_now,
            host_kernel_name(launch_now->kernel), (unsigned long long)host_seed());
    } else {
        fprintf(stderr, "\n    in code of the host, seed %llu", (unsigned long long)host_seed());
    }
    if (t) {
        fprintf(stderr, ": block %d (%u %u %u), thread %d (%u %u %u)", t->block, t->block_id.x,
            t->block_id.y, t->block_id.z, t->thread, t->thread_id.x, t->thread_id.y, t->thread_id.z);
    }
    fprintf(stderr, "\n");
}

void host_finding(const char *format, ...)
{
    if (__atomic_add_fetch(&n_findings, 1, __ATOMIC_RELAXED) > MOST_TOLD) {
        return;
    }
    va_list list;
    va_start(list, format);
    fflush(stdout);
    fprintf(stderr, "host bench: ");
    vfprintf(stderr, format, list);
    tell_place();
    va_end(list);
}

int host_findings(void)
{
    return __atomic_load_n(&n_findings, __ATOMIC_RELAXED);
}

/* Of a build that counts what runs: which lines that were is written. */
void __gcov_dump(void) __attribute__((weak));

void host_end_program(int status)
{
    if (__gcov_dump) {
        __gcov_dump();
    }
    _exit(status);
}

/* HOST_FINDINGS=N in the environment: so many are wanted, of a program that makes them on purpose. */
static void tell_all(void)
{
    const char *text = getenv("HOST_FINDINGS");
    const int wanted = text ? atoi(text) : 0;
    if (host_findings() != wanted) {
        fflush(NULL);
        fprintf(stderr, "host bench: %d findings", host_findings());
        fprintf(stderr, wanted > 0 ? ", and %d were wanted\n" : "\n", wanted);
        host_end_program(EXIT_FINDINGS);
    }
}

/* Registered before main, so that it comes last of all that is done at the end of the program. */
__attribute__((constructor)) static void watch_exit(void)
{
    atexit(tell_all);
}
