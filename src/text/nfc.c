/* SPDX-License-Identifier: Apache-2.0
 * Normalisation form C. The character data are utf8proc's; the order of marks is found here, because
 * utf8proc sorts them by exchanging neighbours, which takes quadratic time on a long run of marks. */
#include "text/nfc.h"

#include <string.h>
#include <utf8proc.h>

#include "base/memory.h"

struct range {
    uint32_t first, last;
};

/* Characters that the official normaliser leaves alone because they are younger than its data (marks of
 * Unicode 10 to 17, and the few of their blocks beside them), and U+11A7, which utf8proc swallows. */
static const struct range unknown[] = {{0x7fd, 0x7fd}, {0x897, 0x89f}, {0x8ca, 0x8d3}, {0x9fe, 0x9fe},
    {0xc3c, 0xc3c}, {0xd3b, 0xd3c}, {0xeba, 0xeba}, {0x11a7, 0x11a7}, {0x1715, 0x1715},
    {0x1abf, 0x1aff}, {0x1df6, 0x1dfa}, {0xa82c, 0xa82c}, {0x10d24, 0x10d27}, {0x10d69, 0x10d6d},
    {0x10eab, 0x10eac}, {0x10efa, 0x10eff}, {0x10f46, 0x10f50}, {0x10f82, 0x10f85}, {0x11070, 0x11070},
    {0x1133b, 0x1133b}, {0x11380, 0x113e2}, {0x1145e, 0x1145e}, {0x11839, 0x1183a}, {0x11930, 0x11930},
    {0x1193d, 0x1193e}, {0x11943, 0x11943}, {0x119e0, 0x119e0}, {0x11a34, 0x11a34}, {0x11a47, 0x11a47},
    {0x11a99, 0x11a99}, {0x11d42, 0x11d45}, {0x11d97, 0x11d97}, {0x11f41, 0x11f42}, {0x16100, 0x1612f},
    {0x16d63, 0x16d6a}, {0x16ff0, 0x16ff1}, {0x1e08f, 0x1e08f}, {0x1e130, 0x1e136}, {0x1e2ae, 0x1e2ae},
    {0x1e2ec, 0x1e2ef}, {0x1e4ec, 0x1e4ef}, {0x1e5ee, 0x1e5ef}};

/* Characters of class 0 that join with the one before them: vowel signs, and Hangul vowels and finals. */
static const struct range joining[] = {{0x9be, 0x9be}, {0x9d7, 0x9d7}, {0xb3e, 0xb3e}, {0xb56, 0xb57},
    {0xbbe, 0xbbe}, {0xbd7, 0xbd7}, {0xcc2, 0xcc2}, {0xcd5, 0xcd6}, {0xd3e, 0xd3e}, {0xd57, 0xd57},
    {0xdcf, 0xdcf}, {0xddf, 0xddf}, {0xfb5, 0xfb5}, {0xfb7, 0xfb7}, {0x102e, 0x102e}, {0x1161, 0x1175},
    {0x11a8, 0x11c2}, {0x1b35, 0x1b35}, {0x11127, 0x11127}, {0x1133e, 0x1133e}, {0x11357, 0x11357},
    {0x114b0, 0x114b0}, {0x114ba, 0x114ba}, {0x114bd, 0x114bd}, {0x115af, 0x115af}};

/* Characters that nothing behind them changes and that stand between or at the end of words: ASCII but
 * for letters and "<=>" (which take U+0338), ideographs, punctuation of East Asia. */
static const struct range ending[] = {{0x0, 0x3b}, {0x3f, 0x40}, {0x5b, 0x60}, {0x7b, 0x7f},
    {0x2010, 0x2027}, {0x3000, 0x3003}, {0x3008, 0x3020}, {0x4e00, 0x9fff}, {0xff01, 0xff1b},
    {0xff1f, 0xff1f}};

#define N(array) (sizeof(array) / sizeof *(array))

#define COMPOSE (UTF8PROC_STABLE | UTF8PROC_COMPOSE)

enum { DECOMPOSED_MAX = 8 }; /* Unicode promises 4 */

static bool in_ranges(uint32_t code, const struct range *ranges, size_t n)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (code > ranges[middle].last) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < n && code >= ranges[low].first;
}

static bool is_unknown(uint32_t code)
{
    return in_ranges(code, unknown, N(unknown));
}

static int mark_class(utf8proc_int32_t code)
{
    return utf8proc_get_property(code)->combining_class;
}

/* Writes the canonical decomposition. */
static size_t decompose(uint32_t code, utf8proc_int32_t *out, size_t capacity)
{
    int last_class = 0;
    utf8proc_ssize_t n = utf8proc_decompose_char(
        (utf8proc_int32_t)code, out, (utf8proc_ssize_t)capacity, COMPOSE, &last_class);
    return n > 0 ? (size_t)n : 0;
}

