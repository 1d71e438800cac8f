/* SPDX-License-Identifier: Apache-2.0
 * How many cores a process may use, by a scheduler that the test poses and quotas in files of its own: machines with
 * more cores than the usual mask holds, and numbers at the ends of their range. */
#include "tests/support.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/threads.h"

/* The posed machine: this many cores are allowed, its mask has so many bits, and it may refuse to tell. */
static struct {
    int n_cores, n_bits, reason;
    int n_asked;
} machine;

int __wrap_sched_getaffinity(pid_t process, size_t bytes, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t process, size_t bytes, cpu_set_t *set)
{
    machine.n_asked++;
    assert_int_equal(process, 0);
    if (machine.reason || bytes * 8 < (size_t)machine.n_bits) {
        errno = machine.reason ? machine.reason : EINVAL;
        return -1;
    }
    for (int i = 0; i < machine.n_cores; i++) {
        CPU_SET_S((size_t)(machine.n_bits - 1 - i), bytes, set);
    }
    return 0;
}

/* No group limits this process. */
static int without_groups(void **state)
{
    (void)state;
    support_write_file(support_path("groups"), "", 0);
    static char none[5000];
    snprintf(none, sizeof none, "%s", support_path("groups"));
    support_stand_in("/proc/self/cgroup", none);
    return 0;
}

static int with_groups(void **state)
{
    (void)state;
    support_stand_in(NULL, NULL);
    return 0;
}

static void all_allowed_cores_are_counted(void **state)
{
    (void)state;
    static const struct {
        int n_cores, n_bits, n_asked;
    } cases[] = {{1, 64, 1}, {2, 64, 1}, {5, 1024, 1}, {1024, 1024, 1}, {1000, 1088, 2},
        {4096, 4096, 2}, {7, 4160, 3}, {70000, 1 << 18, 5}, {3, 1 << 20, 6}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memset(&machine, 0, sizeof machine);
        machine.n_cores = cases[i].n_cores;
        machine.n_bits = cases[i].n_bits;
        assert_int_equal(threads_available(), cases[i].n_cores);
        assert_int_equal(machine.n_asked, cases[i].n_asked);
    }
}

/* One thread runs anywhere. */
static void an_unknown_number_of_cores_is_one(void **state)
{
    (void)state;
    memset(&machine, 0, sizeof machine);
    machine.n_cores = 8;
    machine.n_bits = 64;
    machine.reason = EPERM;
    assert_int_equal(threads_available(), 1);
    assert_int_equal(machine.n_asked, 1);
    machine.reason = EINVAL; /* whatever the size of the mask */
    machine.n_asked = 0;
    assert_int_equal(threads_available(), 1);
    assert_int_equal(machine.n_asked, 6);
    machine.reason = 0;
    support_fail_malloc_at(1);
    assert_int_equal(threads_available(), 1);
    support_fail_off();
    assert_int_equal(threads_available(), 8);
}

/* The quota of this process's group binds where it is less than the cores. Its path leads from where groups are mounted
 * to a file of ours. */
