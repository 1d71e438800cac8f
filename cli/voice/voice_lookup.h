/* SPDX-License-Identifier: Apache-2.0
 * Voices by what was typed, and the folders where voice files are looked for. */
#ifndef CLI_VOICE_LOOKUP_H
#define CLI_VOICE_LOOKUP_H

#include "book/identity.h"
#include "cli/options.h"
#include "utter.h"

/* A voice file (typed with a slash or its ending), a preset of the model (may be NULL), or a name on the search path.
 * *voice is the caller's. */
utter_status voice_find(utter_voice **voice, const utter_model *model, const struct settings *settings,
    const char *typed, utter_error *error);
/* The same: 0, or an exit code after a message. */
int voice_lookup(
    utter_voice **voice, const utter_model *model, const struct settings *settings, const char *typed);

/* The folders in order: --voices, then the user's own. False behind the last. */
bool voice_folder(char *folder, size_t size, const struct settings *settings, int index);

/* The file that a name or path stands for, where there is one. */
bool voice_file_find(char *path, size_t size, const struct settings *settings, const char *typed);

/* The file that a name stands for, or the typed path itself; false after a message when there is none. */
bool voice_file_path(char *path, size_t size, const struct settings *settings, const char *typed);

/* The part of a path behind the last slash, without the ending .voice, in name[size]. */
void voice_stem(char *name, size_t size, const char *path);

/* What a voice is, wherever it came from; NULL is none. */
void voice_identity(char hex[IDENTITY_SIZE], const utter_voice *voice);
/* The same of the preset that has this name; NULL: of no voice. */
void voice_identity_preset(char hex[IDENTITY_SIZE], const char *name);
/* Adds to the hash what is in the files of voices that a spoken text (utter_text_spoken) calls for by name. */
utter_status voice_called_identity(
    char hex[IDENTITY_SIZE], const char *spoken, const struct settings *settings, utter_error *error);

#endif
