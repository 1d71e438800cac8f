/* SPDX-License-Identifier: Apache-2.0
 * What each option takes, and what stands where nobody gives it. */
#include <float.h>
#include <string.h>

#include "cli/options.h"
#include "tests/support.h"

/* What people may have in their scripts: no bound and no default changes unseen. DBL_MIN means above 0. */
static const struct {
    unsigned command;
    const char *name;
    double low, high;
    const char *fallback;
} numbers[] = {
    {COMMAND_SAY, "speed", 0.25, 4, "1"},
    {COMMAND_SAY, "volume", 0, 4, "1"},
    {COMMAND_SAY, "rate", 8000, 48000, NULL},
    {COMMAND_SAY, "seed", 0, 18446744073709551615.0, "0"},
    {COMMAND_SAY, "max-frames", 1, 1000000, NULL},
    {COMMAND_SAY, "retries", 0, 100, "2"},
    {COMMAND_SAY, "lanes", 1, 256, NULL},
    {COMMAND_SAY, "threads", 0, 1024, "0"},
    {COMMAND_SAY, "temperature", 0, 100, NULL},
    {COMMAND_SAY, "top-k", 0, 1000000, NULL},
    {COMMAND_SAY, "top-p", DBL_MIN, 1, NULL},
    {COMMAND_SAY, "repetition-penalty", DBL_MIN, 100, NULL},
    {COMMAND_SAY, "sub-temperature", 0, 100, NULL},
    {COMMAND_SAY, "sub-top-k", 0, 1000000, NULL},
    {COMMAND_SAY, "sub-top-p", DBL_MIN, 1, NULL},
    {COMMAND_READ, "loudness", -40, -8, NULL},
    {COMMAND_READ, "fit", 1, 4, "1.5"},
    {COMMAND_ALIGN_HEADS, "max-frames", 1, 1000000, NULL},
    {COMMAND_CODEC_DECODE, "chunk", 1, 32, NULL},
    {COMMAND_JOB_WORK, "tries", 1, 100, "3"},
    {COMMAND_JOB_WORK, "lanes", 1, 256, NULL},
    {COMMAND_BENCH, "runs", 1, 100000, "10"},
    {COMMAND_BENCH, "max-frames", 1, 1000000, NULL},
    {COMMAND_BENCH, "snapshots", 0, 1048576, "256"},
    {COMMAND_LOAD, "port", 1, 65535, "8080"},
    {COMMAND_LOAD, "rate", DBL_MIN, 100000, NULL},
    {COMMAND_LOAD, "listeners", 1, 10000, NULL},
    {COMMAND_LOAD, "seconds", DBL_MIN, 86400, "20"},
    {COMMAND_LOAD, "word-frames", 1, 100, NULL},
    {COMMAND_LOAD, "seed", 0, 18446744073709551615.0, "0"},
    {COMMAND_LOAD, "limit", 0, 1e6, "300"},
    {COMMAND_SERVE, "port", 0, 65535, "8080"},
    {COMMAND_SERVE, "lanes", 1, 256, NULL},
    {COMMAND_SERVE, "queue", 0, 10000, "64"},
    {COMMAND_SERVE, "patience", 0, 600000, "300"},
    {COMMAND_SERVE, "idle", 0, 525600, "0"},
    {COMMAND_SERVE, "opening", 0, 86400, "600"},
    {COMMAND_SERVE, "drain", 0, 3600, "30"},
    {COMMAND_SERVE, "snapshots", 0, 1048576, "256"},
    {COMMAND_SERVE, "default-format", 0, 0, "mp3"},
    {COMMAND_SERVE, "host", 0, 0, "127.0.0.1"},
    {COMMAND_SERVE, "background", 0, 0, NULL},
    {COMMAND_BENCH, "words", 0, 0, "13,53,115"},
    {COMMAND_BENCH, "lanes", 0, 0, "1"},
    {COMMAND_LOAD, "words", 0, 0, "5-60"},
    {COMMAND_SAY, "sample", 0, 0, "s16"},
    {COMMAND_SAY, "layout", 0, 0, "auto"},
    {COMMAND_SAY, "language", 0, 0, "auto"},
    {COMMAND_SAY, "device", 0, 0, "auto"},
    {COMMAND_SAY, "weights", 0, 0, NULL},
    {COMMAND_CODEC_DECODE, "rule", 0, 0, "whole"},
    {COMMAND_TOKENS, "pretokenizer", 0, 0, "official"},
};

static void every_number_has_its_bounds_and_default(void **state)
{
    (void)state;
    bool is_known[256] = {false};
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
        size_t found = options_count();
        for (size_t i = 0; i < options_count(); i++) {
            const struct option o = option_at(i);
            if ((o.commands & numbers[k].command) && strcmp(o.name, numbers[k].name) == 0) {
                assert_int_equal(found, options_count()); /* once for each command */
                found = i;
            }
        }
        assert_true(found < options_count());
        const struct option o = option_at(found);
        is_known[found] = true;
        if (o.low != numbers[k].low || o.high != numbers[k].high ||
            !o.fallback != !numbers[k].fallback ||
            (o.fallback && strcmp(o.fallback, numbers[k].fallback) != 0)) {
            fail_msg("--%s: %g to %g, %s", o.name, o.low, o.high, o.fallback ? o.fallback : "none");
        }
    }
    for (size_t i = 0; i < options_count(); i++) {
        const struct option o = option_at(i);
        assert_true(is_known[i] || (o.kind != OPTION_INTEGER && o.kind != OPTION_NUMBER));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_has_its_bounds_and_default),
    };
    return cmocka_run_group_tests_name("option_table", tests, NULL, NULL);
}
