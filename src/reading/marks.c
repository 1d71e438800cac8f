/* SPDX-License-Identifier: Apache-2.0
 * Characters by their category (utf8proc), marks and abbreviations as tables. The abbreviations are those of all
 * languages of the models together: to take one for the end of a sentence puts a pause where nobody breathes, to take
 * an end for an abbreviation does no harm, because two sentences in one piece are spoken as well. */
#include "reading/marks.h"

#include <string.h>
#include <utf8proc.h>

#include "text/chars.h"

enum { UNITS_WIDE = 3, UNITS_DIGIT = 4, UNITS_SIGN = 6, BAD_BYTE = 0xfffd };

size_t marks_get(const char *text, size_t n, uint32_t *code)
{
    bool bad;
    size_t most = n < 4 ? n : 4;
    for (size_t length = 1; length <= most; length++) {
        if (utf8_valid(text, length, &bad) == length) {
            return utf8_get(text, code);
        }
    }
    *code = BAD_BYTE;
    return 1;
}

size_t marks_last(const char *text, size_t n, uint32_t *code)
{
    size_t length = 1;
    while (length < 4 && length < n && ((uint8_t)text[n - length] & 0xc0) == 0x80) {
        length++;
    }
    if (marks_get(text + n - length, length, code) == length) {
        return length;
    }
    *code = BAD_BYTE;
    return 1;
}

static utf8proc_category_t category_of(uint32_t code)
{
    return utf8proc_category((utf8proc_int32_t)code);
}

bool marks_is_break(uint32_t code)
{
    return code == '\n' || code == '\r' || code == 0x0b || code == 0x0c || code == 0x85 ||
           code == 0x2028 || code == 0x2029;
}

bool marks_is_white(uint32_t code)
{
    return code == ' ' || code == '\t' || marks_is_break(code) ||
           category_of(code) == UTF8PROC_CATEGORY_ZS;
}

bool marks_is_wide(uint32_t code)
{
    bool hangul = (code >= 0x1100 && code <= 0x11ff) || (code >= 0xac00 && code <= 0xd7ff);
    return !hangul && utf8proc_charwidth((utf8proc_int32_t)code) == 2;
}

bool marks_is_lower(uint32_t code)
{
    return category_of(code) == UTF8PROC_CATEGORY_LL;
}

bool marks_is_digit(uint32_t code)
{
    return category_of(code) == UTF8PROC_CATEGORY_ND;
}

bool marks_is_spoken(uint32_t code)
{
    utf8proc_category_t c = category_of(code);
    return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO) ||
           (c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO) || c == UTF8PROC_CATEGORY_SC ||
           (code && code < 0x80 && strchr("%&@+=", (int)code));
}

bool marks_is_closing(uint32_t code)
{
    utf8proc_category_t c = category_of(code);
    return code == '"' || code == '\'' || c == UTF8PROC_CATEGORY_PE || c == UTF8PROC_CATEGORY_PF ||
           code == 0x201c || code == 0x201d; /* a German closing quote is an English opening one */
}

enum mark marks_of(uint32_t code)
{
    switch (code) {
    case '.':
    case '!':
    case '?':
    case 0x2026: /* ... */
    case 0x203c: /* !! */
    case 0x203d: /* ?! in one */
    case 0x2047:
    case 0x2048:
    case 0x2049:
        return MARK_SENTENCE;
    case 0x3002: /* ideographic full stop, and its half width */
    case 0xff61:
    case 0xff01: /* ! ? . of full width */
    case 0xff1f:
    case 0xff0e:
        return MARK_SENTENCE_WIDE;
    case ',':
    case ';':
    case ':':
    case 0x2013: /* dashes */
        return MARK_CLAUSE;
    case 0x2014:
    case 0x2015:
    case 0x3001: /* ideographic comma, and its half width */
    case 0xff64:
    case 0xff0c: /* , ; : of full width */
    case 0xff1b:
    case 0xff1a:
        return MARK_CLAUSE_WIDE;
    default:
        return MARK_NONE;
    }
}

