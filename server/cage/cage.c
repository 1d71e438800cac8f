/* SPDX-License-Identifier: Apache-2.0
 * Landlock for files and the network, a filter of system calls for the rest. */
#include "server/cage/cage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- Files and the network ---- */

/* Headers of older systems know less of this than the kernel may, so it is written down here. */
struct landlock_rules {
    uint64_t files, network, scopes;
};
struct landlock_path {
    uint64_t rights;
    int32_t folder;
} __attribute__((packed));
enum { CALL_CREATE = 444, CALL_ADD, CALL_RESTRICT }; /* the same numbers on all processors */
enum { ASK_VERSION = 1, RULE_PATH = 1 };
enum { HAS_REFER = 2, HAS_TRUNCATE, HAS_NETWORK, HAS_IOCTL, HAS_SCOPES }; /* versions of Landlock */

#define RIGHT(n) (UINT64_C(1) << (n))
static const uint64_t first_rights = RIGHT(13) - 1; /* of version 1: with starting programs, bit 0 */
static const uint64_t read_rights = RIGHT(2) | RIGHT(3);
static const uint64_t refer_right = RIGHT(13), truncate_right = RIGHT(14), ioctl_right = RIGHT(15);
/* All but to start programs, and to make devices, sockets, pipes and links. */
static const uint64_t write_rights =
    RIGHT(1) | RIGHT(2) | RIGHT(3) | RIGHT(4) | RIGHT(5) | RIGHT(7) | RIGHT(8) | RIGHT(13) | RIGHT(14);
static const uint64_t file_rights = RIGHT(1) | RIGHT(2) | RIGHT(14) | RIGHT(15);
static const uint64_t tcp_rights = RIGHT(0) | RIGHT(1), all_scopes = RIGHT(0) | RIGHT(1);

/* What the C library reads after the start: shared libraries, what it knows of the machine, and lists of where
 * libraries are. /run has libraries on some systems. */
static const char *const system_reads[] = {"/usr", "/lib", "/lib32", "/lib64", "/opt", "/nix/store",
    "/gnu/store", "/run/opengl-driver", "/proc", "/sys", "/etc/ld.so.cache", "/etc/ld.so.conf",
    "/etc/ld.so.conf.d", "/etc/nvidia", "/etc/localtime", "/dev/zero", "/dev/random", "/dev/urandom"};
struct rules {
    int ruleset;
    uint64_t handled; /* rights that this kernel knows */
};

static bool allow_open(const struct rules *r, int path, uint64_t rights)
{
    struct stat about;
    if (fstat(path, &about) != 0) {
        return false;
    }
    rights &= r->handled & (S_ISDIR(about.st_mode) ? ~UINT64_C(0) : file_rights);
    struct landlock_path rule = {rights, path};
    return syscall(CALL_ADD, r->ruleset, RULE_PATH, &rule, 0) == 0;
}

/* What is not there needs no rule. */
static bool allow(const struct rules *r, const char *path, uint64_t rights)
{
    int opened = path && *path ? open(path, O_PATH | O_CLOEXEC) : -1;
    bool good = opened < 0 || allow_open(r, opened, rights);
    if (opened >= 0) {
        close(opened);
    }
    return good;
}

/* Where the links in a folder lead: a hub's cache keeps a model as links to files that lie elsewhere. */
static bool allow_linked(const struct rules *r, const char *folder, int depth)
{
    DIR *all = depth > 0 ? opendir(folder) : NULL;
    bool good = true;
    for (struct dirent *e; good && all && (e = readdir(all));) {
        char path[PATH_MAX];
        if (e->d_name[0] == '.' ||
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name) >= (int)sizeof path) {
            continue;
        }
        struct stat about;
        bool known = lstat(path, &about) == 0;
        if (known && S_ISLNK(about.st_mode)) {
            good = allow(r, path, read_rights);
        } else if (known && S_ISDIR(about.st_mode)) {
            good = allow_linked(r, path, depth - 1);
        }
    }
    if (all) {
        closedir(all);
    }
    return good;
}

/* Each of the paths with colons between them. */
static bool allow_list(const struct rules *r, const char *list, uint64_t rights)
{
    bool good = true;
    for (const char *at = list; good && at && *at;) {
        size_t n = strcspn(at, ":");
        char path[PATH_MAX];
        if (n > 0 && n < sizeof path) {
            snprintf(path, sizeof path, "%.*s", (int)n, at);
            good = allow(r, path, rights);
        }
        at += n + (at[n] == ':');
    }
    return good;
}

