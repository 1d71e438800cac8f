/* SPDX-License-Identifier: Apache-2.0
 * The device goes on: which operation of which stream is next, by chance from the seed. Nothing runs by itself; calls
 * of the runtime let it run for some slices, and waits until what they wait for has ended. */
#include <stdlib.h>
#include <time.h>

#include "tests/cuda/host/runtime/runtime.h"

enum {
    MOST_READY = 256,
    ALONE_SLICES = 1 << 14,
    REST_LOOKS = 256 /* of the program */
};
/* Of a wait, with a device on which nothing can go on; and where the host might write what a kernel asks for. */
static const double PATIENCE_S = 1, ASKS_PATIENCE_S = 10;
static const double ASK_AGAIN_S = 0.1;

enum went { WENT, NOTHING_READY, ALL_STUCK };

struct ready {
    struct CUstream_st *stream;
    struct host_operation *op;
    bool earlier_done; /* what is in front of it in its stream has ended */
};

static uint64_t device_time;
static uint64_t n_turns = 1; /* times that anything went on */
static double stuck_since;   /* when all that is under way was found stuck; 0: it is not */

uint64_t host_device_time(void)
{
    return device_time;
}

/* ---- What may go on ---- */

/* The NULL stream waits for what the blocking ones were given before, and they for it. */
static bool null_stream_allows(const struct CUstream_st *stream, uint64_t order)
{
    if (!stream->blocking) {
        return true;
    }
    const struct CUstream_st *null = host_streams[stream->device];
    for (const struct CUstream_st *s = null; s; s = stream == null ? s->next : NULL) {
        if (s != stream && s->blocking && s->first && s->first->order < order) {
            return false;
        }
    }
    return true;
}

static double share_in_use(void)
{
    double share = 0;
    for (const struct CUstream_st *s = host_streams[host_device()]; s; s = s->next) {
        for (const struct host_operation *op = s->first; op; op = op->next) {
            share += op->state == HOST_UNDER_WAY ? op->share : 0;
        }
    }
    return share;
}

/* All blocks of a cooperative launch are there at once, so there must be room for them. */
static bool has_room(const struct host_operation *op)
{
    return op->work.kind != HOST_WORK_KERNEL || !op->work.launch.cooperative ||
           share_in_use() + host_launch_share(&op->work.launch) <= 1;
}

static bool is_kernel(const struct host_operation *op)
{
    return op->work.kind == HOST_WORK_KERNEL;
}

/* Whether `op`, which waits, may begin; `front` is in front of it in its stream, NULL: nothing that still runs. */
static bool may_begin(
    const struct CUstream_st *s, const struct host_operation *op, const struct host_operation *front)
{
    if (front) {
        return is_kernel(op) && op->work.launch.overlaps && is_kernel(front) &&
               front->graph == op->graph && (front->lets || front->state == HOST_ENDED) && has_room(op);
    }
    return null_stream_allows(s, op->order) && has_room(op);
}

/* Of the device whose turn it is, behind the n that are there. */
static int list_ready(struct ready ready[MOST_READY], int n)
{
    for (struct CUstream_st *s = host_streams[host_device()]; s; s = s->next) {
        struct host_operation *front = NULL;
        for (struct host_operation *op = s->first; op && n < MOST_READY; front = op, op = op->next) {
            if (op->state == HOST_WAITS && !may_begin(s, op, front)) {
                break;
            }
            if (op->state != HOST_ENDED && !op->hangs && !op->rests) {
                ready[n++] = (struct ready){s, op, !front || front->state == HOST_ENDED};
            }
            if (!is_kernel(op)) {
                break;
            }
        }
    }
    return n;
}

/* ---- One step ---- */

