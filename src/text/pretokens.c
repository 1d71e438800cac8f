/* SPDX-License-Identifier: Apache-2.0
 * The two patterns, on PCRE2. They are written so that they mean here what they mean to the official
 * engine, whose character data are those of Unicode 16:
 *  - \s is spelled out: the 25 characters of White_Space, without U+180E;
 *  - to each category are added the characters that it has in Unicode 16 and not in Unicode 14, which is
 *    that of the oldest PCRE2 supported. A younger PCRE2 has them itself. tests/text/test_official.c
 *    holds the category of every code point. */
#include "text/pretokens.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/memory.h"
#include "text/chars.h"

/* What a pattern calls @x, to stand between the brackets of a class. A name may use others. */
static const char *const classes[128] = {
    ['S'] = "\\x{9}-\\x{D}\\x{20}\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}"
            "\\x{205F}\\x{3000}",
    ['L'] = "@u@t@l@m@o",
    ['U'] = "@u@t@m@o@M",
    ['W'] = "@l@m@o@M",
    ['u'] = "\\p{Lu}\\x{1C89}\\x{A7CB}-\\x{A7CC}\\x{A7DA}\\x{A7DC}\\x{10D50}-\\x{10D65}",
    ['t'] = "\\p{Lt}",
    ['l'] = "\\p{Ll}\\x{1C8A}\\x{A7CD}\\x{A7DB}\\x{10D70}-\\x{10D85}\\x{1DF25}-\\x{1DF2A}",
    ['m'] = "\\p{Lm}\\x{10D4E}\\x{10D6F}\\x{16D40}-\\x{16D42}\\x{16D6B}-\\x{16D6C}\\x{1E030}-\\x{1E06D}"
            "\\x{1E4EB}",
    ['o'] = "\\p{Lo}\\x{105C0}-\\x{105F3}\\x{10D4A}-\\x{10D4D}\\x{10D4F}\\x{10EC2}-\\x{10EC4}"
            "\\x{1123F}-\\x{11240}\\x{11380}-\\x{11389}\\x{1138B}\\x{1138E}\\x{11390}-\\x{113B5}"
            "\\x{113B7}\\x{113D1}\\x{113D3}\\x{11BC0}-\\x{11BE0}\\x{11F02}\\x{11F04}-\\x{11F10}"
            "\\x{11F12}-\\x{11F33}\\x{1342F}\\x{13441}-\\x{13446}\\x{13460}-\\x{143FA}"
            "\\x{16100}-\\x{1611D}\\x{16D43}-\\x{16D6A}\\x{18CFF}\\x{1B132}\\x{1B155}"
            "\\x{1E4D0}-\\x{1E4EA}\\x{1E5D0}-\\x{1E5ED}\\x{1E5F0}\\x{2B739}\\x{2EBF0}-\\x{2EE5D}"
            "\\x{31350}-\\x{323AF}",
    ['M'] = "\\p{M}\\x{897}\\x{CF3}\\x{ECE}\\x{10D69}-\\x{10D6D}\\x{10EFC}-\\x{10EFF}\\x{11241}"
            "\\x{113B8}-\\x{113C0}\\x{113C2}\\x{113C5}\\x{113C7}-\\x{113CA}\\x{113CC}-\\x{113D0}"
            "\\x{113D2}\\x{113E1}-\\x{113E2}\\x{11F00}-\\x{11F01}\\x{11F03}\\x{11F34}-\\x{11F3A}"
            "\\x{11F3E}-\\x{11F42}\\x{11F5A}\\x{13440}\\x{13447}-\\x{13455}\\x{1611E}-\\x{1612F}"
            "\\x{1E08F}\\x{1E4EC}-\\x{1E4EF}\\x{1E5EE}-\\x{1E5EF}",
    ['N'] = "\\p{N}\\x{10D40}-\\x{10D49}\\x{116D0}-\\x{116E3}\\x{11BF0}-\\x{11BF9}\\x{11F50}-\\x{11F59}"
            "\\x{16130}-\\x{16139}\\x{16D70}-\\x{16D79}\\x{1CCF0}-\\x{1CCF9}\\x{1D2C0}-\\x{1D2D3}"
            "\\x{1E4F0}-\\x{1E4F9}\\x{1E5F1}-\\x{1E5FA}",
};

/* (?![^@S]) is (?!\S). */
static const char *const patterns[] = {
    [PRETOKENIZER_MISTRAL] =
        "[^\\r\\n@L@N]?[@U]*[@W]+|[^\\r\\n@L@N]?[@U]+[@W]*|[@N]| ?[^@S@L@N]+[\\r\\n/]*|"
        "[@S]*[\\r\\n]+|[@S]+(?![^@S])|[@S]+",
    [PRETOKENIZER_NATIVE] =
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n@L@N]?[@L]+|[@N]| ?[^@S@L@N]+[\\r\\n]*|"
        "[@S]*[\\r\\n]+|[@S]+(?![^@S])|[@S]+",
};

