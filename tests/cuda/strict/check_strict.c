/* SPDX-License-Identifier: Apache-2.0
 * The strict checker by itself: each case is a small program of several threads, told step by step. Whole it must be
 * silent; with one thing left out it must be found, and for the right reason. */
#include "tests/cuda/strict/check_strict.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

_Alignas(PAGE) uint32_t global[GLOBAL / 4];
_Alignas(PAGE) uint32_t shared[BLOCKS][SHARED / 4];
struct strict_op *op;
struct strict_grid *grid;
static int n_found;
static char found[2048];
int turn[BLOCKS];

void host_finding(const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    if (n_found++ == 0) {
        vsnprintf(found, sizeof found, format, rest);
    }
    va_end(rest);
}

/* ---- Words for the steps ---- */

void be(int block, int thread)
{
    strict_thread(grid, block, thread);
}

void barrier_of(int block, int from, int to)
{
    const char *object = (const char *)&turn[block] + (turn[block] & 1);
    for (int t = from; t < to; t++) {
        be(block, t);
        strict_release_to(object);
    }
    for (int t = from; t < to; t++) {
        be(block, t);
        strict_acquire_from(object);
    }
    turn[block]++;
}

void barrier(int block)
{
    barrier_of(block, 0, N);
}

void warp_sync(int block, int warp, uint32_t mask)
{
    for (int lane = 0; lane < 32; lane++) {
        if (mask >> lane & 1) {
            be(block, warp * 32 + lane);
            strict_warp_sync(mask);
        }
    }
}

void begin(int stream, const char *name)
{
    op = strict_op_begin(stream, name);
    grid = strict_grid_begin(op, name, ALL_BLOCKS, N, (struct host_dim){2, 1, 1});
    memset(turn, 0, sizeof turn);
}

uint64_t end(void)
{
    strict_thread(NULL, 0, 0);
    strict_grid_end(grid);
    return strict_op_end(op);
}

uint64_t copy_in(int stream, void *at, size_t bytes)
{
    struct strict_op *copy = strict_op_begin(stream, "a copy in");
    strict_op_write(copy, at, bytes);
    return strict_op_end(copy);
}

/* ---- All of them ---- */

static bool run(const struct strict_case *one, bool left_out)
{
    static int number; /* a kernel of its own name: what was told of another one does not count */
    char name[32];
    snprintf(name, sizeof name, "case_%d", ++number);
    n_found = 0;
    found[0] = 0;
    strict_memory_add(global, sizeof global, HOST_GLOBAL, "global", true);
    for (int b = 0; b < BLOCKS; b++) {
        strict_memory_add(shared[b], SHARED, HOST_SHARED, "shared", false);
    }
    begin(1, name);
    one->run(left_out);
    end();
    for (int b = 0; b < BLOCKS; b++) {
        strict_memory_remove(shared[b]);
    }
    strict_memory_remove(global);
    bool good = left_out ? n_found > 0 && strstr(found, one->said) : n_found == 0;
    if (getenv("STRICT_TELL") || !good) {
        printf("%s %s, %s: %s\n", good ? "ok" : "FAIL", one->name,
            left_out ? "one thing left out" : "whole", n_found ? found : "nothing found");
    }
    return good;
}

/* What an access costs, in nanoseconds: STRICT_TIME in the environment. */
static void measure(void)
{
    strict_memory_add(shared[0], SHARED, HOST_SHARED, "shared", false);
    begin(1, "measured");
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    enum { TURNS = 1000 };
    for (int k = 0; k < TURNS; k++) {
        for (int t = 0; t < N; t++) {
            be(0, t);
            for (int i = 0; i < 8; i++) {
                W(shared[0] + i * N + t);
            }
        }
        barrier(0);
        for (int t = 0; t < N; t++) {
            be(0, t);
            for (int i = 0; i < 8; i++) {
                R(shared[0] + i * N + (t * 7 + i) % N);
                R(shared[0] + i * N);
            }
        }
        barrier(0);
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    end();
    strict_memory_remove(shared[0]);
    double ns = (double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec);
    printf("%.1f ns an access, with a barrier for each 12\n", ns / (24.0 * N * TURNS));
}

int main(void)
{
    int passed = 0, failed = 0;
    for (int i = 0; i < 2; i++) {
        for (const struct strict_case *one = i ? strict_cases_memory : strict_cases_order; one->run;
             one++) {
            for (int left_out = 0; left_out < 2; left_out++) {
                bool good = run(one, left_out);
                passed += good;
                failed += !good;
            }
        }
    }
    if (getenv("STRICT_TIME")) {
        measure();
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
