/* SPDX-License-Identifier: Apache-2.0
 * How many blocks of memory the program and its libraries have asked for and not given back: the Makefile sends their
 * calls here. What the C library has asked for by itself is not counted. */
#ifndef TESTS_SERVER_LIVE_BLOCKS_H
#define TESTS_SERVER_LIVE_BLOCKS_H

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

enum { LIVE_PLACES = 1 << 17 };
static void *live_blocks[LIVE_PLACES]; /* by their address, each at the next free place */
static size_t n_live_blocks;
static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER;

static size_t live_home(const void *block)
{
    return (size_t)(((uintptr_t)block >> 4) * 0x9E3779B97F4A7C15u >> 40) % LIVE_PLACES;
}

/* Where it is, or would be. */
static size_t live_place(const void *block)
{
    size_t at = live_home(block);
    while (live_blocks[at] && live_blocks[at] != block) {
        at = (at + 1) % LIVE_PLACES;
    }
    return at;
}

static void *live_come(void *block)
{
    pthread_mutex_lock(&live_lock);
    if (block && n_live_blocks + 1 < LIVE_PLACES) {
        live_blocks[live_place(block)] = block;
        n_live_blocks++;
    }
    pthread_mutex_unlock(&live_lock);
    return block;
}

/* Those behind it move up, as far as they have to. */
static void live_go(const void *block)
{
    pthread_mutex_lock(&live_lock);
    size_t at = live_place(block);
    if (block && live_blocks[at]) {
        live_blocks[at] = NULL;
        n_live_blocks--;
        for (size_t i = (at + 1) % LIVE_PLACES; live_blocks[i]; i = (i + 1) % LIVE_PLACES) {
            void *other = live_blocks[i];
            live_blocks[i] = NULL;
            live_blocks[live_place(other)] = other;
        }
    }
    pthread_mutex_unlock(&live_lock);
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *block, size_t n);
void __real_free(void *block);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *block, size_t n);
void __wrap_free(void *block);

void *__wrap_malloc(size_t n)
{
    return live_come(__real_malloc(n));
}

void *__wrap_calloc(size_t n, size_t size)
{
    return live_come(__real_calloc(n, size));
}

void *__wrap_realloc(void *block, size_t n)
{
    live_go(block);
    void *grown = __real_realloc(block, n);
    return live_come(grown || n == 0 ? grown : block);
}

void __wrap_free(void *block)
{
    live_go(block);
    __real_free(block);
}

#endif
