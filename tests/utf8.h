/* SPDX-License-Identifier: Apache-2.0
 * A character as UTF-8, for tests that try ranges of them. */
#ifndef TESTS_UTF8_H
#define TESTS_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Also what no text may have, such as surrogates. Returns its bytes; a zero stands behind them. */
static inline size_t utf8_put(char out[5], uint32_t c)
{
    const size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    out[0] = (char)(n == 1 ? c : (uint32_t)(0xf00 >> n & 0xff) | c >> 6 * (n - 1));
    for (size_t i = 1; i < n; i++) {
        out[i] = (char)(0x80 | (c >> 6 * (n - 1 - i) & 0x3f));
    }
    out[n] = 0;
    return n;
}

#endif
