/* SPDX-License-Identifier: Apache-2.0
 * Maps of files and their guard at the edges: what of a map rests, how many there may be, what lies beside them, and
 * what becomes of faults that are others'. The linker sends madvise here. */
#include "tests/support.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/base/advised.h"

enum { N_PAGES = 8, MOST_MAPS = 1024 };

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void write_pages(const char *path, int n)
{
    static uint8_t data[N_PAGES * 65536];
    memset(data, 7, sizeof data);
    support_write_file(path, data, (size_t)n * page_bytes());
}

static struct file_map map_pages(const char *path)
{
    struct file_map map;
    write_pages(path, N_PAGES);
    assert_int_equal(file_map_open(&map, path, NULL), UTTER_OK);
    return map;
}

/* ---- Rest ---- */

static void assert_rests(
    const struct file_map *map, const uint8_t *data, size_t bytes, int first, int n)
{
    advised.n = 0;
    file_map_rest(map, data, bytes);
    if (advised.n != (n > 0)) {
        fail_msg("from %td, %zu bytes: advice was given %d times", data - map->data, bytes, advised.n);
    }
    if (n > 0) {
        assert_int_equal(advised.begin, (uintptr_t)map->data + (size_t)first * page_bytes());
        assert_int_equal(advised.bytes, (size_t)n * page_bytes());
        assert_int_equal(advised.advice, MADV_DONTNEED);
    }
}

/* The pages that lie whole in what is asked and in the map, and no byte beside them. */
static void whole_pages_rest(void **state)
{
    (void)state;
    const size_t page = page_bytes();
    struct file_map map = map_pages(support_path("rests"));
    const uint8_t *data = map.data;
    assert_rests(&map, data, map.size, 0, N_PAGES);
    assert_rests(&map, data + 2 * page, page, 2, 1);
    assert_rests(&map, data + page, 3 * page, 1, 3);
    assert_rests(&map, data + page + 1, 3 * page, 2, 2);
    assert_rests(&map, data + page - 1, 3 * page, 1, 2);
    assert_rests(&map, data + page, 3 * page - 1, 1, 2);
    assert_rests(&map, data + page, 3 * page + 1, 1, 3);
    assert_rests(&map, data + page, page - 1, 0, 0);
    assert_rests(&map, data + page + 1, 2 * page - 2, 0, 0);
    assert_rests(&map, data + page, 0, 0, 0);
    assert_rests(&map, data - 3 * page, 5 * page, 0, 2); /* begins before the map */
    assert_rests(&map, data + 6 * page, 9 * page, 6, 2); /* ends behind it */
    assert_rests(&map, data - 3 * page, 3 * page, 0, 0); /* is not in it */
    assert_rests(&map, data + map.size, page, 0, 0);
    assert_int_equal(data[0], 7); /* what rested is there when it is wanted */
    assert_int_equal(data[map.size - 1], 7);
    file_map_close(&map);
}

/* Of a file that shrank the zeros must stay: the file has nothing to give in their place. */
static void a_damaged_map_does_not_rest(void **state)
{
    (void)state;
    support_leave_sigbus();
    const char *path = support_path("damaged");
    struct file_map map = map_pages(path), none = {0};
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(map.data[0], 0);
    assert_rests(&map, map.data, map.size, 0, 0);
    assert_rests(&none, map.data, map.size, 0, 0);
    assert_int_equal(map.data[0], 0);
    file_map_close(&map);
}

/* ---- Damage ---- */

static void a_file_that_grows_is_sound(void **state)
{
    (void)state;
    const char *path = support_path("grown");
    struct file_map map = map_pages(path);
    assert_int_equal(truncate(path, (off_t)map.size + 1), 0);
    assert_false(file_map_damaged(&map));
    close(map.descriptor); /* who cannot ask for the size any more cannot trust it */
    assert_true(file_map_damaged(&map));
    file_map_close(&map);
    assert_int_equal(map.size, 0);
    assert_int_equal(map.descriptor, 0);
    assert_false(file_map_damaged(&map));
}

/* What was read before keeps its bytes up to the page of the fault, and errno is the reader's. */
static void a_repair_changes_nothing_else(void **state)
{
    (void)state;
    support_leave_sigbus();
    const size_t page = page_bytes();
    const char *path = support_path("else");
    struct file_map map = map_pages(path);
    assert_int_equal(truncate(path, (off_t)(3 * page)), 0);
    errno = EDOM;
    volatile const uint8_t *data = map.data;
    assert_int_equal(data[6 * page - 1], 0); /* the last byte of a page: zeros begin with that page */
    assert_int_equal(errno, EDOM);
    assert_int_equal(data[3 * page - 1], 7);
    assert_int_equal(data[3 * page], 0); /* a second fault in the same map */
    assert_int_equal(data[map.size - 1], 0);
    assert_true(file_map_damaged(&map));
    file_map_close(&map);
}

