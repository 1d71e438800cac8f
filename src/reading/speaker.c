/* SPDX-License-Identifier: Apache-2.0
 * Voices by name. */
#include "reading/speaker.h"

#include <string.h>

#include "base/memory.h"

utter_status speakers_find(struct speakers *s, const char *name, const struct model *model,
    const utter_voice **voice, utter_error *error)
{
    utter_voice *found = NULL;
    for (size_t i = 0; i < s->n; i++) {
        if (strcmp(s->list[i].name, name) == 0) {
            *voice = s->list[i].voice;
            return UTTER_OK;
        }
    }
    if (s->n == s->room) {
        struct speaker *grown = memory_resize(s->list, s->room, s->room + 8, sizeof *grown);
        if (!grown) {
            return error_memory(error, "a voice");
        }
        s->list = grown;
        s->room += 8;
    }
    utter_status status = s->find(s->user, name, &found, error);
    status = status ? status : voice_fits(found, model, error);
    char *copy = status ? NULL : memory_string(name);
    if (!status && !copy) {
        status = error_memory(error, "a voice");
    }
    if (status) {
        voice_free(&found);
        return status;
    }
    s->list[s->n++] = (struct speaker){copy, found};
    *voice = found;
    return UTTER_OK;
}

void speakers_fini(struct speakers *s)
{
    for (size_t i = 0; i < s->n; i++) {
        memory_free(s->list[i].name);
        voice_free(&s->list[i].voice);
    }
    memory_free(s->list);
    *s = (struct speakers){0};
}
