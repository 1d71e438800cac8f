/* SPDX-License-Identifier: Apache-2.0
 * Frames of the Wyoming protocol: a line of JSON, then as many bytes of JSON (more of its data) and of payload as it
 * says. Pure but for memory. */
#ifndef SERVER_WYOMING_MESSAGE_H
#define SERVER_WYOMING_MESSAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/protocol/wire.h"

enum { WYOMING_LINE = 64 << 10, WYOMING_DATA = 512 << 10, WYOMING_PAYLOAD = 256 << 10 };

struct wyoming_event {
    json_t *json;     /* the line; owns the strings */
    const char *type; /* "synthesize", ... */
    json_t *data;     /* an object; the line's */
    size_t payload_bytes;
};

enum wyoming_progress { WYOMING_MORE, WYOMING_EVENT, WYOMING_BAD };

/* The event at the beginning of in[0..n): *used bytes are done with. WYOMING_MORE: so many are needed; 0: not known. */
enum wyoming_progress wyoming_read(
    struct wyoming_event *event, const uint8_t *in, size_t n, size_t *used);
void wyoming_event_fini(struct wyoming_event *event);

/* `data` (taken over; may be NULL) and the payload go into `out`. */
void wyoming_write(struct wire_out *out, const char *type, json_t *data, const void *payload, size_t n);

/* A string of the event's data without NUL, or NULL. */
const char *wyoming_string(const struct wyoming_event *event, const char *name);
/* The voice that is asked for: its speaker or its name, or NULL; and its language. */
const char *wyoming_voice(const struct wyoming_event *event, const char **language);

/* What a program can: `voices` and `languages` are lists of names (taken over). */
json_t *wyoming_info(const char *version, json_t *voices, json_t *languages);
/* The names of speakers and of languages in a checkpoint's config, the caller's; empty ones where there are none. */
void wyoming_config(const json_t *config, json_t **voices, json_t **languages);

#endif
