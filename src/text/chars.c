/* SPDX-License-Identifier: Apache-2.0
 * Growing strings and UTF-8; see chars.h. */
#include "text/chars.h"

#include <string.h>

#include "base/memory.h"

utter_status chars_reserve(struct chars *chars, size_t bytes, utter_error *error)
{
    size_t need;
    if (!memory_add(chars->n, bytes, &need) || need > SIZE_MAX / 2) {
        return error_memory(error, "text");
    }
    if (chars->at && need <= chars->capacity) {
        return UTTER_OK;
    }
    size_t capacity = need + need / 2 + 64;
    char *at = memory_resize(chars->at, chars->capacity, capacity, 1);
    if (!at) {
        return error_memory(error, "text");
    }
    chars->at = at;
    chars->capacity = capacity;
    return UTTER_OK;
}

utter_status chars_add(struct chars *chars, const char *text, size_t bytes, utter_error *error)
{
    utter_status status = chars_reserve(chars, bytes, error);
    if (status == UTTER_OK && bytes > 0) {
        memcpy(chars->at + chars->n, text, bytes);
        chars->n += bytes;
    }
    return status;
}

void chars_drop(struct chars *chars, size_t bytes)
{
    if (bytes > 0) {
        memmove(chars->at, chars->at + bytes, chars->n - bytes);
        chars->n -= bytes;
    }
}

void chars_fini(struct chars *chars)
{
    memory_free(chars->at);
    *chars = (struct chars){0};
}

/* The length of the character that this byte begins, 0 if none can; the range of its second byte, which
 * is what keeps out long forms, surrogates and code points above U+10FFFF. */
static size_t first_byte(uint8_t byte, uint8_t *low, uint8_t *high)
{
    *low = byte == 0xe0 ? 0xa0 : byte == 0xf0 ? 0x90 : 0x80;
    *high = byte == 0xed ? 0x9f : byte == 0xf4 ? 0x8f : 0xbf;
    if (byte < 0xc2 || byte > 0xf4) {
        return byte < 0x80 ? 1 : 0;
    }
    return byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

size_t utf8_valid(const char *text, size_t bytes, bool *bad)
{
    const uint8_t *p = (const uint8_t *)text;
    size_t i = 0;
    *bad = false;
    while (i < bytes) {
        uint64_t eight;
        if (bytes - i >= 8 && (memcpy(&eight, p + i, 8), (eight & 0x8080808080808080u) == 0)) {
            i += 8;
            continue;
        }
        uint8_t low, high;
        size_t length = first_byte(p[i], &low, &high);
        if (length == 0) {
            *bad = true;
            return i;
        }
        for (size_t k = 1; k < length; k++) {
            if (k == bytes - i) {
                return i;
            }
            if (p[i + k] < low || p[i + k] > high) {
                *bad = true;
                return i;
            }
            low = 0x80;
            high = 0xbf;
        }
        i += length;
    }
    return i;
}

size_t utf8_put(uint32_t code, char *out)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    out[0] = (char)((0xf00 >> length & 0xf0) | code);
    return length;
}
