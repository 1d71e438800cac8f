/* SPDX-License-Identifier: Apache-2.0
 * A reading for each line; voices that were asked for are kept open. */
#include <string.h>

#include "base/memory.h"
#include "job/worker_parts.h"

enum { N_VOICES = 32 };

struct known_voice {
    char *name;
    utter_voice *voice;
    char hash[IDENTITY_SIZE];
    uint64_t used;
};

struct speaker_model {
    struct speaker base;
    const struct speaker_model_settings *settings;
    struct known_voice voices[N_VOICES];
    uint64_t n_used;
};

static struct speaker_model *of(struct speaker *speaker)
{
    return (struct speaker_model *)speaker;
}

void speaker_close(struct speaker **speaker)
{
    if (*speaker) {
        (*speaker)->calls->close(*speaker);
        *speaker = NULL;
    }
}

/* ---- Voices ---- */

static utter_status get_voice(
    struct speaker_model *m, const char *name, const struct known_voice **found, utter_error *error)
{
    struct known_voice *oldest = &m->voices[0];
    for (int i = 0; i < N_VOICES; i++) {
        struct known_voice *v = &m->voices[i];
        if (v->name && strcmp(v->name, name) == 0) {
            v->used = ++m->n_used;
            *found = v;
            return UTTER_OK;
        }
        oldest = v->used < oldest->used ? v : oldest;
    }
    utter_voice_free(&oldest->voice);
    memory_free(oldest->name);
    *oldest = (struct known_voice){0};
    const struct speaker_model_settings *s = m->settings;
    utter_status status = s->find_voice(s->user, name, &oldest->voice, oldest->hash, error);
    if (status == UTTER_OK) {
        oldest->name = memory_string(name);
        oldest->used = ++m->n_used;
        *found = oldest;
    }
    return status || oldest->name ? status : error_memory(error, "a voice");
}

/* The line's voice, if it and those that the text calls for are here what they were where the key was made. */
static utter_status find_voice(struct speaker_model *m, const struct line *line,
    const struct known_voice **voice, utter_error *error)
{
    const struct speaker_model_settings *s = m->settings;
    const char *name = line->voice ? line->voice : "";
    char called[IDENTITY_SIZE] = "";
    utter_status status = get_voice(m, name, voice, error);
    if (status == UTTER_OK && strcmp((*voice)->hash, line->voice_hash) != 0) {
        status = error_set(error, UTTER_E_ARGUMENT,
            "the voice \"%s\" of this machine is not that of the submission (--voices names its "
            "folder)",
            name);
    }
    m->base.misfit = status != UTTER_OK;
    if (status == UTTER_OK && line_markup(line) != UTTER_MARKUP_NONE) {
        status = s->hash_called(s->user, line, called, error);
    }
    if (status == UTTER_OK && strcmp(called, line->called_hash) != 0) {
        m->base.misfit = true;
        status = error_set(error, UTTER_E_ARGUMENT,
            "\"%s\": voices that its text calls for are not those of the submission (--voices names "
            "their folder)",
            line->id);
    }
    return status;
}

/* ---- Lines ---- */

static utter_status open_reading(
    struct speaker_model *m, struct slot *slot, int lanes, utter_error *error)
{
    const struct speaker_model_settings *s = m->settings;
    const struct known_voice *voice = NULL;
    utter_status status = find_voice(m, &slot->line, &voice, error);
    if (status) {
        return status;
    }
    utter_stream_options v = *s->voice;
    v.voice = voice->voice;
    v.language = slot->line.language;
    v.instruct = slot->line.instruct;
    v.seed = slot->line.seed;
    v.words = slot->line.words;
    v.plain = true;
    utter_reading_options o;
    utter_reading_options_init(&o);
    o.live = false;
    o.lanes = lanes;
    o.markup = line_markup(&slot->line);
    o.find_voice = s->find_called;
    o.find_voice_user = s->user;
    utter_reading *reading = NULL;
    status = utter_reading_open(&reading, s->model, &v, &o, error);
    slot->making = reading;
    return status;
}

static utter_status model_begin(
    struct speaker *speaker, struct slot *slot, int lanes, utter_error *error)
{
    struct speaker_model *m = of(speaker);
    if (strcmp(slot->line.model, m->settings->model_name) != 0) {
        m->base.misfit = true;
        return error_set(error, UTTER_E_MODEL,
            "the queue's lines are for another model (%s) than this worker's (%s): give -m and "
            "--weights "
            "as for utter job submit",
            slot->line.model, m->settings->model_name);
    }
    utter_status status = open_reading(m, slot, lanes, error);
    if (status) {
        return status;
    }
    status = utter_reading_text(slot->making, slot->line.text, slot->line.text_bytes, error);
    status = status < 0 ? status : utter_reading_finish(slot->making, error);
    return status < 0 ? status : UTTER_OK;
}

static utter_status model_step(struct speaker *speaker, utter_error *error)
{
    return utter_model_step_together(of(speaker)->settings->model, error);
}

/* The words so far, at their numbers: those that have ended change no more. */
static utter_status note_words(struct slot *slot, utter_error *error)
{
    uint64_t first;
    size_t n;
    const utter_word *words = utter_reading_words(slot->making, &first, &n);
    if (!words || first + n > MOST_WORDS) {
        return UTTER_OK;
    }
    utter_word *kept = slot_words(slot, first, n, error);
    if (kept) {
        memcpy(kept, words, n * sizeof *words);
    }
    return kept ? UTTER_OK : UTTER_E_MEMORY;
}

static void model_drop(struct speaker *speaker, struct slot *slot)
{
    utter_reading *reading = slot->making;
    (void)speaker;
    utter_reading_free(&reading);
    slot->making = NULL;
}

static utter_status model_take(struct speaker *speaker, struct slot *slot, utter_error *error)
{
    enum { BLOCK = 1920 };
    float pcm[BLOCK];
    size_t n;
    utter_status status;
    while ((status = utter_reading_take(slot->making, pcm, BLOCK, &n, error)) == UTTER_OK) {
        utter_status written = slot_sound(slot, pcm, n, error);
        if (written) {
            return written;
        }
    }
    if (status >= 0 && slot->line.words && note_words(slot, error) != UTTER_OK) {
        return UTTER_E_MEMORY;
    }
    if (status != UTTER_END) {
        return status == UTTER_AGAIN ? UTTER_OK : status;
    }
    slot->stats.size = sizeof slot->stats;
    utter_reading_get_stats(slot->making, &slot->stats);
    model_drop(speaker, slot);
    return UTTER_END;
}

static void model_close(struct speaker *speaker)
{
    struct speaker_model *m = of(speaker);
    for (int i = 0; i < N_VOICES; i++) {
        utter_voice_free(&m->voices[i].voice);
        memory_free(m->voices[i].name);
    }
    memory_free(m);
}

static const struct speaker_calls model_calls = {
    model_begin, model_step, model_take, model_drop, model_close};

utter_status speaker_model_open(
    struct speaker **speaker, const struct speaker_model_settings *settings, utter_error *error)
{
    utter_model_info info = {.size = sizeof info};
    struct speaker_model *m = memory_new(1, sizeof *m);
    *speaker = m ? &m->base : NULL;
    if (!m) {
        return error_memory(error, "a speaker");
    }
    utter_model_get_info(settings->model, &info);
    m->base = (struct speaker){&model_calls, settings->lanes, info.sample_rate, false};
    m->settings = settings;
    return UTTER_OK;
}
