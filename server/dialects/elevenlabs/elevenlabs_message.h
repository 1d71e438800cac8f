/* SPDX-License-Identifier: Apache-2.0
 * What ElevenLabs' interface says and hears: its JSON in, ours out, and back. Pure. */
#ifndef SERVER_ELEVENLABS_MESSAGE_H
#define SERVER_ELEVENLABS_MESSAGE_H

#include <jansson.h>

#include "server/dialects/spoken.h"
#include "server/protocol/refusal.h"

/* The i-th name of output_format, as "mp3_44100_128"; NULL after the last. */
const char *elevenlabs_format(int i);

/* What a request is asked with, beside its body. NULL: not given. */
struct elevenlabs_query {
    const char *output_format, *language_code, *seed;
};

/* The fields of our own interface for a body (or the first message of a socket; may be NULL). Needs a text where
 * `with_text`. The caller's; NULL: *refusal says why. */
json_t *elevenlabs_fields(
    const json_t *body, const struct elevenlabs_query *query, bool with_text, struct refusal *refusal);

/* A message of a socket. Strings belong to the JSON. */
struct elevenlabs_message {
    const char *context; /* context_id, or "" */
    const char *text;    /* or NULL */
    size_t bytes;
    bool flush, close_context, close_socket;
};
bool elevenlabs_read(struct elevenlabs_message *m, const json_t *json, struct refusal *refusal);

/* Times of letters: {characters, character_start_times_seconds, ...} of HTTP, {chars, charStartTimesMs, ...} of a
 * socket. Begin, tell letters (spoken_letter), then take the JSON, NULL when out of memory. */
struct elevenlabs_alignment {
    json_t *letters, *starts, *others; /* others: ends, of a socket lengths */
    bool of_socket;
    double from_s; /* what the times count from */
};
void elevenlabs_alignment_begin(struct elevenlabs_alignment *a, bool of_socket, double from_s);
spoken_letter elevenlabs_alignment_letter;
json_t *elevenlabs_alignment_end(struct elevenlabs_alignment *a);

/* {"detail": {"status", "message"}}. */
json_t *elevenlabs_refusal(const struct refusal *r);
/* The same on a socket; `context` may be "". */
json_t *elevenlabs_error(const struct refusal *r, const char *context);

#endif
