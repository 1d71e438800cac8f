/* SPDX-License-Identifier: Apache-2.0
 * What a process in the cage can do and what it cannot: each try in a process of its own, since nobody comes out of a
 * cage. A part that this kernel has not is not tried. */
#include "tests/support.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "server/cage/cage.h"

/* A folder with a `read` and a `write` folder, a `model` whose file is a link to one in `blobs`, and a file `other`. */
struct place {
    char root[64], read[96], write[96], model[96], other[96];
};

static void put_file(const char *path)
{
    int f = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(f >= 0 && write(f, "x", 1) == 1 && close(f) == 0);
}

static int make_place(void **state)
{
    struct place *p = test_malloc(sizeof *p);
    char path[128];
    strcpy(p->root, "/tmp/utter-cage-XXXXXX");
    assert_non_null(mkdtemp(p->root));
    snprintf(p->read, sizeof p->read, "%s/read", p->root);
    snprintf(p->write, sizeof p->write, "%s/write", p->root);
    snprintf(p->model, sizeof p->model, "%s/model", p->root);
    snprintf(p->other, sizeof p->other, "%s/other", p->root);
    assert_true(mkdir(p->read, 0700) == 0 && mkdir(p->write, 0700) == 0 && mkdir(p->model, 0700) == 0);
    snprintf(path, sizeof path, "%s/blobs", p->root);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/blobs/1", p->root);
    put_file(path);
    snprintf(path, sizeof path, "%s/weights", p->model);
    assert_int_equal(symlink("../blobs/1", path), 0);
    snprintf(path, sizeof path, "%s/in", p->read);
    put_file(path);
    put_file(p->other);
    *state = p;
    return 0;
}

static int drop_place(void **state)
{
    struct place *p = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", p->root);
    assert_int_equal(system(command), 0);
    test_free(p);
    return 0;
}

static int try_open(const char *folder, const char *name, int how)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int f = open(path, how | O_CLOEXEC, 0600);
    return f < 0 ? errno : (close(f), 0);
}

/* Runs `tries` in a process; its exit code is the number of the first that went otherwise, 0: none. */
static void in_a_process(int (*tries)(const struct place *), const struct place *place)
{
    pid_t pid = fork();
    if (pid == 0) {
        _exit(tries(place));
    }
    int how = 0;
    assert_true(pid > 0 && waitpid(pid, &how, 0) == pid);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
}

#define MUST(condition)                                                                                \
    do {                                                                                               \
        if (!(condition)) {                                                                            \
            fprintf(stderr, "test_cage: line %d: %s (errno %d)\n", __LINE__, #condition, errno);       \
            return 1;                                                                                  \
        }                                                                                              \
    } while (0)

/* Of those that may do more than read and write what belongs to others. */
static unsigned long long capabilities_left(void)
{
    char line[256];
    unsigned long long has = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f)) {
        sscanf(line, "CapPrm: %llx", &has);
    }
    if (f) {
        fclose(f);
    }
    return has & ~6ULL;
}

static int try_files(const struct place *p)
{
    const struct cage_files files = {
        .reads = {p->read, p->model, "/nowhere", NULL}, .writes = {p->write}};
    int loopback = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int version = (int)syscall(444, NULL, 0, 1); /* of Landlock: its first call tells it */
    int parts = cage_files(&files);
    MUST(!(parts & CAGE_FILES) == (version < 1) && !(parts & CAGE_NETWORK) == (version < 4));
    if (!(parts & CAGE_FILES)) {
        return 0;
    }
    MUST(capabilities_left() == 0);
    MUST(try_open(p->read, "in", O_RDONLY) == 0);
    MUST(try_open(p->read, "in", O_WRONLY) == EACCES);
    MUST(try_open(p->read, "new", O_CREAT | O_WRONLY) == EACCES);
    MUST(try_open(p->model, "weights", O_RDONLY) == 0);
    MUST(try_open(p->root, "other", O_RDONLY) == EACCES);
    MUST(try_open("/etc", "passwd", O_RDONLY) == EACCES);
    MUST(try_open("/proc/self", "status", O_RDONLY) == 0);
    MUST(try_open("/dev", "null", O_RDWR) == 0);
    MUST(try_open(p->write, "new", O_CREAT | O_WRONLY) == 0);
    char from[128], new_name[128];
    snprintf(from, sizeof from, "%s/new", p->write);
    snprintf(new_name, sizeof new_name, "%s/newer", p->write);
    MUST(rename(from, new_name) == 0 && unlink(new_name) == 0);
    MUST(execl("/bin/sh", "sh", "-c", "exit 0", (char *)NULL) == -1 && errno == EACCES);
    if (parts & CAGE_NETWORK) {
        to.sin_port = htons(9);
        MUST(connect(loopback, (struct sockaddr *)&to, sizeof to) == -1 && errno == EACCES);
        MUST(bind(loopback, (struct sockaddr *)&to, sizeof to) == -1 && errno == EACCES);
    }
    return 0;
}

