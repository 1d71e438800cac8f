/* SPDX-License-Identifier: Apache-2.0
 * Memory that lacks: each allocation of the server and of the libraries in it may fail, once, and some of them with
 * all that follow within a second. The world's own never do. */
#include <errno.h>
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/sound/encode_parts.h"
#include "tests/sim/kernel_parts.h"

enum { PLACES = 1 << 16, CALLERS = 10 };

static uint64_t places[PLACES]; /* by hash */
static int n_places;

/* Who asked, and who called that. */
static void note_place(void)
{
    void *frames[CALLERS];
    int n = backtrace(frames, CALLERS);
    uint64_t hash = 1;
    if (getenv("SHOW")) { /* what befell a life */
        dprintf(2, "-- lacks at %.4f %s\n", world_now(),
            kernel.lacks_until > world_now_ns() ? "lasting" : "");
        backtrace_symbols_fd(frames + 2, n - 2, 2);
    }
    for (int i = 2; i < n; i++) {
        hash = (hash ^ (uint64_t)(uintptr_t)frames[i]) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    uint64_t i = hash % PLACES;
    while (places[i] != 0 && places[i] != hash) {
        i = (i + 1) % PLACES;
    }
    if (places[i] == 0 && n_places < PLACES / 2) {
        places[i] = hash;
        n_places++;
    }
}

int kernel_places_without_memory(void)
{
    return n_places;
}

bool kernel_lacked_memory(void)
{
    return kernel.n_failed[FAILS_MEMORY] > 0;
}

static void draw_next(void)
{
    kernel.allocations = 1 + (uint64_t)draw_wait(1 / kernel.lacks);
}

void kernel_lack_memory(double of_one)
{
    kernel.lacks = of_one;
    kernel.lacks_until = 0;
    if (of_one > 0) {
        draw_next();
    }
}

static bool in_coder;

static bool lacks(void)
{
    if (kernel.lacks <= 0 || in_coder || !kernel.has_loop) {
        return false;
    }
    pid_t whose = kernel_pid();
    if (world_now_ns() < kernel.lacks_until && kernel.lacks_memory == whose) {
        return true;
    }
    if (--kernel.allocations > 0) {
        return false;
    }
    draw_next();
    kernel.n_failed[whose ? FAILS_WORKER_MEMORY : FAILS_MEMORY]++;
    if (draw_chance(0.3)) {
        kernel.lacks_memory = whose;
        kernel.lacks_until = world_now_ns() + (int64_t)(1e9 * draw_unit());
        kernel.n_lasting++;
    }
    note_place();
    return true;
}

/* Within coders and effects of others nothing fails: what they do then is not ours to mend. Who calls them looks first
 * whether there is memory. */

CALL(struct encode_coder *, encode_coder_new, const struct encode_settings *settings, int rate)
{
    if (lacks()) {
        return NULL;
    }
    in_coder = true;
    struct encode_coder *c = __real_encode_coder_new(settings, rate);
    in_coder = false;
    return c;
}

CALL(bool, encode_feed, struct encode *e, float *pcm, size_t n, bool final, struct wire_out *out)
{
    if (lacks()) {
        return false;
    }
    in_coder = true;
    bool good = __real_encode_feed(e, pcm, n, final, out);
    in_coder = false;
    return good;
}

static void *refuse(void)
{
    errno = ENOMEM;
    return NULL;
}

CALL(void *, malloc, size_t bytes)
{
    return lacks() ? refuse() : __real_malloc(bytes);
}

CALL(void *, calloc, size_t n, size_t size)
{
    return lacks() ? refuse() : __real_calloc(n, size);
}

CALL(void *, realloc, void *block, size_t bytes)
{
    return lacks() ? refuse() : __real_realloc(block, bytes);
}

static void *need(void *block)
{
    if (!block) {
        world_fail("the machine has no memory");
    }
    return block;
}

void *world_new(size_t bytes)
{
    return need(__real_calloc(1, bytes));
}

void *world_grow(void *block, size_t bytes)
{
    return need(__real_realloc(block, bytes));
}
