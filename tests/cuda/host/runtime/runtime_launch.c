/* SPDX-License-Identifier: Apache-2.0
 * Launches of kernels: what is known of each kernel, the limits of the card, and what a launch asks for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/host/runtime/runtime.h"

enum { USUAL_SHARED = 48 << 10, MOST_CLUSTER = 8 };

/* What the program has set. */
struct setting {
    const struct host_kernel *kernel;
    int device;
    int most_dynamic; /* shared memory; 0: what there is without asking */
    struct setting *next;
};

static struct setting *settings;
static int n_launches;
static bool asked_early, waited, launched; /* for host_launch_waited */

/* ---- What is known of a kernel ---- */

static struct setting *setting_of(const struct host_kernel *kernel)
{
    struct setting *s = settings;
    while (s && (s->kernel->code != kernel->code || s->device != host_device())) {
        s = s->next;
    }
    if (!s) {
        s = calloc(1, sizeof *s);
        *s = (struct setting){.kernel = kernel, .device = host_device(), .next = settings};
        settings = s;
    }
    return s;
}

static cudaError_t find(const void *code, const struct host_kernel **kernel)
{
    *kernel = host_kernel_find(code);
    return !*kernel             ? cudaErrorInvalidDeviceFunction
           : !host_card()->code ? cudaErrorNoKernelImageForDevice
                                : cudaSuccess;
}

static int most_dynamic(const struct host_kernel *kernel)
{
    int fixed = (int)host_static_shared(kernel), set = setting_of(kernel)->most_dynamic;
    return set > USUAL_SHARED - fixed ? set : USUAL_SHARED - fixed;
}

