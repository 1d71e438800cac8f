/* SPDX-License-Identifier: Apache-2.0
 * Strict: who may read and write what, and when (strict.c). Without HOST_STRICT nobody looks, and nothing of it costs
 * anything. */
#ifndef TESTS_CUDA_HOST_STRICT_STRICT_H
#define TESTS_CUDA_HOST_STRICT_STRICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum host_memory { HOST_GLOBAL, HOST_SHARED, HOST_PINNED, HOST_CONSTANT };
enum strict_order {
    STRICT_PLAIN,
    STRICT_RELAXED,
    STRICT_ACQUIRE,
    STRICT_RELEASE,
    STRICT_ACQ_REL,
    STRICT_ANY /* plain, of bytes that perhaps nobody wrote: an operand whose last columns are of no result */
};
enum strict_scope { STRICT_CTA, STRICT_CLUSTER, STRICT_GPU, STRICT_SYS };

#ifdef HOST_STRICT

/* Memory that device code may touch. Nothing of it has been written yet unless `written`. `label` is copied. */
void strict_memory_add(void *at, size_t bytes, enum host_memory kind, const char *label, bool written);
void strict_memory_remove(void *at);
/* Of an area that was added: [at, at + bytes) is a piece of its own. What lies between pieces may not be touched. */
void strict_memory_piece(void *at, size_t bytes, const char *label);

/* Bytes of shared memory that nobody writes, and that may be read all the same: what they hold is of no result. */
void strict_memory_spare(void *at, size_t bytes);

/* What is known of the bytes at `live` and at `image` changes places: static shared memory of one block makes room
 * for another's. */
void strict_memory_swap(void *live, void *image, size_t bytes);

/* Memory of the program itself that threads may touch as they like: their stacks. Whole pages; memory that is added
 * later stands above it. What the program may only read is let be anyway. */
void strict_allow(const void *at, size_t bytes);

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
struct strict_grid *strict_grid_begin(struct strict_op *op, const char *kernel, struct host_dim blocks,
    int n_threads, struct host_dim cluster);
void strict_grid_end(struct strict_grid *grid);
/* Its threads have all ended and nothing that they began is under way: what is kept of them goes. */
void strict_block_end(struct strict_grid *grid, int block);
/* griddepcontrol.wait of the current thread: it knows what strict_op_after has told its launch since that began. */
void strict_wait_for_earlier(void);
/* From here on accesses are those of this thread. `grid` NULL: of nobody (the host's own code). */
void strict_thread(struct strict_grid *grid, int block, int thread);

/* An access of the current thread; the compiler's instrumentation (-fsanitize=thread, with our own functions) calls
 * it for plain ones, the primitives for their own. */
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

/* Copies that go on by themselves (cp.async, cp.async.bulk): they read and write for an agent of their own. A copy is
 * gone when it has landed with `told`, or else when it has been seen. */
struct strict_copy; /* under way; the engine decides when it lands */
struct strict_copy *strict_copy_begin(void *to, const void *from, size_t bytes, bool bulk);
void strict_copy_land(struct strict_copy *copy,
    const void *told); /* `told`: its mbarrier, or NULL: the thread's own group */
void strict_copy_seen(struct strict_copy *copy); /* the thread waited for the group */
void strict_proxy_fence(
    void); /* fence.proxy.async: what this thread did is seen by bulk copies that follow */

#else

struct strict_op;
struct strict_grid;
struct strict_copy;
#define strict_memory_add(...) ((void)0)
#define strict_memory_remove(...) ((void)0)
#define strict_memory_piece(...) ((void)0)
#define strict_memory_spare(at, bytes) ((void)(at), (void)(bytes))
#define strict_memory_swap(...) ((void)0)
#define strict_allow(...) ((void)0)
#define strict_op_begin(...) ((struct strict_op *)NULL)
#define strict_op_after(...) ((void)0)
#define strict_op_end(...) ((uint64_t)0)
#define strict_host_knows(...) ((void)0)
#define strict_op_read(...) ((void)0)
#define strict_op_write(...) ((void)0)
#define strict_grid_begin(...) ((struct strict_grid *)NULL)
#define strict_grid_end(...) ((void)0)
#define strict_block_end(...) ((void)0)
#define strict_wait_for_earlier() ((void)0)
#define strict_thread(...) ((void)0)
#define strict_read(...) ((void)0)
#define strict_write(...) ((void)0)
#define strict_update(...) ((void)0)
#define strict_fence(...) ((void)0)
#define strict_aligned(...) ((void)0)
#define strict_release_to(object) ((void)(object))
#define strict_acquire_from(object) ((void)(object))
#define strict_warp_sync(...) ((void)0)
#define strict_copy_begin(...) ((struct strict_copy *)NULL)
#define strict_copy_land(...) ((void)0)
#define strict_copy_seen(...) ((void)0)
#define strict_proxy_fence(...) ((void)0)

#endif

#ifdef __cplusplus
}
#endif

#endif
