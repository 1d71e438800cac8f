/* SPDX-License-Identifier: Apache-2.0
 * What a cage asks the kernel for, whichever kernel that is: the calls that make one are the test's own (--wrap), and
 * note what they are given. The filter of calls is run as the kernel would run it. */
#include "tests/support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/cage/cage.h"

enum { MOST_RULES = 64, CREATE = 444, ADD = 445, RESTRICT = 446 };
enum fault { NONE, NO_PRIVILEGES, NO_GET, NO_SET, NO_RULES, NO_RULE, NO_RESTRICTION, NO_FILTER };

static struct {
    int version; /* of Landlock; -1: there is none */
    enum fault fails;
    const char *driver; /* the file of a GPU's driver that is there, or NULL */
    int n_created, n_restricted, ruleset;
    uint64_t handled[3]; /* files, network, scopes */
    size_t handled_bytes;
    int n_rules;
    struct {
        char path[200];
        uint64_t rights;
    } rules[MOST_RULES];
    struct __user_cap_data_struct has[2];
    bool is_set;
    struct sock_filter code[400];
    int n_code;
} posed;

static long create(const void *rules, size_t size, unsigned long flags)
{
    if (!rules) {
        assert_true(size == 0 && flags == 1);
        return posed.version;
    }
    assert_true(flags == 0 && size <= sizeof posed.handled);
    posed.n_created++;
    posed.handled_bytes = size;
    memcpy(posed.handled, rules, size);
    posed.ruleset = posed.fails == NO_RULES ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC);
    return posed.ruleset;
}

static long add(int ruleset, unsigned long kind, const void *rule, unsigned long flags)
{
    char link[40];
    int32_t file;
    assert_true(ruleset == posed.ruleset && kind == 1 && flags == 0 && posed.n_rules < MOST_RULES);
    memcpy(&posed.rules[posed.n_rules].rights, rule, 8);
    memcpy(&file, (const char *)rule + 8, 4);
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    char *path = posed.rules[posed.n_rules++].path;
    const ssize_t n = readlink(link, path, sizeof posed.rules[0].path - 1);
    assert_true(n > 0);
    path[n] = 0;
    return posed.fails == NO_RULE && posed.n_rules == 2 ? -1 : 0;
}

static long filter(unsigned long mode, unsigned long flags, const struct sock_fprog *program)
{
    assert_true(mode == SECCOMP_SET_MODE_FILTER && flags == SECCOMP_FILTER_FLAG_TSYNC);
    assert_true(program->len <= sizeof posed.code / sizeof *posed.code);
    posed.n_code = program->len;
    memcpy(posed.code, program->filter, program->len * sizeof *posed.code);
    return posed.fails == NO_FILTER ? -1 : 0;
}

