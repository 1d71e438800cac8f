/* SPDX-License-Identifier: Apache-2.0
 * What the official tokenizer computes, as checksums: tests/text/fixtures/official, a line "kind name CRC"
 * for each block. tools/oracle/token_goldens.py made it. */
#ifndef TESTS_TEXT_GOLDEN_H
#define TESTS_TEXT_GOLDEN_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support.h"

/* CRC-32 as in zlib, continued from `crc` (0 at the beginning). */
static inline uint32_t golden_crc(uint32_t crc, const void *data, size_t bytes)
{
    static uint32_t table[256];
    for (uint32_t i = 0; table[255] == 0 && i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++) {
            c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
        }
        table[i] = c;
    }
    crc = ~crc;
    for (const uint8_t *p = data; bytes > 0; p++, bytes--) {
        crc = table[(crc ^ *p) & 0xff] ^ crc >> 8;
    }
    return ~crc;
}

/* The checksum of a block; the test fails when there is none. */
static inline uint32_t golden_find(const char *kind, const char *name)
{
    static char *text;
    if (!text) {
        size_t bytes;
        text = support_read_file("tests/text/fixtures/official", &bytes);
        assert_non_null(text);
    }
    char line[80];
    int n = snprintf(line, sizeof line, "\n%s %s ", kind, name);
    const char *found = strstr(text, line);
    if (!found) {
        fail_msg("tests/text/fixtures/official has no line for %s %s", kind, name);
    }
    return (uint32_t)strtoul(found + n, NULL, 16);
}

#endif
