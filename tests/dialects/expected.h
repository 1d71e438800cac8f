/* SPDX-License-Identifier: Apache-2.0
 * For tests of messages: JSON from a text, JSON that is expected, refusals that are. */
#ifndef TESTS_DIALECTS_EXPECTED_H
#define TESTS_DIALECTS_EXPECTED_H

#include "tests/support.h"

#include <string.h>

#include "base/json.h"
#include "server/protocol/refusal.h"

static struct refusal refusal;

static inline json_t *json_of(const char *text)
{
    json_error_t error;
    json_t *json = text ? json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error) : NULL;
    if (text && !json) {
        fail_msg("%s: %s", text, error.text);
    }
    return json;
}

/* The JSON (taken over) is this one. */
static inline void expect_json(json_t *got, const char *want)
{
    json_t *right = json_of(want);
    if (!json_equal(got, right)) {
        fail_msg("%s instead of %s", json_dumps(got, JSON_ENCODE_ANY | JSON_COMPACT), want);
    }
    json_decref(got);
    json_decref(right);
}

static inline void expect_refusal(int status, const char *param, const char *message)
{
    if (refusal.status != status || strcmp(refusal.param, param) != 0 ||
        strcmp(refusal.message, message) != 0) {
        fail_msg("%d, '%s': %s (not %s)", refusal.status, refusal.param, refusal.message, message);
    }
    refusal = (struct refusal){.status = 0};
}

#endif
