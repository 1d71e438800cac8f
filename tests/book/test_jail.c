/* SPDX-License-Identifier: Apache-2.0
 * The process without rights: what it can do, and what it cannot. */
#include "book/parser/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "tests/server/posed_clock.h"
#include "tests/support.h"

/* ---- What is asked of the system, which does it all the same ---- */

struct question {
    bool is_limit;
    int what;
    unsigned long value, most;
    bool done;
};

/* Of the process without rights too: in memory that both have. */
static struct {
    struct question questions[16];
    size_t n;
} * asked;

static void share_questions(void)
{
    asked = mmap(NULL, sizeof *asked, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(asked != MAP_FAILED);
}

static void forget_questions(void)
{
    munmap(asked, sizeof *asked);
    asked = NULL;
}

static void note(struct question question)
{
    if (asked && asked->n < sizeof asked->questions / sizeof *asked->questions) {
        asked->questions[asked->n++] = question;
    }
}

int prctl(int option, ...)
{
    unsigned long with[4];
    va_list arguments;
    va_start(arguments, option);
    for (int i = 0; i < 4; i++) {
        with[i] = va_arg(arguments, unsigned long);
    }
    va_end(arguments);
    const int result = (int)syscall(SYS_prctl, option, with[0], with[1], with[2], with[3]);
    note((struct question){false, option, with[0], with[0], result == 0});
    return result;
}

int setrlimit(__rlimit_resource_t what, const struct rlimit *limits)
{
    const int result = (int)syscall(SYS_prlimit64, 0, what, limits, NULL);
    note((struct question){true, (int)what, limits->rlim_cur, limits->rlim_max, result == 0});
    return result;
}

static int waits_ms[4], n_waits;
static double passes_s; /* while it is waited: then nothing comes */

int poll(struct pollfd *polled, nfds_t n, int wait_ms)
{
    const struct timespec wait = {wait_ms / 1000, wait_ms % 1000 * 1000000L};
    if (n_waits < 4) {
        waits_ms[n_waits++] = wait_ms;
    }
    now_s += passes_s;
    return passes_s > 0 ? 0 : ppoll(polled, n, &wait, NULL);
}

/* ---- Runs ---- */

static void prepare_nothing(void)
{
}

static utter_status run_on(const char *path,
    void (*parse)(const struct jail_work *, const char *, size_t), char **answer, size_t *n)
{
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

static utter_status run(
    void (*parse)(const struct jail_work *, const char *, size_t), char **answer, size_t *n)
{
    return run_on("/proc/self/exe", parse, answer, n);
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

static int open_before[2]; /* a pipe of the process that asks */

/* A letter for each thing that could be done. */
static void try_all(const struct jail_work *work, const char *bytes, size_t n)
{
    char done[32] = "";
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
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || mprotect(page, 4096, PROT_READ) != 0 ||
        mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0) {
        strcat(done, "e");
    }
    if (write(open_before[1], "seen", 4) >= 0) { /* the filter lets it be written to, were it open */
        strcat(done, "p");
    }
    if (fcntl(3, F_GETFD) >= 0 || write(2, "seen", 0) < 0) {
        strcat(done, "f");
    }
    struct sigaction interrupted;
    if (sigaction(SIGINT, NULL, &interrupted) != 0 || interrupted.sa_handler != SIG_IGN) {
        strcat(done, "i");
    }
    strcat(done, ".");
    jail_write(done, strlen(done));
}

static void test_has_no_rights(void **state)
{
    (void)state;
    char *answer;
    size_t n;
    assert_int_equal(pipe(open_before), 0);
    assert_int_equal(run(try_all, &answer, &n), UTTER_OK);
    close(open_before[0]);
    close(open_before[1]);
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

/* Each may be all that keeps a process from it, where a kernel is old or has no filter for its processor. */
static void test_is_bounded_in_each_way(void **state)
{
    (void)state;
    char *answer;
    size_t n;
    struct stat about;
    assert_int_equal(stat("/proc/self/exe", &about), 0);
    const rlim_t memory = ((rlim_t)1 << 30) + (rlim_t)about.st_size;
    const struct question wanted[] = {{false, PR_SET_PDEATHSIG, SIGKILL, SIGKILL, true},
        {false, PR_SET_NO_NEW_PRIVS, 1, 1, true}, {false, PR_SET_DUMPABLE, 0, 0, true},
        {true, RLIMIT_CORE, 0, 0, true}, {true, RLIMIT_CPU, 60, 60, true},
        {true, RLIMIT_FSIZE, 0, 0, true}, {true, RLIMIT_NPROC, 0, 0, true},
        {true, RLIMIT_AS, memory, memory, true}, {true, RLIMIT_NOFILE, 0, 0, true}};
    share_questions();
    assert_int_equal(run(parse_head, &answer, &n), UTTER_OK);
    memory_free(answer);
    size_t at = 0;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        if (SUPPORT_SANITIZED && wanted[i].is_limit && wanted[i].what == RLIMIT_AS) {
            continue;
        }
        const struct question *is = &asked->questions[at++];
        assert_int_equal(is->is_limit, wanted[i].is_limit);
        assert_int_equal(is->what, wanted[i].what);
        assert_int_equal(is->value, wanted[i].value);
        assert_int_equal(is->most, wanted[i].most);
        assert_true(is->done);
    }
    forget_questions();
}

static void say_how_much(const struct jail_work *work, const char *bytes, size_t n)
{
    assert_string_equal(work->name, "a book");
    assert_non_null(bytes);
    jail_write(&n, sizeof n);
}

static void test_an_empty_file_is_read_too(void **state)
{
    (void)state;
    char *answer;
    size_t n, has;
    support_write_file(support_path("empty"), "", 0);
    assert_int_equal(run_on(support_path("empty"), say_how_much, &answer, &n), UTTER_OK);
    assert_int_equal(n, sizeof has);
    memcpy(&has, answer, sizeof has);
    assert_int_equal(has, 0);
    memory_free(answer);
    /* One that cannot be seen is not parsed at all. */
    share_questions();
    support_fail_at(SUPPORT_MMAP, 1);
    assert_int_equal(run(say_how_much, &answer, &n), UTTER_E_FILE);
    support_fail_off();
    assert_int_equal(asked->n, 1); /* no right was given up yet */
    forget_questions();
}

static void write_little_by_little(const struct jail_work *work, const char *bytes, size_t n)
{
    (void)work, (void)bytes, (void)n;
    support_short_io(3);
    jail_write("what is written in parts", 24);
}

static void fail_behind(const struct jail_work *work, const char *bytes, size_t n)
{
    (void)work, (void)bytes, (void)n;
    jail_write("half", 4);
    _exit(1);
}

/* Of a first write that fails, and a second one that moves nothing. */
static void say_what_was_written(const struct jail_work *work, const char *bytes, size_t n)
{
    (void)work, (void)bytes, (void)n;
    support_fail_at(SUPPORT_WRITE, 1);
    jail_write(jail_write("lost", 4) ? "yes" : "no ", 3);
    support_fail_at(SUPPORT_WRITE, 1);
    support_fail_with(SUPPORT_MOVES_NOTHING);
    jail_write(jail_write("whole", 5) ? " yes" : " no", 4);
}

static void write_a_lot(const struct jail_work *work, const char *bytes, size_t n)
{
    static char block[(1 << 16) - 1];
    (void)work, (void)bytes, (void)n;
    for (size_t left = JAIL_ALLOWANCE - 1, some; left > 0; left -= some) {
        some = left < sizeof block ? left : sizeof block;
        jail_write(block, some);
    }
}

static void test_an_answer_is_whole(void **state)
{
    (void)state;
    char *answer;
    size_t n;
    assert_int_equal(run(write_little_by_little, &answer, &n), UTTER_OK);
    assert_int_equal(n, 24);
    assert_memory_equal(answer, "what is written in parts", 24);
    memory_free(answer);
    assert_int_equal(run(say_what_was_written, &answer, &n), UTTER_OK);
    assert_int_equal(n, 12);
    assert_memory_equal(answer, "no whole yes", 12);
    memory_free(answer);
    assert_int_equal(run(fail_behind, &answer, &n), UTTER_E_FILE);
    assert_null(answer);
    if (!SUPPORT_SANITIZED) {
        assert_int_equal(run(write_a_lot, &answer, &n), UTTER_OK);
        assert_int_equal(n, JAIL_ALLOWANCE - 1);
        memory_free(answer);
    }
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, i)
    {
        utter_status status = run(parse_head, &answer, &n);
        assert_int_equal(status, support_failed() ? UTTER_E_FILE : UTTER_OK);
        memory_free(answer);
    }
}

static void hear_signal(int signal)
{
    (void)signal;
}

static void think(const struct jail_work *work, const char *bytes, size_t n)
{
    (void)work, (void)bytes, (void)n;
    struct timespec begin, now;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &begin);
    do { /* a tenth of a second */
        syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < 100000000);
    jail_write("thought", 7);
}

