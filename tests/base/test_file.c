/* SPDX-License-Identifier: Apache-2.0
 * Reading files, and maps of files that shrink. */
#include "tests/support.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

static void file_read_gives_text_within_the_limit(void **state)
{
    (void)state;
    const char *path = support_path("text");
    char *text;
    size_t n;
    utter_error error;
    support_write_file(path, "abc\0def", 7);
    for (size_t limit = 7; limit < 9; limit++) {
        assert_int_equal(file_read(path, limit, &text, &n, &error), UTTER_OK);
        assert_int_equal(n, 7);
        assert_memory_equal(text, "abc\0def", 8);
        memory_free(text);
    }
    assert_int_equal(file_read(path, 6, &text, &n, &error), UTTER_E_FILE);
    assert_null(text);
    assert_non_null(strstr(error.text, "more than 6 bytes"));
    support_write_file(path, "", 0);
    assert_int_equal(file_read(path, 0, &text, &n, &error), UTTER_OK);
    assert_string_equal(text, "");
    memory_free(text);
    assert_int_equal(file_read(path, SIZE_MAX, &text, &n, &error), UTTER_E_ARGUMENT);
}

static void file_read_takes_pipes_and_short_reads(void **state)
{
    (void)state;
    const char *path = support_path("fifo");
    size_t n_sent = 300000, n;
    char *text, *sent = memory_new(n_sent, 1);
    for (size_t i = 0; i < n_sent; i++) {
        sent[i] = (char)(i * 7 % 251);
    }
    for (int round = 0; round < 2; round++) { /* the second with a limit that is too small */
        assert_int_equal(mkfifo(path, 0600), 0);
        pid_t child = fork();
        if (child == 0) {
            signal(SIGPIPE, SIG_IGN);
            struct file_out *out;
            utter_status status = file_out_open(&out, path, NULL);
            status = status == UTTER_OK ? file_out_write(out, sent, n_sent, NULL) : status;
            _exit(status == UTTER_OK ? 0 : 1);
        }
        support_short_io(1000);
        utter_status status = file_read_any(path, round ? 1000 : 1000000, &text, &n, NULL);
        support_short_io(0);
        assert_int_equal(status, round ? UTTER_E_FILE : UTTER_OK);
        if (round == 0) {
            assert_int_equal(n, n_sent);
            assert_memory_equal(text, sent, n_sent);
            memory_free(text);
        }
        int ended;
        waitpid(child, &ended, 0);
        unlink(path);
    }
    memory_free(sent);
}

static void failures_name_path_and_reason(void **state)
{
    (void)state;
    char *text;
    size_t n;
    utter_error error;
    struct file_map map;
    const char *missing = support_path("missing/file");
    assert_int_equal(file_read(missing, 10, &text, &n, &error), UTTER_E_FILE);
    assert_non_null(
        strstr(error.text, "missing/file: cannot open: No such file or directory (check the name)"));
    assert_int_equal(file_map_open(&map, missing, &error), UTTER_E_FILE);
    assert_non_null(strstr(error.text, "missing/file: cannot open: No such file"));
    assert_int_equal(file_read(support_folder(), 10, &text, &n, &error), UTTER_E_FILE);
    assert_non_null(strstr(error.text, "Is a directory"));
    assert_int_equal(file_map_open(&map, support_folder(), &error), UTTER_E_FILE);
    assert_non_null(strstr(error.text, "Is a directory"));
    assert_int_equal(file_map_open(&map, "/dev/zero", &error), UTTER_E_FILE);
    assert_int_equal(mkfifo(support_path("pipe"), 0600), 0);
    assert_int_equal(
        file_map_open(&map, support_path("pipe"), &error), UTTER_E_FILE); /* does not hang */
    assert_int_equal(
        file_read(support_path("pipe"), 10, &text, &n, &error), UTTER_E_FILE); /* nor this */
    assert_non_null(strstr(error.text, "pipe: is no regular file"));
    unlink(support_path("pipe"));
    assert_int_equal(file_error(&error, "a\nb", "read", ENOMEM), UTTER_E_MEMORY);
    assert_non_null(strstr(error.text, "a\\nb: cannot read"));
    assert_int_equal(file_error(NULL, "a", "read", ENOSPC), UTTER_E_IO);
}

