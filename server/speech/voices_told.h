/* SPDX-License-Identifier: Apache-2.0
 * What the uploader of a voice said of it (description, consent, whose it is), in a file beside the voice. Its name
 * holds the hash of the voice file's bytes, NAME.HASH.json beside NAME.voice: so it can be there before the voice is,
 * and never stands for another recording. Earlier servers wrote NAME.json, which is read where there is no other. */
#ifndef SERVER_VOICES_TOLD_H
#define SERVER_VOICES_TOLD_H

#include <jansson.h>

#include "utter.h"

#define VOICE_ENDING ".voice"

/* An object, empty where nothing was said; NULL when memory is short. */
json_t *told_read(const char *voice);

/* Saves the voice, with the text of the file `told` (NULL: nothing was said) beside it before it takes its place;
 * `scratch` is a path for a copy. Waits for the disk. A process that is killed on the way leaves the voice of before
 * with what was said of it, or the new one with its own. */
utter_status told_save(const utter_voice *voice, const char *path, const char *told,
    const char *scratch, utter_error *error);

/* Removes what was said of other voices of this name than the one that is there; everything when there is none. */
void told_sweep(const char *voice);

#endif
