/* SPDX-License-Identifier: Apache-2.0
 * The first cut of a text, into words: one of two regular expressions, matched again and again from left
 * to right. The matches cover the text. */
#ifndef TEXT_PRETOKENS_H
#define TEXT_PRETOKENS_H

#include "base/error.h"

/* PATCHED is what the official package makes of a folder whose config.json asks for its patch: MISTRAL when
 * vocab.json has more than 100,000 entries (as every released one), else NATIVE. */
enum pretokenizer { PRETOKENIZER_MISTRAL, PRETOKENIZER_NATIVE, PRETOKENIZER_PATCHED };

struct pretokens;
struct pretokens_match; /* scratch of one user; pretokens itself is immutable */

/* `pattern` is MISTRAL or NATIVE. */
utter_status pretokens_new(struct pretokens **pretokens, enum pretokenizer pattern, utter_error *error);
void pretokens_free(struct pretokens *pretokens); /* accepts NULL */

utter_status pretokens_match_new(
    struct pretokens_match **match, const struct pretokens *pretokens, utter_error *error);
void pretokens_match_free(struct pretokens_match *match); /* accepts NULL */

/* The length of the word that begins at `text`, which is valid UTF-8 and not empty. `final`: the text ends
 * here; otherwise UTTER_AGAIN when it depends on what comes behind. */
utter_status pretokens_next(const struct pretokens *pretokens, struct pretokens_match *match,
    const char *text, size_t bytes, bool final, size_t *length, utter_error *error);

#endif
