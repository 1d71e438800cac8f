/* SPDX-License-Identifier: Apache-2.0
 * Sound files in, through libsndfile over bytes that base/file has mapped. The header is believed only as far as
 * the samples bear it out: seconds are counted while decoding. */
#include "audio/sound_read.h"

#include <math.h>
#include <sndfile.h>
#include <string.h>

#include "audio/resample.h"
#include "audio/sound_whole.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/minmax.h"

enum { BLOCK_FRAMES = 4096 };

/* Beyond floats that mean integers of 32 bits. */
static const float absurd = 4e9f;
static const float full_scale = 0.999f;

/* ---- Bytes for libsndfile ---- */

struct source {
    const uint8_t *data;
    sf_count_t size, at;
};

static sf_count_t source_length(void *user)
{
    return ((struct source *)user)->size;
}

static sf_count_t source_seek(sf_count_t offset, int whence, void *user)
{
    struct source *s = user;
    sf_count_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? s->at : s->size, to;
    if (!__builtin_add_overflow(from, offset, &to) && to >= 0 && to <= s->size) {
        s->at = to;
    }
    return s->at;
}

static sf_count_t source_read(void *to, sf_count_t count, void *user)
{
    struct source *s = user;
    count = min(count, s->size - s->at);
    if (count <= 0) {
        return 0;
    }
    memcpy(to, s->data + s->at, (size_t)count);
    s->at += count;
    return count;
}

static sf_count_t source_write(const void *from, sf_count_t count, void *user)
{
    (void)from, (void)count, (void)user;
    return 0;
}

static sf_count_t source_tell(void *user)
{
    return ((struct source *)user)->at;
}

struct reader {
    SNDFILE *file;
    SF_INFO info;
    const char *name; /* for messages, quoted */
    double limit_s;
    bool whole;          /* no part is asked for */
    uint64_t first, end; /* frames of the file that are kept: first <= frame < end */
    uint64_t passed;     /* frames that were decoded */
    float *block;        /* [BLOCK_FRAMES][channels] */
    float *mono;
    size_t n, capacity;
    double squares, peak;
    uint64_t n_clipped;
    utter_error *error;
};

/* ---- The best part of what is too long ---- */

enum {
    PART_S = 15,             /* what a voice is best made of */
    PART_STEPS = 2 * PART_S, /* of half a second */
    PART_WITHIN_S = 1200,    /* what lies behind is not listened to */
    PART_LEVEL = 10,         /* dB above -60, on the mean: below, there is nothing to propose */
};

/* How much there is to hear in the next half second: its level in dB above -60, at most 40. Negative at the end. */
static double next_level(const struct reader *r)
{
    double squares = 0;
    sf_count_t n = 0, want = r->info.samplerate / 2;
    while (n < want) {
        sf_count_t got = sf_readf_float(r->file, r->block, min(want - n, BLOCK_FRAMES));
        if (got <= 0) {
            return -1;
        }
        for (sf_count_t t = 0; t < got; t++) {
            double x = (double)r->block[t * r->info.channels];
            squares += isfinite(x) ? x * x : 0;
        }
        n += got;
    }
    return fmin(fmax(10 * log10(squares / (double)n + 1e-6) + 60, 0), 40);
}

/* Where the PART_S seconds with the least silence begin, as far as the file can be read; negative: nowhere. */
static double best_part(const struct reader *r)
{
    double levels[PART_STEPS] = {0}, sum = 0, most = PART_LEVEL * PART_STEPS, from = -1, level;
    if (sf_seek(r->file, 0, SEEK_SET) < 0) {
        return from;
    }
    for (int i = 0; i < 2 * PART_WITHIN_S && (level = next_level(r)) >= 0; i++) {
        sum += level - levels[i % PART_STEPS];
        levels[i % PART_STEPS] = level;
        if (i >= PART_STEPS - 1 && sum > most + 0.1) {
            most = sum;
            from = 0.5 * (i + 1) - PART_S;
        }
    }
    return from;
}

static utter_status too_long(const struct reader *r)
{
    if (!r->whole) {
        return error_set(r->error, UTTER_E_FILE, "%s: the part is longer than %g s (take less of it)",
            r->name, r->limit_s);
    }
    double from = best_part(r);
    if (from < 0) {
        return error_set(
            r->error, UTTER_E_FILE, "%s: longer than %g s (take a part of it)", r->name, r->limit_s);
    }
    return error_set(r->error, UTTER_E_FILE,
        "%s: longer than %g s (take a part of it: the %d s with the least silence go from %g s to %g "
        "s)",
        r->name, r->limit_s, PART_S, from, from + PART_S);
}