/* Operations go out of their stream in order, and the stream with its last one if the program has destroyed it. */
static void clear_ended(void)
{
    for (struct CUstream_st **at = &host_streams[host_device()]; *at;) {
        struct CUstream_st *s = *at;
        while (s->first && s->first->state == HOST_ENDED) {
            struct host_operation *op = s->first;
            s->first = op->next;
            s->last = s->first ? s->last : NULL;
            host_operation_free(op);
        }
        if (s->gone && !s->first) {
            *at = s->next;
            free(s);
        } else {
            at = &s->next;
        }
    }
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One that is stuck is asked again when others have gone on, or after a while: the host may have done something. */
static bool still_stuck(const struct host_operation *op)
{
    return op->stuck_at == n_turns && !op->thread && seconds() - op->stuck_s < ASK_AGAIN_S;
}

/* On its device; false: it is stuck. */
static bool go_on(const struct ready *r, int slices)
{
    struct host_operation *op = r->op;
    if (op->state == HOST_WAITS) {
        host_operation_begin(r->stream, op);
    }
    if (host_device_error() || op->hangs) { /* all operations are gone; or this one goes no further */
        return true;
    }
    if (r->earlier_done && !op->met_earlier) {
        op->met_earlier = true;
        strict_op_after(op->op, r->stream->number, r->stream->time);
    }
    enum host_run_state state = host_operation_step(op, slices, r->earlier_done);
    device_time += (uint64_t)slices;
    if (state == HOST_FAILED) {
        host_device_lost(host_address_fault() ? cudaErrorIllegalAddress : cudaErrorLaunchFailure);
        return true;
    }
    op->lets = op->lets || state == HOST_LETS;
    if (state == HOST_DONE) {
        host_operation_end(r->stream, op);
        clear_ended();
    }
    if (state == HOST_STUCK || state == HOST_ASKS) {
        op->asks = state == HOST_ASKS;
        op->stuck_at = n_turns;
        op->stuck_s = seconds();
        return false;
    }
    if (state == HOST_RUNS && !r->earlier_done) {
        return false; /* it may only wait for the one in front of it */
    }
    n_turns++;
    return true;
}

/* What is ready on any device. */
static int list_all(struct ready ready[MOST_READY])
{
    int n = 0;
    const int asker = host_device();
    for (int i = 0; i < host_n_devices(); i++) {
        host_device_turn(i);
        clear_ended();
        n = host_device_error() ? n : list_ready(ready, n);
    }
    host_device_turn(asker);
    return n;
}

static bool go_on_there(const struct ready *r, int slices)
{
    const int asker = host_device_turn(r->stream->device);
    host_memory_stand(host_device());
    const bool went = go_on(r, slices);
    host_device_turn(asker);
    return went;
}

/* Tries what is ready, beginning with one by chance, until something has gone on. */
static enum went device_go(int slices, int *spent)
{
    struct ready ready[MOST_READY];
    const int n = list_all(ready);
    if (n == 0) {
        stuck_since = 0;
        return NOTHING_READY;
    }
    const int first = (int)host_random((uint32_t)n);
    for (int i = 0; i < n; i++) {
        int most = n == 1 ? ALONE_SLICES : 1 << host_random(11); /* how finely they are interleaved */
        int mine = most < slices ? most : slices;
        const struct ready *r = &ready[(first + i) % n];
        *spent = mine;
        if (!still_stuck(r->op) && go_on_there(r, mine)) {
            stuck_since = 0;
            return WENT;
        }
    }
    stuck_since = stuck_since > 0 ? stuck_since : seconds();
    return ALL_STUCK;
}

/* Whether nothing could. */
static bool stood_still(int most_slices)
{
    const int all = host_random(4) == 0 ? 0 : 1 + (int)host_random((uint32_t)most_slices);
    for (int left = all, spent = 0; left > 0; left -= spent) {
        if (device_go(left, &spent) != WENT) {
            return left == all;
        }
    }
    return false;
}

void host_device_some(int most_slices)
{
    stood_still(most_slices);
}

/* No stream of a GPU needs to keep up with another. A copy or a fill is done within a few slices, wherever the program
 * looks at anything, so that one that is not waited for would never be missed: some rest while anything else goes on.
 * One of those, by chance, begins where nothing did (`stood`), and now and then, since a kernel may go on for ever that
 * waits for what the host does later. False: none has. */
static bool rest_ends(bool stood)
{
    static unsigned n_looks; /* while something else went on */
    int n = 0;
    if (!stood && ++n_looks % REST_LOOKS != 0) {
        return false;
    }
    struct host_operation *chosen = NULL;
    for (int i = 0; i < host_n_devices(); i++) {
        for (struct CUstream_st *s = host_streams[i]; s; s = s->next) {
            if (s->first && s->first->rests && host_random((uint32_t)++n) == 0) {
                chosen = s->first;
            }
        }
    }
    if (chosen) {
        chosen->rests = false;
    }
    return chosen != NULL;
}

/* ---- Nothing goes on ---- */

/* Host functions run on threads of their own and may take their time. */
static bool calls_run(void)
{
    for (int i = 0; i < host_n_devices(); i++) {
        for (const struct CUstream_st *s = host_streams[i]; s; s = s->next) {
            if (s->first && s->first->thread) {
                return true;
            }
        }
    }
    return false;
}

/* Some kernel asks for words that the host might write. */
static bool kernel_asks(void)
{
    for (int i = 0; i < host_n_devices(); i++) {
        for (const struct CUstream_st *s = host_streams[i]; s; s = s->next) {
            if (s->first && s->first->asks) {
                return true;
            }
        }
    }
    return false;
}

/* Nothing has gone on for so long that nothing will. */
static bool for_ever(double since)
{
    return !calls_run() && seconds() - since > (kernel_asks() ? ASKS_PATIENCE_S : PATIENCE_S);
}

static cudaError_t give_up(const char *whom)
{
    const struct host_operation *op = NULL;
    for (const struct CUstream_st *s = host_streams[host_device()]; s; s = s->next) {
        if (s->first && s->first->state == HOST_UNDER_WAY && is_kernel(s->first)) {
            op = s->first;
        }
    }
    host_finding("%s waits for a device on which nothing goes on: %s never ends", whom,
        op ? host_kernel_name(op->work.launch.kernel) : "an operation that cannot begin");
    if (op && op->run) {
        host_run_tell_stuck(op->run);
    }
    host_device_lost(cudaErrorLaunchFailure);
    return host_device_error();
}

void host_device_asked(bool done)
{
    if (!done) {
        host_asked_early();
    }
    /* Few slices or very many, so that who asks now and then does not wait for ever. */
    const bool stood = stood_still(1 << (6 + host_random(16)));
    if (done || rest_ends(stood) || !stood || stuck_since == 0) {
        return;
    }
    if (for_ever(stuck_since)) {
        give_up("a question of the program's");
    }
}

/* ---- Waits ---- */

cudaError_t host_wait(bool (*done)(const void *what), const void *what, const char *whom)
{
    double still_since = 0;
    if (!done(what)) {
        host_asked_early();
    }
    while (!host_device_error() && !done(what)) {
        int spent;
        if (device_go(ALONE_SLICES, &spent) == WENT) {
            still_since = 0;
            rest_ends(false);
            host_breathe(false);
            continue;
        }
        if (done(what)) {
            break;
        }
        if (rest_ends(true)) {
            continue;
        }
        still_since = still_since > 0 ? still_since : seconds();
        if (for_ever(still_since)) {
            return give_up(whom);
        }
        host_breathe(true); /* another thread may give it what it waits for */
    }
    return host_device_error();
}

static bool stream_done(const void *what)
{
    return !((const struct CUstream_st *)what)->first;
}

cudaError_t host_wait_stream(struct CUstream_st *stream, const char *call)
{
    cudaError_t result = host_wait(stream_done, stream, call);
    if (!result) {
        strict_host_knows(stream->number, stream->time);
    }
    return result;
}

static bool device_done(const void *what)
{
    (void)what;
    for (const struct CUstream_st *s = host_streams[host_device()]; s; s = s->next) {
        if (s->first) {
            return false;
        }
    }
    return true;
}

cudaError_t host_wait_device(const char *call)
{
    cudaError_t result = host_wait(device_done, NULL, call);
    for (const struct CUstream_st *s = host_streams[host_device()]; !result && s; s = s->next) {
        strict_host_knows(s->number, s->time);
    }
    return result;
}
