/* SPDX-License-Identifier: Apache-2.0
 * The table of released models. */
#include "base/tables/released.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

const struct released released_table[] = {
    {"0.6b", "Qwen/Qwen3-TTS-12Hz-0.6B-CustomVoice"},
    {"0.6b-base", "Qwen/Qwen3-TTS-12Hz-0.6B-Base"},
    {"1.7b", "Qwen/Qwen3-TTS-12Hz-1.7B-CustomVoice"},
    {"1.7b-base", "Qwen/Qwen3-TTS-12Hz-1.7B-Base"},
    {"design", "Qwen/Qwen3-TTS-12Hz-1.7B-VoiceDesign"},
};
const size_t n_released = sizeof released_table / sizeof *released_table;

const char *released_repository(const char *name)
{
    for (size_t i = 0; i < n_released; i++) {
        const char *repository = released_table[i].repository;
        if (strcasecmp(name, released_table[i].name) == 0 ||
            strcasecmp(name, strchr(repository, '/') + 1) == 0) {
            return repository;
        }
    }
    return NULL;
}

bool released_is_repository(const char *name)
{
    int n_slashes = 0;
    char before = '/';
    for (const char *c = name; *c; before = *c++) {
        bool begins = before == '/';
        n_slashes += *c == '/';
        if (!isalnum((unsigned char)*c) && (begins || !strchr("/.-_", *c))) {
            return false;
        }
    }
    return n_slashes == 1 && before != '/';
}
