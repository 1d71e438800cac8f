/* SPDX-License-Identifier: Apache-2.0
 * Words, by the categories of Unicode. */
#include "script/letters.h"

#include <string.h>
#include <utf8proc.h>

#include "text/chars.h"

bool letters_is_word(uint32_t code)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code);
    return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_ME) ||
           category == UTF8PROC_CATEGORY_ND;
}

bool letters_is_wide(uint32_t code)
{
    return (code >= 0x3040 && code < 0x3100) || (code >= 0x3400 && code < 0xa000) ||
           (code >= 0xf900 && code < 0xfb00) || (code >= 0x20000 && code < 0x40000);
}

bool letters_is_hangul(uint32_t code)
{
    return code >= 0xac00 && code < 0xd7b0;
}

bool letters_is_mark(uint32_t code)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code);
    return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

bool letters_closes(uint32_t code)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code);
    return category == UTF8PROC_CATEGORY_PE || category == UTF8PROC_CATEGORY_PF;
}

bool letters_is_spaced(uint32_t code)
{
    /* The blocks of scripts without blanks besides those of letters_is_wide, each up to its end. */
    static const uint32_t solid[][2] = {
        {0x0e00, 0x10a0},   /* Thai, Lao, Tibetan, Burmese */
        {0x1780, 0x1800},   /* Khmer */
        {0x1950, 0x1ab0},   /* Tai */
        {0x1b00, 0x1b80},   /* Balinese */
        {0xa980, 0xaa00},   /* Javanese, more of Burmese */
        {0xaa60, 0xaae0},   /* and of Tai */
        {0x2e80, 0x3130},   /* radicals, signs that repeat a character, kana, Bopomofo */
        {0x31a0, 0x3200},   /* more of them */
        {0xff00, 0xffa0},   /* letters as wide as those of Chinese, narrow kana */
        {0x1aff0, 0x1b170}, /* rare kana */
    };
    bool spaced = letters_is_word(code) && !letters_is_mark(code) && !letters_is_wide(code);
    for (size_t i = 0; i < sizeof solid / sizeof *solid && spaced; i++) {
        spaced = code < solid[i][0] || code >= solid[i][1];
    }
    return spaced;
}

uint32_t letters_before(const char *text, size_t at)
{
    uint32_t code = 0;
    size_t begin = at;
    while (begin > 0 && ((unsigned char)text[--begin] & 0xc0) == 0x80) {
    }
    if (at > 0) {
        utf8_get(text + begin, &code);
    }
    return code;
}

uint32_t letters_at(const char *text, size_t n, size_t at)
{
    uint32_t code = 0;
    if (at < n) {
        utf8_get(text + at, &code);
    }
    return code;
}

bool letters_border(const char *text, size_t n, size_t at)
{
    uint32_t before = letters_before(text, at), behind = letters_at(text, n, at);
    return !letters_is_word(before) || !letters_is_word(behind) || letters_is_wide(before) ||
           letters_is_wide(behind);
}

size_t letters_byte_order(const char *text, size_t n)
{
    return n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

void letters_trim(const char **text, size_t *n)
{
    for (; *n > 0 && is_blank(**text); ++*text, --*n) {
    }
    for (; *n > 0 && is_blank((*text)[*n - 1]); --*n) {
    }
}