/* 0: it is, as the kernel answers. */
static int is_version_3(const struct __user_cap_header_struct *head)
{
    return head->version == _LINUX_CAPABILITY_VERSION_3 && head->pid == 0 ? 0 : -1;
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
int __wrap_prctl(int what, ...);
int __wrap_access(const char *path, int how);

long __wrap_syscall(long number, ...)
{
    unsigned long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) {
        a[i] = va_arg(list, unsigned long);
    }
    va_end(list);
    switch (number) {
    case CREATE:
        return create((const void *)a[0], a[1], a[2] & UINT32_MAX);
    case ADD:
        return add((int)a[0], a[1] & UINT32_MAX, (const void *)a[2], a[3] & UINT32_MAX);
    case RESTRICT:
        assert_true((int)a[0] == posed.ruleset && (a[1] & UINT32_MAX) == 0);
        posed.n_restricted++;
        return posed.fails == NO_RESTRICTION ? -1 : 0;
    case __NR_seccomp:
        return filter(a[0] & UINT32_MAX, a[1] & UINT32_MAX, (const struct sock_fprog *)a[2]);
    case __NR_capget:
        memcpy((void *)a[1], posed.has, sizeof posed.has);
        return posed.fails == NO_GET ? -1 : is_version_3((const void *)a[0]);
    case __NR_capset:
        memcpy(posed.has, (const void *)a[1], sizeof posed.has);
        posed.is_set = true;
        return posed.fails == NO_SET ? -1 : is_version_3((const void *)a[0]);
    default: /* not the cage's */
        return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
}

int __wrap_prctl(int what, ...)
{
    va_list list;
    va_start(list, what);
    assert_true(what == PR_SET_NO_NEW_PRIVS && va_arg(list, int) == 1);
    va_end(list);
    return posed.fails == NO_PRIVILEGES ? -1 : 0;
}

int __wrap_access(const char *path, int how)
{
    assert_int_equal(how, F_OK);
    return posed.driver && strcmp(path, posed.driver) == 0 ? 0 : -1;
}

static void pose(int version, enum fault fails)
{
    memset(&posed, 0, sizeof posed);
    posed.version = version;
    posed.fails = fails;
    posed.ruleset = -1;
    memset(posed.has, 0xFF, sizeof posed.has);
}

/* The ruleset is not left open. */
static void expect_closed(void)
{
    assert_true(posed.ruleset < 0 || (fcntl(posed.ruleset, F_GETFD) == -1 && errno == EBADF));
}

/* ---- Files ---- */

#define RIGHT(n) (UINT64_C(1) << (n))

/* Each part as far as the kernel has it. */
static void each_kernel_is_asked_for_what_it_knows(void **state)
{
    static const struct {
        size_t bytes;
        uint64_t more, network, scopes; /* more: beyond the rights of the first version */
        int parts;
    } cases[] = {{8, 0, 0, 0, CAGE_FILES}, {8, RIGHT(13), 0, 0, CAGE_FILES},
        {8, RIGHT(13) | RIGHT(14), 0, 0, CAGE_FILES},
        {16, RIGHT(13) | RIGHT(14), 3, 0, CAGE_FILES | CAGE_NETWORK},
        {16, RIGHT(13) | RIGHT(14) | RIGHT(15), 3, 0, CAGE_FILES | CAGE_NETWORK},
        {24, RIGHT(13) | RIGHT(14) | RIGHT(15), 3, 3, CAGE_FILES | CAGE_NETWORK},
        {24, RIGHT(13) | RIGHT(14) | RIGHT(15), 3, 3, CAGE_FILES | CAGE_NETWORK}};
    const struct cage_files files = {.reads = {NULL}};
    (void)state;
    for (int version = 1; version <= 7; version++) {
        pose(version, NONE);
        assert_int_equal(cage_files(&files), cases[version - 1].parts);
        assert_int_equal(posed.handled_bytes, cases[version - 1].bytes);
        assert_int_equal(posed.handled[0], (RIGHT(13) - 1) | cases[version - 1].more);
        assert_int_equal(posed.handled[1], cases[version - 1].network);
        assert_int_equal(posed.handled[2], cases[version - 1].scopes);
        assert_true(posed.n_created == 1 && posed.n_restricted == 1);
        expect_closed();
    }
    for (int version = -1; version <= 0; version++) { /* has none: nothing is given up */
        pose(version, NONE);
        assert_int_equal(cage_files(&files), 0);
        assert_true(posed.n_created == 0 && posed.n_restricted == 0 && !posed.is_set);
    }
}

static void what_fails_holds_in_no_part(void **state)
{
    const struct cage_files files = {.reads = {NULL}};
    (void)state;
    for (enum fault fails = NO_PRIVILEGES; fails <= NO_RESTRICTION; fails++) {
        pose(7, fails);
        assert_int_equal(cage_files(&files), 0);
        assert_int_equal(posed.n_created, fails >= NO_RULES);
        assert_int_equal(posed.n_restricted, fails == NO_RESTRICTION);
        assert_int_equal(posed.n_rules > 2, fails == NO_RESTRICTION); /* none behind one that fails */
        assert_int_equal(posed.is_set, fails > NO_GET);
        expect_closed();
    }
}

/* Of root's rights those to read and write what belongs to others are kept. */
static void all_other_capabilities_are_dropped(void **state)
{
    enum { KEPT = 1 << CAP_DAC_OVERRIDE | 1 << CAP_DAC_READ_SEARCH };
    const struct cage_files files = {.reads = {NULL}};
    (void)state;
    for (int has = 0; has < 2; has++) {
        pose(1, NONE);
        if (!has) {
            memset(posed.has, 0, sizeof posed.has);
        }
        assert_int_equal(cage_files(&files), CAGE_FILES);
        for (int i = 0; i < 2; i++) {
            const unsigned kept = has && i == 0 ? KEPT : 0;
            assert_true(posed.has[i].effective == kept && posed.has[i].permitted == kept);
            assert_int_equal(posed.has[i].inheritable, 0);
        }
    }
}

static char root[64];

static char *in_root(const char *name)
{
    static char paths[4][300];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(paths[turn], sizeof paths[turn], "%s/%s", root, name);
    return paths[turn];
}

static void put(const char *name)
{
    const int file = open(in_root(name), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(file >= 0 && close(file) == 0);
}

static int make_root(void **state)
{
    static const char *const folders[] = {
        "a", "b", "c", "write", "model", "model/1", "model/1/2", "model/1/2/3", "model/.git", "far"};
    static const char *const links[] = {"model/l", "model/1/l1", "model/1/2/l2", "model/1/2/3/l3",
        "model/.l", "model/.git/l", "write/l"};
    char real[64] = P_tmpdir "/utter-cage-rules-XXXXXX";
    (void)state;
    if (!mkdtemp(real) || !realpath(real, root)) {
        return -1;
    }
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        assert_int_equal(mkdir(in_root(folders[i]), 0700), 0);
    }
    put("file"), put("model/weights");
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        char to[40];
        snprintf(to, sizeof to, "far/%zu", i);
        put(to);
        assert_int_equal(symlink(in_root(to), in_root(links[i])), 0);
    }
    assert_int_equal(symlink(in_root("nowhere"), in_root("model/lost")), 0);
    return 0;
}

