/* SPDX-License-Identifier: Apache-2.0
 * Loaded in front of malloc by LD_PRELOAD: the allocation that a shared file ($LACKS) names by its number fails, alone
 * or with some that follow, in the process that opens the file first (the front end). lacking.py writes the numbers. */
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { FILE_BYTES = 4096, CALLERS = 16 };

struct lacks {
    _Atomic int64_t
        left; /* allocations up to the next that fails; below 0: so many fail now; 0: none */
    _Atomic int64_t lasting; /* how many fail behind the first */
    _Atomic int64_t failed, asked;
    _Atomic int64_t owner; /* pid */
};

/* Those of the C library, whose names malloc and the others hide. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *at, size_t bytes);

static struct lacks *lacks;
static _Thread_local bool telling;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("LACKS");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *at = fd >= 0 ? mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    int64_t nobody = 0;
    void *caller;
    if (fd >= 0) {
        close(fd);
    }
    backtrace(&caller, 1); /* allocates at its first call */
    if (at != MAP_FAILED &&
        atomic_compare_exchange_strong(&((struct lacks *)at)->owner, &nobody, getpid())) {
        lacks = at;
    }
}

/* With $SHOW, who asked in vain. */
static void show_callers(void)
{
    if (getenv("SHOW")) {
        void *callers[CALLERS];
        telling = true;
        dprintf(2, "-- lacks\n");
        backtrace_symbols_fd(callers, backtrace(callers, CALLERS), 2);
        telling = false;
    }
}

static bool fails(void)
{
    if (!lacks || telling || getpid() != lacks->owner) {
        return false;
    }
    atomic_fetch_add(&lacks->asked, 1);
    int64_t left = atomic_load(&lacks->left), next;
    do { /* the tests may write meanwhile */
        if (left == 0) {
            return false;
        }
        next = left == 1 ? -lacks->lasting : left > 1 ? left - 1 : left + 1;
    } while (!atomic_compare_exchange_weak(&lacks->left, &left, next));
    if (left > 1) {
        return false;
    }
    atomic_fetch_add(&lacks->failed, 1);
    show_callers();
    errno = ENOMEM;
    return true;
}

EXPORT void *malloc(size_t bytes)
{
    return fails() ? NULL : __libc_malloc(bytes);
}

EXPORT void *calloc(size_t n, size_t bytes)
{
    return fails() ? NULL : __libc_calloc(n, bytes);
}

EXPORT void *realloc(void *at, size_t bytes)
{
    return bytes > 0 && fails() ? NULL : __libc_realloc(at, bytes);
}
