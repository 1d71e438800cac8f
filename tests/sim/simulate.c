/* SPDX-License-Identifier: Apache-2.0
 * The front end, its worker and libevent in a world without a clock: each seed is a life of the server.
 *
 *     simulate [--from SEED] [--seeds N] [--seconds S]    lives, one seed after the other
 *     simulate --seed SEED                                one, twice: both must be the same
 *     simulate --failing [...]                            the same, and calls of the front end fail
 *     simulate --lacking [...]                            likewise allocations
 *     simulate --overload [MODEL [TIMES [WORKERS [SEED]]]] goodput when more comes than fits
 *     simulate --burst TIMES                              the same on a GPU, in the first seconds
 *     simulate --crowd                                    the same on a model slower than hearing, for hours
 *     simulate --ending                                   who has just connected when it is told to stop
 *     simulate --predict [RATE]                           a server that was measured, from the times of its steps */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/sim/ending.h"
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
static bool fails, lacks;
static struct failed_calls failed; /* of all lives */
static uint64_t all_digests = 1;

static double live(uint64_t seed)
{
    char command[512];
    snprintf(command, sizeof command, "%s%s --seed %llu", program,
        fails   ? " --failing"
        : lacks ? " --lacking"
                : "",
        (unsigned long long)seed);
    world_repeat(command);
    double lived_s = life_run(seed);
    kernel_count_failed(&failed);
    all_digests = (all_digests ^ world_digest()) * 0x9E3779B97F4A7C15u;
    all_digests ^= all_digests >> 29;
    return lived_s;
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
    world_say("%llu seeds from %llu on, %.4f years, in %.1f s: %.1f seeds and %.5f years a second, "
              "digest %016llx\n",
        (unsigned long long)i, (unsigned long long)from, lived_s / year_s, took, (double)i / took,
        lived_s / year_s / took, (unsigned long long)all_digests);
    if (fails) {
        static const char *const names[N_FAILING] = {
            "accept", "read", "write", "pair", "watch", "thread"};
        for (int k = 0; k < FAILS_MEMORY; k++) {
            world_say("%s %llu, ", names[k], (unsigned long long)failed.n[k]);
        }
        world_say("%llu of these calls failed for good\n", (unsigned long long)failed.n_lasting);
    }
    if (lacks) {
        world_say(
            "%llu allocations of the front end and %llu of workers failed, %llu of them for good, "
            "at %d places\n",
            (unsigned long long)failed.n[FAILS_MEMORY],
            (unsigned long long)failed.n[FAILS_WORKER_MEMORY], (unsigned long long)failed.n_lasting,
            kernel_places_without_memory());
    }
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
            return overload_run(value[0] ? atoi(value) : -1, i + 2 < n ? atof(arguments[i + 2]) : 0,
                i + 3 < n ? atoi(arguments[i + 3]) : 1,
                i + 4 < n ? strtoull(arguments[i + 4], NULL, 10) : 1);
        }
        if (strcmp(arguments[i], "--failing") == 0) {
            life_calls_fail(fails = true);
            continue;
        }
        if (strcmp(arguments[i], "--lacking") == 0) {
            life_memory_lacks(lacks = true);
            continue;
        }
        if (strcmp(arguments[i], "--ending") == 0) {
            return ending_run();
        }
        if (strcmp(arguments[i], "--burst") == 0) {
            return overload_burst(atof(value));
        }
        if (strcmp(arguments[i], "--crowd") == 0) {
            return overload_crowd();
        }
        if (strcmp(arguments[i], "--predict") == 0) {
            return overload_predict(atof(value));
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
            world_say("simulate: no option '%s'; it takes --from, --seeds, --seconds, --seed, "
                      "--failing, --lacking, --overload, --burst, --crowd, --ending, --predict\n",
                arguments[i]);
            return 2;
        }
        i++;
    }
    return live_many(from, seeds, seconds);
}
