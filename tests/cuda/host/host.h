/* SPDX-License-Identifier: Apache-2.0
 * The bench that runs the GPU's code on the host: what its parts are to each other.
 *
 *   backend (src/cuda) --CUDA calls--> runtime --launches--> engine --accesses, order--> strict
 *                                         \______ card: what the posed GPU can do ______/
 *
 * Everything runs on the thread that calls the runtime: no call starts a thread. Whoever asks the runtime anything
 * (a query, a wait, a launch) lets the device go on for some slices, as many as the seed says. So a run is the
 * same again from its seed.
 *
 * Nothing of the bench is in the product. */
#ifndef TESTS_CUDA_HOST_HOST_H
#define TESTS_CUDA_HOST_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The posed GPU (card.c) ---- */

struct host_card {
    const char *name;      /* as a user types it: "4090" */
    const char *full_name; /* as the driver tells it */
    int major, minor;      /* compute capability */
    int code; /* what the code that runs there was built for: 80, 86, 87, 89, 90, 100, 110, 120 */
    bool code_specific; /* built for exactly this one (90a): wgmma, and register moves between warps */
    bool
        code_family; /* built for its family (100f, 120f): register moves, where that family has them */
    int n_sms;       /* streaming multiprocessors */
    int block_shared;      /* bytes of shared memory that one block may have */
    int sm_shared;         /* bytes of shared memory of a multiprocessor */
    int sm_threads;        /* threads that a multiprocessor holds */
    int64_t l2_bytes;      /* L2 cache */
    uint64_t memory_bytes; /* device memory; of a unified one the system's */
    bool unified;          /* host and device share one memory */
    bool overlaps;         /* programmatic dependent launch and griddepcontrol */
    bool clusters;         /* thread block clusters, and the shared memory of other blocks */
    bool bulk_copies;      /* cp.async.bulk and mbarriers that count bytes */
    int memory_clock_khz, memory_bus_bits;
};

/* The card of this name; NULL: there is none. */
const struct host_card *host_card_find(const char *name);
/* The i-th of the table; NULL behind the last. */
const struct host_card *host_card_at(int i);
/* The one that is posed now: HOST_CARD in the environment, "h100" without. */
const struct host_card *host_card(void);

/* ---- Failures ---- */

/* Notes a finding (a race, an access out of bounds, an instruction that the card does not have ...): it is printed with
 * the kernel, block, thread and seed, counted, and makes the current launch fail as a GPU would (the error sticks).
 * The text is whole: what, where, why. */
