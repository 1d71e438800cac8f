/* SPDX-License-Identifier: Apache-2.0
 * The pool: every part once, in order, at the same time; and how many threads a process may use. */
#include "tests/support.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/threads.h"

enum { MAX_PARTS = 1000 };

struct tally {
    int n_runs[MAX_PARTS]; /* plain: each part has one writer, and pool_run orders them */
    int n_parts;
    int64_t sum;
};

static void tally_part(void *arg, int part, int n_parts)
{
    struct tally *t = arg;
    t->n_runs[part] += n_parts == t->n_parts ? 1 : 1000;
}

static void every_part_runs_once(void **state)
{
    (void)state;
    static const int n_parts[] = {0, 1, 2, 3, 7, 64, MAX_PARTS};
    for (int n_threads = 1; n_threads <= 5; n_threads++) {
        struct pool *pool = pool_new(n_threads);
        assert_non_null(pool);
        assert_int_equal(pool_size(pool), n_threads);
        for (int round = 0; round < 50; round++) {
            for (size_t i = 0; i < sizeof n_parts / sizeof n_parts[0]; i++) {
                struct tally t = {.n_parts = n_parts[i]};
                pool_run(pool, tally_part, &t, n_parts[i]);
                for (int part = 0; part < MAX_PARTS; part++) {
                    assert_int_equal(t.n_runs[part], part < n_parts[i]);
                }
            }
        }
        pool_free(pool);
    }
    pool_free(NULL);
}

static void nap(long us)
{
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static void slow_part(void *arg, int part, int n_parts)
{
    nap(part % 3 * 100);
    tally_part(arg, part, n_parts);
}

/* Loops far apart and long parts: workers and the caller go to sleep and must be woken. */
static void sleepers_wake_up(void **state)
{
    (void)state;
    struct pool *pool = pool_new(4);
    assert_non_null(pool);
    for (int round = 0; round < 60; round++) {
        struct tally t = {.n_parts = 2 + round % 7};
        nap(round * 10);
        pool_run(pool, slow_part, &t, t.n_parts);
        for (int part = 0; part < t.n_parts; part++) {
            assert_int_equal(t.n_runs[part], 1);
        }
    }
    pool_free(pool);
}

/* One part after another reads what all parts of the loop before wrote. */
static void add_last(void *arg, int part, int n_parts)
{
    struct tally *t = arg;
    (void)n_parts;
    t->n_runs[part] = (int)(t->sum % 1000) + part;
}

static void each_loop_sees_the_one_before(void **state)
{
    (void)state;
    struct pool *pool = pool_new(3);
    struct tally t = {.n_parts = 8};
    for (int round = 0; round < 20000; round++) {
        pool_run(pool, add_last, &t, 8);
        int64_t sum = 0;
        for (int part = 0; part < 8; part++) {
            sum += t.n_runs[part];
        }
        assert_int_equal(sum, 8 * (t.sum % 1000) + 28);
        t.sum = sum;
    }
    pool_free(pool);
}

struct order {
    atomic_int n_begun;
    int place[MAX_PARTS];
};

static void note_place(void *arg, int part, int n_parts)
{
    struct order *o = arg;
    (void)n_parts;
    o->place[part] = atomic_fetch_add(&o->n_begun, 1);
}

/* A thread may be late with a part it has claimed, but none is early by more than the other threads. */
static void parts_are_handed_out_in_order(void **state)
{
    (void)state;
    struct pool *pool = pool_new(3);
    struct order o = {.n_begun = 0};
    pool_run(pool, note_place, &o, MAX_PARTS);
    for (int part = 0; part < MAX_PARTS; part++) {
        assert_true(o.place[part] >= part - 2);
    }
    pool_free(pool);
}

/* Two parts that wait for each other: they must run at the same time. */
static void meet(void *arg, int part, int n_parts)
{
    atomic_int *n_here = arg;
    (void)part;
    atomic_fetch_add(n_here, 1);
    while (atomic_load(n_here) < n_parts) {
        sched_yield();
    }
}

static void parts_run_at_the_same_time(void **state)
{
    (void)state;
    struct pool *pool = pool_new(3);
    for (int round = 0; round < 20; round++) {
        atomic_int n_here = 0;
        nap(100);
        pool_run(pool, meet, &n_here, 3);
        assert_int_equal(n_here, 3);
    }
    pool_free(pool);
}

static void note_signals(void *arg, int part, int n_parts)
{
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    if (!pthread_equal(*(pthread_t *)arg, pthread_self())) {
        assert_true(sigismember(&blocked, SIGINT) == 1);
        assert_true(sigismember(&blocked, SIGBUS) == 0);
    } else {
        assert_true(sigismember(&blocked, SIGINT) == 0);
    }
    nap(part * 10 + n_parts);
}

static void workers_leave_signals_to_the_program(void **state)
{
    (void)state;
    struct pool *pool = pool_new(3);
    pthread_t self = pthread_self();
    pool_run(pool, note_signals, &self, 64);
    pool_free(pool);
}

/* Signals that a thread brings on itself reach it; all others are the program's, whose own mask is as it was. */
static void note_mask(void *arg, int part, int n_parts)
{
    atomic_int *n_wrong = arg;
    static const int own[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    static const int others[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGCHLD, SIGPIPE,
        SIGQUIT, SIGWINCH, SIGPROF};
    sigset_t blocked;
    (void)part, (void)n_parts;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    if (sigismember(&blocked, SIGUSR2) == 0) {
        return; /* the caller, see below */
    }
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        atomic_fetch_add(n_wrong, sigismember(&blocked, own[i]) != 0);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        atomic_fetch_add(n_wrong, sigismember(&blocked, others[i]) != 1);
    }
    nap(200);
}

static void workers_keep_the_faults_of_their_own(void **state)
{
    (void)state;
    sigset_t wanted, before, after;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGUSR1);
    pthread_sigmask(SIG_SETMASK, &wanted, &before);
    struct pool *pool = pool_new(3);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    atomic_int n_wrong = 0;
    pool_run(pool, note_mask, &n_wrong, 64);
    pool_free(pool);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    assert_int_equal(n_wrong, 0);
    for (int i = 1; i < 32; i++) {
        assert_int_equal(sigismember(&after, i), i == SIGUSR1);
    }
}