static int socket_error(int family)
{
    int s = socket(family, SOCK_STREAM, 0);
    return s < 0 ? errno : (close(s), 0);
}

/* A thread that was there before the filter. */
struct early {
    pthread_mutex_t turn;
    int error;
};

static void *ask_for_socket(void *user)
{
    struct early *e = user;
    pthread_mutex_lock(&e->turn);
    e->error = socket_error(AF_INET);
    pthread_mutex_unlock(&e->turn);
    return NULL;
}

static void *nothing(void *user)
{
    return user;
}

static int try_calls(const struct place *p)
{
    struct early early = {.turn = PTHREAD_MUTEX_INITIALIZER};
    pthread_t first, later;
    pthread_mutex_lock(&early.turn);
    MUST(pthread_create(&first, NULL, ask_for_socket, &early) == 0);
    bool filters = prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 0; /* else this kernel has none */
    MUST((cage_calls() != 0) == filters);
    if (!filters) {
        return 0; /* the thread ends with the process */
    }
    pthread_mutex_unlock(&early.turn);
    MUST(pthread_join(first, NULL) == 0 && early.error == EPERM);
    MUST(pthread_create(&later, NULL, nothing, NULL) == 0 && pthread_join(later, NULL) == 0);
    MUST(socket_error(AF_INET) == EPERM && socket_error(AF_UNIX) == EPERM);
    MUST(execl("/bin/sh", "sh", "-c", "exit 0", (char *)NULL) == -1 && errno == EPERM);
    MUST(setuid(getuid()) == -1 && errno == EPERM);
    MUST(chmod(p->other, 0666) == -1 && errno == EPERM);
    MUST(chown(p->other, getuid(), getgid()) == -1 && errno == EPERM);
    MUST(truncate(p->other, 0) == -1 && errno == EPERM);
    MUST(utimensat(AT_FDCWD, p->other, NULL, 0) == -1 && errno == EPERM);
    MUST(setxattr(p->other, "user.x", "y", 1, 0) == -1 && errno == EPERM);
    MUST(kill(getppid(), 0) == -1 && errno == EPERM);
    MUST(setpriority(PRIO_PROCESS, (id_t)getppid(), 1) == -1 && errno == EPERM);
    struct rlimit limit = {0, 0};
    MUST(prlimit(getppid(), RLIMIT_CPU, NULL, &limit) == -1 && errno == EPERM);
    MUST(prlimit(0, RLIMIT_CPU, NULL, &limit) == 0);
    MUST(getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_cur == 0 && limit.rlim_max == 0);
    MUST(ioctl(STDERR_FILENO, TIOCSTI, "x") == -1 && errno == EPERM);
    MUST(ioctl(STDERR_FILENO, TIOCLINUX, "x") == -1 && errno == EPERM);
    MUST(shmat(0, NULL, 0) == (void *)-1 && errno == EPERM);
    MUST(syscall(__NR_io_uring_setup, 1, NULL) == -1 && errno == EPERM);
    MUST(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* see cage.c */
    MUST(fork() == -1 && errno == EPERM);
    MUST(syscall(__NR_clone3, NULL, 0) == -1 && errno == ENOSYS);
    MUST(syscall(__NR_ptrace, 0, 0, 0, 0) == -1 && errno == EPERM);
#endif
    void *memory = malloc(1 << 20); /* it can still work */
    MUST(memory != NULL);
    free(memory);
    return 0;
}

static void files_that_are_named_only(void **state)
{
    in_a_process(try_files, *state);
}

static void no_way_out_by_calls(void **state)
{
    in_a_process(try_calls, *state);
}

static void parts_have_names(void **state)
{
    (void)state;
    assert_string_equal(cage_names(0), "none");
    assert_string_equal(cage_names(CAGE_FILES | CAGE_CALLS), "files, calls");
    assert_string_equal(cage_names(CAGE_WHOLE), "files, network, calls");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_that_are_named_only, make_place, drop_place),
        cmocka_unit_test_setup_teardown(no_way_out_by_calls, make_place, drop_place),
        cmocka_unit_test(parts_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