size_t marks_units(uint32_t code)
{
    if (code < 0x80) {
        return code >= '0' && code <= '9'             ? UNITS_DIGIT
               : code && strchr("%&@+=$#", (int)code) ? UNITS_SIGN
                                                      : 1;
    }
    return utf8proc_charwidth((utf8proc_int32_t)code) == 2 ? UNITS_WIDE
           : marks_is_digit(code)                          ? UNITS_DIGIT
                                                           : 1;
}

/* Stands between two blanks in the lists below. */
static bool is_listed(const char *list, const char *word, size_t n)
{
    for (const char *at = list; (at = strchr(at, ' ')) && at[1];) {
        at++;
        size_t length = strcspn(at, " ");
        if (length == n && memcmp(at, word, n) == 0) {
            return true;
        }
    }
    return false;
}

/* Before a name or a word: no sentence ends behind them. In small letters, as the first letter of a word is made. */
static const char before_words[] =
    " mr mrs ms messrs dr drs prof rev fr hon gen col maj capt cpt lt sgt cmdr adm sen rep gov pres st "
    "mt ft vs viz cf "
    "approx dept est incl esp e.g i.e ph.d u.s u.k u.n d.c u.s.a "
    "hr frl dipl ing mag bzw ca evtl ggf inkl exkl vgl zzgl sog geb gest str z.b d.h u.a o.ä i.d.r z.t "
    "s.o s.u "
    "mm mme mlle me pr env p.ex c.-à-d "
    "sr sra srta srs sras dra dras d dña ud uds vd vds av avda exmo exma ilmo ej p.ej prof.ª "
    "sig sigg dott dott.ssa avv arch geom egr gent spett es p.es "
    "т.е т.к т.н им ул пр просп пл пер обл г-н г-жа гр акад проф доц напр см ср род св ";
/* Before a number. */
static const char before_numbers[] =
    " no nos nr n vol vols ch chap sec fig figs art p pp pg eq ex ver op bd kap abb tab s f ff jan feb "
    "mar apr jun jul aug "
    "sep sept oct nov dec núm pág págs cap tel ext п стр рис табл гл т кн ст № ";
/* That may end a sentence as well: a large letter behind them says so. */
static const char at_ends[] = " etc usw u.s.w ecc jr inc ltd co corp bros a.m p.m a.d b.c "
                              "s.a d.c esq т.д т.п др пр г гг в вв руб коп тыс млн млрд "
                              "al cia ltda s.l s.p.a s.r.l ";

enum { LONGEST_FORM = 16 };

bool marks_is_short_form(const char *word, size_t n, uint32_t next)
{
    char form[LONGEST_FORM];
    uint32_t first, code;
    while (n > 0 &&
           (marks_get(word, n, &first), !marks_is_spoken(first))) { /* an opening quote or bracket */
        size_t length = marks_get(word, n, &first);
        word += length;
        n -= length;
    }
    if (n == 0) {
        return false;
    }
    size_t n_chars = 0, n_digits = 0, length = marks_get(word, n, &first);
    for (size_t at = 0; at < n; n_chars++) {
        at += marks_get(word + at, n - at, &code);
        n_digits += marks_is_digit(code);
    }
    if (n_digits == n_chars) { /* "on the 3. of May", "1. Introduction"; but "It was 1984." */
        return n_digits <= 2;
    }
    if (n_chars == 1) { /* an initial; a letter of East Asia is a word */
        return !marks_is_wide(first) &&
               (marks_is_lower(first) || category_of(first) == UTF8PROC_CATEGORY_LU);
    }
    if (n > LONGEST_FORM - 4) {
        return false;
    }
    size_t small = utf8_put((uint32_t)utf8proc_tolower((utf8proc_int32_t)first), form);
    memcpy(form + small, word + length, n - length);
    size_t bytes = small + n - length;
    for (size_t i = 1; i < bytes; i++) { /* "U.S", "P.S": letters with stops between them */
        form[i] = form[i] >= 'A' && form[i] <= 'Z' && form[i - 1] == '.' ? (char)(form[i] - 'A' + 'a')
                                                                         : form[i];
    }
    return is_listed(before_words, form, bytes) ||
           (marks_is_digit(next) && is_listed(before_numbers, form, bytes)) ||
           (is_listed(at_ends, form, bytes) && category_of(next) != UTF8PROC_CATEGORY_LU &&
               !marks_is_closing(next));
}
