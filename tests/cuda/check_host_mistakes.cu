/* SPDX-License-Identifier: Apache-2.0
 * Kernels with one mistake each in their use of an instruction, which the host bench (tests/cuda/host) must find:
 * some it tells, in words that are looked for; others make numbers wrong in one of many launches, which differ in
 * what a GPU leaves open. Each runs in a process of its own, as a finding ends a program. Built for the bench only
 * (CUDA=host). Ends with `N passed, N failed`. Usage: check_host_mistakes [WORD]    only those whose name has the
 * word in it */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/lib/ptx_copy.cuh"
#include "cuda/lib/ptx_matrix.cuh"
#include "cuda/lib/ptx_order.cuh"

namespace {

enum { WORDS = 4096, LAUNCHES = 40, COUNT_IS = 0x1234 };

struct memory {
    uint32_t *words;         /* 0 at the beginning of a launch */
    const uint32_t *numbers; /* each COUNT_IS */
};

/* ---- Products of four warps ---- */

__device__ uint64_t columns()
{
    PTX_DYNAMIC_SHARED(uint16_t, b, 1024);
    for (int i = (int)threadIdx.x; i < 16 * 16; i += 128) {
        b[i] = 0x3f80; /* 1 */
    }
    ptx_copies_follow();
    __syncthreads();
    return ptx_group_operand(b, 256);
}

const uint4 ONES = {0x3f803f80, 0x3f803f80, 0x3f803f80, 0x3f803f80};

__global__ void no_fence(struct memory)
{
    float d[8];
    const uint64_t b = columns();
    ptx_group_mma(d, ONES, b, 0);
}

__global__ void no_commit(struct memory)
{
    float d[8];
    const uint64_t b = columns();
    ptx_group_begin();
    ptx_group_mma(d, ONES, b, 0);
    ptx_group_wait(d);
}

__global__ void no_wait(struct memory)
{
    float d[8];
    const uint64_t b = columns();
    for (int i = 0; i < 2; i++) {
        ptx_group_begin();
        ptx_group_mma(d, ONES, b, 0);
        ptx_group_end();
    }
}

__global__ void outside(struct memory)
{
    float d[8];
    const uint64_t b = columns();
    ptx_group_begin();
    ptx_group_mma(d, ONES, b + 32768 / 16, 0);
}

/* The columns are overwritten while the product may be under way. */
__global__ void overwritten(struct memory m)
{
    PTX_DYNAMIC_SHARED(uint16_t, shared, 1024);
    float d[8];
    const uint64_t b = columns();
    ptx_group_begin();
    ptx_group_mma(d, ONES, b, 0);
    ptx_group_end();
    __syncthreads();
    shared[threadIdx.x] = 0;
    __syncthreads();
    ptx_group_wait(d);
    m.words[threadIdx.x] = d[0] == 16 && d[7] == 16;
}

/* ---- Barriers ---- */

__global__ void not_begun(struct memory)
{
    __shared__ uint64_t barrier;
    ptx_arrive(&barrier);
}

__global__ void too_many(struct memory)
{
    __shared__ uint64_t barrier;
    if (threadIdx.x == 0) {
        ptx_barrier_begin(&barrier, 2);
        ptx_barriers_ready();
        ptx_expect(ptx_shared_at(&barrier), 64); /* nobody brings them: the phase does not end */
        ptx_arrive(&barrier);
        ptx_arrive(&barrier);
    }
}

__global__ void ran_over(struct memory)
{
    __shared__ uint64_t barrier;
    if (threadIdx.x == 0) {
        ptx_barrier_begin(&barrier, 1);
        ptx_barriers_ready();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 0; i < 100; i++) {
            __nanosleep(1);
        }
        ptx_arrive(&barrier);
        ptx_arrive(&barrier);
    } else {
        ptx_wait(&barrier, 0);
    }
}

