/* SPDX-License-Identifier: Apache-2.0
 * Every instruction that kernels use by a name of ours, and what CUDA C has by itself, each against a few lines of
 * plain C. The same source runs on a GPU and on the host bench (tests/cuda/host), where it says whether the bench
 * does what a GPU does: the sums that are printed are the same.
 *
 *   check_primitives [WORD]    only those whose name has the word in it
 *
 * Words of memory before, words after; a kernel is run three times. Exits with 1 if one fails. */
#include "cuda/device/arch_read.h"
#include "tests/cuda/primitives/primitives_copy.cuh"
#include "tests/cuda/primitives/primitives_matrix.cuh"
#include "tests/cuda/primitives/primitives_order.cuh"
#include "tests/cuda/primitives/primitives_plain.cuh"
#include "tests/cuda/primitives/primitives_warp.cuh"

static const struct check checks[] = {
    PLAIN_CHECKS, WARP_CHECKS, MATRIX_CHECKS, COPY_CHECKS, ORDER_CHECKS};

/* Not in functions: there the bench takes static variables for shared memory. */
static uint32_t in[N_WORDS], want[N_WORDS], got[N_WORDS];

static void must(cudaError_t result, const char *what)
{
    if (result != cudaSuccess) {
        printf("FATAL %s: %s\n", what, cudaGetErrorString(result));
        exit(2);
    }
}

static cudaError_t start(const struct check *c, const struct words &w)
{
    cudaLaunchAttribute attribute;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)c->blocks);
    config.blockDim = dim3((unsigned)c->threads);
    config.dynamicSmemBytes = (size_t)c->shared_bytes;
    config.attrs = &attribute;
    if (c->cluster) {
        attribute.id = cudaLaunchAttributeClusterDimension;
        attribute.val.clusterDim.x = (unsigned)c->cluster;
        attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
        config.numAttrs = 1;
    } else if (c->together) {
        attribute.id = cudaLaunchAttributeCooperative;
        attribute.val.cooperative = 1;
        config.numAttrs = 1;
    }
    return cudaLaunchKernelEx(&config, c->kernel, w);
}

/* The first word that is not as it should be; N_WORDS: all are. */
static int first_fault(const struct check *c)
{
    for (int i = 0; i < N_WORDS; i++) {
        if (want[i] == got[i]) {
            continue;
        }
        const float a = float_of(want[i]), b = float_of(got[i]);
        if (c->about == 0 || !(fabsf(a - b) <= c->about * fmaxf(1, fabsf(a)))) {
            return i;
        }
    }
    return N_WORDS;
}

static uint64_t hash_of(const uint32_t *words)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a, by words */
    for (int i = 0; i < N_WORDS; i++) {
        h = (h ^ words[i]) * 0x100000001b3u;
    }
    return h;
}

/* Words of a sequence that is the same everywhere. */
static void fill(uint32_t *words)
{
    uint64_t x = 88172645463325252u;
    for (int i = 0; i < N_WORDS; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        words[i] = (uint32_t)(x >> 16);
    }
}

static bool passes(const struct check *c, const struct words &w)
{
    for (int i = 0; i < N_WORDS; i++) {
        want[i] = UNTOUCHED;
    }
    c->expect(in, want);
    for (int run = 0; run < 3; run++) {
        for (int i = 0; i < N_WORDS; i++) {
            got[i] = UNTOUCHED;
        }
        must(cudaMemcpy(w.out, got, sizeof got, cudaMemcpyHostToDevice), "copy to the device");
        must(cudaMemset(w.shared, 0, sizeof got), "memset");
        must(start(c, w), c->name);
        must(cudaDeviceSynchronize(), c->name);
        must(cudaMemcpy(got, w.out, sizeof got, cudaMemcpyDeviceToHost), "copy from the device");
        const int at = first_fault(c);
        if (at < N_WORDS) {
            printf("FAIL %s: word %d is %08x (%g), not %08x (%g)\n", c->name, at, got[at],
                (double)float_of(got[at]), want[at], (double)float_of(want[at]));
            return false;
        }
    }
    if (c->about > 0) {
        printf("ok   %-20s about, to %g\n", c->name, (double)c->about);
    } else {
        printf("ok   %-20s %016llx\n", c->name, (unsigned long long)hash_of(got));
    }
    return true;
}

int main(int argc, char **argv)
{
    int passed = 0, failed = 0, without = 0;
    struct cudaDeviceProp properties;
    struct cuda_arch arch;
    struct words w;
    uint32_t *device_in;
    setvbuf(stdout, NULL, _IOLBF, 0);
    must(cudaGetDeviceProperties(&properties, 0), "no GPU");
    must(cuda_arch_read(&arch, &properties, NULL), "no code for it");
    must(cudaMalloc(&device_in, sizeof in), "cudaMalloc");
    must(cudaMalloc(&w.out, sizeof in), "cudaMalloc");
    must(cudaMalloc(&w.shared, sizeof in), "cudaMalloc");
    fill(in);
    must(cudaMemcpy(device_in, in, sizeof in, cudaMemcpyHostToDevice), "copy to the device");
    w.in = device_in;
    for (const struct check &c : checks) {
        if (argc > 1 && !strstr(c.name, argv[1])) {
            continue;
        }
        if ((c.needs == FROM_90 && !arch.bulk_copies) || (c.needs == ONLY_90 && !arch.wgmma)) {
            without++;
            continue;
        }
        (passes(&c, w) ? passed : failed)++;
    }
    printf("%d passed, %d failed, %d this GPU does not have\n", passed, failed, without);
    return failed > 0 || passed == 0;
}
