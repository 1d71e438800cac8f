/* SPDX-License-Identifier: Apache-2.0
 * Small things that the ways to ask for speech share. */
#ifndef SERVER_SPEECH_PARTS_H
#define SERVER_SPEECH_PARTS_H

#include "server/speech.h"

/* "stop" or "length", as other servers say it. */
const char *speech_finish_reason(enum utter_finish finish);
/* A JSON string, or NULL when out of memory. */
json_t *speech_base64(const void *bytes, size_t n);
/* A data URL or plain base64 -> bytes. */
bool speech_decode_sound(const char *text, struct wire_out *sound);

#endif
