/* SPDX-License-Identifier: Apache-2.0
 * Formats failure reasons. Comes in: a status, a format, names from anywhere. Goes out: one line of
 * valid UTF-8 in the caller's record. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the UTF-8 character at `s`, of which `left` bytes are there; 0 when it is not one. *code is
 * its code point. */
static size_t utf8_character(const unsigned char *s, size_t left, uint32_t *code)
{
    static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = s[0] < 0x80             ? 1
               : (s[0] & 0xe0) == 0xc0 ? 2
               : (s[0] & 0xf0) == 0xe0 ? 3
               : (s[0] & 0xf8) == 0xf0 ? 4
                                       : 0;
    if (n == 0 || n > left) {
        return 0;
    }
    uint32_t c = n == 1 ? s[0] : s[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            return 0;
        }
        c = c << 6 | (s[i] & 0x3fu);
    }
    if (c < smallest[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) {
        return 0;
    }
    *code = c;
    return n;
}

/* Characters that would end the line, steer a terminal or turn the reading direction. */
static bool must_escape(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200b && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x2069) || c == 0xfeff;
}

/* One character, or one byte that is none, as printable text in piece[16]; bytes taken from s. */
static size_t quote_piece(const unsigned char *s, size_t left, char piece[16])
{
    uint32_t code = 0;
    size_t n = utf8_character(s, left, &code);
    if (n == 0) {
        snprintf(piece, 16, "\\x%02x", s[0]);
        return 1;
    }
    if (must_escape(code)) {
        const char *known = code == '\n' ? "\\n" : code == '\t' ? "\\t" : code == '\r' ? "\\r" : NULL;
        if (known) {
            snprintf(piece, 16, "%s", known);
        } else {
            snprintf(piece, 16, code < 0x80 ? "\\x%02x" : "\\u%04x", (unsigned)code);
        }
        return n;
    }
    memcpy(piece, s, n);
    piece[n] = 0;
    return n;
}

const char *error_quote(char *out, size_t size, const char *text, size_t bytes)
{
    static const char dots[] = "...";
    if (size == 0) {
        return "";
    }
    size_t used = 0, cut = 0; /* cut: the last border that leaves room for the dots */
    for (size_t at = 0; at < bytes;) {
        char piece[16];
        size_t taken = quote_piece((const unsigned char *)text + at, bytes - at, piece);
        size_t n = strlen(piece);
        if (used + n + 1 > size) {
            snprintf(out + cut, size - cut, "%s", dots);
            return out;
        }
        memcpy(out + used, piece, n);
        used += n;
        at += taken;
        if (used + sizeof dots <= size) {
            cut = used;
        }
    }
    out[used] = 0;
    return out;
}

/* Where text[0 .. used), of 5 bytes or more, ends in an unfinished character: its first byte; else `used`. */
static size_t character_border(const char *text, size_t used)
{
    size_t lead = used;
    while (used - lead < 4 && ((unsigned char)text[lead - 1] & 0xc0) == 0x80) {
        lead--;
    }
    uint32_t code;
    if ((unsigned char)text[lead - 1] >= 0xc0) {
        size_t begin = lead - 1;
        return utf8_character((const unsigned char *)text + begin, used - begin, &code) ? used : begin;
    }
    return used;
}

utter_status error_set(utter_error *error, utter_status code, const char *format, ...)
{
    if (!error) {
        return code;
    }
    char raw[sizeof error->text];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(raw, sizeof raw, format, args);
    va_end(args);
    size_t used = n < 0                    ? 0
                  : (size_t)n < sizeof raw ? (size_t)n
                                           : character_border(raw, sizeof raw - 1);
    error->code = code;
    error_quote(error->text, sizeof error->text, raw, used);
    return code;
}

utter_status error_memory(utter_error *error, const char *what)
{
    return error_set(error, UTTER_E_MEMORY,
        "out of memory: no room for %s (close other programs, or use a smaller model)", what);
}

int error_exit_code(utter_status status)
{
    switch (status) {
    case UTTER_OK:
    case UTTER_AGAIN:
    case UTTER_END:
        return 0;
    case UTTER_E_ARGUMENT:
    case UTTER_E_FILE:
    case UTTER_E_MODEL:
    case UTTER_E_NUMBER:
        return 1;
    case UTTER_E_MEMORY:
    case UTTER_E_IO:
    case UTTER_E_DEVICE:
    case UTTER_E_CANCELLED:
    case UTTER_E_INTERNAL:
        break;
    }
    return 2;
}
