/* SPDX-License-Identifier: Apache-2.0
 * What of an utterance of a session its client knows and has heard: the text as it was given, and its words. */
#ifndef SERVER_HEARD_H
#define SERVER_HEARD_H

#include "server/protocol/wire.h"
#include "server/speech/words.h"

/* Zero it before the first utterance. */
struct heard {
    int utterance;
    bool has_words;       /* they were asked for: where each is heard is known */
    struct wire_out text; /* that was given to its speeches */
    struct word_list words;
};

/* Another utterance begins to be spoken: what was kept of the one before goes. */
void heard_begin(struct heard *h, int utterance);
void heard_fini(struct heard *h);
/* Bytes of memory. */
size_t heard_size(const struct heard *h);

/* The message with the words that the client does not know yet, or NULL. */
json_t *heard_news(struct heard *h);

/* Adds to the answer of a cancelled utterance what was heard when played_s of its sound had been: text_spoken, and
 * text_remaining with `rest` behind it, which was not given to a speech. `seconds`: how much sound there is of the
 * text, exactly, or what is expected of a speech that goes on. */
void heard_split(
    struct heard *h, json_t *answer, double played_s, double seconds, const struct wire_out *rest);

#endif
