/* SPDX-License-Identifier: Apache-2.0
 * Instructions of one thread by itself: loads with hints, numbers, and what a card may lack. */
#include "tests/cuda/host/ptx/ptx.h"

#include <math.h>
#include <string.h>

static unsigned one_of(const struct host_dim *dim, enum host_id x, enum host_id which)
{
    return which == x ? dim->x : which == x + 1 ? dim->y : dim->z;
}

unsigned host_id(enum host_id which)
{
    const struct host_thread *t = host_now;
    return which == HOST_LANE       ? (unsigned)t->lane
           : which < HOST_BLOCK_X   ? one_of(&t->thread_id, HOST_THREAD_X, which)
           : which < HOST_THREADS_X ? one_of(&t->block_id, HOST_BLOCK_X, which)
           : which < HOST_BLOCKS_X  ? one_of(&t->block_dim, HOST_THREADS_X, which)
                                    : one_of(&t->grid_dim, HOST_BLOCKS_X, which);
}

void host_needs(bool has, const char *instruction)
{
    if (!has) {
        host_finding("%s: a %s does not have it", instruction, host_card()->full_name);
        host_trap("an instruction that the card does not have");
    }
}

void host_read(const void *at, void *value, size_t bytes, const char *what)
{
    strict_read(at, bytes, STRICT_PLAIN, STRICT_CTA);
    if ((uintptr_t)at % bytes != 0) {
        host_finding("%s of %zu bytes at %p", what, bytes, at);
    }
    if (host_is_shared(at)) {
        host_finding("%s at %p, in shared memory: it is for global memory", what, at);
    }
    memcpy(value, at, bytes);
}

void host_prefetch(const void *at)
{
    if (host_is_shared(at)) {
        host_finding("prefetch.global at %p, in shared memory", at);
    }
}

static void elect(uint32_t mask, const void *in, void *out, const void *same)
{
    (void)mask, (void)in, (void)out, (void)same;
}

/* Any lane may be the one; not the first, so that a kernel that takes it for that shows. */
bool host_elect(void)
{
    host_needs(host_card()->clusters, "elect.sync");
    host_warp_do("elect.sync", 0xffffffffu, elect, NULL, 0, NULL, 0, NULL);
    return host_now->lane == (host_now->warp * 7 + 3) % HOST_WARP;
}

static uint32_t bf16_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return 0x7fff; /* cvt makes this one of all that are no number */
    }
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

uint32_t host_pack_bf16(float low, float high)
{
    return bf16_of(low) | bf16_of(high) << 16;
}

/* Numbers below 2^-126 are 0, with their sign. */
static float flushed(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(0.0f, x) : x;
}

float host_reciprocal(float x)
{
    return flushed(1.0f / flushed(x));
}

float host_log2(float x)
{
    return log2f(flushed(x));
}

float host_divide(float a, float b)
{
    const float size = fabsf(b);
    if (size > 0x1p126f && size < INFINITY) {
        return isinf(a) ? NAN : copysignf(0.0f, a) * copysignf(1.0f, b);
    }
    return a / b;
}

void host_registers(int n, bool more)
{
    if (host_card()->code_specific || host_card()->code_family) {
        if (n < 24 || n > 256 || n % 8 != 0) {
            host_finding("setmaxnreg %d", n);
        }
        host_team_barrier(more ? "setmaxnreg.inc" : "setmaxnreg.dec");
    }
}
