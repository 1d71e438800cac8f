/* SPDX-License-Identifier: Apache-2.0
 * The wrapped calls, and files for tests. The wrappers may run in any thread and in a signal handler. */
#include "tests/support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Failing calls ---- */

static atomic_long n_calls[N_SUPPORT_CALLS], countdown[N_SUPPORT_CALLS];
static atomic_bool has_failed, crashes, fails_on;
static atomic_size_t io_bytes, heap_bytes;
static atomic_int asked_reason; /* 0: each call has its usual one */
static void (*_Atomic happening)(void);

void support_fail_off(void)
{
    for (int i = 0; i < N_SUPPORT_CALLS; i++) {
        atomic_store(&countdown[i], 0);
    }
    atomic_store(&has_failed, false);
    atomic_store(&crashes, false);
    atomic_store(&fails_on, false);
    atomic_store(&happening, NULL);
    atomic_store(&asked_reason, 0);
}

void support_fail_at(enum support_call call, long n)
{
    support_fail_off();
    atomic_store(&countdown[call], n);
}

void support_fail_from(enum support_call call, long n)
{
    support_fail_off();
    atomic_store(&fails_on, true);
    atomic_store(&countdown[call], n);
}

void support_crash_at(enum support_call call, long n)
{
    support_fail_at(call, n);
    atomic_store(&crashes, true);
}

void support_happens_at(enum support_call call, long n, void (*happens)(void))
{
    support_fail_off();
    atomic_store(&happening, happens);
    atomic_store(&countdown[call], n);
}

void support_fail_with(int reason)
{
    atomic_store(&asked_reason, reason);
}

bool support_failed(void)
{
    return atomic_load(&has_failed);
}

long support_calls(enum support_call call)
{
    return atomic_load(&n_calls[call]);
}

size_t support_bytes(void)
{
    return atomic_load(&heap_bytes);
}

void support_short_io(size_t bytes)
{
    atomic_store(&io_bytes, bytes);
}

static bool must_fail(enum support_call call)
{
    atomic_fetch_add(&n_calls[call], 1);
    /* Where it is for good, the count stays at one. */
    const long last = atomic_load(&fails_on) ? 1 : 0;
    long left = atomic_load(&countdown[call]);
    while (left > last && !atomic_compare_exchange_weak(&countdown[call], &left, left - 1)) {
    }
    if (left != 1) {
        return false;
    }
    if (atomic_load(&crashes)) {
        kill(getpid(), SIGKILL);
    }
    atomic_store(&has_failed, true);
    void (*happens)(void) = atomic_load(&happening);
    if (happens) {
        happens();
    }
    return !happens;
}

/* Whether this request of the heap must fail; it counts all the same. */
static bool must_lack(size_t bytes)
{
    atomic_fetch_add(&heap_bytes, bytes);
    return must_fail(SUPPORT_MALLOC);
}

static size_t io_limit(size_t bytes)
{
    size_t limit = atomic_load(&io_bytes);
    return limit && bytes > limit ? limit : bytes;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *block, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void **block, size_t alignment, size_t bytes);
void *__real_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
int __real_open(const char *path, int flags, ...);
ssize_t __real_read(int fd, void *data, size_t bytes);
ssize_t __real_write(int fd, const void *data, size_t bytes);
int __real_fsync(int fd);
int __real_rename(const char *from, const char *to);
int __real_pthread_create(
    pthread_t *thread, const pthread_attr_t *attributes, void *(*fn)(void *), void *arg);

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *block, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
int __wrap_posix_memalign(void **block, size_t alignment, size_t bytes);
void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
int __wrap_open(const char *path, int flags, ...);
ssize_t __wrap_read(int fd, void *data, size_t bytes);
ssize_t __wrap_write(int fd, const void *data, size_t bytes);
int __wrap_fsync(int fd);
int __wrap_rename(const char *from, const char *to);
int __wrap_pthread_create(
    pthread_t *thread, const pthread_attr_t *attributes, void *(*fn)(void *), void *arg);

static void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

static int no_luck(int usual)
{
    const int asked = atomic_load(&asked_reason);
    if (asked == SUPPORT_MOVES_NOTHING) {
        return 0;
    }
    errno = asked ? asked : usual;
    return -1;
}

void *__wrap_malloc(size_t bytes)
{
    return must_lack(bytes) ? no_memory() : __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return must_lack(n * size) ? no_memory() : __real_calloc(n, size);
}