void host_finding(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* How many there were. A program of the bench ends with a failure if there is any. */
int host_findings(void);

/* ---- The engine: runs the threads of launches as fibers (engine.c) ---- */

enum { HOST_WARP = 32, HOST_MOST_THREADS = 1024 };

struct host_dim {
    unsigned x, y, z;
};

/* A kernel as the engine calls it: `call` runs it for the current fiber, with its parameters at `args`. */
struct host_kernel {
    const void *code; /* the function's address: what the backend hands to the runtime */
    void (*call)(const void *code, void *args);
    size_t args_bytes;
};

/* Registers a kernel (the headers of the bench do it wherever a kernel's address is taken); finds it; NULL: unknown. */
void host_kernel_add(const struct host_kernel *kernel);
const struct host_kernel *host_kernel_find(const void *code);

struct host_launch {
    const struct host_kernel *kernel;
    const void *args; /* kernel->args_bytes of them; copied by host_run_begin */
    struct host_dim grid, block;
    int cluster;         /* blocks of a cluster; 1: none */
    size_t shared_bytes; /* dynamic shared memory */
    bool cooperative;    /* all blocks are there at once */
    bool
        overlaps; /* may begin before the launch in front of it has ended: programmatic dependent launch */
    uint64_t seed; /* of the order in which its warps and blocks run */
};

enum host_run_state {
    HOST_RUNS, /* goes on in later slices */
    HOST_LETS, /* the same, and all its blocks have let the next launch begin or have ended */
    HOST_DONE,
    HOST_FAILED, /* a finding, or a trap; nothing of it runs on */
    HOST_STUCK,  /* every fiber waits for another one of this launch: it never ends by itself */
};

struct host_run;

/* NULL: the launch asks for what the card does not have; the reason has been told as a finding. */
struct host_run *host_run_begin(const struct host_launch *launch);
/* Lets fibers run for about `n` slices (one slice: a fiber until it waits). `earlier_done`: the launches that this one
 * depends on have ended, so that griddepcontrol.wait may return. */
enum host_run_state host_run_step(struct host_run *run, int n, bool earlier_done);
void host_run_end(struct host_run *run);

/* How many blocks of this kernel fit one multiprocessor of the card; 0: it does not fit at all. */
int host_blocks_per_sm(const struct host_kernel *kernel, int threads, size_t shared_bytes);
/* Bytes of its static shared memory; 0 of a kernel that has no body in the card's code. */
size_t host_static_shared(const struct host_kernel *kernel);
/* As the source calls it, with its template's arguments. */
const char *host_kernel_name(const struct host_kernel *kernel);

/* ---- Strict: who may read and write what, and when (strict.c) ---- */

enum host_memory { HOST_GLOBAL, HOST_SHARED, HOST_PINNED, HOST_CONSTANT };

/* Memory that device code may touch. Nothing of it has been written yet unless `written`. `label` is copied. */
void strict_memory_add(void *at, size_t bytes, enum host_memory kind, const char *label, bool written);
void strict_memory_remove(void *at);
/* Of an area that was added: [at, at + bytes) is a piece of its own. What lies between pieces may not be touched. */
void strict_memory_piece(void *at, size_t bytes, const char *label);

/* What is known of the bytes at `live` and at `image` changes places: static shared memory of one block makes room for
 * another's. */
void strict_memory_swap(void *live, void *image, size_t bytes);

/* Streams: each operation (copy, memset, kernel) has a clock of what it comes after. An operation begins with the sum
 * of what its stream and the events waited for know, and its end is told to the stream. The host is stream 0. */
struct strict_op; /* one operation on the device, or a piece of the host's time */
struct strict_op *strict_op_begin(int stream, const char *what);
void strict_op_after(
    struct strict_op *op, int other_stream, uint64_t its_time); /* an event of that stream */
uint64_t strict_op_end(struct strict_op *op);                   /* its time in its stream */
void strict_host_knows(int stream, uint64_t time);              /* a wait of the host that ended */
/* What copies, memsets and the host do to device memory outside kernels. */
void strict_op_read(struct strict_op *op, const void *at, size_t bytes);
void strict_op_write(struct strict_op *op, void *at, size_t bytes);

/* A launch's threads. A warp is numbered within the launch: block * warps of a block + warp of the block. */
struct strict_grid *strict_grid_begin(
    struct strict_op *op, const char *kernel, int n_blocks, int n_threads, int cluster);
void strict_grid_end(struct strict_grid *grid);
/* From here on accesses are those of this thread. `grid` NULL: of nobody (the host's own code). */
void strict_thread(struct strict_grid *grid, int block, int thread);

/* An access of the current thread; the compiler's instrumentation (-fsanitize=thread, with our own functions) calls it
 * for plain ones, the primitives for their own. */
enum strict_order { STRICT_PLAIN, STRICT_RELAXED, STRICT_ACQUIRE, STRICT_RELEASE, STRICT_ACQ_REL };
enum strict_scope { STRICT_CTA, STRICT_CLUSTER, STRICT_GPU, STRICT_SYS };
void strict_read(const void *at, size_t bytes, enum strict_order order, enum strict_scope scope);
void strict_write(void *at, size_t bytes, enum strict_order order, enum strict_scope scope);
void strict_update(void *at, size_t bytes, enum strict_order order,
    enum strict_scope scope);               /* an atomic read and write */
void strict_fence(enum strict_scope scope); /* acquire and release, of the current thread */
/* The address must be a multiple of `bytes`; for vector loads and copies. */
void strict_aligned(const void *at, size_t bytes, const char *what);

/* Barriers, shuffles with memory order, mbarriers: what was released to an object is known to who acquires it later.
 * `object` is any address or number that stands for it. */
void strict_release_to(const void *object);
void strict_acquire_from(const void *object);
void strict_warp_sync(uint32_t mask); /* by each thread of the warp when it leaves __syncwarp */

/* Copies that go on by themselves (cp.async, cp.async.bulk): they read and write for an agent of their own. */
struct strict_copy; /* under way; the engine decides when it lands */
struct strict_copy *strict_copy_begin(void *to, const void *from, size_t bytes, bool bulk);
void strict_copy_land(struct strict_copy *copy,
    const void *told); /* `told`: its mbarrier, or NULL: the thread's own group */
void strict_copy_seen(struct strict_copy *copy); /* the thread waited for the group */
void strict_proxy_fence(
    void); /* fence.proxy.async: what this thread did is seen by bulk copies that follow */

#ifdef __cplusplus
}
#endif

#endif
