/* SPDX-License-Identifier: Apache-2.0
 * Whether a sound file has its end. Decoders take half a file for a short one, so a recording that was cut on its way
 * here would become a voice without a word about it. Comes in: the bytes of a file; goes out: yes, or no. Nothing
 * is decoded. */
#ifndef AUDIO_SOUND_WHOLE_H
#define AUDIO_SOUND_WHOLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* False where a WAV, an Ogg stream (Vorbis, Opus, FLAC) or an MP3 with an Xing header ends before it says. True for
 * all else, and for a file that does not say how long it is, as those that were written into a pipe do not. */
bool sound_is_whole(const uint8_t *data, size_t bytes);

#endif