cudaError_t cudaFuncSetAttribute(const void *code, enum cudaFuncAttribute attribute, int value)
{
    const struct host_kernel *kernel;
    cudaError_t result = host_enter(CALL_cudaFuncSetAttribute);
    result = result ? result : find(code, &kernel);
    if (!result && attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
        if (value < 0 || value + (int)host_static_shared(kernel) > host_card()->block_shared) {
            result = cudaErrorInvalidValue;
        } else {
            setting_of(kernel)->most_dynamic = value;
        }
    } else if (!result && (attribute != cudaFuncAttributePreferredSharedMemoryCarveout || value < -1 ||
                              value > cudaSharedmemCarveoutMaxShared)) {
        result = cudaErrorInvalidValue;
    }
    return host_leave(result);
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *code)
{
    const struct host_kernel *kernel;
    cudaError_t result = host_enter(CALL_cudaFuncGetAttributes);
    result = result ? result : find(code, &kernel);
    if (!result) {
        *attributes = (struct cudaFuncAttributes){
            .sharedSizeBytes = host_static_shared(kernel),
            .maxThreadsPerBlock = HOST_MOST_THREADS,
            .numRegs = 32,
            .ptxVersion = host_card()->code,
            .binaryVersion = host_card()->code,
            .maxDynamicSharedSizeBytes = most_dynamic(kernel),
            .preferredShmemCarveout = cudaSharedmemCarveoutDefault,
        };
    }
    return host_leave(result);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(
    int *n, const void *code, int threads, size_t shared_bytes)
{
    const struct host_kernel *kernel;
    cudaError_t result = host_enter(CALL_cudaOccupancyMaxActiveBlocksPerMultiprocessor);
    result = result ? result : find(code, &kernel);
    if (!result && threads <= 0) {
        result = cudaErrorInvalidValue;
    }
    if (!result) {
        *n = threads > HOST_MOST_THREADS || shared_bytes > (size_t)most_dynamic(kernel)
                 ? 0
                 : host_blocks_per_sm(kernel, threads, shared_bytes);
    }
    return host_leave(result);
}

/* ---- Limits ---- */

static int64_t resident(const struct host_launch *l)
{
    return (int64_t)host_card()->n_sms *
           host_blocks_per_sm(l->kernel, (int)host_volume(l->block), l->shared_bytes);
}

double host_launch_share(const struct host_launch *launch)
{
    int64_t most = resident(launch), n = host_volume(launch->grid);
    return n < most ? (double)n / (double)most : 1;
}

static cudaError_t check_cluster(const struct host_launch *l)
{
    const int64_t n = host_volume(l->cluster);
    if (n == 1) {
        return cudaSuccess;
    }
    if (!host_card()->clusters) {
        host_finding(
            "%s: a launch in clusters, which this GPU does not have", host_kernel_name(l->kernel));
        return cudaErrorNotSupported;
    }
    const bool whole = n > 0 && l->grid.x % l->cluster.x == 0 && l->grid.y % l->cluster.y == 0 &&
                       l->grid.z % l->cluster.z == 0;
    return n > MOST_CLUSTER ? cudaErrorInvalidClusterSize : whole ? cudaSuccess : cudaErrorInvalidValue;
}

static cudaError_t check(const struct host_launch *l)
{
    const struct host_dim g = l->grid, b = l->block;
    if (host_volume(g) == 0 || host_volume(b) == 0 || host_volume(b) > HOST_MOST_THREADS || b.z > 64 ||
        g.x > INT32_MAX || g.y > 65535 || g.z > 65535) {
        return cudaErrorInvalidConfiguration;
    }
    if (l->shared_bytes > (size_t)most_dynamic(l->kernel)) {
        return cudaErrorInvalidValue;
    }
    if (host_blocks_per_sm(l->kernel, (int)host_volume(b), l->shared_bytes) == 0) {
        return cudaErrorLaunchOutOfResources;
    }
    if (l->cooperative && host_volume(g) > resident(l)) {
        return cudaErrorCooperativeLaunchTooLarge;
    }
    if (l->overlaps && !host_card()->overlaps) {
        host_finding("%s: a launch that overlaps the one in front of it, which this GPU cannot",
            host_kernel_name(l->kernel));
        return cudaErrorNotSupported;
    }
    return check_cluster(l);
}

/* ---- The launch ---- */

void host_asked_early(void)
{
    asked_early = true;
}

bool host_launch_waited(void)
{
    const bool first = waited;
    asked_early = waited = launched = false;
    return first;
}

/* Listed, a line each, so that two versions of the program can be compared. */
int host_launch_number(const struct host_launch *l)
{
    static FILE *list;
    static bool known;
    waited = launched ? waited : asked_early;
    launched = true;
    if (!known) {
        const char *name = getenv("HOST_LAUNCHES");
        list = name ? fopen(name, "w") : NULL;
        known = true;
    }
    if (list) {
        fprintf(list, "%s %ux%ux%u blocks of %ux%ux%u, %zu bytes%s%s", host_kernel_name(l->kernel),
            l->grid.x, l->grid.y, l->grid.z, l->block.x, l->block.y, l->block.z, l->shared_bytes,
            l->cooperative ? ", cooperative" : "", l->overlaps ? ", overlaps" : "");
        fprintf(list, host_volume(l->cluster) > 1 ? ", clusters of %u\n" : "\n", l->cluster.x);
        fflush(list);
    }
    return ++n_launches;
}

/* The parameters are copied now: the program may change them when the call returns. */
static void *copy_args(const struct host_kernel *k, void **args)
{
    char *all = aligned_alloc(64, (k->args_bytes + 63) / 64 * 64 + 64);
    for (int i = 0; i < k->n_parameters; i++) {
        memcpy(all + k->parameters[i].at, args[i], k->parameters[i].bytes);
    }
    return all;
}

static cudaError_t launch(struct host_launch *l, void **args, cudaStream_t at, const char *call)
{
    struct CUstream_st *stream = host_stream_of(at, call);
    const bool here = stream && stream->device == host_device();
    cudaError_t result = here ? check(l) : cudaErrorInvalidResourceHandle;
    if (result) {
        return result;
    }
    struct host_work w = {.kind = HOST_WORK_KERNEL, .launch = *l};
    w.launch.args = copy_args(l->kernel, args);
    w.number = stream->capture ? 0 : host_launch_number(l);
    return host_queue(stream, &w, 0);
}

static struct host_dim dim_of(struct dim3 d)
{
    return (struct host_dim){d.x, d.y, d.z};
}

static cudaError_t read_attributes(struct host_launch *l, const cudaLaunchConfig_t *config)
{
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const cudaLaunchAttributeValue *v = &config->attrs[i].val;
        switch (config->attrs[i].id) {
        case cudaLaunchAttributeCooperative:
            l->cooperative = v->cooperative != 0;
            break;
        case cudaLaunchAttributeClusterDimension:
            l->cluster = (struct host_dim){v->clusterDim.x, v->clusterDim.y, v->clusterDim.z};
            break;
        case cudaLaunchAttributeProgrammaticStreamSerialization:
            l->overlaps = v->programmaticStreamSerializationAllowed != 0;
            break;
        default:
            return cudaErrorInvalidValue;
        }
    }
    return cudaSuccess;
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *code, void **args)
{
    cudaError_t result = host_enter(CALL_cudaLaunchKernelExC);
    struct host_launch l = {.cluster = {1, 1, 1}};
    result = result ? result : find(code, &l.kernel);
    l.cluster.x = result ? 1 : host_kernel_cluster(l.kernel);
    result = result ? result : read_attributes(&l, config);
    if (!result) {
        l.grid = dim_of(config->gridDim);
        l.block = dim_of(config->blockDim);
        l.shared_bytes = config->dynamicSmemBytes;
        result = launch(&l, args, config->stream, "cudaLaunchKernelExC");
    }
    return host_leave(result);
}

cudaError_t cudaLaunchCooperativeKernel(const void *code, struct dim3 grid, struct dim3 block,
    void **args, size_t shared_bytes, cudaStream_t stream)
{
    cudaError_t result = host_enter(CALL_cudaLaunchCooperativeKernel);
    struct host_launch l = {.grid = dim_of(grid),
        .block = dim_of(block),
        .cluster = {1, 1, 1},
        .shared_bytes = shared_bytes,
        .cooperative = true};
    result = result ? result : find(code, &l.kernel);
    l.cluster.x = result ? 1 : host_kernel_cluster(l.kernel);
    return host_leave(result ? result : launch(&l, args, stream, "cudaLaunchCooperativeKernel"));
}
