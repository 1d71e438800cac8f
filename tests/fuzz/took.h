/* SPDX-License-Identifier: Apache-2.0
 * What a fuzz target tells tests/fuzz/replay.c: that it took an input for a whole and right file. A target says so
 * whose files end where they say that they end, so that no beginning of one is one. */
#ifndef TESTS_FUZZ_TOOK_H
#define TESTS_FUZZ_TOOK_H

#include <stdbool.h>

/* Not there in the programs that libFuzzer drives. */
extern bool replay_took __attribute__((weak));

static inline void replay_takes(void)
{
    if (&replay_took) {
        replay_took = true;
    }
}

#endif
