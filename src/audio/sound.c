/* SPDX-License-Identifier: Apache-2.0
 * Sound files out: utter_sound_* of utter.h. Comes in: float samples, one channel. Goes out: a file that
 * appears when it is complete, or a stream on standard output. WAV and raw are written here; flac, ogg, opus
 * and mp3 by libsndfile, through the same file. */
#include <math.h>
#include <sndfile.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/minmax.h"

enum {
    BLOCK = 4096, /* samples converted at once, on the stack */
    WAV_S16_HEADER = 44,
    WAV_F32_HEADER = 58,
    /* Of libsndfile 1.1; older ones answer that they do not know it. */
    FORMAT_MP3 = 0x230000 | 0x0082,
};

/* Data of a WAV file counts its bytes in 32 bits; the largest count says "to the end of the stream". */
static const uint32_t wav_open_end = UINT32_MAX;

enum container { CONTAINER_RAW, CONTAINER_WAV, CONTAINER_CODED };

static const struct sound_format {
    const char *name;
    enum container container;
    int library_format; /* of libsndfile */
} formats[] = {
    {"wav", CONTAINER_WAV, 0},
    {"raw", CONTAINER_RAW, 0},
    {"pcm", CONTAINER_RAW, 0},
    {"flac", CONTAINER_CODED, SF_FORMAT_FLAC | SF_FORMAT_PCM_16},
    {"ogg", CONTAINER_CODED, SF_FORMAT_OGG | SF_FORMAT_VORBIS},
    {"opus", CONTAINER_CODED, SF_FORMAT_OGG | SF_FORMAT_OPUS},
    {"mp3", CONTAINER_CODED, FORMAT_MP3},
};

struct utter_sound {
    struct file_out *out;
    const struct sound_format *format;
    utter_sample sample;
    int sample_rate;
    uint64_t n_samples;
    SNDFILE *coder;          /* CONTAINER_CODED */
    uint64_t position, size; /* of the coder in the file */
    utter_error failure;     /* of a write that the coder asked for */
    char *name;              /* for messages, quoted */
};

static const struct sound_format *format_find(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const char *a = formats[i].name, *b = name;
        while (*a && (*b | 0x20) == *a) {
            a++;
            b++;
        }
        if (*a == 0 && *b == 0) {
            return &formats[i];
        }
    }
    return NULL;
}

/* The format asked for, else the one that the name ends with; raw on standard output. */
static utter_status format_choose(
    const struct sound_format **format, const char *path, const char *asked, utter_error *error)
{
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(slash ? slash : path, '.');
    const char *name = asked ? asked : strcmp(path, "-") == 0 ? "raw" : dot ? dot + 1 : "";
    char quoted[256];
    *format = format_find(name);
    if (*format) {
        return UTTER_OK;
    }
    error_quote(quoted, sizeof quoted, path, strlen(path));
    if (!name[0]) {
        return error_set(error, UTTER_E_ARGUMENT,
            "%s: the name does not tell the format (let it end in .wav, or say the format)", quoted);
    }
    char quoted_name[64], names[128] = "";
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        size_t n = strlen(names);
        snprintf(names + n, sizeof names - n, "%s%s", i ? ", " : "", formats[i].name);
    }
    return error_set(error, UTTER_E_ARGUMENT, "%s: no sound format '%s' (there are %s)", quoted,
        error_quote(quoted_name, sizeof quoted_name, name, strlen(name)), names);
}

static uint32_t sample_bytes(const utter_sound *sound)
{
    return sound->sample == UTTER_SAMPLE_F32 ? 4 : 2;
}

static uint8_t *put(uint8_t *at, uint32_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        *at++ = (uint8_t)(value >> 8 * i);
    }
    return at;
}

static uint8_t *put_name(uint8_t *at, const char *name)
{
    memcpy(at, name, 4);
    return at + 4;
}