static void failing_calls_are_reported(void **state)
{
    (void)state;
    int n_open = support_count_files("/proc/self/fd");
    const char *path = support_path("text");
    support_write_file(path, "hello", 5);
    for (int call = SUPPORT_MALLOC; call <= SUPPORT_READ; call++) {
        SUPPORT_EACH_FAILURE((enum support_call)call, n)
        {
            char *text;
            size_t bytes;
            utter_status status = file_read(path, 10, &text, &bytes, NULL);
            assert_int_equal(status == UTTER_OK, !support_failed());
            assert_int_equal(text != NULL, !support_failed());
            memory_free(text);
        }
        SUPPORT_EACH_FAILURE((enum support_call)call, n)
        {
            struct file_map map;
            utter_status status = file_map_open(&map, path, NULL);
            assert_int_equal(status == UTTER_OK, !support_failed());
            assert_int_equal(map.data != NULL, !support_failed());
            file_map_close(&map);
        }
    }
    assert_int_equal(support_count_files("/proc/self/fd"), n_open);
}

static void paths_are_joined_and_asked(void **state)
{
    (void)state;
    char out[16];
    utter_error error;
    assert_int_equal(file_join(out, sizeof out, "a", "b", &error), UTTER_OK);
    assert_string_equal(out, "a/b");
    assert_int_equal(file_join(out, sizeof out, "a/", "b", &error), UTTER_OK);
    assert_string_equal(out, "a/b");
    assert_int_equal(file_join(out, sizeof out, "", "b", &error), UTTER_OK);
    assert_string_equal(out, "b");
    assert_int_equal(file_join(out, sizeof out, "/12345678", "12345", &error), UTTER_OK);
    assert_int_equal(file_join(out, sizeof out, "/12345678", "123456", &error), UTTER_E_FILE);
    assert_non_null(strstr(error.text, "too long"));
    support_write_file(support_path("here"), "", 0);
    assert_true(file_exists(support_path("here")));
    assert_false(file_is_folder(support_path("here")));
    assert_true(file_is_folder(support_folder()));
    assert_false(file_exists(support_path("not here")));
}

/* ---- Maps ---- */

enum { PAGE = 4096, N_PAGES = 8 };

static void write_pages(const char *path)
{
    static uint8_t data[N_PAGES * PAGE];
    memset(data, 7, sizeof data);
    support_write_file(path, data, sizeof data);
}

static void map_pages(struct file_map *map, const char *path)
{
    write_pages(path);
    assert_int_equal(file_map_open(map, path, NULL), UTTER_OK);
    assert_int_equal(map->size, N_PAGES * PAGE);
    assert_false(file_map_damaged(map));
}

static void maps_show_the_file(void **state)
{
    (void)state;
    struct file_map map;
    support_write_file(support_path("map"), "hello", 5);
    assert_int_equal(file_map_open(&map, support_path("map"), NULL), UTTER_OK);
    assert_int_equal(map.size, 5);
    assert_memory_equal(map.data, "hello", 5);
    file_map_close(&map);
    assert_null(map.data);
    file_map_close(&map);
    support_write_file(support_path("map"), "", 0);
    assert_int_equal(file_map_open(&map, support_path("map"), NULL), UTTER_OK);
    assert_null(map.data);
    assert_false(file_map_damaged(&map));
    file_map_close(&map);
}

static void shrunk_files_read_as_zeros(void **state)
{
    (void)state;
    support_leave_sigbus();
    struct file_map map, other;
    const char *path = support_path("shrinks");
    map_pages(&map, path);
    map_pages(&other, support_path("stays"));
    assert_int_equal(truncate(path, 2 * PAGE + 100), 0);
    assert_int_equal(map.data[5 * PAGE + 3], 0);
    assert_true(file_map_damaged(&map));
    assert_false(file_map_damaged(&other));
    assert_int_equal(map.data[2 * PAGE + 99], 7);
    assert_int_equal(map.data[2 * PAGE + 100], 0);
    for (size_t i = 3 * PAGE; i < map.size; i++) {
        assert_int_equal(map.data[i], 0);
    }
    assert_int_equal(other.data[other.size - 1], 7);
    assert_int_equal(truncate(path, N_PAGES * PAGE), 0); /* it was damaged, whatever it is now */
    assert_true(file_map_damaged(&map));
    file_map_close(&map);
    file_map_close(&other);
    /* A slot that is used again starts sound. */
    map_pages(&map, path);
    file_map_close(&map);
}

/* The very first byte of a map may be what is gone. */
static void emptied_files_read_as_zeros(void **state)
{
    (void)state;
    support_leave_sigbus();
    struct file_map map;
    map_pages(&map, support_path("empties"));
    assert_int_equal(truncate(support_path("empties"), 0), 0);
    assert_int_equal(map.data[0], 0);
    assert_true(file_map_damaged(&map));
    file_map_close(&map);
}

/* The end inside the last page raises no signal; the size tells. */
static void files_shrunk_by_a_byte_are_damaged(void **state)
{
    (void)state;
    struct file_map map;
    map_pages(&map, support_path("shrinks"));
    assert_int_equal(truncate(support_path("shrinks"), N_PAGES * PAGE - 1), 0);
    assert_true(file_map_damaged(&map));
    assert_int_equal(map.data[map.size - 1], 0);
    file_map_close(&map);
}

