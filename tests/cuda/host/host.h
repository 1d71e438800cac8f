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

/* ---- The posed GPUs (card.c) ---- */

enum { HOST_MOST_DEVICES = 8 };

struct host_card {
    const char *name;      /* as a user types it: "4090" */
    const char *full_name; /* as the driver tells it */
    int major, minor;      /* compute capability */
    int code; /* what the code that runs there was built for: 80, 86, 87, 89, 90, 100, 110, 120 */
    bool code_specific; /* built for exactly this one (90a): wgmma, and registers from warp to warp */
    /* Built for its family (100f, 120f): register moves, where that family has them. */
    bool code_family;
    int n_sms;             /* streaming multiprocessors */
    int block_shared;      /* bytes of shared memory that one block may have */
    int sm_shared;         /* bytes of shared memory of a multiprocessor */
    int sm_threads;        /* threads that a multiprocessor holds */
    int64_t l2_bytes;      /* L2 cache */
    uint64_t memory_bytes; /* device memory; of a unified one the system's */
    bool unified;          /* host and device share one memory */
    bool overlaps;         /* programmatic dependent launch and griddepcontrol */
    bool clusters;         /* thread block clusters, and the shared memory of other blocks */
    bool bulk_copies;      /* cp.async.bulk and mbarriers that count bytes */
    int memory_clock_khz, memory_bus_bits, sm_clock_khz;
};

/* The card of this name; NULL: there is none. */
const struct host_card *host_card_find(const char *name);
/* The i-th of the table; NULL behind the last. */
const struct host_card *host_card_at(int i);
/* How many devices are posed: HOST_CARD in the environment names them, with commas between; "h100" without. */
int host_n_devices(void);
/* The device that a call of the runtime is for, or on which the operation runs that goes on now. */
int host_device(void);
/* What is posed as that; NULL: there is no device. */
const struct host_card *host_card(void);

/* ---- Failures ---- */

/* Notes a finding (a race, an access out of bounds, an instruction that the card does not have ...): it is printed
 * with the kernel, block, thread and seed, counted, and makes the current launch fail as a GPU would (the error
 * sticks). The text is whole: what, where, why. */
void host_finding(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* How many there were. A program of the bench ends with a failure if there is any. */
int host_findings(void);

/* ---- The engine: runs the threads of launches as fibers (scheduler.c) ---- */

enum { HOST_WARP = 32, HOST_MOST_THREADS = 1024 };

struct host_dim {
    unsigned x, y, z;
};

static inline int64_t host_volume(struct host_dim d)
{
    return (int64_t)d.x * d.y * d.z;
}

/* Where one parameter of a kernel lies in its args. */
struct host_parameter {
    size_t at, bytes;
};

/* A kernel as the engine calls it: `call` runs it for the current fiber, with its parameters at `args`. */
struct host_kernel {
    const void *code; /* the function's address: what the backend hands to the runtime */
    void (*call)(const void *code, void *args);
    size_t args_bytes;
    int n_parameters;
    const struct host_parameter *parameters; /* lives as long as the program */
};

/* Registers a kernel, of which it keeps a copy (the headers of the bench do it wherever a kernel's address is taken);
 * finds it; NULL: unknown. */
void host_kernel_add(const struct host_kernel *kernel);
const struct host_kernel *host_kernel_find(const void *code);

struct strict_grid;

struct host_launch {
    const struct host_kernel *kernel;
    const void *args; /* kernel->args_bytes of them; copied by host_run_begin */
    struct host_dim grid, block;
    struct host_dim cluster; /* blocks of a cluster; 1, 1, 1: none */
    size_t shared_bytes;     /* dynamic shared memory */
    bool cooperative;        /* all blocks are there at once */
    /* May begin before the launch in front of it has ended: programmatic dependent launch. */
    bool overlaps;
    struct strict_grid *watched; /* as whom its threads touch memory; NULL: nobody looks */
    uint64_t seed;               /* of the order in which its warps and blocks run */
};

enum host_run_state {
    HOST_RUNS, /* goes on in later slices */
    HOST_LETS, /* the same, and all its blocks have let the next launch begin or have ended */
    HOST_DONE,
    HOST_FAILED, /* a finding, or a trap; nothing of it runs on */
    HOST_STUCK,  /* every fiber waits for another one of this launch: it never ends by itself */
    HOST_ASKS, /* likewise, but some ask in vain for what others may still write: the host, another launch */
};

struct host_run;

/* NULL: the launch asks for what the card does not have; the reason has been told as a finding. */
struct host_run *host_run_begin(const struct host_launch *launch);
/* Lets fibers run for about `n` slices (one slice: a fiber until it waits). `earlier_done`: the launches that this
 * one depends on have ended, so that griddepcontrol.wait may return. */
enum host_run_state host_run_step(struct host_run *run, int n, bool earlier_done);
/* What the threads of a launch wait for that is HOST_STUCK or HOST_ASKS, a few of them, to standard error. */
void host_run_tell_stuck(const struct host_run *run);
void host_run_end(struct host_run *run);

/* How many blocks of this kernel fit one multiprocessor of the card; 0: it does not fit at all. */
int host_blocks_per_sm(const struct host_kernel *kernel, int threads, size_t shared_bytes);
/* Bytes of its static shared memory; 0 of a kernel that has no body in the card's code. */
size_t host_static_shared(const struct host_kernel *kernel);
/* As the source calls it, with its template's arguments. */
const char *host_kernel_name(const struct host_kernel *kernel);
/* Blocks of a cluster, by what the kernel itself says. */
unsigned host_kernel_cluster(const struct host_kernel *kernel);

#ifdef __cplusplus
}
#endif

#include "tests/cuda/host/strict/strict.h"

#endif