struct pretokens {
    pcre2_general_context *memory;
    pcre2_match_context *limits;
    pcre2_code *code;
};

struct pretokens_match {
    pcre2_match_data *data;
};

static void *take_memory(PCRE2_SIZE bytes, void *user)
{
    (void)user;
    return memory_new(bytes, 1);
}

static void give_memory(void *block, void *user)
{
    (void)user;
    memory_free(block);
}

/* Appends a pattern with its classes written out. */
static utter_status spell_out(struct chars *out, const char *pattern, utter_error *error)
{
    utter_status status = UTTER_OK;
    for (; status == UTTER_OK && *pattern; pattern++) {
        status = *pattern == '@' ? spell_out(out, classes[(int)*++pattern], error)
                                 : chars_add(out, pattern, 1, error);
    }
    return status;
}

static utter_status compile(struct pretokens *p, enum pretokenizer pattern, utter_error *error)
{
    int code = 0;
    PCRE2_SIZE at = 0;
    struct chars text = {0};
    pcre2_compile_context *context = pcre2_compile_context_create(p->memory);
    utter_status status =
        context ? spell_out(&text, patterns[pattern], error) : error_memory(error, "the pre-tokeniser");
    if (status == UTTER_OK) {
        /* Both patterns match at any character. Anchored, one that did not would be an error below, not a gap. */
        p->code = pcre2_compile(
            (PCRE2_SPTR)text.at, text.n, PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &code, &at, context);
        if (code == PCRE2_ERROR_HEAP_FAILED) {
            status = error_memory(error, "the pre-tokeniser");
        } else if (!p->code) {
            status =
                error_set(error, UTTER_E_INTERNAL, "pre-tokeniser: PCRE2 error %d at %zu", code, at);
        }
    }
    pcre2_compile_context_free(context);
    chars_fini(&text);
    return status;
}

utter_status pretokens_new(struct pretokens **pretokens, enum pretokenizer pattern, utter_error *error)
{
    *pretokens = NULL;
    struct pretokens *p = memory_new(1, sizeof *p);
    if (!p) {
        return error_memory(error, "the pre-tokeniser");
    }
    p->memory = pcre2_general_context_create(take_memory, give_memory, NULL);
    p->limits = p->memory ? pcre2_match_context_create(p->memory) : NULL;
    utter_status status =
        p->limits ? compile(p, pattern, error) : error_memory(error, "the pre-tokeniser");
    if (status != UTTER_OK) {
        pretokens_free(p);
        return status;
    }
    /* Both patterns need time linear in the run they look at, so that no limit is wanted. Where code must
     * not be made at run time, the interpreter gives the same matches more slowly. */
    pcre2_set_match_limit(p->limits, UINT32_MAX);
    pcre2_set_depth_limit(p->limits, UINT32_MAX);
    pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);
    *pretokens = p;
    return UTTER_OK;
}

void pretokens_free(struct pretokens *pretokens)
{
    if (pretokens) {
        pcre2_code_free(pretokens->code);
        pcre2_match_context_free(pretokens->limits);
        pcre2_general_context_free(pretokens->memory);
        memory_free(pretokens);
    }
}

utter_status pretokens_match_new(
    struct pretokens_match **match, const struct pretokens *pretokens, utter_error *error)
{
    struct pretokens_match *m = memory_new(1, sizeof *m);
    *match = m;
    if (m) {
        m->data = pcre2_match_data_create(1, pretokens->memory);
    }
    if (!m || !m->data) {
        pretokens_match_free(m);
        *match = NULL;
        return error_memory(error, "the pre-tokeniser");
    }
    return UTTER_OK;
}

void pretokens_match_free(struct pretokens_match *match)
{
    if (match) {
        pcre2_match_data_free(match->data);
        memory_free(match);
    }
}

utter_status pretokens_next(const struct pretokens *pretokens, struct pretokens_match *match,
    const char *text, size_t bytes, bool final, size_t *length, utter_error *error)
{
    uint32_t options = PCRE2_NO_UTF_CHECK | (final ? 0 : PCRE2_PARTIAL_HARD);
    int n = pcre2_match(
        pretokens->code, (PCRE2_SPTR)text, bytes, 0, options, match->data, pretokens->limits);
    if (n == PCRE2_ERROR_PARTIAL) {
        return UTTER_AGAIN; /* the match, or the search for one, met the end of the text */
    }
    if (n == PCRE2_ERROR_NOMEMORY || n == PCRE2_ERROR_HEAPLIMIT) {
        return error_memory(error, "the pre-tokeniser");
    }
    *length = n > 0 ? pcre2_get_ovector_pointer(match->data)[1] : 0;
    if (*length == 0) {
        return error_set(error, UTTER_E_INTERNAL, "pre-tokeniser: PCRE2 error %d", n);
    }
    return UTTER_OK;
}