/* ---- Decoding ---- */

static utter_status check_header(const struct reader *r)
{
    if (r->info.samplerate < SOUND_MIN_RATE || r->info.samplerate > SOUND_MAX_RATE) {
        return error_set(r->error, UTTER_E_FILE, "%s: %d Hz, not %d to %d", r->name, r->info.samplerate,
            SOUND_MIN_RATE, SOUND_MAX_RATE);
    }
    if (r->info.channels < 1 || r->info.channels > SOUND_MAX_CHANNELS) {
        return error_set(r->error, UTTER_E_FILE, "%s: %d channels, not 1 to %d", r->name,
            r->info.channels, SOUND_MAX_CHANNELS);
    }
    return UTTER_OK;
}

/* The mean of the channels, summed in the order of the official stack. */
static float mean_of(const float *x, int n)
{
    float sum = 0;
    if (n == 8) {
        sum = ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
    } else {
        for (int i = 0; i < n; i++) {
            sum += x[i];
        }
    }
    return sum / (float)n;
}

/* n_frames of the block, from `first` on. */
static utter_status take_block(struct reader *r, size_t first, size_t n_frames)
{
    if (r->n + n_frames > r->capacity) {
        size_t capacity = 2 * r->capacity + 4 * BLOCK_FRAMES;
        float *grown = memory_resize(r->mono, r->capacity, capacity, sizeof *grown);
        if (!grown) {
            return error_memory(r->error, "a recording");
        }
        r->mono = grown;
        r->capacity = capacity;
    }
    int channels = r->info.channels;
    for (size_t t = 0; t < n_frames; t++) {
        const float *x = r->block + (first + t) * (size_t)channels;
        float mean = mean_of(x, channels);
        if (!isfinite(mean)) {
            return error_set(r->error, UTTER_E_FILE, "%s: sample %zu is not a number", r->name, r->n);
        }
        if (fabsf(mean) > absurd) {
            return error_set(r->error, UTTER_E_FILE, "%s: sample %zu is %.3g, and full scale is 1",
                r->name, r->n, (double)mean);
        }
        for (int i = 0; i < channels; i++) {
            r->n_clipped += fabsf(x[i]) >= full_scale;
        }
        r->squares += (double)mean * (double)mean;
        r->peak = fmax(r->peak, fabs((double)mean));
        r->mono[r->n++] = mean;
    }
    return UTTER_OK;
}

static utter_status decode(struct reader *r)
{
    /* A FLAC that was written into a pipe does not know its length: libsndfile then says SF_COUNT_MAX. */
    bool counted = (r->info.format & SF_FORMAT_TYPEMASK) == SF_FORMAT_FLAC && r->info.frames > 0 &&
                   r->info.frames != SF_COUNT_MAX;
    double frames = (double)min((uint64_t)r->info.frames, r->end) - (double)r->first;
    if (r->info.frames != SF_COUNT_MAX && frames > r->limit_s * r->info.samplerate) {
        return too_long(r);
    }
    while (r->passed < r->end) {
        sf_count_t got = sf_readf_float(r->file, r->block, BLOCK_FRAMES);
        if (got <= 0) {
            break;
        }
        uint64_t from = min(max(r->passed, r->first), r->passed + (uint64_t)got);
        uint64_t to = min(r->end, r->passed + (uint64_t)got);
        if (from < to && (double)(r->n + (to - from)) > r->limit_s * r->info.samplerate) {
            return too_long(r);
        }
        utter_status status =
            from < to ? take_block(r, from - r->passed, (size_t)(to - from)) : UTTER_OK;
        if (status) {
            return status;
        }
        r->passed += (uint64_t)got;
    }
    if (sf_error(r->file) != SF_ERR_NO_ERROR) {
        return error_set(r->error, UTTER_E_FILE, "%s: damaged after %.2f s (%s)", r->name,
            (double)r->passed / r->info.samplerate, sf_strerror(r->file));
    }
    if (counted && r->passed < min((uint64_t)r->info.frames, r->end)) {
        return error_set(r->error, UTTER_E_FILE,
            "%s: ends after %.2f s of the %.2f s that its header promises (cut off?)", r->name,
            (double)r->passed / r->info.samplerate, (double)r->info.frames / r->info.samplerate);
    }
    if (r->n == 0 && r->passed) {
        return error_set(r->error, UTTER_E_FILE,
            "%s: ends after %.2f s, before the part that was asked for", r->name,
            (double)r->passed / r->info.samplerate);
    }
    if (r->n == 0) {
        return error_set(r->error, UTTER_E_FILE, "%s: holds no samples", r->name);
    }
    return UTTER_OK;
}