static int remove_root(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", root);
    return system(command);
}

/* The rights of a path, and that it has one rule; 0: it has none. */
static uint64_t rights_of(const char *path)
{
    uint64_t rights = 0;
    for (int i = 0; i < posed.n_rules; i++) {
        if (strcmp(posed.rules[i].path, path) == 0) {
            assert_true(rights == 0 || rights == posed.rules[i].rights);
            rights = posed.rules[i].rights;
        }
    }
    return rights;
}

static void what_is_named_may_be_read_or_written(void **state)
{
    enum { READ = 1 << 3 | 1 << 2, READ_FILE = 1 << 2 };
    char libraries[5000], paths[4][300];
    const char *linked[] = {"far/0", "far/1", "far/2"},
               *others[] = {"far/3", "far/4", "far/5", "far/6"};
    (void)state;
    /* Empty names, and one that is too long for any file, are passed over. */
    snprintf(libraries, sizeof libraries, ":%s::%s:", in_root("a"), in_root("b"));
    const size_t n = strlen(libraries);
    memset(libraries + n, 'x', sizeof libraries - n);
    snprintf(libraries + 4700, sizeof libraries - 4700, ":%s", in_root("c"));
    setenv("LD_LIBRARY_PATH", libraries, true);
    static const char *const named[] = {"nowhere", "file", "model", "write"};
    for (int i = 0; i < 4; i++) {
        strcpy(paths[i], in_root(named[i]));
    }
    const struct cage_files files = {
        .reads = {paths[0], NULL, paths[1], paths[2]}, .writes = {NULL, "", NULL, paths[3]}};
    for (int version = 1; version <= 5; version++) {
        pose(version, NONE);
        assert_true(cage_files(&files) & CAGE_FILES);
        static const char *const folders[] = {"a", "b", "c", "model"};
        for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
            assert_int_equal(rights_of(in_root(folders[i])), READ);
        }
        assert_int_equal(rights_of(in_root("file")), READ_FILE);
        for (size_t i = 0; i < sizeof linked / sizeof *linked; i++) {
            assert_int_equal(rights_of(in_root(linked[i])), READ_FILE);
        }
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
            assert_int_equal(rights_of(in_root(others[i])), 0);
        }
        /* To write, read, list, remove and make files and folders; what later kernels know beside that. */
        const uint64_t later = (version >= 2 ? RIGHT(13) : 0) | (version >= 3 ? RIGHT(14) : 0);
        assert_int_equal(rights_of(in_root("write")), 0x1BE | later);
        assert_int_equal(rights_of("/dev/null"), RIGHT(1) | RIGHT(2) | (later & RIGHT(14)));
        assert_int_equal(rights_of("/proc"), READ);
        int n_system = 0;
        for (int i = 0; i < posed.n_rules; i++) {
            n_system += strncmp(posed.rules[i].path, root, strlen(root)) != 0;
            assert_string_not_equal(posed.rules[i].path, "/etc");
            assert_string_not_equal(posed.rules[i].path, "/");
        }
        assert_int_equal(rights_of("/usr"), READ);
        assert_int_equal(rights_of("/dev/zero"), READ_FILE);
        assert_true(n_system >= 4);
    }
    unsetenv("LD_LIBRARY_PATH");
    pose(1, NONE);
    assert_int_equal(cage_files(&files), CAGE_FILES);
    assert_int_equal(rights_of(in_root("a")), 0);
}