/* Somebody who would give up, and has no reason to. */
__global__ void ran_over_in_time(struct memory)
{
    __shared__ uint64_t barrier;
    __shared__ uint32_t over;
    if (threadIdx.x == 0) {
        over = 0;
        ptx_barrier_begin(&barrier, 1);
        ptx_barriers_ready();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 0; i < 100; i++) {
            __nanosleep(1);
        }
        ptx_arrive(&barrier);
        ptx_arrive(&barrier);
    } else {
        while (!ptx_has_ended_unless(&barrier, 0, &over) && *(volatile uint32_t *)&over == 0) {
        }
    }
}

__global__ void too_many_bytes(struct memory)
{
    __shared__ uint64_t barrier;
    if (threadIdx.x == 0) {
        ptx_barrier_begin(&barrier, 8);
        ptx_barriers_ready();
        ptx_expect(ptx_shared_at(&barrier), 1 << 19);
        ptx_expect(ptx_shared_at(&barrier), 1 << 19);
    }
}

/* ---- Copies ---- */

__device__ void bring(uint32_t *to, const uint32_t *from, uint32_t bytes, uint64_t *barrier, bool ready)
{
    ptx_barrier_begin(barrier, 1);
    if (ready) {
        ptx_barriers_ready();
    }
    ptx_expect(ptx_shared_at(barrier), bytes);
    ptx_bulk_copy(ptx_shared_at(to), from, bytes, ptx_shared_at(barrier));
}

__global__ void not_ready(struct memory m)
{
    __shared__ __align__(16) uint32_t got[32];
    __shared__ uint64_t barrier;
    if (threadIdx.x == 0) {
        bring(got, m.numbers, sizeof got, &barrier, false);
        ptx_wait(&barrier, 0);
    }
}

__global__ void small_copy(struct memory m)
{
    __shared__ __align__(16) uint32_t got[32];
    __shared__ uint64_t barrier;
    if (threadIdx.x == 0) {
        bring(got, m.numbers, 8, &barrier, true);
    }
}

__global__ void bulk_not_awaited(struct memory m)
{
    __shared__ __align__(16) uint32_t got[32];
    __shared__ uint64_t barrier;
    if (threadIdx.x < 32) {
        got[threadIdx.x] = 0;
    }
    ptx_copies_follow();
    __syncthreads();
    if (threadIdx.x == 0) {
        bring(got, m.numbers, sizeof got, &barrier, true);
    }
    __syncthreads();
    m.words[threadIdx.x] = got[threadIdx.x % 32] == COUNT_IS;
    ptx_wait(&barrier, 0);
}

/* The block has gone when the copy comes. */
__global__ void bulk_left(struct memory m)
{
    __shared__ __align__(16) uint32_t got[32];
    __shared__ uint64_t barrier;
    if (threadIdx.x == 0) {
        bring(got, m.numbers, sizeof got, &barrier, true);
    }
}

/* What another block wrote, and said with a release, is copied with no proxy fence behind the acquire. */
__global__ void bulk_not_seen(struct memory m)
{
    __shared__ __align__(16) uint32_t got[32];
    __shared__ uint64_t barrier;
    if (threadIdx.x > 0) {
        return;
    }
    if (blockIdx.x == 0) {
        m.words[1024] = COUNT_IS;
        ptx_add_last(m.words + 2048);
        return;
    }
    while (ptx_load_first(m.words + 2048) == 0) {
    }
    bring(got, m.words + 1024, sizeof got, &barrier, true);
    ptx_wait(&barrier, 0);
}

/* A stage that is free again while its loads may be under way. */
__global__ void stage_left(struct memory m)
{
    __shared__ __align__(16) uint32_t got[32];
    __shared__ uint64_t full, empty;
    if (threadIdx.x > 0) {
        return;
    }
    ptx_barrier_begin(&empty, 1);
    bring(got, m.numbers, sizeof got, &full, true);
    ptx_wait(&full, 0);
    m.words[0] = ptx_load_stage(got).x;
    ptx_arrive(&empty);
}

__global__ void odd_copy(struct memory m)
{
    __shared__ __align__(16) uint32_t got[32];
    ptx_copy(got, m.numbers + 1, false);
}

