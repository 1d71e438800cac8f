/* SPDX-License-Identifier: Apache-2.0 */
#include "voice/voice.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

/* "serena, vivian, ..." in out[size]. */
static const char *voice_list(char *out, size_t size, const struct config *config)
{
    size_t at = 0;
    out[0] = 0;
    for (int i = 0; i < config->n_voices && at + 1 < size; i++) {
        at += (size_t)snprintf(out + at, size - at, "%s%s", i ? ", " : "", config->voices[i].name);
    }
    return out;
}

utter_status voice_new_preset(
    utter_voice **voice, const struct config *config, const char *name, utter_error *error)
{
    char quoted[96], known[2048];
    *voice = NULL;
    int index = config_find(config->voices, config->n_voices, name);
    if (index < 0) {
        error_quote(quoted, sizeof quoted, name, strlen(name));
        if (config->n_voices == 0) {
            return error_set(error, UTTER_E_ARGUMENT,
                "unknown voice \"%s\": this %s model has no preset voices%s", quoted, config->kind_name,
                config->kind == UTTER_MODEL_VOICE_DESIGN ? " (describe one with the instruction)" : "");
        }
        return error_set(error, UTTER_E_ARGUMENT, "unknown voice \"%s\" (known: %s)", quoted,
            voice_list(known, sizeof known, config));
    }
    utter_voice *v = memory_new(1, sizeof *v);
    char *copy = memory_string(config->voices[index].name);
    if (!v || !copy) {
        memory_free(v);
        memory_free(copy);
        return error_memory(error, "voice");
    }
    *v = (utter_voice){.n_users = 1, .name = copy, .preset = index};
    *voice = v;
    return UTTER_OK;
}

utter_voice *voice_share(const utter_voice *voice)
{
    utter_voice *v = (utter_voice *)voice; /* the count is not part of what a voice is */
    if (v) {
        __atomic_add_fetch(&v->n_users, 1, __ATOMIC_RELAXED);
    }
    return v;
}

void voice_free(utter_voice **voice)
{
    utter_voice *v = *voice;
    if (v && __atomic_sub_fetch(&v->n_users, 1, __ATOMIC_ACQ_REL) == 0) {
        memory_free(v->name);
        memory_free(v);
    }
    *voice = NULL;
}
