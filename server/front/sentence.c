/* SPDX-License-Identifier: Apache-2.0
 * A sentence ends with . ! ? and white space, with a line break, or with the full stops of Chinese and Japanese. */
#include "server/front/sentence.h"

#include <string.h>

static bool is_white(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

bool sentence_is_blank(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!is_white(text[i])) {
            return false;
        }
    }
    return true;
}

/* Bytes of the mark that ends a sentence at text[0..n), 0 for none. *needs_white: only before white space. */
static size_t mark_bytes(const char *text, size_t n, bool clauses, bool *needs_white)
{
    static const char *const wide[] = {"。", "！", "？", "，", "；", "："};
    *needs_white = false;
    for (size_t i = 0; i < (clauses ? 6 : 3); i++) {
        if (n >= 3 && memcmp(text, wide[i], 3) == 0) {
            return 3;
        }
    }
    if (text[0] == '\n') {
        return 1;
    }
    *needs_white = true;
    return text[0] && strchr(clauses ? ".!?,;:" : ".!?", text[0]) ? 1 : 0;
}

size_t sentence_bytes(const char *text, size_t n, bool clauses)
{
    for (size_t i = 0; i < n; i++) {
        bool needs_white;
        size_t end = mark_bytes(text + i, n - i, clauses, &needs_white);
        if (end == 0 || sentence_is_blank(text, i)) {
            continue;
        }
        size_t at = i + end;
        while (needs_white && at < n && strchr(".!?\"')", text[at])) {
            at++; /* "Really?!" and a closing quote belong to it */
        }
        if (needs_white && (at == n || !is_white(text[at]))) {
            if (at == n) {
                return 0;
            }
            continue;
        }
        while (at < n && is_white(text[at])) {
            at++;
        }
        return at;
    }
    return 0;
}
