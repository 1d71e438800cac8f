/* SPDX-License-Identifier: Apache-2.0
 * A growing string of bytes, and the steps from bytes to code points and back. */
#ifndef TEXT_CHARS_H
#define TEXT_CHARS_H

#include "base/error.h"

/* Zero it before use. */
struct chars {
    char *at;
    size_t n, capacity;
};

/* Room for `bytes` more (at is not NULL then, even for none), and the same with the bytes copied behind
 * what is there. */
utter_status chars_reserve(struct chars *chars, size_t bytes, utter_error *error);
utter_status chars_add(struct chars *chars, const char *text, size_t bytes, utter_error *error);
/* Forgets the first `bytes`. */
void chars_drop(struct chars *chars, size_t bytes);
void chars_fini(struct chars *chars);

/* How many of the first bytes are whole UTF-8 characters (no surrogates, nothing above U+10FFFF, shortest
 * form). *bad: what follows them cannot become one, whatever comes behind. */
size_t utf8_valid(const char *text, size_t bytes, bool *bad);

/* The code point at `text`, which must be valid; the return value is its length. */
static inline size_t utf8_get(const char *text, uint32_t *code)
{
    const uint8_t *p = (const uint8_t *)text;
    if (p[0] < 0x80) {
        *code = p[0];
        return 1;
    }
    if (p[0] < 0xe0) {
        *code = (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
        return 2;
    }
    if (p[0] < 0xf0) {
        *code = (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
        return 3;
    }
    *code = (p[0] & 0x07u) << 18 | (p[1] & 0x3fu) << 12 | (p[2] & 0x3fu) << 6 | (p[3] & 0x3fu);
    return 4;
}

/* Writes a code point into out[4]; the return value is its length. */
size_t utf8_put(uint32_t code, char *out);

#endif