/* Whatever the number of parts, as many sleepers are woken as there are parts beside the caller's. */
static void as_many_wake_up_as_are_needed(void **state)
{
    (void)state;
    enum { N_THREADS = 5 };
    struct pool *pool = pool_new(N_THREADS);
    for (int round = 0; round < 3; round++) {
        for (int n_parts = 2; n_parts <= N_THREADS; n_parts++) {
            atomic_int n_here = 0;
            nap(500); /* until they sleep */
            pool_run(pool, meet, &n_here, n_parts);
            assert_int_equal(n_here, n_parts);
        }
    }
    pool_free(pool);
}

struct callers {
    pthread_t self;
    int n_parts, n_run; /* plain: only the caller may write */
};

static void count_by_the_caller(void *arg, int part, int n_parts)
{
    struct callers *c = arg;
    const bool is_good =
        pthread_equal(c->self, pthread_self()) && part == c->n_run && n_parts == c->n_parts;
    c->n_run += is_good ? 1 : 1000;
}

/* One part, and any number of them in a pool of one thread, run in the caller, one after another. */
static void what_one_thread_can_do_the_caller_does(void **state)
{
    (void)state;
    for (int n_threads = 1; n_threads <= 3; n_threads += 2) {
        struct pool *pool = pool_new(n_threads);
        struct callers c = {pthread_self(), n_threads == 1 ? 5 : 1, 0};
        nap(500);
        pool_run(pool, count_by_the_caller, &c, c.n_parts);
        assert_int_equal(c.n_run, c.n_parts);
        pool_run(pool, count_by_the_caller, &c, 0);
        pool_run(pool, count_by_the_caller, &c, -1);
        assert_int_equal(c.n_run, c.n_parts);
        pool_free(pool);
    }
}

