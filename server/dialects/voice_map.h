/* SPDX-License-Identifier: Apache-2.0
 * Whose voice a client of another service means. The file of --voice-map is an object of objects:
 *
 *     {"elevenlabs": {"21m00Tcm4TlvDq8ikWAM": "clara", "*": "miles"}, "*": {"Rachel": "clara"}}
 *
 * A star for a dialect stands for all of them, for a name for every name that is not known otherwise. */
#ifndef SERVER_VOICE_MAP_H
#define SERVER_VOICE_MAP_H

#include "server/loop/server.h"

/* Reads the file, or reads it again. False after a message on stderr; the old map stays. */
bool voice_map_read(struct server *s);
void voice_map_free(struct server *s);

/* Our name for that of a client; the name itself where nobody knows it. Borrowed. */
const char *voice_map_find(struct server *s, const char *dialect, const char *name);

/* Of a map alone: what it says of the name, or NULL. Pure. */
const char *voice_map_entry(const json_t *map, const char *dialect, const char *name);
/* The voice of OpenAI's 13 that stands for a well-known one of another service, or NULL. Pure. */
const char *voice_map_stock(const char *name);

#endif
