/* SPDX-License-Identifier: Apache-2.0
 * Samples without a coder: how each is written, and the head of a WAV of them. Pure but for memory. */
#ifndef SERVER_SAMPLES_H
#define SERVER_SAMPLES_H

#include <stdint.h>

#include "server/protocol/wire.h"

/* 16 bits, 32-bit floats (both little endian), and the two logarithmic bytes of telephones (G.711). */
enum samples { SAMPLES_S16, SAMPLES_F32, SAMPLES_ULAW, SAMPLES_ALAW };

#define SAMPLES_LIST "s16|f32|ulaw|alaw" /* in the order of the enum */
int samples_bytes(enum samples samples); /* of one */

int16_t samples_s16(float x); /* as the program writes 16-bit files */
uint8_t samples_ulaw(int16_t x);
uint8_t samples_alaw(int16_t x);

void samples_put(struct wire_out *out, enum samples samples, const float *pcm, size_t n);
/* 44 bytes that say that the length is not known. */
void samples_put_wav(struct wire_out *out, enum samples samples, int rate);

#endif
