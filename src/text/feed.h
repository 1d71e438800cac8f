/* SPDX-License-Identifier: Apache-2.0
 * UTF-8 text -> token ids, whole or in pieces. Of text in pieces each id is handed out as soon as no later text can
 * change it, and the ids of all calls together are those of tokenizer_encode over the whole text. In prose a word is
 * settled when the text after it has begun; a text without a safe border is held back until the end. What is settled
 * is forgotten, so that a long stream costs linear time. */
#ifndef TEXT_FEED_H
#define TEXT_FEED_H

#include "text/ids.h"
#include "text/tokenizer.h"

/* Appends the ids of a whole text, `bytes` bytes of valid UTF-8, to *ids; invalid UTF-8 is UTTER_E_ARGUMENT with the
 * offset. After a failure *ids is as it was. */
utter_status tokenizer_encode(const struct tokenizer *tokenizer, const char *text, size_t bytes,
    struct ids *ids, utter_error *error);

struct token_feed;

/* The tokenizer must outlive the feed. */
utter_status token_feed_open(
    struct token_feed **feed, const struct tokenizer *tokenizer, utter_error *error);
void token_feed_close(struct token_feed **feed); /* accepts a pointer to NULL */
/* Offsets in errors count from the end of what was given so far, for text behind a fixed opening: the first byte behind
 * it is byte n_before. */
void token_feed_begin_offsets(struct token_feed *feed, size_t n_before);

/* What comes from here on is its characters, also where it spells an added token; until it is called with false. Once a
 * text. */
void token_feed_literal(struct token_feed *feed, bool literal);

/* The next piece, cut anywhere, also inside a character; appends the newly settled ids to *ids. Bytes
 * that cannot be UTF-8 are UTTER_E_ARGUMENT with their offset. After a failure the feed
 * can only be closed. */
utter_status token_feed_text(
    struct token_feed *feed, const char *text, size_t bytes, struct ids *ids, utter_error *error);
/* What waits for text to come holds at least so many ids: who cannot use that many need not wait for the end of an
 * endless word. */
size_t token_feed_least_ids(const struct token_feed *feed);
/* The end of the text: appends all that is left. After success the feed is as new. */
utter_status token_feed_finish(struct token_feed *feed, struct ids *ids, utter_error *error);

#endif