static bool allow_all(const struct rules *r, const struct cage_files *files)
{
    enum { MODEL_DEPTH = 3 };
    bool good =
        allow_list(r, getenv("LD_LIBRARY_PATH"), read_rights) && allow(r, "/dev/null", write_rights);
    for (size_t i = 0; i < sizeof system_reads / sizeof *system_reads; i++) {
        good = good && allow(r, system_reads[i], read_rights);
    }
    for (int i = 0; i < CAGE_MOST_PATHS; i++) {
        good =
            good && allow(r, files->reads[i], read_rights) && allow(r, files->writes[i], write_rights);
        good = good && (!files->reads[i] || allow_linked(r, files->reads[i], MODEL_DEPTH));
    }
    return good;
}

/* A driver makes one of these when it is loaded: a card's, a board's, under Windows. */
bool cage_suits(const char *device)
{
    static const char *const drivers[] = {
        "/proc/driver/nvidia/version", "/dev/nvidiactl", "/dev/nvmap", "/dev/dxg"};
    bool driver = false;
    for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++) {
        driver = driver || access(drivers[i], F_OK) == 0;
    }
    return !driver || strncmp(device, "cpu", 3) == 0;
}

/* Root's rights but to read and write what belongs to others, which its files may. Others have none to give up. */
static bool drop_capabilities(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct has[2];
    if (syscall(__NR_capget, &head, has) != 0) {
        return false;
    }
    for (int i = 0; i < 2; i++) {
        uint32_t kept = i == 0 ? 1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH : 0;
        has[i].effective &= kept;
        has[i].permitted &= kept;
        has[i].inheritable = 0;
    }
    return syscall(__NR_capset, &head, has) == 0;
}

int cage_files(const struct cage_files *files)
{
    int version = (int)syscall(CALL_CREATE, NULL, 0, ASK_VERSION);
    if (version < 1 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || !drop_capabilities()) {
        return 0;
    }
    struct landlock_rules rules = {.files = first_rights};
    rules.files |= version >= HAS_REFER ? refer_right : 0;
    rules.files |= version >= HAS_TRUNCATE ? truncate_right : 0;
    rules.files |= version >= HAS_IOCTL ? ioctl_right : 0;
    rules.network = version >= HAS_NETWORK ? tcp_rights : 0;
    rules.scopes = version >= HAS_SCOPES ? all_scopes : 0;
    size_t size = version >= HAS_SCOPES    ? sizeof rules
                  : version >= HAS_NETWORK ? offsetof(struct landlock_rules, scopes)
                                           : offsetof(struct landlock_rules, network);
    struct rules r = {(int)syscall(CALL_CREATE, &rules, size, 0), rules.files};
    bool good = r.ruleset >= 0 && allow_all(&r, files) && syscall(CALL_RESTRICT, r.ruleset, 0) == 0;
    if (r.ruleset >= 0) {
        close(r.ruleset);
    }
    return (good ? CAGE_FILES : 0) | (good && version >= HAS_NETWORK ? CAGE_NETWORK : 0);
}

/* ---- System calls ---- */

/* What a model that speaks never calls, and what a fault in it would be used for. */
static const int refused[] = {
    /* ways out */
    __NR_socket,
    __NR_connect,
    __NR_bind,
    __NR_listen,
    __NR_accept,
    __NR_accept4,
    __NR_io_uring_setup,
    __NR_io_uring_enter,
    __NR_io_uring_register,
    /* files by their names, in ways that Landlock does not know or not always did */
    __NR_truncate,
    __NR_fchmodat,
    __NR_fchownat,
    __NR_utimensat,
    __NR_setxattr,
    __NR_lsetxattr,
    __NR_removexattr,
    __NR_lremovexattr,
#ifdef __NR_chmod
    __NR_chmod,
    __NR_chown,
    __NR_lchown,
    __NR_utime,
    __NR_utimes,
    __NR_futimesat,
#endif
#ifdef __NR_fchmodat2
    __NR_fchmodat2,
#endif
    /* other programs and processes */
    __NR_setpriority,
    __NR_ioprio_set,
    __NR_sched_setaffinity,
    __NR_sched_setscheduler,
    __NR_sched_setparam,
    __NR_sched_setattr,
    __NR_kill,
    __NR_tkill,
    __NR_rt_sigqueueinfo,
    __NR_rt_tgsigqueueinfo,
    __NR_shmget,
    __NR_shmat,
    __NR_execve,
    __NR_execveat,
    __NR_pidfd_open,
    __NR_pidfd_getfd,
    __NR_pidfd_send_signal,
    __NR_process_vm_readv,
    __NR_process_vm_writev,
    __NR_kcmp,
    __NR_process_madvise,
    __NR_migrate_pages,
#ifdef __NR_fork
    __NR_fork,
    __NR_vfork,
#endif
    /* other rights and other views of the system */
    __NR_setuid,
    __NR_setgid,
    __NR_setreuid,
    __NR_setregid,
    __NR_setresuid,
    __NR_setresgid,
    __NR_setfsuid,
    __NR_setfsgid,
    __NR_setgroups,
    __NR_capset,
    __NR_unshare,
    __NR_setns,
    __NR_chroot,
    __NR_pivot_root,
    __NR_mount,
    __NR_umount2,
    __NR_open_tree,
    __NR_move_mount,
    __NR_fsopen,
    __NR_fsconfig,
    __NR_fsmount,
    __NR_fspick,
    __NR_add_key,
    __NR_request_key,
    __NR_keyctl,
    __NR_open_by_handle_at,
    __NR_personality,
    /* doors of the kernel itself */
    __NR_bpf,
    __NR_perf_event_open,
    __NR_userfaultfd,
    __NR_init_module,
    __NR_finit_module,
    __NR_delete_module,
    __NR_kexec_load,
    __NR_reboot,
    __NR_swapon,
    __NR_swapoff,
    __NR_acct,
    __NR_quotactl,
    __NR_settimeofday,
    __NR_clock_settime,
    __NR_adjtimex,
    __NR_clock_adjtime,
    __NR_sethostname,
    __NR_setdomainname,
    __NR_syslog,
    __NR_vhangup,
    __NR_fanotify_init,
#ifdef __NR_modify_ldt
    __NR_modify_ldt,
    __NR_iopl,
    __NR_ioperm,
#endif
#if !defined(__SANITIZE_ADDRESS__) &&                                                                  \
    !defined(__SANITIZE_THREAD__) /* they look at their own threads with it */
    __NR_ptrace,
#endif
};
enum { N_REFUSED = sizeof refused / sizeof *refused };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { LETS_FORK = 1 }; /* who looks for leaks at the end is a process */
#else
enum { LETS_FORK = 0 };
#endif

