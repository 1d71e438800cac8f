/* SPDX-License-Identifier: Apache-2.0
 * The heap and reserved address space. A block of memory_new is a piece of a calloc block: calloc knows
 * which pages are fresh from the system and leaves them untouched, so a large block costs nothing until
 * it is used. The pointer to the calloc block lies just before the aligned address. */
#include "base/memory.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/minmax.h"

#if defined(__SANITIZE_ADDRESS__)
#define MEMORY_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MEMORY_ASAN 1
#endif
#endif
#ifdef MEMORY_ASAN
void __asan_poison_memory_region(const volatile void *begin, size_t bytes);
#endif

enum { BLOCK_ALIGN = 64 };

/* From this size on glibc never takes a block from its heap but always from fresh pages, so advice on
 * the pages concerns this block alone. */
static const size_t huge_block = (size_t)32 << 20;
static const size_t huge_page = (size_t)2 << 20;

/* Few huge pages instead of many small ones under the blocks that are read every frame. */
static void block_use_huge_pages(void *block, size_t bytes)
{
    uintptr_t begin = ((uintptr_t)block + huge_page - 1) & ~(uintptr_t)(huge_page - 1);
    uintptr_t end = ((uintptr_t)block + bytes) & ~(uintptr_t)(huge_page - 1);
    if (begin < end) {
        madvise((void *)begin, end - begin, MADV_HUGEPAGE);
    }
}

void *memory_new(size_t n, size_t size)
{
    size_t bytes, total;
    if (!memory_multiply(n, size, &bytes) ||
        !memory_add(bytes, sizeof(void *) + BLOCK_ALIGN - 1, &total)) {
        return NULL;
    }
    char *base = calloc(1, total);
    if (!base) {
        return NULL;
    }
    uintptr_t first = (uintptr_t)base + sizeof(void *) + BLOCK_ALIGN - 1;
    char *block = base + ((first & ~(uintptr_t)(BLOCK_ALIGN - 1)) - (uintptr_t)base);
    memcpy(block - sizeof base, &base, sizeof base);
#ifdef MEMORY_ASAN /* else a write past the end would hide in the slack */
    __asan_poison_memory_region(block + bytes, total - bytes - (size_t)(block - base));
#endif
    if (bytes >= huge_block) {
        block_use_huge_pages(block, bytes);
    }
    return block;
}

void *memory_resize(void *block, size_t n_old, size_t n_new, size_t size)
{
    void *grown = memory_new(n_new, size);
    if (!grown) {
        return NULL;
    }
    if (block) {
        memcpy(grown, block, min(n_old, n_new) * size);
    }
    memory_free(block);
    return grown;
}

void memory_free(void *block)
{
    if (block) {
        void *base;
        memcpy(&base, (char *)block - sizeof base, sizeof base);
        free(base);
    }
}

void memory_keep_little(void)
{
    mallopt(M_MMAP_THRESHOLD, 128 << 10);
}

void memory_give_back(void)
{
    malloc_trim(0);
}

void *memory_plain_new(size_t bytes)
{
    return malloc(bytes);
}

void *memory_plain_resize(void *block, size_t bytes)
{
    return realloc(block, bytes);
}

void memory_plain_free(void *block)
{
    free(block);
}

void *memory_reserve(size_t bytes)
{
    void *block = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return block == MAP_FAILED ? NULL : block;
}

void memory_rest(void *block, size_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)block + page - 1) & ~(page - 1);
    uintptr_t end = ((uintptr_t)block + bytes) & ~(page - 1);
    if (begin < end) {
        madvise((void *)begin, end - begin, MADV_DONTNEED);
    }
}

void memory_release(void *block, size_t bytes)
{
    if (block) {
        munmap(block, bytes ? bytes : 1);
    }
}

char *memory_string(const char *text)
{
    return memory_string_n(text, strlen(text));
}

char *memory_string_n(const char *text, size_t bytes)
{
    size_t total;
    char *copy = memory_add(bytes, 1, &total) ? memory_new(total, 1) : NULL;
    if (copy && bytes) {
        memcpy(copy, text, bytes);
    }
    return copy;
}