/* The header for `data_bytes` of samples, or wav_open_end; returns its size. */
static size_t wav_header(uint8_t *header, const utter_sound *sound, uint32_t data_bytes)
{
    bool is_float = sound->sample == UTTER_SAMPLE_F32;
    uint32_t size = sample_bytes(sound), rate = (uint32_t)sound->sample_rate;
    uint32_t rest = (is_float ? WAV_F32_HEADER : WAV_S16_HEADER) - 8;
    bool open_end = data_bytes == wav_open_end;
    uint8_t *at = put_name(header, "RIFF");
    at = put(at, open_end ? wav_open_end : rest + data_bytes, 4);
    at = put_name(at, "WAVE");
    at = put_name(at, "fmt ");
    at = put(at, is_float ? 18 : 16, 4);
    at = put(at, is_float ? 3 : 1, 2); /* IEEE float, or integers */
    at = put(at, 1, 2);                /* channels */
    at = put(at, rate, 4);
    at = put(at, rate * size, 4);
    at = put(at, size, 2);
    at = put(at, 8 * size, 2);
    if (is_float) {
        at = put(at, 0, 2); /* nothing more about the format */
        at = put_name(at, "fact");
        at = put(at, 4, 4);
        at = put(at, open_end ? wav_open_end : data_bytes / size, 4);
    }
    at = put_name(at, "data");
    at = put(at, data_bytes, 4);
    return (size_t)(at - header);
}

static sf_count_t coder_size(void *user)
{
    return (sf_count_t)((utter_sound *)user)->size;
}

static sf_count_t coder_tell(void *user)
{
    return (sf_count_t)((utter_sound *)user)->position;
}

static sf_count_t coder_seek(sf_count_t offset, int whence, void *user)
{
    utter_sound *sound = user;
    sf_count_t from = whence == SF_SEEK_CUR   ? (sf_count_t)sound->position
                      : whence == SF_SEEK_END ? (sf_count_t)sound->size
                                              : 0;
    if (offset < -from || from + offset > (sf_count_t)sound->size) {
        return -1;
    }
    sound->position = (uint64_t)(from + offset);
    return coder_tell(sound);
}

static sf_count_t coder_read(void *data, sf_count_t bytes, void *user)
{
    (void)data;
    (void)bytes;
    (void)user;
    return 0; /* a file that is written */
}

/* A failed write is remembered, and the coder goes on into nothing: told of it, libsndfile would leak what it has
 * allocated, and print. */
static sf_count_t coder_write(const void *data, sf_count_t bytes, void *user)
{
    utter_sound *sound = user;
    size_t n = (size_t)bytes;
    uint64_t inside = sound->size - sound->position;
    size_t patched = inside < n ? (size_t)inside : n;
    if (sound->failure.code == UTTER_OK && patched > 0) {
        file_out_patch(sound->out, sound->position, data, patched, &sound->failure);
    }
    if (sound->failure.code == UTTER_OK && n > patched) {
        file_out_write(sound->out, (const char *)data + patched, n - patched, &sound->failure);
    }
    sound->position += n;
    sound->size += n - patched;
    return bytes;
}

/* What went wrong with the coder: the file, or the coder itself. */
static utter_status coder_failed(const utter_sound *sound, utter_error *error)
{
    if (sound->failure.code != UTTER_OK) {
        return error_set(error, sound->failure.code, "%s", sound->failure.text);
    }
    return error_set(
        error, UTTER_E_INTERNAL, "%s: libsndfile cannot encode %s", sound->name, sound->format->name);
}

static utter_status coder_open(utter_sound *sound, utter_error *error)
{
    SF_INFO info = {
        .samplerate = sound->sample_rate, .channels = 1, .format = sound->format->library_format};
    SF_VIRTUAL_IO calls = {coder_size, coder_seek, coder_read, coder_write, coder_tell};
    if (!sf_format_check(&info)) {
        return error_set(error, UTTER_E_ARGUMENT,
            "%s: the libsndfile here cannot write %s at %d Hz (use wav)", sound->name,
            sound->format->name, sound->sample_rate);
    }
    sound->coder = sf_open_virtual(&calls, SFM_WRITE, &info, sound);
    if (sound->coder || sound->failure.code != UTTER_OK) {
        return sound->failure.code == UTTER_OK ? UTTER_OK : coder_failed(sound, error);
    }
    return error_set(error, UTTER_E_ARGUMENT, "%s: cannot write %s at %d Hz (use wav)", sound->name,
        sound->format->name, sound->sample_rate);
}

