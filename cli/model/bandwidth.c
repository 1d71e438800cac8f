/* SPDX-License-Identifier: Apache-2.0
 * A plain read loop over more memory than any cache holds. */
#include "cli/model/bandwidth.h"

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/minmax.h"
#include "cli/report.h"

enum { MOST_THREADS = 256, PASSES = 5 };

static const size_t slice_bytes = (size_t)256 << 20; /* of each thread, at most */
static const size_t block_bytes = (size_t)1 << 30;   /* of all together, at most */

typedef uint64_t vector __attribute__((vector_size(32)));

struct slice {
    const vector *at;
    size_t n;
    vector sum; /* so that the reads are not dropped */
};

static void *read_slice(void *user)
{
    struct slice *slice = user;
    vector a = {0}, b = {0}, c = {0}, d = {0};
    enum {
        AHEAD = 4096 / sizeof(vector)
    }; /* what is asked for while this is read: without it, half the rate */
    for (size_t i = 0; i + 4 <= slice->n; i += 4) {
        __builtin_prefetch(&slice->at[i + AHEAD]);
        __builtin_prefetch(&slice->at[i + AHEAD + 2]);
        a += slice->at[i];
        b += slice->at[i + 1];
        c += slice->at[i + 2];
        d += slice->at[i + 3];
    }
    slice->sum = a + b + c + d;
    return NULL;
}

/* Seconds of one pass of all threads over their slices; 0 when a thread could not start. */
static double read_all(struct slice *slices, int n)
{
    pthread_t threads[MOST_THREADS];
    double begin = clock_seconds();
    int started = 1;
    while (started < n && pthread_create(&threads[started], NULL, read_slice, &slices[started]) == 0) {
        started++;
    }
    read_slice(&slices[0]);
    for (int i = 1; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    return started == n ? clock_seconds() - begin : 0;
}

static double measure(int n_threads)
{
    size_t each = block_bytes / (size_t)n_threads;
    each = min(each, slice_bytes) / (4 * sizeof(vector)) * (4 * sizeof(vector));
    size_t bytes = each * (size_t)n_threads;
    unsigned char *block =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) {
        return 0;
    }
    for (size_t i = 0; i < bytes; i += 512) {
        block[i] = 1; /* a page that was never written is no memory yet */
    }
    struct slice slices[MOST_THREADS];
    for (int i = 0; i < n_threads; i++) {
        slices[i] = (struct slice){
            (const vector *)(const void *)(block + (size_t)i * each), each / sizeof(vector), {0}};
    }
    double best = 0;
    for (int pass = 0; pass < PASSES; pass++) {
        double seconds = read_all(slices, n_threads);
        double rate = seconds > 0 ? 1e-9 * (double)bytes / seconds : 0;
        best = max(rate, best);
    }
    munmap(block, bytes);
    return best;
}

double bandwidth_measure(int n_threads)
{
    cpu_set_t cores;
    if (n_threads == 0) {
        n_threads = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
    }
    n_threads = min(n_threads, MOST_THREADS);
    int ends[2];
    if (pipe(ends) != 0) {
        return 0;
    }
    double result = 0;
    pid_t child = fork();
    if (child == 0) {
        double measured = measure(n_threads);
        _exit(write(ends[1], &measured, sizeof measured) == sizeof measured ? 0 : 1);
    }
    close(ends[1]);
    if (child > 0) {
        if (read(ends[0], &result, sizeof result) != sizeof result) {
            result = 0;
        }
        waitpid(child, NULL, 0);
    }
    close(ends[0]);
    return result;
}