static utter_status open_and_decode(
    struct reader *r, struct source *source, const struct sound_limits *limits)
{
    SF_VIRTUAL_IO io = {source_length, source_seek, source_read, source_write, source_tell};
    if (source->size == 0) {
        return error_set(r->error, UTTER_E_FILE, "%s: empty", r->name);
    }
    if (!sound_is_whole(source->data, (size_t)source->size)) {
        return error_set(r->error, UTTER_E_FILE,
            "%s: its end is missing (get the whole file, or convert what there is to a new one)",
            r->name);
    }
    r->file = sf_open_virtual(&io, SFM_READ, &r->info, source);
    /* What phones record: m4a, mp4, 3gp. */
    if (!r->file && source->size > 8 && memcmp((const char *)source->data + 4, "ftyp", 4) == 0) {
        return error_set(r->error, UTTER_E_FILE,
            "%s: a recording of the kind m4a, which is not read here (ffmpeg -i %s me.wav makes one "
            "that is)",
            r->name, r->name);
    }
    if (!r->file) {
        return error_set(r->error, UTTER_E_FILE,
            "%s: not a sound file that can be read (wav, flac, ogg, opus and mp3 can)", r->name);
    }
    utter_status status = check_header(r);
    if (status) {
        return status;
    }
    r->first = (uint64_t)(limits->from * r->info.samplerate);
    r->end = limits->to > 0 ? (uint64_t)(limits->to * r->info.samplerate) : UINT64_MAX;
    r->whole = r->first == 0 && r->end == UINT64_MAX;
    r->block = memory_new(BLOCK_FRAMES * sizeof(float), (size_t)r->info.channels);
    return r->block ? decode(r) : error_memory(r->error, "a recording");
}

static void describe(const struct reader *r, struct sound_heard *heard)
{
    double rms = sqrt(r->squares / (double)r->n);
    heard->sample_rate = r->info.samplerate;
    heard->channels = r->info.channels;
    heard->seconds = (double)r->n / r->info.samplerate;
    heard->peak = r->peak;
    heard->rms_db = rms > 0 ? 20 * log10(rms) : -INFINITY;
    heard->clipped = (double)r->n_clipped / ((double)r->n * r->info.channels);
}

utter_status sound_read_memory(float **pcm, size_t *n_samples, struct sound_heard *heard,
    const void *data, size_t bytes, const char *what, int rate, const struct sound_limits *limits,
    utter_error *error)
{
    char name[256];
    struct source source = {data, (sf_count_t)bytes, 0};
    struct reader r = {.name = error_quote(name, sizeof name, what, strlen(what)), .error = error};
    size_t limit = limits && limits->bytes ? limits->bytes : SOUND_MAX_BYTES;
    r.limit_s = limits && limits->seconds > 0 ? limits->seconds : SOUND_MAX_SECONDS;
    *pcm = NULL;
    *n_samples = 0;
    if (bytes > limit) {
        return error_set(error, UTTER_E_FILE,
            "%s: %zu bytes, more than %zu (cut it, or make it a flac)", r.name, bytes, limit);
    }
    utter_status status = open_and_decode(&r, &source, limits ? limits : &(struct sound_limits){0});
    if (r.file) {
        sf_close(r.file);
    }
    if (!status && heard) {
        describe(&r, heard);
    }
    if (!status && rate && rate != r.info.samplerate) {
        status = resample(pcm, n_samples, r.mono, r.n, r.info.samplerate, rate, error);
    } else if (!status) {
        *pcm = r.mono;
        *n_samples = r.n;
        r.mono = NULL;
    }
    memory_free(r.mono);
    memory_free(r.block);
    return status;
}

utter_status sound_read(float **pcm, size_t *n_samples, struct sound_heard *heard, const char *path,
    int rate, const struct sound_limits *limits, utter_error *error)
{
    struct file_map map;
    *pcm = NULL;
    *n_samples = 0;
    utter_status status = file_map_open(&map, path, error);
    if (status) {
        return status;
    }
    status = sound_read_memory(pcm, n_samples, heard, map.data, map.size, path, rate, limits, error);
    if (file_map_damaged(&map)) {
        memory_free(*pcm);
        *pcm = NULL;
        *n_samples = 0;
        status = error_set(error, UTTER_E_FILE, "%s: became shorter while it was read", path);
    }
    file_map_close(&map);
    return status;
}
