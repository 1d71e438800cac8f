/* SPDX-License-Identifier: Apache-2.0
 * Threads beside the loop: each job is done once, by a thread, and is told of in the loop; nothing is left of those
 * that could not begin, nor of those that have ended. */
#include "tests/support.h"

#include <dirent.h>
#include <event2/event.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/loop/jobs.h"

enum { MANY = 20000, LONG_S = 30 };

struct counted {
    struct job job;
    atomic_int n_run;
    int n_done;
    bool elsewhere; /* than in the thread of the test, which has signals */
};

static pthread_t loop;
static int n_done;
static atomic_int n_running, most_running;
static atomic_bool held; /* the jobs that run */

static void run(struct job *job)
{
    struct counted *c = (struct counted *)(void *)job;
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    c->elsewhere = !pthread_equal(pthread_self(), loop) && sigismember(&blocked, SIGTERM) == 1;
    int now = atomic_fetch_add(&n_running, 1) + 1, most = atomic_load(&most_running);
    while (now > most && !atomic_compare_exchange_weak(&most_running, &most, now)) {
    }
    while (atomic_load(&held)) {
        usleep(100);
    }
    atomic_fetch_sub(&n_running, 1);
    atomic_fetch_add(&c->n_run, 1);
}

static void done(struct job *job)
{
    ((struct counted *)(void *)job)->n_done++;
    n_done++;
    assert_true(pthread_equal(pthread_self(), loop));
}

/* How many there are of "fd" or "task", as the kernel counts them. */
static int count_own(const char *what)
{
    char path[64] = "/proc/self/";
    int n = 0;
    DIR *folder = opendir(strcat(path, what));
    assert_non_null(folder);
    while (readdir(folder)) {
        n++;
    }
    closedir(folder);
    return n;
}

/* One that has ended may be there for another moment. */
static void expect_threads(int n)
{
    for (double until = clock_seconds() + LONG_S; count_own("task") != n && clock_seconds() < until;) {
        usleep(100);
    }
    assert_int_equal(count_own("task"), n);
}

static void turn_until_done(struct event_base *base, int n)
{
    for (double until = clock_seconds() + LONG_S; n_done < n && clock_seconds() < until;) {
        event_base_loop(base, EVLOOP_NONBLOCK);
    }
    assert_int_equal(n_done, n);
}

static void run_until(int n)
{
    for (double until = clock_seconds() + LONG_S;
         atomic_load(&n_running) < n && clock_seconds() < until;) {
        usleep(100);
    }
    assert_int_equal(atomic_load(&n_running), n);
}

static struct event_base *begin(void)
{
    struct event_base *base = event_base_new();
    assert_non_null(base);
    assert_int_equal(event_base_priority_init(base, 2), 0);
    loop = pthread_self();
    n_done = 0;
    atomic_store(&held, false);
    atomic_store(&most_running, 0);
    return base;
}

static void each_job_is_done_and_told_once(void **state)
{
    static struct counted all[100];
    struct event_base *base = begin();
    struct jobs *jobs = jobs_new(base, 3);
    (void)state;
    assert_non_null(jobs);
    for (int i = 0; i < 100; i++) {
        all[i] = (struct counted){.job = {run, done}};
        assert_true(jobs_submit(jobs, &all[i].job));
    }
    turn_until_done(base, 100);
    for (int i = 0; i < 100; i++) {
        assert_true(all[i].n_run == 1 && all[i].n_done == 1 && all[i].elsewhere);
    }
    jobs_free(jobs);
    event_base_free(base);
}

static void as_many_run_at_once_as_there_are_threads(void **state)
{
    static const struct {
        int asked, threads;
    } cases[] = {{1, 1}, {3, 3}, {16, 16}, {17, 16}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct counted all[20];
        const int n_before = count_own("task");
        struct event_base *base = begin();
        struct jobs *jobs = jobs_new(base, cases[i].asked);
        assert_non_null(jobs);
        expect_threads(n_before + cases[i].threads);
        atomic_store(&held, true);
        for (int k = 0; k < 20; k++) {
            all[k] = (struct counted){.job = {run, done}};
            assert_true(jobs_submit(jobs, &all[k].job));
        }
        run_until(cases[i].threads);
        event_base_loop(base, EVLOOP_NONBLOCK);
        assert_int_equal(n_done, 0);
        atomic_store(&held, false);
        turn_until_done(base, 20);
        assert_int_equal(atomic_load(&most_running), cases[i].threads);
        jobs_free(jobs);
        event_base_free(base);
        expect_threads(n_before);
    }
}

/* Who submits never waits: where too many wait already the job stays the caller's. All that were taken are told of,
 * also as the threads end. */
static void too_many_are_refused_and_the_others_told(void **state)
{
    static struct counted all[MANY];
    struct event_base *base = begin();
    const int n_before = count_own("fd");
    struct jobs *jobs = jobs_new(base, 1);
    int n = 0;
    (void)state;
    assert_non_null(jobs);
    atomic_store(&held, true);
    for (int i = 0; i < MANY; i++) {
        all[i] = (struct counted){.job = {run, done}};
    }
    while (n < MANY && jobs_submit(jobs, &all[n].job)) {
        n++;
    }
    assert_true(n > 1000 && n < MANY);
    atomic_store(&held, false);
    jobs_free(jobs);
    assert_int_equal(n_done, n);
    for (int i = 0; i < MANY; i++) {
        assert_true(all[i].n_run == (i < n) && all[i].n_done == (i < n));
    }
    assert_int_equal(count_own("fd"), n_before);
    event_base_free(base);
}

/* Whatever of it fails: memory, or one of its threads. */
static void what_cannot_begin_leaves_nothing(void **state)
{
    struct event_base *base = begin();
    const int n_files = count_own("fd"), n_threads = count_own("task");
    (void)state;
    for (int call = SUPPORT_MALLOC; call <= SUPPORT_THREAD; call += SUPPORT_THREAD - SUPPORT_MALLOC) {
        SUPPORT_EACH_FAILURE((enum support_call)call, n)
        {
            struct jobs *jobs = jobs_new(base, 3);
            assert_true(!jobs || !support_failed());
            jobs_free(jobs);
            assert_int_equal(count_own("fd"), n_files);
            expect_threads(n_threads);
        }
    }
    event_base_free(base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_job_is_done_and_told_once),
        cmocka_unit_test(as_many_run_at_once_as_there_are_threads),
        cmocka_unit_test(too_many_are_refused_and_the_others_told),
        cmocka_unit_test(what_cannot_begin_leaves_nothing),
    };
    return cmocka_run_group_tests_name("jobs", tests, NULL, NULL);
}