/* ---- Devices ---- */

/* Where there is a driver of a GPU, only who opens a processor is caged. */
static void a_driver_is_not_caged(void **state)
{
    static const char *const drivers[] = {
        NULL, "/dev/other", "/proc/driver/nvidia/version", "/dev/nvidiactl", "/dev/nvmap", "/dev/dxg"};
    (void)state;
    for (int i = 0; i < 6; i++) {
        pose(7, NONE);
        posed.driver = drivers[i];
        assert_true(cage_suits("cpu") && cage_suits("cpu:0-3"));
        assert_int_equal(cage_suits("cuda:0"), i < 2);
        assert_int_equal(cage_suits("auto"), i < 2);
        assert_int_equal(cage_suits("cp"), i < 2);
    }
}

static void parts_have_names(void **state)
{
    static const char *const names[] = {"none", "files", "network", "files, network", "calls",
        "files, calls", "network, calls", "files, network, calls"};
    (void)state;
    for (int parts = 0; parts < 16; parts++) { /* what else may be told is not known */
        assert_string_equal(cage_names(parts), names[parts % 8]);
    }
}

/* ---- Calls ---- */

#if defined(__x86_64__)
enum { OURS = (int)AUDIT_ARCH_X86_64, OTHER = AUDIT_ARCH_I386 };
#else
enum { OURS = (int)AUDIT_ARCH_AARCH64, OTHER = AUDIT_ARCH_ARM };
#endif

/* What the kernel does with this call. */
static unsigned run(int arch, unsigned number, uint64_t first, uint64_t second)
{
    const struct seccomp_data data = {
        .nr = (int)number, .arch = (uint32_t)arch, .args = {first, second}};
    uint32_t value = 0;
    for (int i = 0; i < posed.n_code; i++) {
        const struct sock_filter *c = &posed.code[i];
        bool holds = false;
        switch (c->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            assert_true(c->k + 4 <= sizeof data);
            memcpy(&value, (const char *)&data + c->k, 4);
            continue;
        case BPF_RET | BPF_K:
            return c->k;
        case BPF_JMP | BPF_JEQ | BPF_K:
            holds = value == c->k;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            holds = value >= c->k;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            holds = value & c->k;
            break;
        default:
            fail_msg("%d: an unknown code %x", i, c->code);
        }
        i += holds ? c->jt : c->jf;
    }
    fail_msg("the filter has no end");
    return 0;
}

