/* SPDX-License-Identifier: Apache-2.0
 * What Cartesia's interface says and hears: its JSON in, ours out, and back. Pure. */
#ifndef SERVER_CARTESIA_MESSAGE_H
#define SERVER_CARTESIA_MESSAGE_H

#include <jansson.h>

#include "server/dialects/spoken.h"
#include "server/protocol/refusal.h"

/* A request, or a message of a socket. Strings belong to the JSON. */
struct cartesia_message {
    const char *context; /* context_id, or "" */
    const char *voice;   /* or NULL */
    const char *transcript;
    size_t bytes;
    bool goes_on; /* continue */
    bool flush, cancel, add_timestamps;
    double delay_s; /* how long text may wait for more; 0: it is spoken at once */
};
bool cartesia_read(struct cartesia_message *m, const json_t *json, struct refusal *refusal);

/* The fields of our own interface, with the transcript where `with_text`. Only raw sound where `raw`. The caller's;
 * NULL: *refusal says why. */
json_t *cartesia_fields(const json_t *json, bool with_text, bool raw, struct refusal *refusal);

/* Words put together from letters: tell letters (spoken_letter), and take the JSON {words, start, end} of those
 * that have ended, NULL: none. Chinese and Japanese have an entry for each character. Zero it before a piece of text,
 * and set from_s. */
struct cartesia_words {
    json_t *words, *starts, *ends; /* NULL: empty */
    double from_s;                 /* is added to all times */
    char word[512];                /* that may go on */
    size_t n;
    double start_s, end_s;
};
spoken_letter cartesia_words_letter;
json_t *cartesia_words_take(struct cartesia_words *w);
/* The text has ended, and the last word with it. */
json_t *cartesia_words_end(struct cartesia_words *w);

/* Messages; `context` may be "". */
json_t *cartesia_chunk(const char *context, json_t *data, double step_ms);
json_t *cartesia_timestamps(const char *context, json_t *words, bool approximate);
json_t *cartesia_flush_done(const char *context, int flush_id);
json_t *cartesia_done(const char *context);
json_t *cartesia_error(const struct refusal *r, const char *context);
json_t *cartesia_refusal(const struct refusal *r); /* of HTTP */

#endif
