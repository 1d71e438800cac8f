/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as the lines of a key file: an account with limits in their range, or none. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/loop/account.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(struct account *a, const char *line, size_t n)
{
    struct refusal r;
    enum account_line kind = account_parse(a, line, n);
    if (kind == ACCOUNT_LINE_EMPTY && memchr(line, '=', n) && !memchr(line, '#', n)) {
        abort();
    }
    if (kind != ACCOUNT_LINE_KEY) {
        return;
    }
    if (a->most_speeches < 0 || a->most_speeches > ACCOUNT_MOST || a->per_minute < 0 ||
        a->per_minute > ACCOUNT_MOST) {
        abort();
    }
    for (int i = 0; i < 3; i++) {
        bool limited = (a->most_speeches > 0 && i >= a->most_speeches) ||
                       (a->per_minute > 0 && i >= a->per_minute);
        if (account_admit(a, 1, &r) == limited || (limited && (r.status != 429 || r.retry_ms <= 0))) {
            abort();
        }
        account_count(a, 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    for (size_t at = 0, n; at < bytes; at += n + 1) {
        const uint8_t *feed = memchr(data + at, '\n', bytes - at);
        struct account account;
        n = feed ? (size_t)(feed - data) - at : bytes - at;
        check(&account, (const char *)data + at, n);
    }
    return 0;
}
