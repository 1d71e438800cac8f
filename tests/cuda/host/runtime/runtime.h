/* SPDX-License-Identifier: Apache-2.0
 * What the files of the runtime's stand-in (runtime*.c, faults.c, findings.c) are to each other, and what a test may
 * ask them. All of it is called under the one lock that runtime.c takes when a call of the runtime is entered. */
#ifndef TESTS_CUDA_HOST_RUNTIME_RUNTIME_H
#define TESTS_CUDA_HOST_RUNTIME_RUNTIME_H

#include <cuda_runtime_api.h>
#include <pthread.h>

#include "tests/cuda/host/host.h"
#include "tests/cuda/host/runtime/faults.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- For tests ---- */

/* HOST_SEED in the environment; 1 without. */
uint64_t host_seed(void);
/* Bytes of the device's memory and of pinned memory that are allocated now. */
size_t host_memory_held(void);
size_t host_pinned_held(void);
/* Bytes of the device's memory that there are, and that can be allocated now. */
uint64_t host_memory_total(void);
uint64_t host_memory_free(void);

/* ---- Calls (runtime.c) ---- */

/* A call of the runtime: takes the lock, counts it, lets it fail where it was planted and where the device is lost.
 * Whatever it returns is to be handed to host_leave, which notes it as the thread's last error and gives the lock
 * back. */
cudaError_t host_enter(enum host_call call);
cudaError_t host_leave(cudaError_t result);
/* As host_enter for calls that wait or that touch the NULL stream: a thread that captures may not make them, and its
 * capture is spoiled. */
cudaError_t host_enter_outside_capture(enum host_call call);

/* What is done from now on is done for this device; returns the one before. It ends with the call, or before. */
int host_device_turn(int device);
/* The calling thread's device, as cudaSetDevice has it. */
void host_device_set(int device);

/* The device is lost: every later call says so, what was queued is dropped. The first error stays. */
void host_device_lost(cudaError_t error);
cudaError_t host_device_error(void);
/* Lets other threads of the host in for a moment; `sleeps`: and waits a little. */
void host_breathe(bool sleeps);
/* A number below n, from the seed. */
uint32_t host_random(uint32_t n);

/* ---- Memory (runtime_memory.c) ---- */

struct host_area {
    char *at;
    size_t bytes;
    enum host_memory kind; /* HOST_GLOBAL or HOST_PINNED */
    int device;            /* whose memory it is; pinned memory is every device's */
    char *mapped;          /* with the guards on both sides */
    size_t mapped_bytes, slack;
    int number;
    struct host_area *next;
};

/* The area that holds this address, also if it is in a guard beside it; NULL: memory of the host alone. */
const struct host_area *host_area_of(const void *at);
/* Whether `rows` rows of `bytes` lie in one area; memory of the host alone always does. Else a finding. */
bool host_area_holds(const void *at, size_t pitch, size_t bytes, size_t rows, const char *call);
/* Whether the device can reach the area: its own memory, and all that is pinned. Else a finding. */
bool host_area_reached(const struct host_area *area, int device, const char *call);
/* Of devices' memory, only this one's can be touched from now on. */
void host_memory_stand(int device);
/* Whether a kernel has touched what it may not. */
bool host_address_fault(void);
/* Sets memory of the device; large runs of zeros cost no memory of the host. */
void host_fill(void *at, int value, size_t bytes);

/* ---- Streams (runtime_stream.c, runtime_run.c) ---- */

enum host_work_kind {
    HOST_WORK_KERNEL,
    HOST_WORK_COPY,
    HOST_WORK_SET,
    HOST_WORK_CALL,
    HOST_WORK_EVENT
};

/* What an operation does. Graphs keep them, streams have their own copies. */
struct host_work {
    enum host_work_kind kind;
    struct host_launch launch; /* its args are owned */
    int number;                /* of the launch, among all; a graph's get theirs when it is launched */
    char *to;
    const char *from;
    size_t to_pitch, from_pitch, bytes, rows; /* copy and set */
    void *staged;                             /* what `from` was, if that is not pinned; owned */
    int value;
    cudaHostFn_t call;
    void *data;
    struct CUevent_st *event;
    uint64_t record; /* which record of the event this is */
};

