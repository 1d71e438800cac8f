/* SPDX-License-Identifier: Apache-2.0
 * G.711 by its segments: a sign, the place of the highest bit, and the four bits below it. */
#include "server/sound/samples.h"

#include <math.h>

static const struct {
    int bytes;
    uint32_t wav_format; /* of RIFF */
} kinds[] = {{2, 1}, {4, 3}, {1, 7}, {1, 6}};

int samples_bytes(enum samples samples)
{
    return kinds[samples].bytes;
}

int16_t samples_s16(float x)
{
    float scaled = x * 32768.0f;
    scaled = scaled > 32767.0f ? 32767.0f : scaled < -32768.0f ? -32768.0f : scaled;
    return isnan(scaled) ? 0 : (int16_t)lrintf(scaled);
}

/* The segment of a value below 1 << 15: 7 for the loudest, each one below is half as loud; 0 for all that is less. */
static int segment_of(int value)
{
    int segment = 7;
    while (segment > 0 && !(value & (1 << (segment + 7)))) {
        segment--;
    }
    return segment;
}

uint8_t samples_ulaw(int16_t x)
{
    enum { BIAS = 132, MOST = 32635 }; /* the bias makes all segments alike */
    int sign = x < 0 ? 0x80 : 0, value = x < 0 ? -(int)x : x;
    value = (value > MOST ? MOST : value) + BIAS;
    int segment = segment_of(value);
    return (uint8_t) ~(sign | segment << 4 | (value >> (segment + 3) & 15));
}

uint8_t samples_alaw(int16_t x)
{
    int sign = x < 0 ? 0 : 0x80, value = x < 0 ? -(int)x - 1 : x;
    int segment = segment_of(value);
    int code = segment << 4 | (value >> (segment ? segment + 3 : 4) & 15);
    return (uint8_t)((sign | code) ^ 0x55); /* every other bit is turned, as the norm has it */
}

/* A block of them at a time: to put each one alone takes longer than all else that is done to it. */
void samples_put(struct wire_out *out, enum samples samples, const float *pcm, size_t n)
{
    enum { BLOCK = 512 };
    union {
        int16_t s16[BLOCK];
        float f32[BLOCK];
        uint8_t bytes[BLOCK];
    } block;
    for (size_t many; n > 0 && !out->failed; pcm += many, n -= many) {
        many = n < BLOCK ? n : BLOCK;
        for (size_t i = 0; i < many; i++) {
            if (samples == SAMPLES_S16) {
                block.s16[i] = samples_s16(pcm[i]);
            } else if (samples == SAMPLES_F32) {
                block.f32[i] = isnan(pcm[i]) ? 0 : pcm[i];
            } else {
                int16_t s16 = samples_s16(pcm[i]);
                block.bytes[i] = samples == SAMPLES_ULAW ? samples_ulaw(s16) : samples_alaw(s16);
            }
        }
        wire_put(out, &block, many * (size_t)samples_bytes(samples));
    }
}

void samples_put_wav(struct wire_out *out, enum samples samples, int rate)
{
    uint32_t bytes = (uint32_t)samples_bytes(samples);
    wire_put(out, "RIFF", 4);
    wire_put_number(out, UINT32_MAX, 4);
    wire_put(out, "WAVEfmt ", 8);
    wire_put_number(out, 16, 4);
    wire_put_number(out, kinds[samples].wav_format, 2);
    wire_put_number(out, 1, 2);
    wire_put_number(out, (uint32_t)rate, 4);
    wire_put_number(out, (uint32_t)rate * bytes, 4);
    wire_put_number(out, bytes, 2);
    wire_put_number(out, 8 * bytes, 2);
    wire_put(out, "data", 4);
    wire_put_number(out, UINT32_MAX, 4);
}
