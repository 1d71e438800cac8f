/* SPDX-License-Identifier: Apache-2.0
 * A section's quiet ends are cut, and a pause takes their place. */
#include "book/joiner.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "book/loudness.h"

static const float quiet = 0.003f; /* -50 dB */
static const double edge_s = 0.05; /* of quiet stays at each end */
static const double pauses_s[] = {
    [SECTION_SENTENCE] = 0.4, [SECTION_PARAGRAPH] = 0.7, [SECTION_CHAPTER] = 1.5};

size_t joiner_reach(const struct joiner *j, size_t n_ready)
{
    size_t reach = n_ready;
    while (j->settings.lufs < 0 && reach > j->next &&
           j->tasks[reach - 1].section->end != SECTION_CHAPTER) {
        reach--;
    }
    return reach;
}

/* ---- A section's samples ---- */

enum { BLOCK = 4800 };

/* Of its file, what is written: the quiet ends are cut. */
struct part {
    sf_count_t from, n;
};

static utter_status broken(const char *path, utter_error *error)
{
    return error_set(error, UTTER_E_FILE,
        "%s: a section that was spoken cannot be read (--fresh begins anew)", path);
}

/* Opens the file of section i and goes to where its part begins. The quiet is found in a first pass, so that never more
 * than a block is in memory. */
static utter_status load(struct joiner *j, size_t i, struct part *part, utter_error *error)
{
    char path[PATH_MAX];
    float block[BLOCK];
    SF_INFO info = {0};
    sf_count_t edge = (sf_count_t)(edge_s * j->settings.rate), at = 0, first = -1, end = 0, n;
    store_path(j->store, path, j->tasks[i].entry.key);
    sf_close(j->file);
    j->file = sf_open(path, SFM_READ, &info);
    if (!j->file || info.channels != 1 || info.samplerate != j->settings.rate || info.frames < 0) {
        return broken(path, error);
    }
    for (; (n = sf_read_float(j->file, block, BLOCK)) > 0; at += n) {
        for (sf_count_t k = 0; k < n; k++) {
            if (fabsf(block[k]) >= quiet) {
                first = first < 0 ? at + k : first;
                end = at + k + 1;
            }
        }
    }
    first = first < 0 ? at : first;
    part->from = max(0, first - edge);
    part->n = min(at, max(end, first) + edge) - part->from;
    return sf_seek(j->file, part->from, SEEK_SET) == part->from ? UTTER_OK : broken(path, error);
}

/* ---- Out ---- */

static utter_status put(struct joiner *j, float *pcm, size_t n, utter_error *error)
{
    if (j->meter) {
        return loudness_add(j->meter, pcm, n) ? UTTER_OK : error_memory(error, "a measurement");
    }
    for (size_t i = 0; i < n && (j->gain < 1 || j->gain > 1); i++) {
        pcm[i] = (float)max(-1.0, min(1.0, j->gain * (double)pcm[i]));
    }
    return sink_write(j->sink, pcm, n, error);
}

/* Through the effects, a block after the other, of the section's file or of silence. */
static utter_status emit(struct joiner *j, SNDFILE *file, sf_count_t n, bool final, utter_error *error)
{
    float block[BLOCK];
    utter_status status = UTTER_OK;
    do {
        if (j->stop()) {
            return UTTER_AGAIN;
        }
        size_t here = (size_t)min(n, BLOCK);
        float *out = block;
        memset(block, 0, sizeof block);
        if (file && sf_read_float(file, block, (sf_count_t)here) != (sf_count_t)here) {
            return error_set(
                error, UTTER_E_FILE, "a section that was spoken cannot be read (--fresh begins anew)");
        }
        n -= (sf_count_t)here;
        if (!effects_feed(j->effects, &out, &here, final && n == 0)) {
            return error_memory(error, "speed and rate");
        }
        status = put(j, out, here, error);
    } while (n > 0 && status == UTTER_OK);
    return status;
}

static sf_count_t samples_of(const struct joiner *j, double seconds)
{
    return (sf_count_t)llround(seconds * j->settings.rate);
}

static utter_status begin_effects(struct joiner *j, double speed, utter_error *error)
{
    struct effects_settings settings = j->settings.effects;
    settings.speed *= speed;
    effects_free(j->effects);
    j->effects = effects_new(&settings, j->settings.rate);
    return j->effects ? UTTER_OK : error_memory(error, "speed and rate");
}

/* ---- Chapters ---- */

static bool begins_chapter(const struct joiner *j, size_t i)
{
    return i == 0 || j->tasks[i - 1].section->end == SECTION_CHAPTER;
}

