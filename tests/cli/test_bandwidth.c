/* SPDX-License-Identifier: Apache-2.0
 * How fast memory is read: by so many threads, in a process that is gone then, and what it is where it cannot be
 * measured. */
#include "cli/model/bandwidth.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/support.h"

/* How fast, of a machine and under a sanitizer. */
static void assert_measured(double gb_per_s)
{
    assert_true(gb_per_s > 0.01 && gb_per_s < 10000);
}

static int *n_begun; /* threads, of all processes */

static void count_one(void)
{
    ++*n_begun;
}

/* It begins `n` threads, and no more, beside its own. */
static void assert_threads(int asked, long n)
{
    *n_begun = 0;
    if (n > 0) {
        support_happens_at(SUPPORT_THREAD, n, count_one);
        assert_measured(bandwidth_measure(asked));
        assert_int_equal(*n_begun, 1);
    }
    support_happens_at(SUPPORT_THREAD, n + 1, count_one);
    assert_measured(bandwidth_measure(asked));
    support_fail_off();
    assert_int_equal(*n_begun, n > 0);
}

/* The best of five passes. */
static void as_many_threads_read_as_were_asked_for(void **state)
{
    (void)state;
    cpu_set_t before, one;
    n_begun = mmap(NULL, sizeof *n_begun, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(n_begun, MAP_FAILED);
    assert_threads(1, 0);
    assert_threads(2, 5);
    /* Without a number, one a core that this process may use. */
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    int first = 0;
    while (!CPU_ISSET((size_t)first, &before)) {
        first++;
    }
    CPU_ZERO(&one);
    CPU_SET((size_t)first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_threads(0, 0);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    munmap(n_begun, sizeof *n_begun);
}

static void what_cannot_be_measured_is_nothing(void **state)
{
    (void)state;
    int files = support_count_files("/proc/self/fd");
    support_fail_from(SUPPORT_THREAD, 1);
    assert_true(bandwidth_measure(2) == 0);
    /* A pass that lacks a thread does not count, the others do. */
    support_fail_at(SUPPORT_THREAD, 1);
    assert_measured(bandwidth_measure(2));
    support_fail_mmap_at(1);
    assert_true(bandwidth_measure(1) == 0);
    support_fail_write_at(1);
    assert_true(bandwidth_measure(1) == 0);
    support_fail_read_at(1);
    assert_true(bandwidth_measure(1) == 0);
    support_fail_off();
    struct rlimit before, few = {3, 3};
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    double none = bandwidth_measure(1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(none == 0);
    /* Nothing of it is left. */
    assert_int_equal(support_count_files("/proc/self/fd"), files);
    assert_true(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_threads_read_as_were_asked_for),
        cmocka_unit_test(what_cannot_be_measured_is_nothing),
    };
    return cmocka_run_group_tests_name("bandwidth", tests, NULL, NULL);
}