static void test_signals_do_not_end_the_wait(void **state)
{
    (void)state;
    const struct sigaction hear = {.sa_handler = hear_signal};
    const struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
    char *answer;
    size_t n;
    assert_int_equal(sigaction(SIGALRM, &hear, NULL), 0);
    n_waits = 0;
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    utter_status status = run(think, &answer, &n);
    setitimer(ITIMER_REAL, &never, NULL);
    assert_int_equal(status, UTTER_OK);
    assert_true(n_waits > 1); /* it was interrupted */
    assert_memory_equal(answer, "thought", 7);
    memory_free(answer);
}

static void think_for_ever(const struct jail_work *work, const char *bytes, size_t n)
{
    (void)work, (void)bytes, (void)n;
    for (;;) {
        sched_yield();
    }
}

static void test_who_does_not_answer_in_three_minutes_is_ended(void **state)
{
    (void)state;
    char *answer;
    size_t n;
    n_waits = 0;
    passes_s = 89;
    assert_int_equal(run(think_for_ever, &answer, &n), UTTER_E_FILE);
    passes_s = 0;
    assert_int_equal(n_waits, 3);
    for (int i = 0; i < 3; i++) { /* to the millisecond */
        assert_in_range(waits_ms[i], 180000 - 89000 * i, 180001 - 89000 * i);
    }
    n_waits = 0; /* when they are over, they are */
    passes_s = 90;
    assert_int_equal(run(think_for_ever, &answer, &n), UTTER_E_FILE);
    passes_s = 0;
    assert_int_equal(n_waits, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_and_answers),
        cmocka_unit_test(test_has_no_rights),
        cmocka_unit_test(test_gets_no_new_rights),
        cmocka_unit_test(test_failures_are_told),
        cmocka_unit_test(test_is_bounded_in_each_way),
        cmocka_unit_test(test_an_empty_file_is_read_too),
        cmocka_unit_test(test_an_answer_is_whole),
        cmocka_unit_test(test_signals_do_not_end_the_wait),
        cmocka_unit_test(test_who_does_not_answer_in_three_minutes_is_ended),
    };
    return cmocka_run_group_tests(tests, see_that_one_goes_on, NULL);
}