static utter_status write_section(struct joiner *j, size_t i, utter_error *error)
{
    enum section_end end = j->tasks[i].section->end;
    struct part part;
    utter_status status = load(j, i, &part, error);
    if (status == UTTER_OK && begins_chapter(j, i)) {
        status = begin_effects(j, 1, error);
        status =
            status || j->meter ? status : sink_chapter(j->sink, j->tasks[i].section->chapter, error);
    }
    if (status == UTTER_OK) {
        status = emit(j, j->file, part.n, false, error);
    }
    bool last = i + 1 == j->n_tasks || j->sink->settings.split;
    double pause_s = (end == SECTION_CHAPTER && last ? 0.5 : pauses_s[end]) - 2 * edge_s;
    return status ? status : emit(j, NULL, samples_of(j, pause_s), end == SECTION_CHAPTER, error);
}

/* The chapter that begins at `next`, twice: measured, then written. */
static utter_status write_chapter(struct joiner *j, utter_error *error)
{
    size_t first = j->next, end = first;
    utter_status status = UTTER_OK;
    double short_lu;
    while (j->tasks[end++].section->end != SECTION_CHAPTER) {
    }
    int rate = j->settings.effects.sample_rate ? j->settings.effects.sample_rate : j->settings.rate;
    j->meter = loudness_new(rate);
    if (!j->meter) {
        return error_memory(error, "a measurement");
    }
    for (size_t i = first; i < end && status == UTTER_OK; i++) {
        status = write_section(j, i, error);
    }
    j->gain = loudness_gain(j->meter, j->settings.lufs, &short_lu);
    loudness_free(j->meter);
    j->meter = NULL;
    j->n_quiet += short_lu >= 1;
    j->most_short_lu = max(j->most_short_lu, short_lu);
    for (size_t i = first; i < end && status == UTTER_OK; i++) {
        status = write_section(j, i, error);
        j->next += status == UTTER_OK;
    }
    return status;
}

/* ---- Subtitles ---- */

/* Silence up to the time of a subtitle, that passes no effects. */
static utter_status write_silence(struct joiner *j, uint64_t until, utter_error *error)
{
    static float silence[4800];
    utter_status status = UTTER_OK;
    while (j->sink->n_samples < until && status == UTTER_OK) {
        if (j->stop()) {
            return UTTER_AGAIN;
        }
        memset(silence, 0, sizeof silence);
        status = sink_write(j->sink, silence, (size_t)min(until - j->sink->n_samples, 4800), error);
    }
    return status;
}

/* A slot lasts to the next subtitle: what is said may use the quiet behind it. */
static utter_status write_subtitle(struct joiner *j, size_t i, utter_error *error)
{
    const struct chapter *c = &j->book->chapters[j->tasks[i].section->chapter];
    int rate = j->settings.effects.sample_rate ? j->settings.effects.sample_rate : j->settings.rate;
    double end_s = i + 1 < j->n_tasks ? j->book->chapters[j->tasks[i + 1].section->chapter].begin_s : 0;
    struct part part;
    utter_status status = load(j, i, &part, error);
    if (status) {
        return status;
    }
    status = j->sink->settings.split ? sink_chapter(j->sink, j->tasks[i].section->chapter, error)
                                     : write_silence(j, (uint64_t)llround(c->begin_s * rate), error);
    if (status) {
        return status;
    }
    double at_s = j->sink->settings.split ? c->begin_s : (double)j->sink->n_samples / rate;
    double length_s = (double)part.n / j->settings.rate / j->settings.effects.speed;
    double room_s = max(end_s, c->end_s) - at_s,
           speed = room_s > 0 ? length_s / room_s : j->settings.fit;
    speed = max(1.0, min(speed, j->settings.fit));
    j->n_late += at_s > c->begin_s + 0.1;
    j->most_late_s = max(j->most_late_s, at_s - c->begin_s);
    j->n_hurried += speed > 1.005;
    status = begin_effects(j, speed, error);
    return status ? status : emit(j, j->file, part.n, true, error);
}

utter_status joiner_move(struct joiner *j, utter_error *error)
{
    if (j->settings.lufs < 0 && !j->book->timed) {
        return write_chapter(j, error);
    }
    j->gain = 1;
    utter_status status =
        j->book->timed ? write_subtitle(j, j->next, error) : write_section(j, j->next, error);
    j->next += status == UTTER_OK;
    return status;
}

void joiner_fini(struct joiner *j)
{
    loudness_free(j->meter);
    effects_free(j->effects);
    sf_close(j->file);
    *j = (struct joiner){0};
}
