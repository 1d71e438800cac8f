/* SPDX-License-Identifier: Apache-2.0
 * fork, limits, and a filter of system calls. */
#include "book/parser/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"

enum { OUT = 1, CPU_S = 60, WALL_S = 180 };

static const rlim_t most_memory = (rlim_t)1 << 30;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) /* they reserve terabytes */
enum { BOUNDS_MEMORY = 0 };
#else
enum { BOUNDS_MEMORY = 1 };
#endif

/* ---- In the process ---- */

/* What is left: memory, the pipe, the clock, the end. */
static const int allowed[] = {__NR_write, __NR_brk, __NR_munmap, __NR_mremap, __NR_madvise, __NR_futex,
    __NR_getrandom, __NR_clock_gettime, __NR_rt_sigprocmask, __NR_rt_sigaction, __NR_rt_sigreturn,
    __NR_sigaltstack, __NR_sched_yield, __NR_exit, __NR_exit_group,
#ifdef __NR_time
    __NR_time,
#endif
    __NR_gettimeofday};
enum { N_ALLOWED = sizeof allowed / sizeof *allowed };

#if defined(__x86_64__)
#define JAIL_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define JAIL_ARCH AUDIT_ARCH_AARCH64
#endif

/* A call that is not in the list fails with EPERM. mmap and mprotect make no memory that can be run. */
static bool filter_calls(void)
{
#ifdef JAIL_ARCH
    enum { HEAD = 4, CHECK = 3 };
    struct sock_filter code[HEAD + 2 * N_ALLOWED + 2 * (CHECK + 1) + 1];
    unsigned n = 0;
    code[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, JAIL_ARCH, 1, 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    code[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < N_ALLOWED; i++) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    static const int checked[] = {__NR_mmap, __NR_mprotect}; /* the third argument has the rights */
    for (int i = 0; i < 2; i++) {
        code[n++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)checked[i], 0, CHECK);
        code[n++] = (struct sock_filter)BPF_STMT(
            BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 2 * sizeof(uint64_t));
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    struct sock_fprog program = {.len = (unsigned short)n, .filter = code};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
#else
    return false;
#endif
}

static void limit(int what, rlim_t value)
{
    struct rlimit limits = {value, value};
    setrlimit((__rlimit_resource_t)what, &limits);
}

static void drop_rights(size_t file_bytes)
{
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_CPU, CPU_S);
    limit(RLIMIT_FSIZE, 0);
    limit(RLIMIT_NPROC, 0);
    if (BOUNDS_MEMORY) {
        limit(RLIMIT_AS, most_memory + file_bytes);
    }
    limit(RLIMIT_NOFILE, 0);
    filter_calls(); /* an old kernel, or another processor: the limits stay */
}

static void be_jailed(const struct jail_work *work, int in, int out)
{
    struct stat about;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_IGN); /* a terminal sends it to both; who waits for this process ends it */
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    size_t n = fstat(in, &about) == 0 && about.st_size > 0 ? (size_t)about.st_size : 0;
    char *bytes = n ? mmap(NULL, n, PROT_READ, MAP_PRIVATE, in, 0) : MAP_FAILED;
    if ((n && bytes == MAP_FAILED) || dup2(nowhere, STDIN_FILENO) < 0 || dup2(out, OUT) < 0 ||
        dup2(nowhere, STDERR_FILENO) < 0) {
        _exit(2);
    }
    syscall(__NR_close_range, 3U, ~0U, 0);
    work->prepare();
    drop_rights(n);
    work->parse(work, n ? bytes : "", n);
    _exit(0);
}

bool jail_write(const void *data, size_t bytes)
{
    const char *at = data;
    while (bytes > 0) {
        ssize_t put = write(OUT, at, bytes);
        if (put < 0) {
            return false;
        }
        at += put;
        bytes -= (size_t)put;
    }
    return true;
}

/* ---- Outside ---- */

struct answer {
    char *at;
    size_t n, room;
};

/* Takes what comes until the end; false: too much, too late, or no memory. */
static bool listen_to(int pipe, struct answer *a)
{
    double end_s = clock_seconds() + WALL_S;
    for (;;) {
        struct pollfd polled = {pipe, POLLIN, 0};
        double left_s = end_s - clock_seconds();
        if (left_s <= 0 || (poll(&polled, 1, (int)(1000 * left_s) + 1) < 0 && errno != EINTR)) {
            return false;
        }
        if (a->n == a->room) {
            size_t room = a->room ? 2 * a->room : 1 << 16;
            char *grown = room <= JAIL_ALLOWANCE ? memory_resize(a->at, a->room, room, 1) : NULL;
            if (!grown) {
                return false;
            }
            a->at = grown;
            a->room = room;
        }
        ssize_t got = polled.revents ? read(pipe, a->at + a->n, a->room - a->n) : 0;
        if (polled.revents && got <= 0) {
            return got == 0;
        }
        a->n += (size_t)got;
    }
}

utter_status jail_run(
    const struct jail_work *work, int in, char **answer, size_t *bytes, utter_error *error)
{
    int ends[2];
    struct answer a = {0};
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return file_error(error, work->name, "read", errno);
    }
    pid_t pid = fork();
    if (pid == 0) {
        be_jailed(work, in, ends[1]);
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return error_set(error, UTTER_E_IO, "no process can be started: %s", strerror(errno));
    }
    bool whole = listen_to(ends[0], &a);
    close(ends[0]);
    if (!whole) {
        kill(pid, SIGKILL);
    }
    int how = 0;
    while (waitpid(pid, &how, 0) < 0 && errno == EINTR) {
    }
    if (whole && WIFEXITED(how) && WEXITSTATUS(how) == 0 && a.n > 0) {
        *answer = a.at;
        *bytes = a.n;
        return UTTER_OK;
    }
    memory_free(a.at);
    return error_set(error, UTTER_E_FILE,
        "%s: cannot be read: it takes more than %d s or 1 GB, or is made to break a reader", work->name,
        CPU_S);
}