void *__wrap_realloc(void *block, size_t bytes)
{
    return must_lack(bytes) ? no_memory() : __real_realloc(block, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return must_lack(bytes) ? no_memory() : __real_aligned_alloc(alignment, bytes);
}

int __wrap_posix_memalign(void **block, size_t alignment, size_t bytes)
{
    return must_lack(bytes) ? ENOMEM : __real_posix_memalign(block, alignment, bytes);
}

void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
    if (must_fail(SUPPORT_MMAP)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return __real_mmap(address, bytes, protection, flags, fd, offset);
}

static const char *stood_in_for, *stand_in;

void support_stand_in(const char *path, const char *other)
{
    stood_in_for = path;
    stand_in = other;
}

int __wrap_open(const char *path, int flags, ...)
{
    path = stood_in_for && strcmp(path, stood_in_for) == 0 ? stand_in : path;
    va_list args;
    va_start(args, flags);
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, int) : 0;
    va_end(args);
    return must_fail(SUPPORT_OPEN) ? no_luck(EACCES) : __real_open(path, flags, mode);
}

ssize_t __wrap_read(int fd, void *data, size_t bytes)
{
    return must_fail(SUPPORT_READ) ? no_luck(EIO) : __real_read(fd, data, io_limit(bytes));
}

ssize_t __wrap_write(int fd, const void *data, size_t bytes)
{
    return must_fail(SUPPORT_WRITE) ? no_luck(ENOSPC) : __real_write(fd, data, io_limit(bytes));
}

int __wrap_fsync(int fd)
{
    return must_fail(SUPPORT_FSYNC) ? no_luck(EIO) : __real_fsync(fd);
}

int __wrap_rename(const char *from, const char *to)
{
    return must_fail(SUPPORT_RENAME) ? no_luck(EACCES) : __real_rename(from, to);
}

int __wrap_pthread_create(
    pthread_t *thread, const pthread_attr_t *attributes, void *(*fn)(void *), void *arg)
{
    return must_fail(SUPPORT_THREAD) ? EAGAIN : __real_pthread_create(thread, attributes, fn, arg);
}

void support_leave_sigbus(void)
{
    signal(SIGBUS, SIG_DFL);
}

/* ---- Files ---- */

static char folder[4096];

static int remove_one(const char *path, const struct stat *about, int type, struct FTW *place)
{
    (void)about, (void)type, (void)place;
    return remove(path);
}

static void remove_folder(void)
{
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *support_folder(void)
{
    if (!folder[0]) {
        const char *parent = getenv("TMPDIR");
        snprintf(folder, sizeof folder, "%s/utter-test-XXXXXX", parent ? parent : "/tmp");
        if (!mkdtemp(folder)) {
            perror(folder);
            exit(1);
        }
        atexit(remove_folder);
    }
    return folder;
}

const char *support_path(const char *name)
{
    static char paths[8][5000];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", support_folder(), name);
    return path;
}

void support_write_file(const char *path, const void *data, size_t bytes)
{
    unlink(path); /* else some file systems sync it at once */
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f) != 0) {
        perror(path);
        exit(1);
    }
}

char *support_read_file(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rb");
    struct stat about;
    if (!f) {
        return NULL;
    }
    if (fstat(fileno(f), &about) != 0) {
        perror(path);
        exit(1);
    }
    char *data = __real_calloc(1, (size_t)about.st_size + 1);
    *bytes = data ? fread(data, 1, (size_t)about.st_size, f) : 0;
    fclose(f);
    return data;
}

int support_count_files(const char *path)
{
    DIR *d = opendir(path);
    int n = 0;
    for (struct dirent *entry; d && (entry = readdir(d));) {
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    if (d) {
        closedir(d);
    }
    return n;
}

void support_assert_content(const char *path, const char *wanted)
{
    size_t n;
    char *text = support_read_file(path, &n);
    assert_non_null(text);
    assert_string_equal(text, wanted);
    free(text);
}

const char *support_fresh_folder(const char *name)
{
    const char *path = support_path(name);
    assert_int_equal(mkdir(path, 0700), 0);
    return path;
}

int support_count_mappings(const char *name)
{
    char line[8192];
    int n = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        n += strstr(line, name) != NULL;
    }
    fclose(maps);
    return n;
}

int support_child_end(void (*child)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        child();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}