/* Threads of this process, when they are as many as is thought: one that was joined is listed for a moment more. */
static int count_threads(int wanted)
{
    int n = 0;
    for (int patience = 0; patience < 20000; patience++) {
        n = support_count_files("/proc/self/task");
        if (n == wanted) {
            break;
        }
        nap(100);
    }
    return n;
}

/* Also where a thread could not be started: those that were have ended. */
static void no_thread_outlives_its_pool(void **state)
{
    (void)state;
    const int before = support_count_files("/proc/self/task");
    struct pool *pool = pool_new(4);
    assert_int_equal(count_threads(before + 3), before + 3);
    nap(500);
    pool_free(pool); /* while they sleep */
    assert_int_equal(count_threads(before), before);
    for (int n = 1; n <= 3; n++) {
        support_fail_at(SUPPORT_THREAD, n);
        assert_null(pool_new(4));
        support_fail_off();
        assert_int_equal(count_threads(before), before);
    }
    const long n_started = support_calls(SUPPORT_THREAD);
    pool = pool_new(1);
    assert_int_equal(support_calls(SUPPORT_THREAD), n_started);
    pool_free(pool);
}

static void pools_fail_cleanly(void **state)
{
    (void)state;
    assert_null(pool_new(0));
    assert_null(pool_new(-1));
    static const enum support_call calls[] = {SUPPORT_MALLOC, SUPPORT_THREAD};
    for (int i = 0; i < 2; i++) {
        SUPPORT_EACH_FAILURE(calls[i], n)
        {
            struct pool *pool = pool_new(4);
            /* Without memory to ask how many cores there are, it goes on and does not spin. */
            assert_true(pool || support_failed());
            assert_true(!pool || calls[i] == SUPPORT_MALLOC || !support_failed());
            if (pool) {
                struct tally t = {.n_parts = 9};
                pool_run(pool, tally_part, &t, 9);
                assert_int_equal(t.n_runs[8], 1);
            }
            pool_free(pool);
        }
    }
}

static void slices_tile_the_range(void **state)
{
    (void)state;
    static const int64_t lengths[] = {0, 1, 5, 63, 64, 65, 1000, (int64_t)1 << 40};
    static const int grains[] = {1, 4, 16, 64};
    for (size_t l = 0; l < 8; l++) {
        for (size_t g = 0; g < 4; g++) {
            for (int n_parts = 1; n_parts < 20; n_parts++) {
                int64_t at = 0, least = INT64_MAX, most = 0;
                for (int part = 0; part < n_parts; part++) {
                    int64_t begin, end;
                    pool_slice(lengths[l], grains[g], part, n_parts, &begin, &end);
                    assert_int_equal(begin, at);
                    assert_true(end >= begin);
                    assert_true(end == lengths[l] || end % grains[g] == 0);
                    at = end;
                    least = end - begin < least ? end - begin : least;
                    most = end - begin > most ? end - begin : most;
                }
                assert_int_equal(at, lengths[l]);
                assert_true(most - least < 2 * grains[g]); /* the last grain may be short */
            }
        }
    }
}

static void make_file(const char *folder, const char *name, const char *text)
{
    char path[5200];
    snprintf(path, sizeof path, "%s/%s", support_path(folder), name);
    support_write_file(path, text, strlen(text));
}