/* One group fewer is waited for than there should be. */
__global__ void copy_not_awaited(struct memory m)
{
    __shared__ __align__(16) uint32_t got[128][4];
    got[threadIdx.x][0] = 0;
    ptx_copy(got[threadIdx.x], m.numbers, false);
    ptx_copy_end();
    ptx_copy_wait<1>();
    m.words[threadIdx.x] = got[threadIdx.x][0] == COUNT_IS;
    ptx_copy_wait<0>();
}

/* What is not waited for was asked for long before. */
__global__ void copy_long_before(struct memory m)
{
    __shared__ __align__(16) uint32_t got[128][4];
    got[threadIdx.x][0] = 0;
    ptx_copy(got[threadIdx.x], m.numbers, false);
    ptx_copy_end();
    for (int i = 0; i < 1000; i++) {
        __syncthreads();
    }
    m.words[threadIdx.x] = got[threadIdx.x][0] == COUNT_IS;
    ptx_copy_wait<0>();
}

/* ---- Words ---- */

__global__ void odd_load(struct memory m)
{
    uint4 v = {};
    ptx_load_four_if(1, m.words + 1, v);
}

__global__ void shared_store(struct memory)
{
    __shared__ uint32_t word;
    ptx_store(&word, 1);
}

__global__ void from_nobody(struct memory m)
{
    if (threadIdx.x < 16) {
        m.words[threadIdx.x] = __shfl_sync(0xffffu, threadIdx.x, 20);
    }
}

/* Data, then the sign that they are there, with no order between the two. */
__global__ void no_order(struct memory m)
{
    if (blockIdx.x == 0) {
        ptx_store(m.words + 1024 + threadIdx.x, COUNT_IS);
        ptx_store(m.words + 2048 + threadIdx.x, 1);
        while (ptx_load(m.words + 3072) == 0) { /* stores of a thread that has ended are seen */
        }
    } else {
        while (ptx_load(m.words + 2048 + threadIdx.x) == 0) {
        }
        m.words[threadIdx.x] = ptx_load(m.words + 1024 + threadIdx.x) == COUNT_IS;
        ptx_store(m.words + 3072, 1);
    }
}

/* ---- Warps ---- */

/* Warps that have little to do are not through with it because another one has done much. */
__global__ void no_barrier(struct memory m)
{
    enum { LITTLE = 4, MUCH = 80 };
    __shared__ uint32_t got[128];
    const int turns = threadIdx.x < 32 ? MUCH : LITTLE;
    uint32_t word = COUNT_IS;
    got[threadIdx.x] = 0;
    __syncthreads();
    for (int i = 0; i < turns; i++) {
        word = __shfl_xor_sync(0xffffffffu, word, 1);
    }
    got[threadIdx.x] = word;
    if (threadIdx.x < 32) {
        for (uint32_t i = threadIdx.x; i < 128; i += 32) {
            m.words[i] = got[i] == COUNT_IS;
        }
    }
}

/* ---- All of them ---- */

struct mistake {
    const char *name;
    void (*kernel)(struct memory);
    const char *words; /* of the finding; NULL: numbers are wrong, a word of the first 128 is not 1 */
    const char *card;
    int blocks;
};

#define MISTAKE(name, words, card, blocks)                                                             \
    {                                                                                                  \
#name, name, words, card, blocks                                                               \
    }