static void many_files_are_mapped_and_counted(void **state)
{
    (void)state;
    support_leave_sigbus();
    enum { N = 200 };
    struct file_map maps[N];
    write_pages(support_path("many"));
    for (int i = 0; i < N; i++) {
        assert_int_equal(file_map_open(&maps[i], support_path("many"), NULL), UTTER_OK);
    }
    assert_int_equal(truncate(support_path("many"), 0), 0);
    for (int i = 0; i < N; i += 3) {
        assert_int_equal(maps[i].data[PAGE], 0);
    }
    for (int i = 0; i < N; i++) {
        assert_true(file_map_damaged(&maps[i]));
        file_map_close(&maps[i]);
    }
}

/* Reads a page of a shrunk file that we did not map. */
static void read_foreign_page(void)
{
    struct file_map map;
    const char *path = support_path("foreign");
    map_pages(&map, path);
    volatile const uint8_t *foreign = mmap(NULL, map.size, PROT_READ, MAP_SHARED, map.descriptor, 0);
    if (truncate(path, 0) != 0 || foreign == MAP_FAILED) {
        _exit(99);
    }
    (void)foreign[0];
}

static void die_by_default(void)
{
    signal(SIGBUS, SIG_DFL); /* a sanitizer has its own */
    read_foreign_page();
}

static void leave_with_3(int number, siginfo_t *info, void *context)
{
    (void)context;
    _exit(number == SIGBUS && info->si_addr ? 3 : 4);
}

static void leave_with_5(int number)
{
    _exit(number == SIGBUS ? 5 : 6);
}

static void die_in_own_handler(void)
{
    struct sigaction action = {.sa_sigaction = leave_with_3, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, NULL);
    read_foreign_page();
}

static void die_in_simple_handler(void)
{
    signal(SIGBUS, leave_with_5);
    read_foreign_page();
}

static void survive_what_is_ignored(void)
{
    struct file_map map;
    signal(SIGBUS, SIG_IGN);
    map_pages(&map, support_path("foreign"));
    kill(getpid(), SIGBUS);
    _exit(8);
}

static void die_of_sent_signal(void)
{
    struct file_map map;
    signal(SIGBUS, SIG_DFL);
    map_pages(&map, support_path("foreign"));
    kill(getpid(), SIGBUS);
}

/* First in main: the guard is installed at the first map of the process, so these children come before. */
static void other_faults_go_where_they_went(void **state)
{
    (void)state;
    support_folder();
    assert_int_equal(support_child_end(die_by_default), 1000 + SIGBUS);
    assert_int_equal(support_child_end(die_in_own_handler), 3);
    assert_int_equal(support_child_end(die_in_simple_handler), 5);
    assert_int_equal(support_child_end(survive_what_is_ignored), 8);
    assert_int_equal(support_child_end(die_of_sent_signal), 1000 + SIGBUS);
}

/* With those above it; one that is there already is as good, a file that has its name is not. */
static void folders_are_made(void **state)
{
    static const char *const made[] = {"one", "one", "two/three/four", "two/three", "five/"};
    (void)state;
    utter_error error;
    const char *support = support_folder();
    assert_int_equal(file_make_folder(support, &error), UTTER_OK);
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        assert_int_equal(file_make_folder(support_path(made[i]), &error), UTTER_OK);
        assert_true(file_is_folder(support_path(made[i])));
    }
    support_write_file(support_path("file"), "x", 1);
    assert_int_equal(file_make_folder(support_path("file"), &error), UTTER_E_FILE);
    assert_non_null(strstr(error.text, "cannot make the folder"));
    assert_non_null(strstr(error.text, strerror(ENOTDIR)));
    assert_int_equal(file_make_folder(support_path("file/below"), &error), UTTER_E_FILE);
    assert_false(file_is_folder(support_path("file")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_faults_go_where_they_went),
        cmocka_unit_test(file_read_gives_text_within_the_limit),
        cmocka_unit_test(file_read_takes_pipes_and_short_reads),
        cmocka_unit_test(failures_name_path_and_reason),
        cmocka_unit_test(failing_calls_are_reported),
        cmocka_unit_test(paths_are_joined_and_asked),
        cmocka_unit_test(folders_are_made),
        cmocka_unit_test(maps_show_the_file),
        cmocka_unit_test(shrunk_files_read_as_zeros),
        cmocka_unit_test(emptied_files_read_as_zeros),
        cmocka_unit_test(files_shrunk_by_a_byte_are_damaged),
        cmocka_unit_test(many_files_are_mapped_and_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
