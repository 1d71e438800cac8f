/* SPDX-License-Identifier: Apache-2.0
 * Events: each stands for its latest record. One that is destroyed while a record waits in a stream lives on until
 * that has been done. */
#include <stdlib.h>

#include "tests/cuda/host/runtime/runtime.h"

struct CUevent_st {
    int device;
    bool timed, gone, captured;
    uint64_t latest, done; /* records; 0: none yet */
    int n_waiting;         /* records in streams */
    int stream;            /* of the last one that was done, with strict's time there */
    uint64_t time;
    uint64_t device_time; /* slices */
    struct CUevent_st *next;
};

/* A slice counts as so many milliseconds. */
static const float SLICE_MS = 1e-5F;

static struct CUevent_st *events;
static uint64_t n_records;

static struct CUevent_st *event_of(cudaEvent_t event, const char *call)
{
    for (struct CUevent_st *e = events; e; e = e->next) {
        if (e == event && !e->gone) {
            return e;
        }
    }
    host_finding("%s: %p is not an event, or is one no longer", call, (void *)event);
    return NULL;
}

static void free_if_gone(struct CUevent_st *event)
{
    if (!event->gone || event->n_waiting > 0) {
        return;
    }
    struct CUevent_st **at = &events;
    while (*at != event) {
        at = &(*at)->next;
    }
    *at = event->next;
    free(event);
}

void host_event_recorded(
    struct CUevent_st *event, uint64_t record, int stream, uint64_t time, uint64_t device_time)
{
    if (record == event->latest) {
        event->done = record;
        event->stream = stream;
        event->time = time;
        event->device_time = device_time;
    }
}

void host_event_dropped(struct CUevent_st *event)
{
    event->n_waiting--;
    free_if_gone(event);
}

static cudaError_t event_new(cudaEvent_t *event, unsigned flags)
{
    struct CUevent_st *e = calloc(1, sizeof *e);
    e->device = host_device();
    e->timed = !(flags & cudaEventDisableTiming);
    e->next = events;
    events = e;
    *event = e;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    cudaError_t result = host_enter(CALL_cudaEventCreate);
    return host_leave(result ? result : event_new(event, 0));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    cudaError_t result = host_enter(CALL_cudaEventCreateWithFlags);
    if (!result && (flags & ~(cudaEventBlockingSync | cudaEventDisableTiming))) {
        result = cudaErrorInvalidValue;
    }
    return host_leave(result ? result : event_new(event, flags));
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    cudaError_t result = host_enter(CALL_cudaEventDestroy);
    struct CUevent_st *e = result ? NULL : event_of(event, "cudaEventDestroy");
    if (e) {
        e->gone = true;
        free_if_gone(e);
        host_device_some(64);
    }
    return host_leave(result ? result : e ? cudaSuccess : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    cudaError_t result = host_enter(CALL_cudaEventRecord);
    struct CUevent_st *e = result ? NULL : event_of(event, "cudaEventRecord");
    struct CUstream_st *s = e ? host_stream_of(stream, "cudaEventRecord") : NULL;
    if (!result && (!s || s->device != e->device)) {
        result = cudaErrorInvalidResourceHandle;
    }
    if (!result) {
        e->captured =
            s->capture != NULL; /* then it stands for a place in the graph, and nothing is queued */
        if (!e->captured) {
            struct host_work w = {.kind = HOST_WORK_EVENT, .event = e, .record = ++n_records};
            e->latest = w.record;
            e->n_waiting++;
            result = host_queue(s, &w, 0);
        }
    }
    return host_leave(result);
}

static bool event_done(const void *what)
{
    const struct CUevent_st *e = what;
    return e->done == e->latest;
}

static cudaError_t asked(cudaEvent_t event, struct CUevent_st **at, const char *call)
{
    *at = event_of(event, call);
    if (*at && (*at)->captured) {
        host_spoil_captures();
        return cudaErrorCapturedEvent;
    }
    return *at ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

static void know(const struct CUevent_st *e)
{
    if (e->done) {
        strict_host_knows(e->stream, e->time);
    }
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    struct CUevent_st *e = NULL;
    cudaError_t result = host_enter(CALL_cudaEventQuery);
    result = result ? result : asked(event, &e, "cudaEventQuery");
    if (!result) {
        host_device_asked(event_done(e));
        result = host_device_error() ? host_device_error()
                 : event_done(e)     ? cudaSuccess
                                     : cudaErrorNotReady;
    }
    if (!result) {
        know(e);
    }
    return host_leave(result);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    struct CUevent_st *e = NULL;
    cudaError_t result = host_enter(CALL_cudaEventSynchronize);
    result = result ? result : asked(event, &e, "cudaEventSynchronize");
    result = result ? result : host_wait(event_done, e, "cudaEventSynchronize");
    if (!result) {
        know(e);
    }
    return host_leave(result);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end)
{
    cudaError_t result = host_enter(CALL_cudaEventElapsedTime);
    struct CUevent_st *a = result ? NULL : event_of(begin, "cudaEventElapsedTime");
    struct CUevent_st *b = a ? event_of(end, "cudaEventElapsedTime") : NULL;
    if (!result &&
        (!b || a->device != b->device || !a->timed || !b->timed || !a->latest || !b->latest)) {
        result = cudaErrorInvalidResourceHandle;
    } else if (!result) {
        host_device_some(64);
        if (!event_done(a) || !event_done(b)) {
            result = cudaErrorNotReady;
        } else {
            *milliseconds = SLICE_MS * ((float)b->device_time - (float)a->device_time);
        }
    }
    return host_leave(result);
}
