/* SPDX-License-Identifier: Apache-2.0
 * The pool. Parts are claimed by a compare-and-swap on one word, the ticket: how many parts of which
 * loop are left. A claim succeeds only while its loop is open, and a loop is open until every claimed
 * part is done; so a worker that wakes up late finds either nothing or a whole, current loop, and
 * nobody waits for workers that sleep. */
#include "base/threads.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/minmax.h"

struct pool {
    /* The loop: written by pool_run before the ticket, read only by holders of a claim. */
    void (*fn)(void *arg, int part, int n_parts);
    void *arg;
    int n_parts;

    _Alignas(64) atomic_uint_least64_t ticket; /* loop number << 32 | parts not yet claimed */
    _Alignas(64) atomic_int n_done;
    _Alignas(64) atomic_int n_sleeping;
    atomic_bool caller_sleeps, stop;

    pthread_mutex_t lock;
    pthread_cond_t work, finished; /* "a loop was opened", "its last part is done" */
    int64_t spin_ns;               /* how long to look for work before sleeping */
    int n_threads, n_started;
    pthread_t *threads; /* [n_threads - 1] */
};

static inline void spin_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

static bool work_waits(struct pool *p)
{
    return (uint32_t)atomic_load(&p->ticket) != 0 || atomic_load(&p->stop);
}

static bool loop_is_done(struct pool *p)
{
    return atomic_load(&p->n_done) == p->n_parts;
}

/* Looks for `ready` for a moment; false when it did not come. */
static bool spin_for(struct pool *p, bool (*ready)(struct pool *))
{
    if (ready(p)) {
        return true;
    }
    if (p->spin_ns == 0) {
        return false;
    }
    int64_t end = clock_ns() + p->spin_ns;
    do {
        for (int i = 0; i < 16; i++) {
            spin_pause();
            if (ready(p)) {
                return true;
            }
        }
    } while (clock_ns() < end);
    return false;
}

/* Claims and runs parts of the open loop until none is left. */
static void run_parts(struct pool *p)
{
    uint64_t ticket = atomic_load(&p->ticket);
    while ((uint32_t)ticket != 0) {
        if (!atomic_compare_exchange_weak(&p->ticket, &ticket, ticket - 1)) {
            continue;
        }
        int n_parts = p->n_parts; /* after the last n_done the next loop may be written */
        p->fn(p->arg, n_parts - (int)(uint32_t)ticket, n_parts);
        if (atomic_fetch_add(&p->n_done, 1) + 1 == n_parts && atomic_load(&p->caller_sleeps)) {
            pthread_mutex_lock(&p->lock);
            pthread_cond_signal(&p->finished);
            pthread_mutex_unlock(&p->lock);
        }
        ticket = atomic_load(&p->ticket);
    }
}

static void *worker_main(void *arg)
{
    struct pool *p = arg;
    while (!atomic_load(&p->stop)) {
        if (!spin_for(p, work_waits)) {
            pthread_mutex_lock(&p->lock);
            /* Counted before the last look: pool_run sees the count, or we see its ticket. */
            atomic_fetch_add(&p->n_sleeping, 1);
            while (!work_waits(p)) {
                pthread_cond_wait(&p->work, &p->lock);
            }
            atomic_fetch_sub(&p->n_sleeping, 1);
            pthread_mutex_unlock(&p->lock);
        }
        run_parts(p);
    }
    return NULL;
}

void pool_run(struct pool *p, void (*fn)(void *arg, int part, int n_parts), void *arg, int n_parts)
{
    if (n_parts <= 1 || p->n_threads == 1) {
        for (int part = 0; part < n_parts; part++) {
            fn(arg, part, n_parts);
        }
        return;
    }
    p->fn = fn;
    p->arg = arg;
    p->n_parts = n_parts;
    atomic_store(&p->n_done, 0);
    uint64_t loop = (atomic_load(&p->ticket) >> 32) + 1;
    atomic_store(&p->ticket, loop << 32 | (uint32_t)n_parts);
    int n_sleeping = atomic_load(&p->n_sleeping);
    if (n_sleeping > 0) {
        pthread_mutex_lock(&p->lock);
        if (n_parts - 1 >= n_sleeping) {
            pthread_cond_broadcast(&p->work);
        } else {
            for (int i = 1; i < n_parts; i++) {
                pthread_cond_signal(&p->work);
            }
        }
        pthread_mutex_unlock(&p->lock);
    }
    run_parts(p);
    if (!spin_for(p, loop_is_done)) {
        pthread_mutex_lock(&p->lock);
        atomic_store(&p->caller_sleeps, true);
        while (!loop_is_done(p)) {
            pthread_cond_wait(&p->finished, &p->lock);
        }
        atomic_store(&p->caller_sleeps, false);
        pthread_mutex_unlock(&p->lock);
    }
}

/* Starts the workers with signals blocked, so that the program's own threads get them; those that a
 * thread raises by itself (a mapped file that shrank) must reach it. */
static bool workers_start(struct pool *p)
{
    sigset_t blocked, before;
    sigfillset(&blocked);
    static const int own[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        sigdelset(&blocked, own[i]);
    }
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    while (p->n_started < p->n_threads - 1 &&
           pthread_create(&p->threads[p->n_started], NULL, worker_main, p) == 0) {
        p->n_started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return p->n_started == p->n_threads - 1;
}

struct pool *pool_new(int n_threads)
{
    struct pool *p = n_threads >= 1 ? memory_new(1, sizeof *p) : NULL;
    pthread_t *threads = p ? memory_new((size_t)n_threads - 1, sizeof *threads) : NULL;
    if (!threads) {
        memory_free(p);
        return NULL;
    }
    p->threads = threads;
    p->n_threads = n_threads;
    /* About what a sleep and a wake-up cost. Where threads share cores, spinning holds up the work that
     * is waited for. */
    p->spin_ns = n_threads > 1 && n_threads <= threads_available() ? 50000 : 0;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->finished, NULL);
    if (!workers_start(p)) {
        pool_free(p);
        return NULL;
    }
    return p;
}

void pool_free(struct pool *p)
{
    if (!p) {
        return;
    }
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->stop, true);
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->n_started; i++) {
        pthread_join(p->threads[i], NULL);
    }
    pthread_cond_destroy(&p->finished);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    memory_free(p->threads);
    memory_free(p);
}

int pool_size(const struct pool *p)
{
    return p->n_threads;
}

void pool_slice(int64_t n, int grain, int part, int n_parts, int64_t *begin, int64_t *end)
{
    int64_t n_grains = n / grain + (n % grain != 0), each = n_grains / n_parts,
            extra = n_grains % n_parts;
    int64_t first = each * part + min(part, extra);
    int64_t last = first + each + (part < extra);
    *begin = min(first * grain, n);
    *end = min(last * grain, n);
}
