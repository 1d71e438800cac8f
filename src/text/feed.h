/* SPDX-License-Identifier: Apache-2.0
 * Text that arrives in pieces -> token ids, each given as soon as no later text can change it. All ids
 * together are those of tokenizer_encode on the whole text, wherever it is cut, also inside a character.
 * In prose a word is given when the text after it has begun; a text without a safe border is held back
 * until feed_finish. Time is linear in the text, memory in what is held back. */
#ifndef TEXT_FEED_H
#define TEXT_FEED_H

#include "text/tokenizer.h"

struct feed;

/* The tokenizer is borrowed and must outlive the feed. */
utter_status feed_new(struct feed **feed, const struct tokenizer *tokenizer, utter_error *error);
void feed_free(struct feed *feed); /* accepts NULL */

/* Takes the next piece and appends the ids that are now settled to *ids. Invalid UTF-8 is
 * UTTER_E_ARGUMENT with the offset in the whole text; characters that are not complete yet are no error.
 * After a failure the feed has no use but feed_free. */
utter_status feed_text(
    struct feed *feed, const char *text, size_t bytes, struct ids *ids, utter_error *error);

/* The text is complete: appends the remaining ids. After success the feed is as new. */
utter_status feed_finish(struct feed *feed, struct ids *ids, utter_error *error);

#endif