static void sound_free(utter_sound *sound)
{
    if (sound) {
        if (sound->coder) {
            sf_close(sound->coder);
        }
        file_out_abort(&sound->out);
        memory_free(sound->name);
        memory_free(sound);
    }
}

static utter_status sound_begin(utter_sound *sound, utter_error *error)
{
    if (sound->format->container == CONTAINER_CODED) {
        if (!file_out_seekable(sound->out)) {
            return error_set(error, UTTER_E_ARGUMENT,
                "%s: %s needs a file (a stream takes raw and wav)", sound->name, sound->format->name);
        }
        return coder_open(sound, error);
    }
    if (sound->format->container == CONTAINER_WAV) {
        uint8_t header[WAV_F32_HEADER];
        size_t bytes = wav_header(header, sound, wav_open_end);
        return file_out_write(sound->out, header, bytes, error);
    }
    return UTTER_OK;
}

utter_status utter_sound_create(utter_sound **sound, const char *path, const char *format,
    utter_sample sample, int sample_rate, utter_error *error)
{
    if (!sound) {
        return error_set(error, UTTER_E_ARGUMENT, "utter_sound_create: no place for the sound");
    }
    *sound = NULL;
    if (!path || !path[0] || (sample != UTTER_SAMPLE_S16 && sample != UTTER_SAMPLE_F32) ||
        sample_rate < 1000 || sample_rate > 768000) {
        return error_set(error, UTTER_E_ARGUMENT,
            "utter_sound_create: no path, an unknown sample type, or a rate outside 1000..768000");
    }
    const struct sound_format *chosen;
    utter_status status = format_choose(&chosen, path, format, error);
    if (status != UTTER_OK) {
        return status;
    }
    char quoted[1024];
    const char *name = strcmp(path, "-") == 0 ? "standard output" : path;
    if (sample == UTTER_SAMPLE_F32 && chosen->container == CONTAINER_CODED) {
        return error_set(error, UTTER_E_ARGUMENT,
            "%s: %s holds no 32-bit floats (wav and raw do; or leave the samples at 16 bits)",
            error_quote(quoted, sizeof quoted, name, strlen(name)), chosen->name);
    }
    utter_sound *made = memory_new(1, sizeof *made);
    if (!made ||
        !(made->name = memory_string(error_quote(quoted, sizeof quoted, name, strlen(name))))) {
        sound_free(made);
        return error_memory(error, "a sound file");
    }
    made->format = chosen;
    made->sample = sample;
    made->sample_rate = sample_rate;
    status = file_out_open(&made->out, path, error);
    if (status == UTTER_OK) {
        status = sound_begin(made, error);
    }
    if (status != UTTER_OK) {
        sound_free(made);
        return status;
    }
    *sound = made;
    return UTTER_OK;
}

utter_status utter_sound_tag(utter_sound *sound, const char *key, const char *text, utter_error *error)
{
    static const struct {
        const char *key;
        int kind;
    } keys[] = {{"title", SF_STR_TITLE}, {"artist", SF_STR_ARTIST}, {"album", SF_STR_ALBUM},
        {"track", SF_STR_TRACKNUMBER}};
    enum { N_KEYS = sizeof keys / sizeof *keys };
    int i = 0;
    while (key && i < N_KEYS && strcmp(keys[i].key, key) != 0) {
        i++;
    }
    if (!sound || !key || !text || i == N_KEYS || sound->n_samples > 0) {
        return error_set(
            error, UTTER_E_ARGUMENT, "utter_sound_tag: no sound or text, an unknown key, or too late");
    }
    return sound->coder && text[0] && sf_set_string(sound->coder, keys[i].kind, text) != 0
               ? coder_failed(sound, error)
               : UTTER_OK;
}

