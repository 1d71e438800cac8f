/* SPDX-License-Identifier: Apache-2.0
 * Captured streams and graphs. A graph is what one stream would have done, in its order; it is launched as that. */
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/host/runtime/runtime.h"

struct nodes {
    struct host_work *all;
    size_t n, room;
};

struct CUgraph_st {
    struct nodes nodes;
    int device;
    struct CUgraph_st *next;
};

struct CUgraphExec_st {
    struct nodes nodes;
    int device;
    struct CUgraphExec_st *next;
};

static struct CUgraph_st *graphs;
static struct CUgraphExec_st *execs;
static uint64_t n_graph_launches;

/* ---- Nodes ---- */

static void nodes_add(struct nodes *nodes, const struct host_work *work)
{
    if (nodes->n == nodes->room) {
        nodes->room = nodes->room ? 2 * nodes->room : 16;
        nodes->all = realloc(nodes->all, nodes->room * sizeof *nodes->all);
    }
    nodes->all[nodes->n++] = *work;
}

static void nodes_free(struct nodes *nodes)
{
    for (size_t i = 0; i < nodes->n; i++) {
        host_work_free(&nodes->all[i]);
    }
    free(nodes->all);
    *nodes = (struct nodes){0};
}

static struct host_work work_copy(const struct host_work *from)
{
    struct host_work w = *from;
    if (w.kind == HOST_WORK_KERNEL) {
        size_t bytes = (w.launch.kernel->args_bytes + 63) / 64 * 64 + 64;
        void *args = aligned_alloc(64, bytes);
        memcpy(args, w.launch.args, w.launch.kernel->args_bytes);
        w.launch.args = args;
    }
    return w;
}

static struct nodes nodes_copy(const struct nodes *from)
{
    struct nodes to = {0};
    for (size_t i = 0; i < from->n; i++) {
        struct host_work w = work_copy(&from->all[i]);
        nodes_add(&to, &w);
    }
    return to;
}

cudaError_t host_graph_add(struct CUgraph_st *graph, struct host_work *work)
{
    nodes_add(&graph->nodes, work);
    return cudaSuccess;
}

/* ---- Capture ---- */

bool host_spoil_captures(void)
{
    bool any = false;
    for (int i = 0; i < host_n_devices(); i++) {
        for (struct CUstream_st *s = host_streams[i]; s; s = s->next) {
            if (s->capture && (!s->local || pthread_equal(s->capturer, pthread_self()))) {
                s->spoiled = any = true;
            }
        }
    }
    return any;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    cudaError_t result = host_enter(CALL_cudaStreamBeginCapture);
    struct CUstream_st *s = result ? NULL : host_stream_of(stream, "cudaStreamBeginCapture");
    if (!result && (!s || mode == cudaStreamCaptureModeRelaxed)) {
        result = s ? cudaErrorNotSupported : cudaErrorInvalidResourceHandle;
    }
    if (!result && s == host_streams[s->device]) {
        result = cudaErrorStreamCaptureUnsupported;
    } else if (!result && s->capture) {
        result = cudaErrorIllegalState;
    }
    if (!result) {
        s->capture = calloc(1, sizeof *s->capture);
        s->capture->device = s->device;
        s->capturer = pthread_self();
        s->local = mode == cudaStreamCaptureModeThreadLocal;
        s->spoiled = false;
    }
    return host_leave(result);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    cudaError_t result = host_enter(CALL_cudaStreamEndCapture);
    struct CUstream_st *s = host_stream_of(stream, "cudaStreamEndCapture");
    *graph = NULL;
    if (!s || !s->capture) {
        return host_leave(result ? result : s ? cudaErrorIllegalState : cudaErrorInvalidResourceHandle);
    }
    if (!result && !pthread_equal(s->capturer, pthread_self())) {
        return host_leave(cudaErrorStreamCaptureWrongThread);
    }
    result = result ? result : s->spoiled ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
    if (result) { /* the capture has ended all the same */
        nodes_free(&s->capture->nodes);
        free(s->capture);
    } else {
        s->capture->next = graphs;
        graphs = *graph = s->capture;
    }
    s->capture = NULL;
    return host_leave(result);
}

/* ---- Graphs ---- */

static struct CUgraph_st **graph_at(cudaGraph_t graph, const char *call)
{
    struct CUgraph_st **at = &graphs;
    while (*at && *at != graph) {
        at = &(*at)->next;
    }
    if (!*at) {
        host_finding("%s: %p is not a graph, or is one no longer", call, (void *)graph);
    }
    return *at ? at : NULL;
}

static struct CUgraphExec_st **exec_at(cudaGraphExec_t exec, const char *call)
{
    struct CUgraphExec_st **at = &execs;
    while (*at && *at != exec) {
        at = &(*at)->next;
    }
    if (!*at) {
        host_finding("%s: %p is not an instance of a graph, or is one no longer", call, (void *)exec);
    }
    return *at ? at : NULL;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    cudaError_t result = host_enter(CALL_cudaGraphInstantiate);
    *exec = NULL;
    if (!result && (flags != 0 || !graph_at(graph, "cudaGraphInstantiate"))) {
        result = cudaErrorInvalidValue;
    }
    if (!result) {
        struct CUgraphExec_st *e = calloc(1, sizeof *e);
        e->nodes = nodes_copy(&graph->nodes);
        e->device = graph->device;
        e->next = execs;
        execs = *exec = e;
    }
    return host_leave(result);
}

/* Kernels of a graph overlap each other as they were captured, but none what is in front of the graph or behind it.
 * */
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    cudaError_t result = host_enter(CALL_cudaGraphLaunch);
    struct CUstream_st *s = result ? NULL : host_stream_of(stream, "cudaGraphLaunch");
    if (!result && (!s || !exec_at(exec, "cudaGraphLaunch"))) {
        result = s ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle;
    }
    if (!result && exec->device != s->device) {
        host_finding(
            "cudaGraphLaunch: a graph of device %d in a stream of device %d", exec->device, s->device);
        result = cudaErrorInvalidValue;
    }
    if (!result && s->capture) {
        host_finding("cudaGraphLaunch: the bench has no graphs in graphs");
        result = cudaErrorNotSupported;
    }
    const uint64_t number = ++n_graph_launches;
    for (size_t i = 0; !result && i < exec->nodes.n; i++) {
        struct host_work w = work_copy(&exec->nodes.all[i]);
        w.number = w.kind == HOST_WORK_KERNEL ? host_launch_number(&w.launch) : 0;
        result = host_queue(s, &w, number);
    }
    return host_leave(result);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    cudaError_t result = host_enter(CALL_cudaGraphExecDestroy);
    struct CUgraphExec_st **at = result ? NULL : exec_at(exec, "cudaGraphExecDestroy");
    if (at) { /* what of it was launched has its own copies */
        *at = exec->next;
        nodes_free(&exec->nodes);
        free(exec);
    }
    return host_leave(result ? result : at ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    cudaError_t result = host_enter(CALL_cudaGraphDestroy);
    struct CUgraph_st **at = result ? NULL : graph_at(graph, "cudaGraphDestroy");
    if (at) {
        *at = graph->next;
        nodes_free(&graph->nodes);
        free(graph);
    }
    return host_leave(result ? result : at ? cudaSuccess : cudaErrorInvalidValue);
}