#if defined(__x86_64__)
#define CAGE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define CAGE_ARCH AUDIT_ARCH_AARCH64
#endif

#ifdef CAGE_ARCH
static const unsigned second_calls = 0x40000000; /* x32: the same calls by other numbers */
static const unsigned clone_thread = 0x00010000;

/* The filter, for each call: a number of another processor ends the process, a refused one is EPERM. New threads come
 * by clone, whose flags a filter can see; clone3 hides them behind a pointer, so it does "not exist", and the C library
 * takes clone. */
static int write_filter(struct sock_filter *code)
{
    int n = 0;
    const struct sock_filter kill = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    const struct sock_filter fail = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    const struct sock_filter unknown = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
    const struct sock_filter pass = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
#define LOAD(field)                                                                                    \
    (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define SKIP_UNLESS(test, value, n_skipped)                                                            \
    (struct sock_filter) BPF_JUMP(BPF_JMP | (test) | BPF_K, value, 0, n_skipped)
    code[n++] = LOAD(arch);
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CAGE_ARCH, 1, 0);
    code[n++] = kill;
    code[n++] = LOAD(nr);
    code[n++] = SKIP_UNLESS(BPF_JGE, second_calls, 1);
    code[n++] = fail;
    for (int i = 0; i < N_REFUSED; i++) {
        code[n++] = SKIP_UNLESS(BPF_JEQ, (unsigned)refused[i], 1);
        code[n++] = fail;
    }
    code[n++] = SKIP_UNLESS(BPF_JEQ, __NR_prlimit64, 4); /* its own limits only */
    code[n++] = LOAD(args[0]);
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0);
    code[n++] = fail;
    code[n++] = pass;
    code[n++] =
        SKIP_UNLESS(BPF_JEQ, __NR_ioctl, 5); /* to type into the terminal of who started the server */
    code[n++] = LOAD(args[1]);
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIOCSTI, 1, 0);
    code[n++] = SKIP_UNLESS(BPF_JEQ, TIOCLINUX, 1);
    code[n++] = fail;
    code[n++] = pass;
    if (!LETS_FORK) {
        code[n++] = SKIP_UNLESS(BPF_JEQ, __NR_clone3, 1);
        code[n++] = unknown;
        code[n++] = SKIP_UNLESS(BPF_JEQ, __NR_clone, 3);
        code[n++] = LOAD(args[0]); /* the low half: flags */
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, clone_thread, 1, 0);
        code[n++] = fail;
    }
    code[n++] = pass;
#undef LOAD
#undef SKIP_UNLESS
    return n;
}
#endif

int cage_calls(void)
{
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none); /* what strangers said stays in memory */
#ifdef CAGE_ARCH
    struct sock_filter code[2 * N_REFUSED + 32];
    struct sock_fprog program = {.len = (unsigned short)write_filter(code), .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
        syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0) {
        return CAGE_CALLS;
    }
#endif
    return 0;
}

const char *cage_names(int parts)
{
    static const char *const names[CAGE_WHOLE + 1] = {"none", "files", "network", "files, network",
        "calls", "files, calls", "network, calls", "files, network, calls"};
    return names[parts & CAGE_WHOLE];
}
