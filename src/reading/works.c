/* SPDX-License-Identifier: Apache-2.0
 * Which pieces of the text are being made, and on which lanes. */
#include "base/memory.h"
#include "base/minmax.h"
#include "reading/reading_parts.h"

double works_pause(const utter_reading *r, enum cut_end end)
{
    return end == CUT_PARAGRAPH  ? r->options.paragraph_pause_s
           : end == CUT_SENTENCE ? r->options.sentence_pause_s
           : end == CUT_CLAUSE   ? r->options.clause_pause_s
                                 : 0.05;
}

utter_status works_open_stream(
    utter_reading *r, utter_stream **stream, uint64_t seed, utter_error *error)
{
    utter_stream_options o = r->voice;
    o.seed = seed;
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
    if (r->spare && w->tries == 0) {
        w->stream = r->spare;
        r->spare = NULL;
    } else {
        engine_free_stream(&r->spare);
        status = works_open_stream(r, &w->stream, seed, error);
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
    size_t certain = r->streams && r->n_cut == 0 ? cutter_certain(&r->cutter) : 0;
    utter_status status = UTTER_OK;
    if (r->n_works == 0 && certain > 0) {
        *w = (struct work){.growing = true};
        status = begin_try(r, w, error);
        r->n_works += status == UTTER_OK;
    }
    if (status == UTTER_OK && certain > w->n_fed) {
        const char *text = r->cutter.text.at + r->cutter.begin;
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

utter_status works_start_pieces(utter_reading *r, utter_error *error)
{
    struct cut_piece piece;
    bool growing = r->n_works > 0 && r->works[0].growing;
    if (r->n_works > 0 && r->works[0].waits && works_has_lane(r)) {
        utter_status status = works_start(r, &r->works[0], error);
        if (status) {
            return status;
        }
    }
    while (
        (growing || (r->n_works < r->n_room && works_has_lane(r))) && cutter_next(&r->cutter, &piece)) {
        bool only = piece.last && r->n_cut == 0;
        if (!piece.speaks && !only) { /* stars between paragraphs */
            continue;
        }
        struct work *w = &r->works[growing ? 0 : r->n_works++];
        *w = (struct work){.index = r->n_cut++,
            .at = piece.at,
            .bytes = piece.bytes,
            .text = memory_string_n(piece.text, piece.text_bytes),
            .text_bytes = piece.text_bytes,
            .units = piece.units,
            .end = piece.end,
            .only = only,
            .last = piece.last,
            .tries = w->tries,
            .n_fed = w->n_fed,
            .growing = growing,
            .stream = w->stream,
            .made = w->made,
            .begun = w->begun};
        if (w->begun) {
            seam_pause(&r->seam, works_pause(r, w->end));
        }
        growing = false;
        utter_status status =
            w->text ? works_start(r, w, error) : error_memory(error, "a piece of text");
        if (status) {
            return status;
        }
    }
    return UTTER_OK;
}

void works_drop(struct work *w)
{
    engine_free_stream(&w->stream);
    memory_free(w->text);
    samples_fini(&w->made);
    *w = (struct work){0};
}
