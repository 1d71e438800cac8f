/* SPDX-License-Identifier: Apache-2.0
 * What each kind of operation does when it is its turn: begins, goes on, ends. */
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/host/runtime/findings.h"
#include "tests/cuda/host/runtime/runtime.h"

enum { SLICE_BYTES = 4096 }; /* that a copy or a fill does in a slice */

extern _Thread_local bool host_in_call;

/* ---- Host functions ---- */

/* The one thing that has a thread of its own: the program's code, which may sleep while the program goes on. */
struct host_call_thread {
    pthread_t id;
    cudaHostFn_t call;
    void *data;
    bool ended;
};

static void *run_call(void *at)
{
    struct host_call_thread *t = at;
    host_in_call = true;
    t->call(t->data);
    __atomic_store_n(&t->ended, true, __ATOMIC_RELEASE);
    return NULL;
}

static void begin_call(struct host_operation *op)
{
    struct host_call_thread *t = calloc(1, sizeof *t);
    t->call = op->work.call;
    t->data = op->work.data;
    if (pthread_create(&t->id, NULL, run_call, t) != 0) {
        abort();
    }
    pthread_detach(t->id);
    op->thread = t;
}

static enum host_run_state step_call(struct host_operation *op)
{
    if (!__atomic_load_n(&op->thread->ended, __ATOMIC_ACQUIRE)) {
        return HOST_STUCK; /* for now */
    }
    free(op->thread);
    op->thread = NULL;
    return HOST_DONE;
}

/* ---- Copies and fills ---- */

static void tell_strict(struct host_operation *op)
{
    const struct host_work *w = &op->work;
    for (size_t i = 0; i < w->rows; i++) {
        if (w->kind == HOST_WORK_COPY && host_area_of(w->from)) {
            strict_op_read(op->op, w->from + i * w->from_pitch, w->bytes);
        }
        if (host_area_of(w->to)) {
            strict_op_write(op->op, w->to + i * w->to_pitch, w->bytes);
        }
    }
}

/* From where it was interrupted, some bytes further. */
static enum host_run_state step_copy(struct host_operation *op, int slices)
{
    const struct host_work *w = &op->work;
    size_t left = (size_t)slices * SLICE_BYTES;
    if (w->kind == HOST_WORK_SET && w->rows == 1 && w->value == 0) {
        host_fill(w->to, 0, w->bytes); /* at once: large ones cost nothing so */
        return HOST_DONE;
    }
    while (left > 0 && op->done < w->bytes * w->rows) {
        size_t row = op->done / w->bytes, at = op->done % w->bytes;
        size_t n = w->bytes - at < left ? w->bytes - at : left;
        char *to = w->to + row * w->to_pitch + at;
        if (w->kind == HOST_WORK_COPY) {
            memmove(to, w->from + row * w->from_pitch + at, n);
        } else {
            memset(to, w->value, n);
        }
        op->done += n;
        left -= n;
    }
    return op->done < w->bytes * w->rows ? HOST_RUNS : HOST_DONE;
}

/* ---- Kernels ---- */

static void begin_kernel(struct host_operation *op)
{
    struct host_launch *launch = &op->work.launch;
    enum fault_launch fault = fault_of_launch();
    if (fault != FAULT_NONE) {
        op->hangs = fault == FAULT_HANGS;
        return;
    }
    launch->seed = host_seed() * 0x9e3779b97f4a7c15u + (uint64_t)op->work.number;
    op->share = host_launch_share(launch);
    op->watched = launch->watched = strict_grid_begin(op->op, host_kernel_name(launch->kernel),
        launch->grid, (int)host_volume(launch->block), launch->cluster);
    finding_launch(launch, op->work.number);
    op->run = host_run_begin(launch);
    finding_launch(NULL, 0);
    if (!op->run) {
        host_device_lost(cudaErrorLaunchFailure);
    }
}

void host_operation_end_run(struct host_operation *op)
{
    if (op->run) {
        host_run_end(op->run);
        strict_grid_end(op->watched);
        op->run = NULL;
    }
}

static enum host_run_state step_kernel(struct host_operation *op, int slices, bool earlier_done)
{
    const int before = host_findings();
    if (!op->run) {
        return HOST_DONE; /* lost */
    }
    finding_launch(&op->work.launch, op->work.number);
    enum host_run_state state = host_run_step(op->run, slices, earlier_done);
    if (state == HOST_DONE || state == HOST_FAILED) {
        host_operation_end_run(op);
    }
    finding_launch(NULL, 0);
    return host_findings() > before ? HOST_FAILED : state;
}

/* ---- All ---- */

__attribute__((unused)) static const char *name_of(const struct host_work *w)
{
    switch (w->kind) {
    case HOST_WORK_KERNEL:
        return host_kernel_name(w->launch.kernel);
    case HOST_WORK_COPY:
        return "a copy";
    case HOST_WORK_SET:
        return "a fill";
    case HOST_WORK_CALL:
        return "a host function";
    default:
        return "an event";
    }
}

/* What it comes after beside its own stream: the host until it was queued, and the NULL stream or what that waits
 * for. */
static void begin_strict(struct CUstream_st *stream, struct host_operation *op)
{
    op->op = strict_op_begin(stream->number, name_of(&op->work));
    strict_op_after(op->op, 0, op->host_time);
    const struct CUstream_st *null = host_streams[stream->device];
    for (const struct CUstream_st *s = null; s && stream->blocking; s = s->next) {
        if (s != stream && s->blocking && (s == null || stream == null)) {
            strict_op_after(op->op, s->number, s->time);
        }
    }
}

void host_operation_begin(struct CUstream_st *stream, struct host_operation *op)
{
    op->state = HOST_UNDER_WAY;
    begin_strict(stream, op);
    switch (op->work.kind) {
    case HOST_WORK_KERNEL:
        begin_kernel(op);
        break;
    case HOST_WORK_COPY:
    case HOST_WORK_SET:
        tell_strict(op);
        break;
    case HOST_WORK_CALL:
        begin_call(op);
        break;
    case HOST_WORK_EVENT:
        break;
    }
}

enum host_run_state host_operation_step(struct host_operation *op, int slices, bool earlier_done)
{
    switch (op->work.kind) {
    case HOST_WORK_KERNEL:
        return step_kernel(op, slices, earlier_done);
    case HOST_WORK_COPY:
    case HOST_WORK_SET:
        return step_copy(op, slices);
    case HOST_WORK_CALL:
        return step_call(op);
    default:
        return HOST_DONE;
    }
}

void host_operation_end(struct CUstream_st *stream, struct host_operation *op)
{
    op->state = HOST_ENDED;
    stream->time = op->op ? strict_op_end(op->op) : 0;
    op->op = NULL;
    if (op->work.kind == HOST_WORK_EVENT) {
        host_event_recorded(
            op->work.event, op->work.record, stream->number, stream->time, host_device_time());
    }
}