const struct mistake mistakes[] = {
    MISTAKE(no_fence, "wgmma without wgmma.fence", "h100", 1),
    MISTAKE(no_commit, "are in no group", "h100", 1),
    MISTAKE(no_wait, "were not waited for", "h100", 1),
    MISTAKE(outside, "behind the dynamic shared memory", "h100", 1),
    MISTAKE(overwritten, NULL, "h100", 1),
    MISTAKE(no_fence, "wgmma: a NVIDIA GeForce RTX 5090 does not have it", "5090", 1),
    MISTAKE(not_begun, "no barrier was begun", "h100", 1),
    MISTAKE(too_many, "has had all of its 2 arrivals", "h100", 1),
    MISTAKE(ran_over, "ran over", "h100", 1),
    MISTAKE(ran_over_in_time, "ran over", "h100", 1),
    MISTAKE(too_many_bytes, "bytes are expected at once", "h100", 1),
    MISTAKE(not_ready, "no fence.mbarrier_init", "h100", 1),
    MISTAKE(small_copy, "cp.async.bulk of 8 bytes", "h100", 1),
    MISTAKE(not_ready, "does not have it", "4090", 1),
    MISTAKE(bulk_not_awaited, NULL, "h100", 1),
    MISTAKE(odd_copy, "not multiples of 16", "a100", 1),
    MISTAKE(copy_not_awaited, NULL, "a100", 1),
    MISTAKE(odd_load, "ld.relaxed.gpu.global of 16 bytes", "a100", 1),
    MISTAKE(shared_store, "in shared memory", "a100", 1),
    MISTAKE(from_nobody, "not of the mask", "a100", 1),
    MISTAKE(no_order, NULL, "a100", 2),
    MISTAKE(bulk_left, "the block ended before they came", "h100", 1),
    MISTAKE(bulk_not_seen, "no fence.proxy.async stands behind", "h100", 2),
    MISTAKE(stage_left, "has read of a stage", "h100", 1),
    MISTAKE(copy_long_before, NULL, "a100", 1),
    MISTAKE(no_barrier, NULL, "a100", 1),
};

cudaError_t start(const struct mistake &m, struct memory memory)
{
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t config = {};
    attribute.id = cudaLaunchAttributeCooperative;
    attribute.val.cooperative = 1;
    config.gridDim = dim3((unsigned)m.blocks);
    config.blockDim = dim3(128);
    config.dynamicSmemBytes = 16384;
    config.attrs = &attribute;
    config.numAttrs = 1;
    cudaError_t result = cudaMemset(memory.words, 0, WORDS * 4);
    result = result ? result : cudaLaunchKernelEx(&config, m.kernel, memory);
    return result ? result : cudaDeviceSynchronize();
}

/* In a process of its own: what it finds goes to its standard error. */
void make(const struct mistake &m)
{
    uint32_t words[WORDS];
    uint32_t *numbers = nullptr;
    struct memory memory = {};
    setenv("HOST_CARD", m.card, 1);
    for (uint32_t &word : words) {
        word = COUNT_IS;
    }
    cudaMalloc(&memory.words, sizeof words);
    cudaMalloc(&numbers, sizeof words);
    cudaMemcpy(numbers, words, sizeof words, cudaMemcpyHostToDevice);
    memory.numbers = numbers;
    for (int i = 0; i < LAUNCHES; i++) {
        if (start(m, memory) || cudaMemcpy(words, memory.words, sizeof words, cudaMemcpyDeviceToHost)) {
            return;
        }
        for (int k = 0; k < 128 && !m.words; k++) {
            if (words[k] != 1) {
                fprintf(stderr, "wrong numbers\n");
                return;
            }
        }
    }
}

bool shows(const struct mistake &m)
{
    const char *want = m.words ? m.words : "wrong numbers";
    char said[8192];
    size_t n = 0;
    int ends[2];
    if (pipe(ends)) {
        return false;
    }
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        make(m);
        exit(0);
    }
    close(ends[1]);
    for (ssize_t got;
         n < sizeof said - 1 && (got = read(ends[0], said + n, sizeof said - 1 - n)) > 0;) {
        n += (size_t)got;
    }
    said[n] = 0;
    close(ends[0]);
    waitpid(child, NULL, 0);
    const bool good =
        strstr(said, want) || (!m.words && strstr(said, "race in")); /* if it is watched */
    printf("%s %s on %s: %s\n", good ? "ok  " : "FAIL", m.name, m.card, want);
    if (!good) {
        printf("     it said: %s\n", said);
    }
    return good;
}

} // namespace

int main(int argc, char **argv)
{
    int passed = 0, failed = 0;
    for (const struct mistake &m : mistakes) {
        if (argc < 2 || strstr(m.name, argv[1])) {
            (shows(m) ? passed : failed)++;
        }
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0 || passed == 0;
}
