/* SPDX-License-Identifier: Apache-2.0
 * What three kinds of sound files say of their own length (sound_whole.h). */
#include "audio/sound_whole.h"

#include <string.h>

/* Writers into a pipe do not know the length of a WAV: they write 0, or one about as large as there can be. */
static const uint32_t WAV_UNKNOWN = 0x7f000000;

enum {
    CHUNK_HEAD = 8,   /* of RIFF: name and size */
    WAV_HEAD = 12,    /* "RIFF", size, "WAVE" */
    OGG_HEAD = 27,    /* of a page, up to its table of segments */
    OGG_LAST = 4,     /* flag: the last page of a stream */
    ID3_HEAD = 10,    /* of a tag in front of an MP3 */
    XING_LATEST = 64, /* an Xing header stands at 13 to 36 bytes of the first frame */
    XING_HAS_FRAMES = 1,
    XING_HAS_BYTES = 2,
};

static uint32_t little_32(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint32_t big_32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static bool wav_is_whole(const uint8_t *data, size_t bytes)
{
    for (size_t at = WAV_HEAD; bytes - at >= CHUNK_HEAD;) {
        uint32_t size = little_32(data + at + 4);
        size_t left = bytes - at - CHUNK_HEAD;
        if (memcmp(data + at, "data", 4) == 0) {
            return size >= WAV_UNKNOWN || size <= left;
        }
        if (size >= left) {
            return false; /* the sound would stand behind this chunk */
        }
        at += CHUNK_HEAD + size;
        at += size % 2 && at < bytes; /* chunks begin at even places */
    }
    return false;
}

/* The last page says that it is the last, and is there. A page is at most 27 + 255 + 255 * 255 bytes long. */
static bool ogg_is_whole(const uint8_t *data, size_t bytes)
{
    for (size_t at = bytes - OGG_HEAD + 1; at-- > 0;) {
        if (memcmp(data + at, "OggS", 4) != 0) {
            continue;
        }
        size_t n_segments = data[at + OGG_HEAD - 1], size = OGG_HEAD + n_segments;
        for (size_t i = 0; i < n_segments && at + OGG_HEAD + i < bytes; i++) {
            size += data[at + OGG_HEAD + i];
        }
        return (data[at + 5] & OGG_LAST) != 0 && size <= bytes - at;
    }
    return false;
}

/* Size of the ID3 tag that stands in front; 7 bits a byte. */
static size_t id3_bytes(const uint8_t *data, size_t bytes)
{
    if (bytes < ID3_HEAD || memcmp(data, "ID3", 3) != 0) {
        return 0;
    }
    size_t size = (size_t)(data[6] & 127) << 21 | (size_t)(data[7] & 127) << 14 |
                  (size_t)(data[8] & 127) << 7 | (data[9] & 127);
    return size + ID3_HEAD;
}

static bool mp3_is_whole(const uint8_t *data, size_t bytes)
{
    size_t first = id3_bytes(data, bytes);
    for (size_t i = 0; i < XING_LATEST && first < bytes && bytes - first >= i + 16; i++) {
        const uint8_t *at = data + first + i;
        if (memcmp(at, "Xing", 4) == 0 || memcmp(at, "Info", 4) == 0) {
            uint32_t flags = big_32(at + 4);
            const uint8_t *size = at + 8 + (flags & XING_HAS_FRAMES ? 4 : 0);
            return !(flags & XING_HAS_BYTES) || big_32(size) <= bytes - first;
        }
    }
    return true;
}

bool sound_is_whole(const uint8_t *data, size_t bytes)
{
    if (bytes >= WAV_HEAD && memcmp(data, "RIFF", 4) == 0 && memcmp(data + 8, "WAVE", 4) == 0) {
        return wav_is_whole(data, bytes);
    }
    if (bytes >= OGG_HEAD && memcmp(data, "OggS", 4) == 0) {
        return ogg_is_whole(data, bytes);
    }
    const bool tagged = bytes >= ID3_HEAD && memcmp(data, "ID3", 3) == 0;
    const bool framed = bytes >= 2 && data[0] == 0xff && (data[1] & 0xe0) == 0xe0;
    return !(tagged || framed) || mp3_is_whole(data, bytes);
}