static void the_guard_restarts_calls_on_any_stack(void **state)
{
    (void)state;
    support_leave_sigbus();
    struct file_map map = map_pages(support_path("flags"));
    struct sigaction now;
    assert_int_equal(sigaction(SIGBUS, NULL, &now), 0);
    const int flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    assert_int_equal(now.sa_flags & flags, flags);
    assert_int_equal(now.sa_flags & (int)(SA_RESETHAND | SA_NODEFER), 0);
    assert_int_equal(sigismember(&now.sa_mask, SIGTERM), 0);
    file_map_close(&map);
}

/* A program that takes SIGBUS away has it back at the next map, where it ignores the signal too. */
static void the_guard_comes_back_where_it_was_reset(void **state)
{
    (void)state;
    static void (*const resets[])(int) = {SIG_DFL, SIG_IGN};
    for (int i = 0; i < 2; i++) {
        signal(SIGBUS, resets[i]);
        const char *path = support_path("reset");
        struct file_map map = map_pages(path);
        assert_int_equal(truncate(path, 0), 0);
        assert_int_equal(map.data[0], 0);
        file_map_close(&map);
    }
}

static void somebody(int number)
{
    (void)number;
}

/* A handler that a program has set after ours stays: it is expected to pass on. */
static void a_later_handler_stays(void **state)
{
    (void)state;
    struct file_map map = map_pages(support_path("later"));
    struct sigaction now;
    signal(SIGBUS, somebody);
    struct file_map other = map_pages(support_path("later"));
    assert_int_equal(sigaction(SIGBUS, NULL, &now), 0);
    assert_ptr_equal(now.sa_handler, somebody);
    signal(SIGBUS, SIG_DFL);
    file_map_close(&map);
    file_map_close(&other);
}

/* ---- How many ---- */

static bool allow_files(rlim_t n)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max < n) {
        return false;
    }
    limit.rlim_cur = limit.rlim_cur < n ? n : limit.rlim_cur;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

/* The last is guarded as the first, one more is refused and leaves nothing, and a place that is free is taken. */
static void as_many_maps_as_there_are_slots(void **state)
{
    (void)state;
    static struct file_map maps[MOST_MAPS], other;
    const char *path = support_path("slots"), *last = support_path("last");
    if (!allow_files(MOST_MAPS + 64)) {
        skip();
    }
    support_leave_sigbus();
    write_pages(path, 1);
    write_pages(last, 1);
    for (int i = 0; i < MOST_MAPS; i++) {
        assert_int_equal(file_map_open(&maps[i], i + 1 < MOST_MAPS ? path : last, NULL), UTTER_OK);
        assert_int_equal(maps[i].slot, i);
    }
    utter_error error;
    const int n_open = support_count_files("/proc/self/fd"), n_mapped = support_count_mappings("/last");
    assert_int_equal(file_map_open(&other, last, &error), UTTER_E_MEMORY);
    assert_non_null(strstr(error.text, "last: more than 1024 files are mapped"));
    assert_null(other.data);
    assert_int_equal(support_count_files("/proc/self/fd"), n_open);
    assert_int_equal(support_count_mappings("/last"), n_mapped);
    assert_int_equal(truncate(last, 0), 0);
    assert_int_equal(maps[MOST_MAPS - 1].data[0], 0);
    assert_true(file_map_damaged(&maps[MOST_MAPS - 1]));
    assert_false(file_map_damaged(&maps[0]));
    file_map_close(&maps[7]);
    assert_int_equal(file_map_open(&maps[7], path, NULL), UTTER_OK);
    assert_int_equal(maps[7].slot, 7);
    for (int i = 0; i < MOST_MAPS; i++) {
        file_map_close(&maps[i]);
    }
    assert_int_equal(support_count_mappings("/last") + support_count_mappings("/slots"), 0);
    assert_int_equal(support_count_files("/proc/self/fd"), n_open - MOST_MAPS);
}

/* ---- Faults of others ---- */

/* Another mapping at this address, where there is none, of a page that its file has no more. */
static bool map_gone(void *at)
{
    const char *path = support_path("gone");
    const int flags = MAP_SHARED | MAP_FIXED_NOREPLACE;
    write_pages(path, 1);
    FILE *file = fopen(path, "r");
    const bool is = file && mmap(at, page_bytes(), PROT_READ, flags, fileno(file), 0) == at;
    if (!file || truncate(path, 0) != 0) {
        _exit(99);
    }
    fclose(file);
    return is;
}

/* Where a map was, another's fault is another's. */
static void fault_where_a_map_was(void)
{
    signal(SIGBUS, SIG_DFL);
    struct file_map map = map_pages(support_path("was"));
    uint8_t *at = (uint8_t *)map.data;
    file_map_close(&map);
    if (!map_gone(at)) {
        _exit(98);
    }
    (void)*(volatile uint8_t *)at;
}