enum host_operation_state { HOST_WAITS, HOST_UNDER_WAY, HOST_ENDED };

struct host_operation {
    struct host_work work;
    enum host_operation_state state;
    uint64_t order;     /* among all operations of all streams */
    uint64_t graph;     /* launch of a graph that it is of; 0: none */
    uint64_t host_time; /* strict's, of the host, when it was queued */
    struct host_run *run;
    struct strict_grid *watched;
    uint64_t stuck_at; /* the device's turn when it was found stuck; 0: it is not */
    double stuck_s;
    bool asks;        /* it was, and threads of it ask for words of memory */
    bool lets, hangs; /* its next may begin; it never ends */
    bool rests;       /* it begins late, where nothing else can go on or now and then (rest_ends) */
    bool met_earlier; /* has been told that the one in front of it has ended */
    size_t done;      /* bytes of a copy */
    double share;     /* of the multiprocessors */
    struct host_call_thread *thread;
    struct strict_op *op;
    struct host_operation *next;
};

struct CUstream_st {
    int device;
    int number;          /* as strict counts; the first are the NULL streams */
    bool blocking, gone; /* waits for the NULL stream and it for this one; destroyed by the program */
    struct host_operation *first, *last;
    struct CUgraph_st *capture; /* NULL: it does not capture */
    pthread_t capturer;
    bool spoiled;  /* the capture ends with an error */
    bool local;    /* captures in the thread's mode: what is unsafe is forbidden to this thread only */
    uint64_t time; /* strict's, of the last operation that ended */
    uint64_t n_ended;
    struct CUstream_st *next;
};

/* All of each device, the NULL stream first. */
extern struct CUstream_st *host_streams[HOST_MOST_DEVICES];
/* NULL: there is no such stream; a finding has told so. */
struct CUstream_st *host_stream_of(cudaStream_t stream, const char *call);
/* Queues a copy of the work, or notes it in the stream's graph; takes over what it owns. */
cudaError_t host_queue(struct CUstream_st *stream, struct host_work *work, uint64_t graph);
void host_work_free(struct host_work *work);
/* All streams that this thread captures in are spoiled; false: it captures in none. */
bool host_spoil_captures(void);
/* What the device had still to do is not done. */
void host_streams_drop(void);

/* Lets the devices go on a little, as the seed says. */
void host_device_some(int most_slices);
/* For a query of what is `done` or not. */
void host_device_asked(bool done);
/* Lets it go on until done(what). What the wait is for stands in the finding if the device is stuck. */
cudaError_t host_wait(bool (*done)(const void *what), const void *what, const char *whom);
cudaError_t host_wait_stream(struct CUstream_st *stream, const char *call);
cudaError_t host_wait_device(const char *call);
/* Slices that the device has run: its clock. */
uint64_t host_device_time(void);

/* One operation: begins, goes on for some slices (HOST_FAILED: the device is lost), ends (runtime_work.c). */
void host_operation_begin(struct CUstream_st *stream, struct host_operation *op);
enum host_run_state host_operation_step(struct host_operation *op, int slices, bool earlier_done);
void host_operation_end(struct CUstream_st *stream, struct host_operation *op);
void host_operation_end_run(struct host_operation *op);
void host_operation_free(struct host_operation *op);

/* ---- Events (runtime_event.c) ---- */

void host_event_recorded(
    struct CUevent_st *event, uint64_t record, int stream, uint64_t time, uint64_t device_time);
void host_event_dropped(struct CUevent_st *event);

/* ---- Launches (runtime_launch.c) ---- */

/* Which part of the device's multiprocessors a launch takes, at most 1. */
double host_launch_share(const struct host_launch *launch);
/* The number of the launch that is queued now, which goes into the file that HOST_LAUNCHES names in the environment. */
int host_launch_number(const struct host_launch *launch);
/* The program asks for what the device has not done yet. */
void host_asked_early(void);
/* Since the last such question: whether the program has asked so in front of its first launch. For tests that are built
 * for GPUs too: they name it as weak. */
bool host_launch_waited(void);

/* ---- Graphs (runtime_graph.c) ---- */

/* Appends a node; takes over what the work owns. */
cudaError_t host_graph_add(struct CUgraph_st *graph, struct host_work *work);

#ifdef __cplusplus
}
#endif

#endif
