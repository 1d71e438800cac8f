/* SPDX-License-Identifier: Apache-2.0
 * From a dialect's fields to those of the server: its voice, its checks. */
#ifndef SERVER_ASK_H
#define SERVER_ASK_H

#include "server/loop/conn/conn.h"
#include "server/speech/fields.h"

/* `object` (taken over; NULL: *refusal is filled in already) becomes *fields, spoken by the voice that the client calls
 * so (NULL: the first). An unknown voice is refused with 404. False: nothing is to be freed. */
bool ask_fields(struct fields *fields, struct conn *c, const char *dialect, const char *voice,
    json_t *object, enum fields_for what, struct refusal *refusal);
/* Tells the client why not, and counts it. */
void ask_refuse(struct conn *c, const struct refusal *refusal);
/* Copies the query parameter `name` into out[size]; NULL: there is none. */
const char *ask_query(const struct conn *c, const char *name, char *out, size_t size);

#endif