static struct file_map beside;

/* Exits with 3 when nothing was done to the map for the sake of an address that is not in it. */
static void leave_beside(int number)
{
    _exit(number == SIGBUS && !file_map_damaged(&beside) ? 3 : 4);
}

/* Maps of a page lie side by side: where one was closed, another's page can be put beside one of ours. */
static void fault_beside(bool behind)
{
    enum { N = 16 };
    static struct file_map maps[N];
    const size_t page = page_bytes();
    signal(SIGBUS, leave_beside);
    write_pages(support_path("beside"), 1);
    for (int i = 0; i < N; i++) {
        if (file_map_open(&maps[i], support_path("beside"), NULL) != UTTER_OK) {
            _exit(97);
        }
    }
    for (int i = 0; i < N; i += 2) {
        beside = maps[i];
        file_map_close(&maps[i + 1]);
        const uint8_t *at = behind ? beside.data + page : beside.data - page;
        if (map_gone((void *)at)) {
            (void)*(volatile const uint8_t *)at;
        }
    }
    _exit(96);
}

static void fault_behind(void)
{
    fault_beside(true);
}

static void fault_before(void)
{
    fault_beside(false);
}

/* A handler of before that mends the fault itself: the read goes on, and errno is as it was. */
static void *mended;

static void mend(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    mmap(mended, page_bytes(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    errno = info->si_addr == mended ? ERANGE : EILSEQ;
}

static void fault_that_another_mends(void)
{
    struct sigaction action = {.sa_sigaction = mend, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, NULL);
    struct file_map map = map_pages(support_path("mended"));
    mended = mmap(NULL, page_bytes(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(mended, page_bytes());
    if (!map_gone(mended)) {
        _exit(98);
    }
    errno = EDOM;
    const int byte = *(volatile uint8_t *)mended;
    _exit(byte == 0 && errno == EDOM && !file_map_damaged(&map) ? 3 : 4);
}

/* First in main: each child installs the guard anew, over its own handler. */
static void faults_of_others_are_passed_on(void **state)
{
    (void)state;
    support_folder();
    assert_int_equal(support_child_end(fault_where_a_map_was), 1000 + SIGBUS);
    assert_int_equal(support_child_end(fault_behind), 3);
    assert_int_equal(support_child_end(fault_before), 3);
    assert_int_equal(support_child_end(fault_that_another_mends), 3);
}

/* Whether opening `path` fails so, with the whole reason. */
static void assert_not_mapped(const char *path, utter_status status, const char *reason)
{
    char wanted[5200];
    struct file_map map = {.data = (const uint8_t *)1, .size = 7, .descriptor = -1};
    utter_error error = {0};
    assert_int_equal(file_map_open(&map, path, &error), status);
    support_fail_off();
    snprintf(wanted, sizeof wanted, "%s: %s", path, reason);
    assert_string_equal(error.text, wanted);
    assert_true(!map.data && map.size == 0);
    file_map_close(&map);
}

/* Of each reason all is said, and what was opened is closed: the next file has its number. */
static void what_cannot_be_mapped_is_told_in_full(void **state)
{
    char path[5000];
    (void)state;
    const int first = open("/dev/null", O_RDONLY);
    assert_true(first >= 0);
    close(first);
    snprintf(path, sizeof path, "%s", support_path("told"));
    support_write_file(path, "text", 4);
    assert_not_mapped(support_folder(), UTTER_E_FILE, "cannot read: Is a directory");
    assert_not_mapped("/dev/null", UTTER_E_FILE, "is no file but a pipe or a device (save it first)");
    assert_not_mapped(support_path("nowhere"), UTTER_E_FILE,
        "cannot open: No such file or directory (check the name)");
    support_fail_mmap_at(1);
    support_fail_with(ENOMEM);
    assert_not_mapped(path, UTTER_E_MEMORY, "cannot map: Cannot allocate memory");
    support_fail_open_at(1);
    support_fail_with(EMFILE);
    assert_not_mapped(path, UTTER_E_IO,
        "cannot open: Too many open files (close some, or raise the limit: ulimit -n)");
    const int last = open("/dev/null", O_RDONLY);
    assert_int_equal(last, first);
    close(last);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_mapped_is_told_in_full),
        cmocka_unit_test(faults_of_others_are_passed_on),
        cmocka_unit_test(whole_pages_rest),
        cmocka_unit_test(a_damaged_map_does_not_rest),
        cmocka_unit_test(a_file_that_grows_is_sound),
        cmocka_unit_test(a_repair_changes_nothing_else),
        cmocka_unit_test(the_guard_restarts_calls_on_any_stack),
        cmocka_unit_test(the_guard_comes_back_where_it_was_reset),
        cmocka_unit_test(a_later_handler_stays),
        cmocka_unit_test(as_many_maps_as_there_are_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
