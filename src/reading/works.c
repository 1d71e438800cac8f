/* SPDX-License-Identifier: Apache-2.0
 * Which pieces of the text are being made, and on which lanes. */
#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "base/tables/languages.h"
#include "reading/reading_parts.h"

double works_pause(const utter_reading *r, enum cut_end end)
{
    return end == CUT_PARAGRAPH  ? r->options.paragraph_pause_s
           : end == CUT_SENTENCE ? r->options.sentence_pause_s
           : end == CUT_CLAUSE   ? r->options.clause_pause_s
                                 : 0.05;
}

utter_status works_open_stream(
    utter_reading *r, utter_stream **stream, const struct work *w, uint64_t seed, utter_error *error)
{
    utter_stream_options o = r->voice;
    o.seed = seed;
    const utter_voice *carried = w ? carry_voice(r, w) : NULL;
    o.voice = carried ? carried : w && w->voice ? w->voice : o.voice;
    o.language = w && w->language ? w->language : o.language;
    if (r->options.max_frames > 0) {
        o.max_frames =
            (int)max(1, min((int64_t)o.max_frames, r->options.max_frames - (int64_t)r->stats.n_frames));
    }
    utter_status status = engine_open_stream(stream, r->engine, &o, error);
    if (status == UTTER_OK) {
        (*stream)->held = r->held;
    }
    return status;
}

/* A stream for the next try of a piece. UTTER_AGAIN: no lane is free. */
static utter_status begin_try(utter_reading *r, struct work *w, utter_error *error)
{
    uint64_t seed = r->voice.seed + (uint64_t)w->tries;
    utter_status status = UTTER_OK;
    w->n_fed = 0;
    if (r->spare && w->tries == 0 && !w->voice && !w->language && !carry_voice(r, w)) {
        w->stream = r->spare;
        w->stream->held = r->held; /* or not, since it was opened */
        r->spare = NULL;
    } else {
        engine_free_stream(&r->spare);
        status = works_open_stream(r, &w->stream, w, seed, error);
    }
    w->tries += status == UTTER_OK;
    return status;
}

utter_status works_start(utter_reading *r, struct work *w, utter_error *error)
{
    utter_status status = w->growing ? UTTER_OK : begin_try(r, w, error);
    w->growing = w->waits = false;
    if (status == UTTER_OK) {
        status = stream_text(w->stream, w->text + w->n_fed, w->text_bytes - w->n_fed, error);
    }
    return status ? status : stream_finish(w->stream, error);
}

utter_status works_grow(utter_reading *r, utter_error *error)
{
    struct work *w = &r->works[0];
    size_t certain = r->streams && r->n_cut == 0 ? source_certain(&r->source) : 0;
    utter_status status = UTTER_OK;
    if (r->n_works == 0 && certain > 0) {
        *w = (struct work){.growing = true, .speed = 1, .volume = 1, .lead_s = -1, .pause_s = -1};
        status = begin_try(r, w, error);
        r->n_works += status == UTTER_OK;
    }
    if (status == UTTER_OK && certain > w->n_fed) {
        const char *text = r->source.cutter.text.at + r->source.cutter.begin;
        status = stream_text(w->stream, text + w->n_fed, certain - w->n_fed, error);
        w->bytes = w->n_fed = certain;
    }
    return status;
}

int works_lanes(const utter_reading *r)
{
    int n = r->spare != NULL;
    for (int i = 0; i < r->n_works; i++) {
        n += r->works[i].stream && r->works[i].stream->lane >= 0;
    }
    return n;
}

bool works_has_lane(const utter_reading *r)
{
    return r->spare || (works_lanes(r) < r->n_lanes && engine_free_lane(r->engine) >= 0);
}

/* Whether the model speaks a language that the text asks for. */
static bool speaks_language(const utter_reading *r, const char *name)
{
    const struct config *c = r->engine->context.model->config;
    return config_find(c->languages, c->n_languages, name) >= 0 ||
           config_find(c->languages, c->n_languages, language_name(name)) >= 0;
}

