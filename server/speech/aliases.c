/* SPDX-License-Identifier: Apache-2.0
 * OpenAI's models and voices. */
#include "server/speech/aliases.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *name;
    bool told; /* in the list of models, and where one is refused */
} models[] = {{"tts-1", true}, {"tts-1-hd", true}, {"gpt-4o-mini-tts", true},
    {"gpt-4o-mini-tts-2025-03-20", false}, {"gpt-4o-mini-tts-2025-12-15", false}, {"utter", false}};

bool alias_is_model(const char *name)
{
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        if (strcmp(models[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

const char *alias_model(int i)
{
    for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
        if (models[k].told && i-- == 0) {
            return models[k].name;
        }
    }
    return NULL;
}

/* Which preset sounds nearest: of the released models, and of the voice that comes with the program. */
static const struct {
    const char *name, *released, *built_in;
} openai_voices[] = {{"alloy", "vivian", "clara"}, {"ash", "ryan", "miles"},
    {"ballad", "eric", "miles"}, {"coral", "serena", "clara"}, {"echo", "aiden", "miles"},
    {"fable", "dylan", "miles"}, {"onyx", "uncle_fu", "miles"}, {"nova", "vivian", "clara"},
    {"sage", "serena", "clara"}, {"shimmer", "ono_anna", "clara"}, {"verse", "ryan", "miles"},
    {"marin", "sohee", "clara"}, {"cedar", "aiden", "miles"}};

const char *alias_voice(int i)
{
    return i < (int)(sizeof openai_voices / sizeof *openai_voices) ? openai_voices[i].name : NULL;
}

const char *alias_preset(const char *name, const char *const *voices, int n_voices)
{
    for (size_t i = 0; i < sizeof openai_voices / sizeof *openai_voices; i++) {
        if (strcasecmp(openai_voices[i].name, name) != 0) {
            continue;
        }
        for (int k = 0; k < n_voices; k++) {
            if (strcasecmp(voices[k], openai_voices[i].released) == 0 ||
                strcasecmp(voices[k], openai_voices[i].built_in) == 0) {
                return voices[k];
            }
        }
        return n_voices ? voices[(int)i % n_voices] : NULL;
    }
    return NULL;
}
