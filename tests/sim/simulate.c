/* SPDX-License-Identifier: Apache-2.0
 * The front end, its worker and libevent in a world without a clock: each seed is a life of the server.
 *
 *     simulate [--from SEED] [--seeds N] [--seconds S]    lives, one seed after the other
 *     simulate --seed SEED                                one, twice: both must be the same
 *     simulate --overload [MODEL [TIMES]]                 goodput when more comes than fits */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/sim/kernel.h"
#include "tests/sim/life.h"
#include "tests/sim/overload.h"
#include "tests/sim/world.h"

int __real_clock_gettime(clockid_t clock, struct timespec *t);

static double real_seconds(void)
{
    struct timespec t;
    __real_clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const char *program;

static double live(uint64_t seed)
{
    char command[512];
    snprintf(command, sizeof command, "%s --seed %llu", program, (unsigned long long)seed);
    world_repeat(command);
    return life_run(seed);
}

static void live_twice(uint64_t seed)
{
    live(seed);
    uint64_t first = world_digest();
    live(seed);
    if (world_digest() != first) {
        world_fail("two lives of one seed differ");
    }
}

static int live_many(uint64_t from, uint64_t n, double seconds)
{
    double began = real_seconds(), lived_s = 0;
    uint64_t i = 0;
    for (; i < n && (seconds <= 0 || real_seconds() - began < seconds); i++) {
        if (i % 50 == 0) {
            live_twice(from + i);
        } else {
            lived_s += live(from + i);
        }
    }
    double took = real_seconds() - began, year_s = 365.25 * 86400;
    world_say("%llu seeds from %llu on, %.4f years, in %.1f s: %.1f seeds and %.5f years a second\n",
        (unsigned long long)i, (unsigned long long)from, lived_s / year_s, took, (double)i / took,
        lived_s / year_s / took);
    return 0;
}

int main(int n, char **arguments)
{
    uint64_t from = 1, seeds = UINT64_MAX;
    double seconds = 0;
    program = arguments[0];
    world_open();
    for (int i = 1; i < n; i++) {
        const char *value = i + 1 < n ? arguments[i + 1] : "";
        if (strcmp(arguments[i], "--overload") == 0) {
            return overload_run(value[0] ? atoi(value) : -1, i + 2 < n ? atof(arguments[i + 2]) : 0);
        }
        if (strcmp(arguments[i], "--seed") == 0) {
            live_twice(strtoull(value, NULL, 10));
            world_say("seed %s: nothing found\n", value);
            return 0;
        }
        if (strcmp(arguments[i], "--from") == 0) {
            from = strtoull(value, NULL, 10);
        } else if (strcmp(arguments[i], "--seeds") == 0) {
            seeds = strtoull(value, NULL, 10);
        } else if (strcmp(arguments[i], "--seconds") == 0) {
            seconds = atof(value);
        } else {
            world_say(
                "simulate: no option '%s'; it takes --from, --seeds, --seconds, --seed, --overload\n",
                arguments[i]);
            return 2;
        }
        i++;
    }
    return live_many(from, seeds, seconds);
}
