/* SPDX-License-Identifier: Apache-2.0
 * The voices that a text calls by name: each is looked for once, and kept until the reading ends. */
#ifndef READING_SPEAKER_H
#define READING_SPEAKER_H

#include "voice/voice.h"

struct speakers {
    utter_find_voice_fn *find;
    void *user;
    struct speaker {
        char *name;
        utter_voice *voice;
    } * list;
    size_t n, room;
};

/* Borrowed. A name that nobody has is refused as `find` says it. */
utter_status speakers_find(struct speakers *speakers, const char *name, const struct model *model,
    const utter_voice **voice, utter_error *error);
void speakers_fini(struct speakers *speakers);

#endif
