/* SPDX-License-Identifier: Apache-2.0
 * A tag begins with "<" and a letter, "/" or a second "<", and ends with ">" or ">>"; any other "<" is text. */
#include "server/dialects/markup.h"

#include <stdbool.h>
#include <string.h>

#include "base/memory.h"

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Whether what is held may still become a tag. */
static bool may_be_tag(const struct markup *m)
{
    const char second = m->held[1];
    return m->n_held < 2 || is_letter(second) || second == '<' ||
           (second == '/' && (m->n_held == 2 || is_letter(m->held[2])));
}

static bool is_whole(const struct markup *m)
{
    size_t n = m->n_held;
    bool sounds = m->held[1] == '<';
    return n > 2 && m->held[n - 1] == '>' && (!sounds || (n > 3 && m->held[n - 2] == '>'));
}

size_t markup_end(struct markup *m, char *out)
{
    size_t n = m->n_held;
    memcpy(out, m->held, n);
    m->n_held = 0;
    return n;
}

size_t markup_strip(struct markup *m, const char *text, size_t n, char *out)
{
    size_t written = 0;
    for (size_t i = 0; i < n; i++) {
        if (m->n_held == 0 && text[i] != '<') {
            out[written++] = text[i];
            continue;
        }
        m->held[m->n_held++] = text[i];
        if (!may_be_tag(m)) {
            bool begins_anew = text[i] == '<'; /* "< <b>" */
            m->n_held -= begins_anew;
            written += markup_end(m, out + written);
            m->held[0] = '<';
            m->n_held = begins_anew;
        } else if (is_whole(m)) {
            m->n_held = 0;
        } else if (m->n_held == MARKUP_MOST) {
            written += markup_end(m, out + written);
        }
    }
    return written;
}

bool markup_strip_field(json_t *object, const char *name, struct refusal *r)
{
    const json_t *value = json_object_get(object, name);
    size_t n = json_string_length(value);
    struct markup m = {.n_held = 0};
    if (!json_is_string(value) || !memchr(json_string_value(value), '<', n)) {
        return true;
    }
    char *plain = memory_new(n + 2 * MARKUP_MOST, 1);
    size_t bytes = plain ? markup_strip(&m, json_string_value(value), n, plain) : 0;
    bytes += plain ? markup_end(&m, plain + bytes) : 0;
    bool good = plain && json_object_set_new(object, name, json_stringn(plain, bytes)) == 0;
    memory_free(plain);
    return good ? true : refuse(r, 503, NULL, "out of memory");
}