bool nfc_border_before(uint32_t code)
{
    if (code < 0x300 || is_unknown(code)) {
        return true;
    }
    utf8proc_int32_t first[DECOMPOSED_MAX];
    return decompose(code, first, DECOMPOSED_MAX) > 0 && mark_class(first[0]) == 0 &&
           !in_ranges((uint32_t)first[0], joining, N(joining));
}

bool nfc_border_after(uint32_t code)
{
    return in_ranges(code, ending, N(ending)) || is_unknown(code);
}

/* A text of such characters only is its own NFC. */
static bool stands_alone(uint32_t code)
{
    if (code < 0x300) {
        return true;
    }
    const utf8proc_property_t *p = utf8proc_get_property((utf8proc_int32_t)code);
    if (p->decomp_seqindex != UINT16_MAX && p->decomp_type == 0) {
        utf8proc_int32_t parts[DECOMPOSED_MAX];
        size_t n = decompose(code, parts, DECOMPOSED_MAX);
        bool same = utf8proc_normalize_utf32(parts, (utf8proc_ssize_t)n, COMPOSE) == 1 &&
                    parts[0] == (utf8proc_int32_t)code;
        if (!same) {
            return false;
        }
    }
    return is_unknown(code) || (p->combining_class == 0 && !in_ranges(code, joining, N(joining)));
}

/* Code points between two borders, decomposed. */
struct span {
    utf8proc_int32_t *code, *sorted; /* [capacity] each, one block */
    size_t n, capacity;
};

static utter_status span_reserve(struct span *span, utter_error *error)
{
    if (span->capacity - span->n >= DECOMPOSED_MAX) {
        return UTTER_OK;
    }
    size_t capacity = span->capacity * 2 + 512;
    utf8proc_int32_t *code = memory_new(capacity, 2 * sizeof *code);
    if (!code) {
        return error_memory(error, "text");
    }
    if (span->n > 0) {
        memcpy(code, span->code, span->n * sizeof *code);
    }
    memory_free(span->code);
    span->code = code;
    span->sorted = code + capacity;
    span->capacity = capacity;
    return UTTER_OK;
}

/* Puts n marks into the order of their classes; equal ones keep theirs. */
static void sort_marks(utf8proc_int32_t *code, utf8proc_int32_t *sorted, size_t n)
{
    size_t begin[257] = {0};
    bool in_order = true;
    for (size_t i = 0; i < n; i++) {
        begin[mark_class(code[i]) + 1]++;
        in_order = in_order && (i == 0 || mark_class(code[i - 1]) <= mark_class(code[i]));
    }
    if (in_order) {
        return;
    }
    for (int k = 1; k <= 256; k++) {
        begin[k] += begin[k - 1];
    }
    for (size_t i = 0; i < n; i++) {
        sorted[begin[mark_class(code[i])]++] = code[i];
    }
    memcpy(code, sorted, n * sizeof *code);
}

/* Composes the span and appends it to *out. */
static utter_status span_flush(struct span *span, struct chars *out, utter_error *error)
{
    for (size_t i = 0; i < span->n; i++) {
        size_t begin = i;
        while (i < span->n && mark_class(span->code[i]) != 0) {
            i++;
        }
        if (i - begin > 1) {
            sort_marks(span->code + begin, span->sorted, i - begin);
        }
    }
    utf8proc_ssize_t n = utf8proc_normalize_utf32(span->code, (utf8proc_ssize_t)span->n, COMPOSE);
    utter_status status = chars_reserve(out, span->n * 4, error);
    for (utf8proc_ssize_t i = 0; status == UTTER_OK && i < n; i++) {
        out->n += utf8_put((uint32_t)span->code[i], out->at + out->n);
    }
    span->n = 0;
    return status;
}

/* The general case: decomposes, sorts, composes. */
static utter_status add_composed(struct chars *out, const char *text, size_t bytes, utter_error *error)
{
    enum { SPAN = 256 }; /* long enough to make a flush cheap */
    struct span span = {0};
    utter_status status = UTTER_OK;
    for (size_t i = 0; status == UTTER_OK && i < bytes;) {
        uint32_t code;
        size_t length = utf8_get(text + i, &code);
        bool alone = is_unknown(code);
        if (alone || (span.n >= SPAN && nfc_border_before(code))) {
            status = span_flush(&span, out, error);
        }
        if (status == UTTER_OK && alone) {
            status = chars_add(out, text + i, length, error);
        } else if (status == UTTER_OK) {
            status = span_reserve(&span, error);
            span.n += status == UTTER_OK ? decompose(code, span.code + span.n, DECOMPOSED_MAX) : 0;
        }
        i += length;
    }
    if (status == UTTER_OK) {
        status = span_flush(&span, out, error);
    }
    memory_free(span.code);
    return status;
}

utter_status nfc_add(struct chars *out, const char *text, size_t bytes, utter_error *error)
{
    size_t i = 0;
    while (i < bytes) {
        uint32_t code;
        size_t length = utf8_get(text + i, &code);
        if (!stands_alone(code)) {
            return add_composed(out, text, bytes, error);
        }
        i += length;
    }
    return chars_add(out, text, bytes, error);
}
