/* SPDX-License-Identifier: Apache-2.0
 * Voice files (NAME.voice): a cloned voice in a safetensors container, sealed, bound to the models it fits.
 * docs/voices.md describes the format, so that other programs can read it. */
#ifndef VOICE_VOICE_FILE_H
#define VOICE_VOICE_FILE_H

#include "voice/voice.h"

/* Writes a cloned voice, whole or not at all. */
utter_status voice_save(const utter_voice *voice, const char *path, utter_error *error);
/* Reads one, checked: seal, version, sizes, ranges. Whether it fits a model is voice_fits's question. */
utter_status voice_load(utter_voice **voice, const char *path, utter_error *error);

#endif
