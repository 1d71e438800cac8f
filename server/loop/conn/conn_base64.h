/* SPDX-License-Identifier: Apache-2.0
 * A whole answer that is a long sound, or JSON that holds some in base64: written piece by piece while the client takes
 * it, so that nobody else waits for it. */
#ifndef SERVER_CONN_BASE64_H
#define SERVER_CONN_BASE64_H

#include "server/loop/conn/conn_whole.h"

/* Text of the answer, as it is, and the sound behind it, which the answer has in base64. */
struct base64_part {
    struct wire_out text;
    struct conn_whole sound;
};

/* Answers with these parts, one behind the other, and takes over what is in them. `more`: as of conn_answer_more. A
 * text that has failed: memory is out. */
void conn_answer_parts(struct conn *c, const char *more, struct base64_part *parts, size_t n);
void base64_part_put(struct base64_part *part, const char *text);

/* Answers with `json` and, as its first member `name`, the sound; behind it `members`, which are text already, or NULL.
 * Takes over all three (json NULL: out of memory). */
void conn_answer_base64(struct conn *c, const char *more, const char *name, struct conn_whole *sound,
    struct wire_out *members, json_t *json);
/* Answers with the sound alone, as it is, and takes it over. */
void conn_answer_whole(struct conn *c, const char *type, const char *more, struct conn_whole *sound);

#endif