/* How a piece is spoken. A voice that nobody knows is refused, a language that the model does not speak is told. */
static utter_status dress(
    utter_reading *r, struct work *w, const struct script_style *style, utter_error *error)
{
    utter_status status = UTTER_OK;
    w->speed = style ? style->rate : 1;
    w->volume = style ? style->volume : 1;
    w->heading = style && style->heading;
    if (style && style->voice) {
        status = speakers_find(&r->speakers, style->voice, r->engine->context.model, &w->voice, error);
    }
    if (style && style->language && speaks_language(r, style->language)) {
        w->language = style->language;
    }
    return status;
}

static utter_status set_piece(
    utter_reading *r, struct work *w, const struct source_piece *p, utter_error *error)
{
    const struct cut_piece *cut = &p->cut;
    w->index = r->n_cut++;
    w->at = cut->at;
    w->bytes = cut->bytes;
    w->text = memory_string_n(cut->text, cut->text_bytes);
    w->text_bytes = cut->text_bytes;
    w->units = cut->units;
    w->length = whole_length(cut->text, cut->text_bytes);
    w->end = cut->end;
    w->last = cut->last;
    w->lead_s = p->lead_s;
    w->pause_s = p->pause_s;
    if (p->origins && (w->origins = memory_new(2 * cut->text_bytes + 1, sizeof *w->origins))) {
        w->ends = w->origins + cut->text_bytes + 1;
        memcpy(w->origins, p->origins, (cut->text_bytes + 1) * sizeof *w->origins);
        memcpy(w->ends, p->ends, cut->text_bytes * sizeof *w->ends);
    }
    w->source = cut->source ? memory_string_n(cut->source, cut->source_bytes) : NULL;
    w->source_bytes = cut->source_bytes;
    w->text_at = cut->text_at;
    utter_status status = dress(r, w, p->style, error);
    bool plain = w->speed == 1 && w->volume == 1 && p->lead_s < 0 && p->pause_s < 0;
    w->only = cut->last && w->index == 0 && plain;
    return status ? status
           : !w->text || (p->origins && !w->origins) || cut->no_memory || (cut->source && !w->source)
               ? error_memory(error, "a piece of text")
               : UTTER_OK;
}

utter_status works_start_pieces(utter_reading *r, utter_error *error)
{
    struct source_piece piece;
    bool growing = r->n_works > 0 && r->works[0].growing;
    utter_status status = UTTER_OK;
    if (r->n_works > 0 && r->works[0].waits && works_has_lane(r)) {
        status = works_start(r, &r->works[0], error);
    }
    while (status == UTTER_OK && (growing || (r->n_works < r->n_room && works_has_lane(r)))) {
        status = source_next(&r->source, &piece, error);
        if (status) {
            return status < 0 ? status : UTTER_OK;
        }
        bool only = piece.cut.last && r->n_cut == 0;
        if (!piece.cut.speaks && !only) { /* stars between paragraphs */
            continue;
        }
        struct work *w = &r->works[growing ? 0 : r->n_works++];
        status = set_piece(r, w, &piece, error);
        if (w->begun) {
            seam_pause(&r->seam, works_pause(r, w->end));
        }
        growing = false;
        status = status ? status : works_start(r, w, error);
    }
    return status;
}

utter_status works_check_spans(utter_reading *r, utter_error *error)
{
    utter_status status = UTTER_OK;
    const utter_voice *voice;
    const struct script_style *style;
    while (status == UTTER_OK && r->source.script && (style = script_next_style(r->source.script))) {
        if (style->voice) {
            status = speakers_find(&r->speakers, style->voice, r->engine->context.model, &voice, error);
        }
        if (style->language && !speaks_language(r, style->language)) {
            script_note_language(r->source.script, style->language);
        }
    }
    return status;
}

void works_drop(struct work *w)
{
    engine_free_stream(&w->stream);
    memory_free(w->text);
    memory_free(w->source);
    samples_fini(&w->made);
    memory_free(w->origins);
    effects_free(w->effects);
    *w = (struct work){0};
}
