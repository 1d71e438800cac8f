/* SPDX-License-Identifier: Apache-2.0
 * The process without rights, by what is asked of the system for it: the filter of its calls, how it is started, and
 * how its end is waited for. */
#include "book/parser/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "tests/support.h"

/* ---- Calls of the system, in place of the C library's ---- */

/* The filter that was asked for: in memory that both processes have. */
static struct {
    struct sock_filter filter[256];
    size_t n;
} * asked;

int prctl(int option, ...)
{
    unsigned long with[4];
    va_list arguments;
    va_start(arguments, option);
    for (int i = 0; i < 4; i++) {
        with[i] = va_arg(arguments, unsigned long);
    }
    va_end(arguments);
    if (asked && option == PR_SET_SECCOMP) {
        const struct sock_fprog *program = (const struct sock_fprog *)with[1];
        asked->n = program->len < 256 ? program->len : 0;
        memcpy(asked->filter, program->filter, asked->n * sizeof *program->filter);
    }
    return (int)syscall(SYS_prctl, option, with[0], with[1], with[2], with[3]);
}

static int pipe_fails_with, fork_fails_with, waits_interrupted; /* the next call; 0: none */

int pipe2(int ends[2], int flags)
{
    errno = pipe_fails_with;
    return pipe_fails_with ? -1 : (int)syscall(SYS_pipe2, ends, flags);
}

pid_t fork(void)
{
    errno = fork_fails_with;
    return fork_fails_with ? -1 : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

pid_t waitpid(pid_t pid, int *how, int options)
{
    if (waits_interrupted > 0) {
        waits_interrupted--;
        errno = EINTR;
        return -1;
    }
    return (pid_t)syscall(SYS_wait4, pid, how, options, NULL);
}

/* ---- Runs ---- */

static void prepare_nothing(void)
{
}

static void say_hello(const struct jail_work *work, const char *bytes, size_t n)
{
    (void)work, (void)bytes, (void)n;
    jail_write("hello", 5);
}

static void fail_behind(const struct jail_work *work, const char *bytes, size_t n)
{
    say_hello(work, bytes, n);
    _exit(1);
}

static utter_status run(void (*parse)(const struct jail_work *, const char *, size_t), char **answer,
    size_t *n, utter_error *error)
{
    const struct jail_work work = {prepare_nothing, parse, "a book"};
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    utter_status status = jail_run(&work, file, answer, n, error);
    close(file);
    return status;
}

/* ---- The filter of calls, as the system would ask it ---- */

static uint32_t filter_says(unsigned arch, int call, uint64_t third)
{
    const struct seccomp_data about = {.nr = call, .arch = arch, .args = {0, 0, third, 0, 0, 0}};
    uint32_t value = 0;
    for (size_t i = 0; i < asked->n; i++) {
        const struct sock_filter *f = &asked->filter[i];
        switch (f->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            assert_true(f->k + sizeof value <= sizeof about);
            memcpy(&value, (const char *)&about + f->k, sizeof value);
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
            i += value == f->k ? f->jt : f->jf;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            i += value & f->k ? f->jt : f->jf;
            break;
        case BPF_RET | BPF_K:
            return f->k;
        default:
            fail_msg("instruction %zu is %#x", i, f->code);
        }
    }
    fail_msg("it says nothing");
    return 0;
}

static void the_filter_knows_every_call(void **state)
{
    (void)state;
    static const int allowed[] = {
        SYS_write,
        SYS_brk,
        SYS_munmap,
        SYS_mremap,
        SYS_madvise,
        SYS_futex,
        SYS_getrandom,
        SYS_clock_gettime,
        SYS_rt_sigprocmask,
        SYS_rt_sigaction,
        SYS_rt_sigreturn,
        SYS_sigaltstack,
        SYS_sched_yield,
        SYS_exit,
        SYS_exit_group,
        SYS_gettimeofday,
#ifdef SYS_time
        SYS_time,
#endif
    };
    char *answer;
    size_t n;
    asked = mmap(NULL, sizeof *asked, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(asked != MAP_FAILED);
    assert_int_equal(run(say_hello, &answer, &n, NULL), UTTER_OK);
    memory_free(answer);
#if defined(__x86_64__)
    const unsigned here = AUDIT_ARCH_X86_64, other = AUDIT_ARCH_I386;
#elif defined(__aarch64__)
    const unsigned here = AUDIT_ARCH_AARCH64, other = AUDIT_ARCH_ARM;
#else
    const unsigned here = 0, other = 0; /* there is no filter */
#endif
    for (int call = 0; here && call < 600; call++) {
        bool may = false, with_rights = call == SYS_mmap || call == SYS_mprotect;
        for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
            may |= call == allowed[i];
        }
        assert_int_equal(filter_says(other, call, 0), SECCOMP_RET_KILL_PROCESS);
        for (int rights = PROT_NONE; rights <= (PROT_READ | PROT_WRITE | PROT_EXEC); rights++) {
            const bool here_too = may || (with_rights && !(rights & PROT_EXEC));
            assert_int_equal(filter_says(here, call, (uint64_t)rights),
                here_too ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | EPERM);
        }
    }
    munmap(asked, sizeof *asked);
    asked = NULL;
}

/* ---- Begin and end ---- */

/* A signal meanwhile leaves no process behind, and is not taken for an end that was good. */
static void an_end_is_waited_for(void **state)
{
    (void)state;
    char *answer;
    size_t n;
    waits_interrupted = 3;
    assert_int_equal(run(fail_behind, &answer, &n, NULL), UTTER_E_FILE);
    assert_int_equal(waits_interrupted, 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void what_cannot_be_started_is_told(void **state)
{
    (void)state;
    const int before = support_count_files("/proc/self/fd");
    char *answer;
    size_t n;
    utter_error error;
    pipe_fails_with = EMFILE;
    assert_int_equal(run(say_hello, &answer, &n, &error), UTTER_E_IO);
    pipe_fails_with = 0;
    assert_string_equal(error.text,
        "a book: cannot read: Too many open files (close some, or raise the limit: ulimit -n)");
    fork_fails_with = EAGAIN;
    assert_int_equal(run(say_hello, &answer, &n, &error), UTTER_E_IO);
    fork_fails_with = 0;
    assert_string_equal(error.text, "no process can be started: Resource temporarily unavailable");
    assert_int_equal(support_count_files("/proc/self/fd"), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_filter_knows_every_call),
        cmocka_unit_test(an_end_is_waited_for),
        cmocka_unit_test(what_cannot_be_started_is_told),
    };
    return cmocka_run_group_tests_name("jail_calls", tests, NULL, NULL);
}
