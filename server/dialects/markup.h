/* SPDX-License-Identifier: Apache-2.0
 * Markup in a text that arrives in pieces: taken out, never spoken. <break time="1s"/>, <speed ratio="0.9"/>,
 * <emotion .../>, <spell>AB12</spell>, <phoneme ...>word</phoneme>: the tags go, what stands between them stays; and
 * sounds written <<m|ɛ|t>> go whole. Pure. */
#ifndef SERVER_MARKUP_H
#define SERVER_MARKUP_H

#include <jansson.h>
#include <stddef.h>

#include "server/protocol/refusal.h"

enum { MARKUP_MOST = 256 }; /* bytes of a tag; what is longer is text */

/* Zero it before the first piece. */
struct markup {
    char held[MARKUP_MOST]; /* what may become a tag */
    size_t n_held;
};

/* Takes the markup out of text[0..n) and writes what is left to out[n + MARKUP_MOST]; returns its bytes. */
size_t markup_strip(struct markup *m, const char *text, size_t n, char *out);
/* The text has ended: what was held back was no tag. */
size_t markup_end(struct markup *m, char *out);

/* Takes it out of a string of an object. False: out of memory. */
bool markup_strip_field(json_t *object, const char *name, struct refusal *refusal);

#endif
