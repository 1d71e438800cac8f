/* SPDX-License-Identifier: Apache-2.0
 * Text in pieces -> the same without line breaks at its ends. Owns the breaks that are held back. */
#include "prompt/edges.h"

#include <string.h>

#include "base/memory.h"

static bool is_break(char c)
{
    return c == '\n' || c == '\r';
}

/* The 25 characters with the Unicode property White_Space. */
static bool is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || c == 32 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
           c == 0x3000;
}

/* Follows the characters of the text over piece borders. Bytes that are not UTF-8 count as visible: the
 * tokenizer refuses them with their place. */
static void look(struct edges *e, unsigned char byte)
{
    if (e->missing > 0 && byte >> 6 == 2) {
        e->code_point = e->code_point << 6 | (byte & 0x3f);
        e->visible |= --e->missing == 0 && !is_space(e->code_point);
        return;
    }
    e->missing = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : byte >= 0xc2 ? 1 : 0;
    e->code_point = e->missing ? byte & (0x3fu >> e->missing) : byte;
    e->visible |= e->missing == 0 && !is_space(byte);
}

static utter_status hold(struct edges *e, const char *breaks, size_t n, utter_error *error)
{
    if (e->n_held + n > e->capacity) {
        size_t capacity = 2 * (e->n_held + n);
        char *held = memory_resize(e->held, e->capacity, capacity, 1);
        if (!held) {
            return error_memory(error, "text");
        }
        e->held = held;
        e->capacity = capacity;
    }
    memcpy(e->held + e->n_held, breaks, n);
    e->n_held += n;
    return UTTER_OK;
}

utter_status edges_next(struct edges *e, const char **text, size_t *bytes, const char **inner,
    size_t *n, utter_error *error)
{
    const char *at = *text, *end = at + *bytes;
    *n = 0;
    e->n_held -= e->n_given; /* the whole of it, when it was given */
    e->n_given = 0;
    const char *start = at;
    while (at < end && is_break(*at)) {
        at++;
    }
    e->n_dropped += e->begun ? 0 : (size_t)(at - start);
    utter_status status =
        e->begun && at > start ? hold(e, start, (size_t)(at - start), error) : UTTER_OK;
    if (status || at == end) {
        *text = at;
        *bytes = (size_t)(end - at);
        return status;
    }
    e->begun = true;
    if (e->n_held > 0) { /* something follows: the breaks are inside */
        *inner = e->held;
        *n = e->n_given = e->n_held;
    } else {
        *inner = at;
        for (; at < end && !is_break(*at); at++) {
            look(e, (unsigned char)*at);
        }
        *n = (size_t)(at - *inner);
    }
    *text = at;
    *bytes = (size_t)(end - at);
    return UTTER_OK;
}

bool edges_has_text(const struct edges *e)
{
    return e->visible;
}

void edges_fini(struct edges *e)
{
    memory_free(e->held);
}
