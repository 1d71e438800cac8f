/* SPDX-License-Identifier: Apache-2.0
 * Loaded in front of malloc by LD_PRELOAD: how many bytes of the heap a process holds, in a file of the folder $HELD
 * that is named by its pid. soak.py reads it: what the system says of memory also has what was freed and is not given
 * back, in which a leak may hide for days. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* Those of the C library, whose names malloc and the others hide. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *at, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);
void __libc_free(void *at);

static _Atomic int64_t before; /* what is taken before there is a file */
static _Atomic int64_t *held = &before;

__attribute__((constructor)) static void begin(void)
{
    char path[4096];
    const char *folder = getenv("HELD");
    snprintf(path, sizeof path, "%s/%d", folder ? folder : "", (int)getpid());
    int fd = folder ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    void *at = fd >= 0 && ftruncate(fd, sizeof *held) == 0
                   ? mmap(NULL, sizeof *held, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                   : MAP_FAILED;
    if (fd >= 0) {
        close(fd);
    }
    if (at != MAP_FAILED) {
        held = at;
        atomic_fetch_add(held, before);
    }
}

static void *taken(void *at)
{
    atomic_fetch_add(held, (int64_t)malloc_usable_size(at));
    return at;
}

EXPORT void *malloc(size_t bytes)
{
    return taken(__libc_malloc(bytes));
}

EXPORT void *calloc(size_t n, size_t bytes)
{
    return taken(__libc_calloc(n, bytes));
}

EXPORT void *realloc(void *at, size_t bytes)
{
    int64_t old = (int64_t)malloc_usable_size(at);
    void *grown = __libc_realloc(at, bytes);
    if (grown || bytes == 0) {
        atomic_fetch_sub(held, old);
    }
    return taken(grown);
}

EXPORT void *aligned_alloc(size_t align, size_t bytes)
{
    return taken(__libc_memalign(align, bytes));
}

EXPORT int posix_memalign(void **at, size_t align, size_t bytes)
{
    void *block = taken(__libc_memalign(align, bytes));
    *at = block ? block : *at;
    return block ? 0 : ENOMEM;
}

EXPORT void free(void *at)
{
    atomic_fetch_sub(held, (int64_t)malloc_usable_size(at));
    __libc_free(at);
}