static void calls_are_let_through_or_refused(void **state)
{
    const unsigned refused = SECCOMP_RET_ERRNO | EPERM, unknown = SECCOMP_RET_ERRNO | ENOSYS;
    static const int bad[] = {__NR_socket, __NR_connect, __NR_execve, __NR_kill, __NR_setuid,
        __NR_mount, __NR_bpf, __NR_fanotify_init},
                     good[] = {
                         __NR_read, __NR_write, __NR_futex, __NR_mmap, __NR_exit_group, __NR_openat};
    struct rlimit core;
    (void)state;
    pose(7, NONE);
    assert_int_equal(cage_calls(), CAGE_CALLS);
    assert_true(getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_cur == 0 && core.rlim_max == 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(run(OURS, (unsigned)bad[i], 0, 0), refused);
        assert_int_equal(run(OTHER, (unsigned)bad[i], 0, 0), SECCOMP_RET_KILL_PROCESS);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(run(OURS, (unsigned)good[i], 0, 0), SECCOMP_RET_ALLOW);
        assert_int_equal(run(OTHER, (unsigned)good[i], 0, 0), SECCOMP_RET_KILL_PROCESS);
        assert_int_equal(run(OURS, 0x40000000U + (unsigned)good[i], 0, 0), refused); /* by x32 */
    }
    assert_int_equal(run(OURS, 0x3FFFFFFF, 0, 0), SECCOMP_RET_ALLOW);
    assert_int_equal(run(OURS, 0x40000000, 0, 0), refused);
    assert_int_equal(run(OURS, UINT32_MAX, 0, 0), refused);
    /* Of its own limits it may speak, of its terminal too, but not as who types there. */
    assert_int_equal(run(OURS, __NR_prlimit64, 0, 7), SECCOMP_RET_ALLOW);
    assert_int_equal(run(OURS, __NR_prlimit64, 1, 0), refused);
    assert_int_equal(run(OURS, __NR_ioctl, 0, TIOCSTI), refused);
    assert_int_equal(run(OURS, __NR_ioctl, 0, TIOCLINUX), refused);
    assert_int_equal(run(OURS, __NR_ioctl, TIOCSTI, FIONREAD), SECCOMP_RET_ALLOW);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* see cage.c */
    assert_int_equal(run(OURS, __NR_ptrace, 0, 0), refused);
    assert_int_equal(run(OURS, __NR_clone3, 0, 0), unknown);
    assert_int_equal(run(OURS, __NR_clone, 0x00010000, 0), SECCOMP_RET_ALLOW); /* a thread */
    assert_int_equal(run(OURS, __NR_clone, 0x003D0F00, 0), SECCOMP_RET_ALLOW);
    assert_int_equal(run(OURS, __NR_clone, 0x003C0F00, 0), refused);
#else
    (void)unknown;
#endif
    pose(7, NO_FILTER);
    assert_int_equal(cage_calls(), 0);
    pose(7, NO_PRIVILEGES);
    assert_int_equal(cage_calls(), 0);
    assert_int_equal(posed.n_code, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kernel_is_asked_for_what_it_knows),
        cmocka_unit_test(what_fails_holds_in_no_part),
        cmocka_unit_test(all_other_capabilities_are_dropped),
        cmocka_unit_test(what_is_named_may_be_read_or_written),
        cmocka_unit_test(a_driver_is_not_caged),
        cmocka_unit_test(parts_have_names),
        cmocka_unit_test(calls_are_let_through_or_refused),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
