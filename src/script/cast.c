/* SPDX-License-Identifier: Apache-2.0
 * The cast of a script: who speaks with which voice. */
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "script/letters.h"
#include "script/script_parts.h"

enum { MOST_CAST = 1000, MOST_NAME = 200 };

struct cast {
    struct part {
        char *name, *voice;
    } parts[MOST_CAST];
    size_t n_parts;
};

static utter_status add(struct cast *c, const char *line, size_t n, size_t number, utter_error *error)
{
    const char *equals = memchr(line, '=', n);
    const char *name = line, *voice = equals ? equals + 1 : line;
    size_t name_n = equals ? (size_t)(equals - line) : 0, voice_n = (size_t)(line + n - voice);
    letters_trim(&name, &name_n);
    letters_trim(&voice, &voice_n);
    if (name_n == 0 || name_n > MOST_NAME || voice_n == 0) {
        return error_set(error, UTTER_E_ARGUMENT,
            "the cast, line %zu: a line is \"NAME = voice\" (\"* = voice\" for what nobody speaks)",
            number);
    }
    if (c->n_parts == MOST_CAST) {
        return error_set(error, UTTER_E_ARGUMENT, "the cast has more than %d names", MOST_CAST);
    }
    struct part *p = &c->parts[c->n_parts++];
    p->name = memory_string_n(name, name_n);
    p->voice = memory_string_n(voice, voice_n);
    return p->name && p->voice ? UTTER_OK : error_memory(error, "a cast");
}

utter_status cast_read(struct cast **cast, const char *text, utter_error *error)
{
    utter_status status = UTTER_OK;
    size_t number = 1;
    *cast = memory_new(1, sizeof **cast);
    if (!*cast) {
        return error_memory(error, "a cast");
    }
    for (const char *at = text, *end; *at && status == UTTER_OK; at = *end ? end + 1 : end, number++) {
        end = strchrnul(at, '\n');
        const char *line = at;
        size_t n = (size_t)(end - at);
        letters_trim(&line, &n);
        if (n > 0 && *line != '#') {
            status = add(*cast, line, n, number, error);
        }
    }
    if (status) {
        cast_free(cast);
    }
    return status;
}

const char *cast_find(const struct cast *c, const char *line, size_t n, size_t *words)
{
    const char *name = line, *colon = memchr(line, ':', n);
    size_t name_n = colon ? (size_t)(colon - line) : 0;
    letters_trim(&name, &name_n);
    for (size_t i = 0; name_n > 0 && i < c->n_parts; i++) {
        if (strlen(c->parts[i].name) == name_n && strncasecmp(c->parts[i].name, name, name_n) == 0) {
            *words = (size_t)(colon + 1 - line);
            return c->parts[i].voice;
        }
    }
    return NULL;
}

const char *cast_narrator(const struct cast *c)
{
    for (size_t i = 0; c && i < c->n_parts; i++) {
        if (strcmp(c->parts[i].name, "*") == 0) {
            return c->parts[i].voice;
        }
    }
    return NULL;
}

void cast_free(struct cast **cast)
{
    struct cast *c = *cast;
    for (size_t i = 0; c && i < c->n_parts; i++) {
        memory_free(c->parts[i].name);
        memory_free(c->parts[i].voice);
    }
    memory_free(c);
    *cast = NULL;
}