static void the_smaller_of_cores_and_quota_counts(void **state)
{
    (void)state;
    char ours[5000], groups[6000];
    struct stat about;
    if (stat("/sys/fs/cgroup", &about) != 0 || threads_quota("/proc/self/cgroup", "/sys/fs/cgroup")) {
        skip();
    }
    assert_int_equal(mkdir(support_path("limited"), 0700), 0);
    snprintf(ours, sizeof ours, "%s", support_path("limiting"));
    const int n = snprintf(groups, sizeof groups, "0::/../../..%s\n", support_path("limited"));
    support_write_file(ours, groups, (size_t)n);
    support_stand_in("/proc/self/cgroup", ours);
    memset(&machine, 0, sizeof machine);
    machine.n_bits = 64;
    machine.n_cores = 3;
    static const struct {
        const char *quota;
        int n;
    } cases[] = {{"200000 100000\n", 2}, {"100000 100000\n", 1}, {"300000 100000\n", 3},
        {"400000 100000\n", 3}, {"max 100000\n", 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        support_write_file(support_path("limited/cpu.max"), cases[i].quota, strlen(cases[i].quota));
        assert_int_equal(threads_available(), cases[i].n);
    }
    without_groups(NULL);
}

/* ---- Quotas ---- */

static char list[5000], mount[5000];

static void put(const char *name, const char *text)
{
    support_write_file(support_path(name), text, strlen(text));
}

static void make_hierarchy(void)
{
    static const char *const folders[] = {"cg", "cg/a", "cg/cpu", "cg/cpu/c"};
    for (int i = 0; i < 4; i++) {
        mkdir(support_path(folders[i]), 0700);
    }
    snprintf(list, sizeof list, "%s", support_path("of"));
    snprintf(mount, sizeof mount, "%s", support_path("cg"));
}

static void quotas_are_whole_cores(void **state)
{
    (void)state;
    static const struct {
        const char *max;
        int n;
    } cases[] = {
        {"0 100000", 0},
        {"1 100000", 1},
        {"1 0", 0},
        {"-1 100000", 0},
        {"100000 -1", 0},
        {"149999 100000", 1},
        {"150000 100000", 2},
        {"249999 100000", 2},
        {"250000 100000", 3},
        {"2147483646 1", INT_MAX - 1},
        {"2147483647 1", INT_MAX},
        {"2147483648 1", INT_MAX},
        {"2305843009213693951 1", INT_MAX}, /* a quarter of what can be counted */
        {"2305843009213693952 1", 0},
        {"1 2305843009213693951", 1},
        {"1 2305843009213693952", 0},
        {"200000", 0},
        {"", 0},
    };
    make_hierarchy();
    put("of", "0::/a\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put("cg/a/cpu.max", cases[i].max);
        assert_int_equal(threads_quota(list, mount), cases[i].n);
    }
    unlink(support_path("cg/a/cpu.max"));
}

/* Both versions side by side: all lines count, by their controllers, and the least of their quotas binds. */
static void the_least_quota_of_all_lines_binds(void **state)
{
    (void)state;
    static const struct {
        const char *groups;
        int n;
    } cases[] = {{"0::/a\n", 6}, {"1:cpu:/c\n", 4}, {"0::/a\n1:cpu:/c\n", 4}, {"1:cpu:/c\n0::/a\n", 4},
        {"1:cpuset,cpu:/c\n", 4}, {"1:cpu,cpuset:/c\n", 4}, {"1:cpuset,cpuacct:/c\n", 0},
        {"1:xcpu:/c\n", 0}, {"1:cp:/c\n", 0}, {"1:cpu\n0::/a\n", 6}, {"no line\n1:cpu:/c", 4},
        {"1:cpu:/c:d\n", 0}, {"\n\n0::/a", 6}, {"7:name=cpu:/c\n", 0}};
    make_hierarchy();
    put("cg/a/cpu.max", "600000 100000\n");
    put("cg/cpu/c/cpu.cfs_quota_us", "400000\n");
    put("cg/cpu/c/cpu.cfs_period_us", "100000\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put("of", cases[i].groups);
        assert_int_equal(threads_quota(list, mount), cases[i].n);
    }
    put("of", "1:cpu:/c\n");
    put("cg/cpu/cpu.cfs_quota_us", "300000\n"); /* the root's */
    put("cg/cpu/cpu.cfs_period_us", "100000\n");
    assert_int_equal(threads_quota(list, mount), 3);
    unlink(support_path("cg/cpu/cpu.cfs_period_us")); /* half of a quota is none */
    assert_int_equal(threads_quota(list, mount), 4);
    unlink(support_path("cg/cpu/cpu.cfs_quota_us"));
    put("cg/cpu.cfs_quota_us", "100000\n"); /* above the root is no hierarchy */
    put("cg/cpu.cfs_period_us", "100000\n");
    assert_int_equal(threads_quota(list, mount), 4);
    for (int n = 1; n <= 4; n++) { /* what cannot be read limits nothing */
        support_fail_malloc_at(n);
        const int quota = threads_quota(list, mount);
        assert_true(quota == 0 || quota == 4);
        support_fail_off();
    }
}

/* Paths that have no room are no groups; the root is one of every path that has. */
static void a_path_that_is_too_long_has_no_quota(void **state)
{
    (void)state;
    static char line[3 * PATH_MAX], folder[2 * PATH_MAX];
    make_hierarchy();
    put("cg/cpu.max", "500000 100000\n");
    for (size_t length = PATH_MAX - 2; length <= PATH_MAX + 1; length++) {
        const size_t n = length - strlen(mount) - 1;
        memset(folder, 'x', n);
        folder[n] = 0;
        snprintf(line, sizeof line, "0::/%s\n", folder);
        put("of", line);
        assert_int_equal(threads_quota(list, mount), length < PATH_MAX ? 5 : 0);
    }
    put("of", "0::\n"); /* no path: the root itself */
    assert_int_equal(threads_quota(list, mount), 5);
    unlink(support_path("cg/cpu.max"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_allowed_cores_are_counted, without_groups, with_groups),
        cmocka_unit_test_setup_teardown(an_unknown_number_of_cores_is_one, without_groups, with_groups),
        cmocka_unit_test_setup_teardown(the_smaller_of_cores_and_quota_counts, NULL, with_groups),
        cmocka_unit_test(quotas_are_whole_cores),
        cmocka_unit_test(the_least_quota_of_all_lines_binds),
        cmocka_unit_test(a_path_that_is_too_long_has_no_quota),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
