/* SPDX-License-Identifier: Apache-2.0
 * Streams: operations wait in them, in order. What goes on when, runtime_run.c decides. */
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/host/runtime/runtime.h"

enum { RESTS = 4 }; /* copies and fills, of which one does */

static struct CUstream_st null_streams[HOST_MOST_DEVICES];
struct CUstream_st *host_streams[HOST_MOST_DEVICES];
static int n_streams = HOST_MOST_DEVICES;
static uint64_t n_operations;

__attribute__((constructor)) static void make_null_streams(void)
{
    for (int i = 0; i < HOST_MOST_DEVICES; i++) {
        null_streams[i] = (struct CUstream_st){.device = i, .number = 1 + i, .blocking = true};
        host_streams[i] = &null_streams[i];
    }
}

struct CUstream_st *host_stream_of(cudaStream_t stream, const char *call)
{
    if (!stream) {
        return host_streams[host_device()];
    }
    for (int i = 0; i < HOST_MOST_DEVICES; i++) {
        for (struct CUstream_st *s = host_streams[i]; s; s = s->next) {
            if (s == stream && !s->gone) {
                return s;
            }
        }
    }
    host_finding("%s: %p is not a stream, or is one no longer", call, (void *)stream);
    return NULL;
}

/* ---- The queue ---- */

void host_work_free(struct host_work *work)
{
    free(work->staged);
    if (work->kind == HOST_WORK_KERNEL) {
        free((void *)work->launch.args);
    }
    if (work->kind == HOST_WORK_EVENT && work->event) {
        host_event_dropped(work->event);
    }
    *work = (struct host_work){0};
}

/* A moment of the host, as strict's time: what the host has done so far is known to what it queues now. */
static uint64_t host_moment(void)
{
    struct strict_op *op = strict_op_begin(0, "the host");
    return op ? strict_op_end(op) : 0;
}

cudaError_t host_queue(struct CUstream_st *stream, struct host_work *work, uint64_t graph)
{
    if (stream->capture) {
        return stream->spoiled ? cudaErrorStreamCaptureInvalidated
                               : host_graph_add(stream->capture, work);
    }
    if (stream == host_streams[stream->device] &&
        !graph) { /* work that others captured would wait for it */
        for (struct CUstream_st *s = stream; s; s = s->next) {
            if (s->capture && s->blocking) {
                s->spoiled = true;
                host_work_free(work);
                return cudaErrorStreamCaptureImplicit;
            }
        }
    }
    struct host_operation *op = calloc(1, sizeof *op);
    op->work = *work;
    op->graph = graph;
    op->order = ++n_operations;
    op->host_time = host_moment();
    op->rests =
        (work->kind == HOST_WORK_COPY || work->kind == HOST_WORK_SET) && host_random(RESTS) == 0;
    *(stream->last ? &stream->last->next : &stream->first) = op;
    stream->last = op;
    host_device_some(256);
    return cudaSuccess;
}

void host_operation_free(struct host_operation *op)
{
    host_operation_end_run(op);
    host_work_free(&op->work);
    free(op);
}

void host_streams_drop(void)
{
    for (struct CUstream_st *s = host_streams[host_device()]; s; s = s->next) {
        while (s->first) {
            struct host_operation *op = s->first;
            s->first = op->next;
            host_operation_free(op); /* the thread of a host function keeps what it needs */
        }
        s->last = NULL;
    }
}

/* ---- Calls ---- */

static cudaError_t stream_new(cudaStream_t *stream, unsigned flags)
{
    struct CUstream_st *s = calloc(1, sizeof *s);
    s->device = host_device();
    s->number = ++n_streams;
    s->blocking = !(flags & cudaStreamNonBlocking);
    s->next = host_streams[s->device]->next;
    host_streams[s->device]->next = s;
    *stream = s;
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    cudaError_t result = host_enter(CALL_cudaStreamCreate);
    return host_leave(result ? result : stream_new(stream, 0));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    cudaError_t result = host_enter(CALL_cudaStreamCreateWithFlags);
    if (!result && flags > cudaStreamNonBlocking) {
        result = cudaErrorInvalidValue;
    }
    return host_leave(result ? result : stream_new(stream, flags));
}

/* What is queued still runs; runtime_run.c takes the stream out when that is done. */
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    cudaError_t result = host_enter(CALL_cudaStreamDestroy);
    struct CUstream_st *s = result ? NULL : host_stream_of(stream, "cudaStreamDestroy");
    if (!result && (!s || s == host_streams[s->device])) {
        result = cudaErrorInvalidResourceHandle;
    }
    if (!result && s->capture) {
        host_finding("cudaStreamDestroy: the stream is being captured");
        result = cudaErrorIllegalState;
    }
    if (!result) {
        s->gone = true;
        host_device_some(64);
    }
    return host_leave(result);
}

/* A stream that captures may not be asked. */
static cudaError_t asked(cudaStream_t stream, struct CUstream_st **at, const char *call)
{
    *at = host_stream_of(stream, call);
    if (*at && (*at)->capture) {
        (*at)->spoiled = true;
        return cudaErrorStreamCaptureUnsupported;
    }
    return *at ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    struct CUstream_st *s = NULL;
    cudaError_t result = host_enter(CALL_cudaStreamQuery);
    result = result ? result : asked(stream, &s, "cudaStreamQuery");
    if (!result) {
        host_device_asked(!s->first);
        result = host_device_error() ? host_device_error() : s->first ? cudaErrorNotReady : cudaSuccess;
    }
    if (!result) {
        strict_host_knows(s->number, s->time);
    }
    return host_leave(result);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    struct CUstream_st *s = NULL;
    cudaError_t result = host_enter(CALL_cudaStreamSynchronize);
    result = result ? result : asked(stream, &s, "cudaStreamSynchronize");
    return host_leave(result ? result : host_wait_stream(s, "cudaStreamSynchronize"));
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t body, void *data)
{
    struct host_work w = {.kind = HOST_WORK_CALL, .call = body, .data = data};
    cudaError_t result = host_enter(CALL_cudaLaunchHostFunc);
    struct CUstream_st *s = result ? NULL : host_stream_of(stream, "cudaLaunchHostFunc");
    if (!result && (!s || !body)) {
        result = s ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle;
    }
    return host_leave(result ? result : host_queue(s, &w, 0));
}
