/* SPDX-License-Identifier: Apache-2.0
 * Readings as the worker drives them: a text of any length is spoken piece by piece, on one lane. */
#include "server/worker/slot.h"

#include "base/clock.h"
#include "base/minmax.h"

enum {
    PIECE_FRAMES = 2048, /* of a piece, where the client set no limit; lanes are planned with so many */
    MOST_FRAMES = 4096,  /* of a piece in any case */
    LIVE_RETRIES = 1,    /* what is said again is heard again */
    RETRIES = 2,
    PROMPT_BYTES = 32,
};

bool slot_model_broke(utter_status status)
{
    return status == UTTER_E_DEVICE || status == UTTER_E_FILE;
}

/* A piece whose words were not all said. */
static void note_piece(void *user, const utter_piece *piece)
{
    struct slot *slot = user;
    if (!piece->whole && slot->n_broken++ == 0) {
        slot->broken_at = piece->at;
    }
}

static void apply_settings(utter_stream_options *to, const struct wire_open *o)
{
    to->language = o->language;
    to->instruct = o->instruct;
    to->layout = (utter_layout)o->layout;
    to->seed = o->seed;
    to->words = o->words;
    to->plain = o->plain;
    to->max_frames = max(min(o->max_frames, MOST_FRAMES), PIECE_FRAMES);
    for (int i = 0; i < parameter_count; i++) {
        parameter_set(&parameter_table[i], to, o->sampling[i]);
    }
}

static void look(struct slot *slot)
{
    slot->stats.size = sizeof slot->stats;
    utter_reading_get_stats(slot->reading, &slot->stats);
}

utter_status slot_open(struct slot *slot, utter_model *model, uint32_t id, const struct wire_open *open,
    const utter_voice *voice, utter_error *error)
{
    utter_stream_options v;
    utter_reading_options o;
    utter_stream_options_init(&v, model);
    utter_reading_options_init(&o);
    apply_settings(&v, open);
    v.voice = voice;
    o.live = open->live;
    o.retries = open->live ? LIVE_RETRIES : RETRIES;
    o.max_frames = open->max_frames;
    o.markup = open->markup;
    o.spell_out = open->spell_out;
    o.carry = open->carry;
    o.piece = note_piece;
    o.piece_user = slot;
    *slot = (struct slot){.id = id,
        .live = open->live,
        .background = open->background,
        .words = open->words,
        .due = clock_seconds()};
    utter_status status = utter_reading_open(&slot->reading, model, &v, &o, error);
    if (status == UTTER_OK) {
        look(slot);
    }
    return status;
}

void slot_close(struct slot *slot)
{
    utter_reading_free(&slot->reading);
    told_fini(&slot->told);
    *slot = (struct slot){0};
}

utter_status slot_text(struct slot *slot, const char *text, size_t n, utter_error *error)
{
    utter_status status = text ? utter_reading_text(slot->reading, text, n, error)
                               : utter_reading_finish(slot->reading, error);
    if (slot->starved && !slot->has_sound && !slot->background) {
        slot->due = clock_seconds(); /* until now it has waited for its own text, not for us */
    }
    slot->starved = false;
    slot->has_all = slot->has_all || !text;
    look(slot);
    return status;
}

bool slot_can_step(const struct slot *slot)
{
    return slot->reading && !slot->paused && !slot->starved;
}

double slot_prompt_size(size_t text_bytes)
{
    return (double)text_bytes + PROMPT_BYTES;
}

/* Of the piece that is spoken, while it has no frame; then 0. */
static double prompt_of(const struct slot *slot)
{
    bool reads = slot->stats.n_frames == slot->frames_before;
    return reads ? slot_prompt_size((size_t)slot->stats.bytes) : 0;
}

void slot_choice(
    struct schedule_speech *choice, const struct slot *slot, double piece_s, double prompt_s)
{
    if (!slot->reading) { /* of most lanes, each step */
        *choice = (struct schedule_speech){.can_step = false};
        return;
    }
    double whole = prompt_of(slot), prompt = whole * prompt_s > piece_s ? piece_s / prompt_s : whole;
    *choice = (struct schedule_speech){.can_step = slot_can_step(slot),
        .background = slot->background,
        .has_sound = slot->has_sound,
        .due = slot->due,
        .prompt = prompt,
        .whole = whole};
}

/* Compares with what was before the step. */
static struct slot_gain gain_of(struct slot *slot, double prompt)
{
    const utter_reading_stats before = slot->stats;
    look(slot);
    const utter_reading_stats *t = &slot->stats;
    bool ended = t->n_pieces != before.n_pieces || t->n_retries != before.n_retries;
    struct slot_gain g = {.moved = ended || t->n_frames != before.n_frames};
    g.has_begun = t->at != before.at || t->bytes != before.bytes;
    g.has_read = t->n_rows > before.n_rows;
    g.rows_s = g.has_read ? max(t->prefill_s - before.prefill_s, 0.0) : 0;
    if (g.moved && prompt > 0) {
        g.prompt = prompt;
        g.prompt_s = t->prefill_s - slot->prefill_before;
    }
    if (ended) {
        slot->frames_before = t->n_frames;
        slot->prefill_before = t->prefill_s;
    }
    return g;
}

/* Which words the listener hears in what was taken. */
static void take_words(struct slot *slot, struct wire_out *out)
{
    uint64_t first;
    size_t n;
    const utter_word *words = slot->words ? utter_reading_words(slot->reading, &first, &n) : NULL;
    if (words) {
        told_put(&slot->told, slot->id, words, first, n, slot->stats.words_approximate, out);
    }
}

utter_status slot_take(struct slot *slot, const utter_model_info *info, float *pcm, double now,
    struct slot_gain *gain, struct wire_out *out, utter_error *error)
{
    const double prompt = prompt_of(slot);
    const uint64_t n_frames = slot->stats.n_frames;
    size_t n, total = 0, frame = (size_t)info->frame_samples;
    utter_status status;
    while ((status = utter_reading_take(slot->reading, pcm, frame, &n, error)) == UTTER_OK) {
        wire_message(out, WIRE_PCM, slot->id, pcm, n * sizeof *pcm);
        total += n;
    }
    *gain = gain_of(slot, prompt);
    take_words(slot, out);
    if (!slot->live) { /* what is made counts as heard, also while it is kept back */
        total = slot->stats.n_frames > n_frames ? (slot->stats.n_frames - n_frames) * frame : 0;
    }
    if (total > 0) {
        /* The listener starts with the first frame; who has fallen behind starts anew. */
        double base = slot->has_sound ? max(slot->due, now) : now;
        slot->due = slot->background ? slot->due : base + (double)total / info->sample_rate;
        slot->has_sound = true;
    }
    /* A step may also be spent on words that are in doubt, which shows nowhere. */
    slot->starved = !slot->has_all && total == 0 && !gain->moved && !gain->has_begun && !gain->has_read;
    return status;
}

struct wire_done slot_done(const struct slot *slot)
{
    const utter_reading_stats *t = &slot->stats;
    return (struct wire_done){.finish = (int)t->finish,
        .n_frames = (int)t->n_frames,
        .n_text_tokens = (int)t->n_text_tokens,
        .prefill_s = t->prefill_s,
        .talker_s = t->talker_s,
        .predictor_s = t->predictor_s,
        .vocoder_s = t->vocoder_s,
        .n_pieces = (int)t->n_pieces,
        .n_retries = (int)t->n_retries,
        .n_broken = slot->n_broken,
        .broken_at = slot->broken_at};
}
