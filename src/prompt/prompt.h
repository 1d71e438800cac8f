/* SPDX-License-Identifier: Apache-2.0
 * Text + voice + language + instruction + layout -> rows, and the text ids that go in one with each
 * frame. Comes in: text in pieces. Goes out: the rows that the talker is prefilled with, as soon as they
 * are certain, then the trailing ids. The only place that knows modes and layouts. */
#ifndef PROMPT_PROMPT_H
#define PROMPT_PROMPT_H

#include "model/model.h"
#include "model/row.h"
#include "text/feed.h"
#include "voice/voice.h"

struct prompt_request {
    const utter_voice *voice; /* NULL: none */
    const char *language;     /* NULL or "auto": none */
    const char *instruct;     /* NULL or "": none */
    utter_layout layout;
    bool plain; /* control tokens in text, instruction and transcript are characters */
};

struct prompt;

bool prompt_takes_instructions(const struct config *config);

/* Appends the ids of a whole text in the wrapper that a prompt gives it: 3 before it, 5 behind it. */
utter_status prompt_wrap(
    const struct tokenizer *tokenizer, const char *text, struct ids *ids, utter_error *error);

/* Checks the request (voice, language, instruction, UTF-8) and prepares what does not depend on the text.
 * config and tokenizer must outlive the prompt. */
utter_status prompt_open(struct prompt **prompt, const struct config *config,
    const struct tokenizer *tokenizer, const struct prompt_request *request, utter_error *error);
void prompt_close(struct prompt **prompt); /* accepts a handle that is NULL */

/* The next piece of text, cut anywhere. */
utter_status prompt_text(struct prompt *prompt, const char *text, size_t bytes, utter_error *error);
/* No more text. An empty text, or one of white space alone, is UTTER_E_ARGUMENT. */
utter_status prompt_finish(struct prompt *prompt, utter_error *error);

/* The rows to prefill, or NULL while they still depend on text to come. */
const struct row *prompt_rows(const struct prompt *prompt, int *n_rows);

/* The rows that the talker would have read by the end of n_frames frames, codes[n_frames][n_codebooks], had the text
 * not had its tokens `from` to `to` -> rows, at most those of the prompt and n_frames; how many. Frame f was chosen
 * behind row *first + f. They borrow of the prompt and the codes. For a prompt that is finished. */
int prompt_rows_without(const struct prompt *prompt, int from, int to, const int32_t *codes,
    int n_frames, struct row *rows, int *first);

bool prompt_streams(const struct prompt *prompt); /* the layout is that of streams */

/* How many of the first rows do not depend on the text: the same voice, language, instruction and layout give the same
 * ones (but for texts that merge with the header). At least 1, and not all: what comes last has to be computed. For a
 * prompt that has its rows. */
int prompt_fixed_rows(const struct prompt *prompt);

/* The text id that joins the codes of frame `frame` (0, 1, ...): a trailing text id, or the pad id when the
 * text is used up; -1 while it depends on text to come. */
int32_t prompt_trailing(const struct prompt *prompt, int frame);
/* True when all text has gone in by the time that frame `frame` has been made. */
bool prompt_consumed(const struct prompt *prompt, int frame);

int prompt_text_tokens(const struct prompt *prompt); /* so far */
/* Where each of those begins, in bytes of the text as it was given; valid until the prompt is changed. */
const uint64_t *prompt_token_begins(const struct prompt *prompt);
/* All text has come. */
bool prompt_finished(const struct prompt *prompt);
/* The talker's position that has the first token; the others follow it, whatever the layout. For a prompt that has its
 * rows. */
int prompt_text_position(const struct prompt *prompt);

/* A note for the user about the request, or NULL: an instruction that this model does not take. */
const char *prompt_note(const struct prompt *prompt);

#endif