/* To the nearest step, clipped; what is not a number is silence. */
static int16_t sample_s16(float x)
{
    float scaled = x * 32768.0f;
    scaled = scaled > 32767.0f ? 32767.0f : scaled < -32768.0f ? -32768.0f : scaled;
    return isnan(scaled) ? 0 : (int16_t)lrintf(scaled);
}

static utter_status write_plain(utter_sound *sound, const float *pcm, size_t n, utter_error *error)
{
    uint8_t bytes[BLOCK * 4], *at = bytes;
    for (size_t i = 0; i < n; i++) {
        if (sound->sample == UTTER_SAMPLE_F32) {
            uint32_t bits;
            memcpy(&bits, &pcm[i], sizeof bits);
            at = put(at, bits, 4);
        } else {
            at = put(at, (uint16_t)sample_s16(pcm[i]), 2);
        }
    }
    return file_out_write(sound->out, bytes, (size_t)(at - bytes), error);
}

static utter_status write_coded(utter_sound *sound, const float *pcm, size_t n, utter_error *error)
{
    int16_t steps[BLOCK];
    float clipped[BLOCK];
    bool whole = (sound->format->library_format & SF_FORMAT_SUBMASK) == SF_FORMAT_PCM_16;
    for (size_t i = 0; i < n; i++) {
        steps[i] = sample_s16(pcm[i]);
        clipped[i] = isnan(pcm[i]) ? 0 : fminf(1, fmaxf(-1, pcm[i]));
    }
    sf_count_t written = whole ? sf_write_short(sound->coder, steps, (sf_count_t)n)
                               : sf_write_float(sound->coder, clipped, (sf_count_t)n);
    if (written != (sf_count_t)n || sound->failure.code != UTTER_OK) {
        return coder_failed(sound, error);
    }
    return UTTER_OK;
}

utter_status utter_sound_write(utter_sound *sound, const float *pcm, size_t n, utter_error *error)
{
    if (!sound || (!pcm && n > 0)) {
        return error_set(error, UTTER_E_ARGUMENT, "utter_sound_write: no sound or no samples");
    }
    if (sound->format->container == CONTAINER_WAV && file_out_seekable(sound->out) &&
        (sound->n_samples + n) * sample_bytes(sound) > UINT32_MAX - WAV_F32_HEADER) {
        return error_set(error, UTTER_E_ARGUMENT, "%s: a wav file holds at most 4 GB (use flac or raw)",
            sound->name);
    }
    while (n > 0) {
        size_t block = min(n, BLOCK);
        utter_status status = sound->coder ? write_coded(sound, pcm, block, error)
                                           : write_plain(sound, pcm, block, error);
        if (status != UTTER_OK) {
            return status;
        }
        sound->n_samples += block;
        pcm += block;
        n -= block;
    }
    return UTTER_OK;
}

/* Everything that is written after the last sample. */
static utter_status sound_end(utter_sound *sound, utter_error *error)
{
    if (sound->coder) {
        int code = sf_close(sound->coder);
        sound->coder = NULL;
        return code || sound->failure.code ? coder_failed(sound, error) : UTTER_OK;
    }
    if (sound->format->container == CONTAINER_WAV && file_out_seekable(sound->out)) {
        uint8_t header[WAV_F32_HEADER];
        uint64_t data_bytes = sound->n_samples * sample_bytes(sound);
        size_t bytes = wav_header(header, sound, (uint32_t)data_bytes);
        return file_out_patch(sound->out, 0, header, bytes, error);
    }
    return UTTER_OK;
}

utter_status utter_sound_close(utter_sound **sound, utter_error *error)
{
    utter_sound *closed = sound ? *sound : NULL;
    if (!closed) {
        return UTTER_OK;
    }
    *sound = NULL;
    utter_status status = sound_end(closed, error);
    if (status == UTTER_OK) {
        status = file_out_close(&closed->out, error);
    }
    sound_free(closed);
    return status;
}

void utter_sound_abort(utter_sound **sound)
{
    if (sound) {
        sound_free(*sound);
        *sound = NULL;
    }
}
