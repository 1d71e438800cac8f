/* SPDX-License-Identifier: Apache-2.0
 * The process without rights: what it can do, and what it cannot. */
#include "book/parser/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "tests/support.h"

static void prepare_nothing(void)
{
}

static utter_status run(
    void (*parse)(const struct jail_work *, const char *, size_t), char **answer, size_t *n)
{
    const char *path = "/proc/self/exe";
    struct jail_work work = {prepare_nothing, parse, "a book"};
    utter_error error = {0};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    *answer = NULL;
    utter_status status = jail_run(&work, file, answer, n, &error);
    close(file);
    if (status) {
        assert_non_null(strstr(error.text, "a book: cannot be read"));
    }
    return status;
}

static void parse_head(const struct jail_work *work, const char *bytes, size_t n)
{
    (void)work;
    jail_write(bytes, n < 4 ? n : 4);
}

static void test_reads_and_answers(void **state)
{
    (void)state;
    char *answer;
    size_t n;
    assert_int_equal(run(parse_head, &answer, &n), UTTER_OK);
    assert_int_equal(n, 4);
    assert_memory_equal(answer, "\177ELF", 4);
    memory_free(answer);
}

/* The process that asks goes on, and the other one ends: else the tests here would end in silence. */
static int see_that_one_goes_on(void **state)
{
    (void)state;
    char *answer;
    size_t n;
    int how;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(run(parse_head, &answer, &n) == UTTER_OK && n == 4 ? 42 : 1);
    }
    return waitpid(pid, &how, 0) == pid && WIFEXITED(how) && WEXITSTATUS(how) == 42 ? 0 : -1;
}

/* A letter for each thing that could be done. */
static void try_all(const struct jail_work *work, const char *bytes, size_t n)
{
    char done[16] = "";
    (void)work, (void)bytes, (void)n;
    if (open("/etc/passwd", O_RDONLY) >= 0) {
        strcat(done, "o");
    }
    if (open("/tmp", O_TMPFILE | O_RDWR, 0600) >= 0) {
        strcat(done, "w");
    }
    if (socket(AF_INET, SOCK_STREAM, 0) >= 0 || socket(AF_UNIX, SOCK_STREAM, 0) >= 0) {
        strcat(done, "s");
    }
    if (kill(getppid(), 0) == 0) {
        strcat(done, "k");
    }
    if (unlink("/tmp/utter-never-there") == 0 || errno != EPERM) {
        strcat(done, "u");
    }
    char *words[] = {NULL};
    execve("/bin/true", words, words);
    if (errno != EPERM) {
        strcat(done, "x");
    }
    if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) {
        strcat(done, "m");
    }
    if (fcntl(3, F_GETFD) >= 0 || write(2, "seen", 0) < 0) {
        strcat(done, "f");
    }
    strcat(done, ".");
    jail_write(done, strlen(done));
}

static void test_has_no_rights(void **state)
{
    (void)state;
    char *answer;
    size_t n;
    assert_int_equal(run(try_all, &answer, &n), UTTER_OK);
    char text[32];
    snprintf(text, sizeof text, "%.*s", (int)n, answer);
    assert_string_equal(text, ".");
    memory_free(answer);
}

static void crash(const struct jail_work *work, const char *bytes, size_t n)
{
    (void)work, (void)bytes, (void)n;
    jail_write("half", 4);
    raise(SIGKILL);
    __builtin_trap(); /* where the filter keeps it from sending signals */
}

static void say_nothing(const struct jail_work *work, const char *bytes, size_t n)
{
    (void)work, (void)bytes, (void)n;
}

static void talk_for_ever(const struct jail_work *work, const char *bytes, size_t n)
{
    static char block[1 << 16];
    (void)work, (void)bytes, (void)n;
    while (jail_write(block, sizeof block)) {
    }
}

static void take_memory(const struct jail_work *work, const char *bytes, size_t n)
{
    (void)work, (void)bytes, (void)n;
    size_t all = 0;
    for (char *block; all < (size_t)2 << 30 && (block = malloc(1 << 20)); all += 1 << 20) {
        block[0] = 1;
    }
    jail_write(all < (size_t)2 << 30 ? "bounded" : "endless", 7);
}

static void test_failures_are_told(void **state)
{
    (void)state;
    char *answer;
    size_t n;
    if (!SUPPORT_SANITIZED) { /* which reserve terabytes, and tell of crashes */
        assert_int_equal(run(crash, &answer, &n), UTTER_E_FILE);
        assert_int_equal(run(take_memory, &answer, &n), UTTER_OK);
        assert_memory_equal(answer, "bounded", 7);
        memory_free(answer);
    }
    assert_int_equal(run(say_nothing, &answer, &n), UTTER_E_FILE);
    assert_int_equal(run(talk_for_ever, &answer, &n), UTTER_E_FILE);
    assert_null(answer);
}

struct watch {
    pid_t thread; /* that starts the process */
    atomic_bool ends, seen;
};

/* Whether the process that this one has started can never get rights again. */
static void *watch(void *user)
{
    struct watch *w = user;
    char path[64], line[128];
    long child;
    while (!w->ends && !w->seen) {
        snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)w->thread);
        FILE *file = fopen(path, "re");
        bool any = file && fscanf(file, "%ld", &child) == 1;
        if (file) {
            fclose(file);
        }
        snprintf(path, sizeof path, "/proc/%ld/status", child);
        file = any ? fopen(path, "re") : NULL;
        while (file && fgets(line, sizeof line, file)) {
            w->seen |= strcmp(line, "NoNewPrivs:\t1\n") == 0;
        }
        if (file) {
            fclose(file);
        }
    }
    return NULL;
}

/* Also where it is the superuser who reads a book, whom the filter of calls asks for nothing. */
static void test_gets_no_new_rights(void **state)
{
    (void)state;
    struct watch w = {.thread = getpid()};
    pthread_t thread;
    char *answer;
    size_t n;
    assert_int_equal(pthread_create(&thread, NULL, watch, &w), 0);
    assert_int_equal(run(talk_for_ever, &answer, &n), UTTER_E_FILE);
    w.ends = true;
    pthread_join(thread, NULL);
    assert_true(w.seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_and_answers),
        cmocka_unit_test(test_has_no_rights),
        cmocka_unit_test(test_gets_no_new_rights),
        cmocka_unit_test(test_failures_are_told),
    };
    return cmocka_run_group_tests(tests, see_that_one_goes_on, NULL);
}
