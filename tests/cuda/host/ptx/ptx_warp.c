/* SPDX-License-Identifier: Apache-2.0
 * Instructions that lanes of a warp do together, and that move no memory: shuffles, votes, sums. */
#include "tests/cuda/host/ptx/ptx.h"

#include <string.h>

static void each_lane_is_there(uint32_t mask, const char *what)
{
    if (!(mask >> host_now->lane & 1)) {
        host_finding("%s: lane %d is not of its own mask %08x", what, host_now->lane, mask);
    }
}

struct shuffled {
    uint64_t value;
    int32_t from, pad;
};

static void shuffle(uint32_t mask, const void *in, void *out, const void *same)
{
    const struct shuffled *lanes = (const struct shuffled *)in;
    uint64_t *values = (uint64_t *)out;
    (void)same;
    for (int lane = 0; lane < HOST_WARP; lane++) {
        if (!(mask >> lane & 1)) {
            continue;
        }
        const int from = lanes[lane].from;
        if (!(mask >> from & 1)) {
            host_finding(
                "shuffle: lane %d asks lane %d, which is not of the mask %08x", lane, from, mask);
        }
        values[lane] = lanes[from].value;
    }
}

void host_shuffle(uint32_t mask, void *value, size_t bytes, int from)
{
    struct shuffled mine = {0, from & (HOST_WARP - 1), 0};
    uint64_t got;
    each_lane_is_there(mask, "shuffle");
    memcpy(&mine.value, value, bytes);
    host_warp_do("shuffle", mask, shuffle, &mine, sizeof mine, &got, sizeof got, NULL);
    memcpy(value, &got, bytes);
}

static void nothing(uint32_t mask, const void *in, void *out, const void *same)
{
    (void)mask, (void)in, (void)out, (void)same;
}

void host_warp_sync(uint32_t mask)
{
    each_lane_is_there(mask, "__syncwarp");
    host_all_seen();
    host_warp_do("__syncwarp", mask, nothing, NULL, 0, NULL, 0, NULL);
    strict_warp_sync(mask);
}

static void vote(uint32_t mask, const void *in, void *out, const void *same)
{
    const uint32_t *yes = (const uint32_t *)in;
    uint32_t *bits = (uint32_t *)out, all = 0;
    (void)same;
    for (int lane = 0; lane < HOST_WARP; lane++) {
        all |= (mask >> lane & 1 & (yes[lane] != 0)) << lane;
    }
    for (int lane = 0; lane < HOST_WARP; lane++) {
        bits[lane] = all;
    }
}

uint32_t host_ballot(uint32_t mask, bool yes)
{
    uint32_t mine = yes, bits;
    each_lane_is_there(mask, "vote");
    host_warp_do("vote", mask, vote, &mine, sizeof mine, &bits, sizeof bits, NULL);
    return bits;
}

static uint32_t reduced(uint32_t a, uint32_t b, enum host_reduction how)
{
    switch (how) {
    case HOST_ADD:
        return a + b;
    case HOST_MIN:
        return a < b ? a : b;
    case HOST_MAX:
        return a > b ? a : b;
    case HOST_MIN_SIGNED:
        return (int32_t)a < (int32_t)b ? a : b;
    case HOST_MAX_SIGNED:
        return (int32_t)a > (int32_t)b ? a : b;
    }
    return 0;
}

static void reduce(uint32_t mask, const void *in, void *out, const void *same)
{
    const uint32_t *values = (const uint32_t *)in;
    const enum host_reduction how = *(const enum host_reduction *)same;
    const int first = __builtin_ctz(mask);
    uint32_t *sums = (uint32_t *)out, sum = values[first];
    for (int lane = first + 1; lane < HOST_WARP; lane++) {
        sum = mask >> lane & 1 ? reduced(sum, values[lane], how) : sum;
    }
    for (int lane = 0; lane < HOST_WARP; lane++) {
        sums[lane] = sum;
    }
}

uint32_t host_reduce(uint32_t mask, uint32_t value, enum host_reduction how)
{
    uint32_t sum;
    each_lane_is_there(mask, "reduction");
    host_warp_do("reduction", mask, reduce, &value, sizeof value, &sum, sizeof sum, &how);
    return sum;
}