static void quotas_are_read(void **state)
{
    (void)state;
    static const char *const folders[] = {"cg", "cg/a", "cg/a/b", "cg/cpu", "cg/cpu/c", "cg/cpuset"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        assert_int_equal(mkdir(support_path(folders[i]), 0700), 0);
    }
    char list[5200], mount[5200];
    snprintf(list, sizeof list, "%s", support_path("cgroup"));
    snprintf(mount, sizeof mount, "%s", support_path("cg"));
    static const struct {
        const char *groups, *root_max, *a_max, *b_max;
        int n;
    } v2[] = {
        {"0::/a/b\n", "max 100000\n", "max 100000\n", "max 100000\n", 0},
        {"0::/a/b\n", "max 100000\n", "max 100000\n", "200000 100000\n", 2},
        {"0::/a/b\n", "max 100000\n", "150000 100000\n", "800000 100000\n", 2}, /* 1.5 is rounded */
        {"0::/a/b\n", "140000 100000\n", "300000 100000\n", "max 100000\n", 1},
        {"0::/a/b\n", "max 100000\n", "max 100000\n", "1000 100000\n", 1}, /* never none */
        {"0::/\n", "400000 100000\n", "100000 100000\n", "100000 100000\n", 4},
        {"0::/x/y\n", "400000 100000\n", "100000 100000\n", "100000 100000\n", 4}, /* the host's path */
        {"0::/a/b\n", "", "nonsense", "-5 0", 0},
        {"0::/a/b", "max 100000", "9223372036854775807 1", "600000 100000", 6},
        {"nonsense\n\n:\n0::/a\n", "max 1", "300000 100000", "100000 100000", 3},
    };
    for (size_t i = 0; i < sizeof v2 / sizeof v2[0]; i++) {
        make_file("", "cgroup", v2[i].groups);
        make_file("cg", "cpu.max", v2[i].root_max);
        make_file("cg/a", "cpu.max", v2[i].a_max);
        make_file("cg/a/b", "cpu.max", v2[i].b_max);
        assert_int_equal(threads_quota(list, mount), v2[i].n);
    }
    static const struct {
        const char *groups, *quota, *period;
        int n;
    } v1[] = {
        {"4:cpu,cpuacct:/c\n", "250000\n", "50000\n", 5},
        {"4:cpuacct,cpu:/c\n", "250000\n", "50000\n", 5},
        {"3:memory:/c\n4:cpu:/c\n", "-1\n", "50000\n", 0},
        {"4:cpuset:/c\n", "250000\n", "50000\n", 0},
        {"4:cpu:/other\n", "250000\n", "50000\n", 0},
    };
    for (size_t i = 0; i < sizeof v1 / sizeof v1[0]; i++) {
        make_file("", "cgroup", v1[i].groups);
        make_file("cg/cpu/c", "cpu.cfs_quota_us", v1[i].quota);
        make_file("cg/cpu/c", "cpu.cfs_period_us", v1[i].period);
        assert_int_equal(threads_quota(list, mount), v1[i].n);
    }
    assert_int_equal(threads_quota(support_path("nothing"), mount), 0);
}

static void affinity_is_respected(void **state)
{
    (void)state;
    cpu_set_t all, one;
    assert_true(threads_available() >= 1);
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    assert_true(threads_available() <= CPU_COUNT(&all));
    CPU_ZERO(&one);
    for (int i = 0; CPU_COUNT(&one) == 0; i++) {
        if (CPU_ISSET(i, &all)) {
            CPU_SET(i, &one);
        }
    }
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(threads_available(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_part_runs_once),
        cmocka_unit_test(sleepers_wake_up),
        cmocka_unit_test(each_loop_sees_the_one_before),
        cmocka_unit_test(parts_are_handed_out_in_order),
        cmocka_unit_test(parts_run_at_the_same_time),
        cmocka_unit_test(workers_leave_signals_to_the_program),
        cmocka_unit_test(workers_keep_the_faults_of_their_own),
        cmocka_unit_test(as_many_wake_up_as_are_needed),
        cmocka_unit_test(what_one_thread_can_do_the_caller_does),
        cmocka_unit_test(no_thread_outlives_its_pool),
        cmocka_unit_test(pools_fail_cleanly),
        cmocka_unit_test(slices_tile_the_range),
        cmocka_unit_test(quotas_are_read),
        cmocka_unit_test(affinity_is_respected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
