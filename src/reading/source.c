/* SPDX-License-Identifier: Apache-2.0
 * Spans of a script, one after the other, through the cutter. */
#include "reading/source.h"

#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"

utter_status source_open(struct source *s, const struct script_options *options, utter_error *error)
{
    if (script_is_wanted(options)) {
        return script_open(&s->script, options, error);
    }
    s->written = options->written; /* what is plain stands there as it is written */
    s->written_user = options->written_user;
    return UTTER_OK;
}

static utter_status not_utf8(const struct source *s, utter_error *error)
{
    return error_set(error, UTTER_E_ARGUMENT, "the text is not UTF-8 at byte %llu",
        (unsigned long long)s->n_checked);
}

/* The tail of `held` that nobody has looked at. */
static utter_status check(struct source *s, const struct chars *held, utter_error *error)
{
    bool bad;
    size_t unknown = s->n_given - s->n_checked;
    size_t n = utf8_valid(held->at + (held->n - unknown), unknown, &bad);
    s->n_checked += n;
    return bad ? not_utf8(s, error) : UTTER_OK;
}

utter_status source_text(struct source *s, const char *text, size_t bytes, utter_error *error)
{
    struct chars *held = s->script ? &s->unread : &s->cutter.text;
    utter_status status =
        s->script ? chars_add(held, text, bytes, error) : cutter_text(&s->cutter, text, bytes, error);
    if (status) {
        return status;
    }
    if (s->written && bytes > 0) {
        s->written(s->written_user, s->n_given, bytes, text, bytes);
    }
    s->n_given += bytes;
    status = check(s, held, error);
    if (status || !s->script) {
        return status;
    }
    size_t n = held->n - (s->n_given - s->n_checked);
    status = script_text(s->script, held->at, n, error);
    chars_drop(held, n);
    return status;
}

utter_status source_finish(struct source *s, utter_error *error)
{
    s->finished = true;
    if (s->script && s->unread.n > 0) {
        return not_utf8(s, error);
    }
    if (s->script) {
        return script_finish(s->script, error);
    }
    cutter_finish(&s->cutter);
    return s->n_given == s->n_checked ? UTTER_OK : not_utf8(s, error);
}

/* Where each byte of a piece comes from: the cutter may have made runs of white space one blank, or none. */
static utter_status find_origins(struct source *s, const struct cut_piece *cut, utter_error *error)
{
    const struct chars *text = &s->span.text;
    size_t n = cut->text_bytes, source, source_n, from = n == text->n ? 0 : cut->at;
    if (2 * n + 1 > s->origins_room) {
        size_t *grown = memory_resize(s->origins, s->origins_room, 4 * n + 64, sizeof *grown);
        if (!grown) {
            return error_memory(error, "a piece of text");
        }
        s->origins = grown;
        s->origins_room = 4 * n + 64;
    }
    size_t *ends = s->origins + n + 1;
    for (size_t i = 0; i < n; i++, from++) {
        while (from + 1 < text->n && cut->text[i] != ' ' && text->at[from] != cut->text[i]) {
            from++;
        }
        script_source(&s->span, from, 1, &source, &source_n);
        s->origins[i] = source;
        s->origins[i + 1] = ends[i] = source + source_n;
    }
    return UTTER_OK;
}

/* Quiet in front of the piece to come. */
static void add_lead(struct source *s, double seconds)
{
    s->lead_s = min(s->lead_s + seconds, (double)SCRIPT_MOST_PAUSE_S);
}

/* The next span in the cutter. */
static utter_status take_span(struct source *s, utter_error *error)
{
    script_span_fini(&s->span);
    s->has_span = s->has_next;
    s->span = s->next;
    s->next = (struct script_span){0};
    s->has_next = false;
    if (!s->has_span && !script_next(s->script, &s->span)) {
        return script_is_done(s->script) ? UTTER_END : UTTER_AGAIN;
    }
    s->has_span = true;
    size_t most = s->cutter.most;
    cutter_fini(&s->cutter);
    s->cutter.most = most;
    s->cutter.n_pieces = s->n_cut;
    add_lead(s, s->span.pause_s > 0 && s->n_cut == 0 ? s->span.pause_s : 0);
    utter_status status = cutter_text(&s->cutter, s->span.text.at, s->span.text.n, error);
    cutter_finish(&s->cutter);
    return status;
}

/* The span behind the one that is spoken, where it is known. */
static bool look_ahead(struct source *s)
{
    s->has_next = s->has_next || script_next(s->script, &s->next);
    return s->has_next || script_is_done(s->script);
}

/* The next piece that has words; the quiet of one that has none goes in front of the next. */
static utter_status cut_span(struct source *s, struct cut_piece *cut, utter_error *error)
{
    utter_status status;
    while (true) {
        if (s->has_span && !look_ahead(s)) {
            return UTTER_AGAIN;
        }
        s->cutter.part = s->has_next && s->next.text.n > 0;
        if (!s->has_span || !cutter_next(&s->cutter, cut)) {
            if ((status = take_span(s, error))) {
                return status;
            }
            continue;
        }
        if (cut->speaks) {
            return UTTER_OK;
        }
        /* While nothing has been spoken, take_span counts the pause in front of the next span. */
        bool pause = s->n_cut > 0 && cutter_is_done(&s->cutter) && s->has_next && s->next.pause_s > 0;
        add_lead(s, pause ? s->next.pause_s : 0);
    }
}

static utter_status next_of_script(struct source *s, struct source_piece *piece, utter_error *error)
{
    struct cut_piece *cut = &piece->cut;
    utter_status status = cut_span(s, cut, error);
    if (status || (status = find_origins(s, cut, error))) {
        return status;
    }
    bool ends = cutter_is_done(&s->cutter), rest = s->has_next && s->next.text.n == 0;
    piece->style = &s->span.style;
    piece->lead_s = s->lead_s > 0 ? s->lead_s : -1;
    s->lead_s = 0;
    if (ends && s->has_next) {
        piece->pause_s = s->next.pause_s;
        cut->end = s->next.style.heading || s->span.style.heading
                       ? CUT_PARAGRAPH
                       : cut_end_of(s->span.text.at, s->span.text.n);
    }
    cut->last = ends && (!s->has_next || rest) && script_is_done(s->script);
    script_source(&s->span, cut->at, cut->bytes, &cut->at, &cut->bytes);
    piece->origins = s->origins;
    piece->ends = s->origins + cut->text_bytes + 1;
    return UTTER_OK;
}

utter_status source_next(struct source *s, struct source_piece *piece, utter_error *error)
{
    utter_status status = UTTER_OK;
    *piece = (struct source_piece){.lead_s = -1, .pause_s = -1};
    if (s->script) {
        status = next_of_script(s, piece, error);
    } else if (!cutter_next(&s->cutter, &piece->cut)) {
        status = cutter_is_done(&s->cutter) ? UTTER_END : UTTER_AGAIN;
    }
    s->n_cut += status == UTTER_OK;
    return status;
}

bool source_is_done(const struct source *s)
{
    bool cut = !s->has_span || cutter_is_done(&s->cutter);
    return s->script ? cut && (!s->has_next || s->next.text.n == 0) && script_is_done(s->script)
                     : cutter_is_done(&s->cutter);
}

size_t source_certain(const struct source *s)
{
    return s->script ? 0 : cutter_certain(&s->cutter);
}

void source_fini(struct source *s)
{
    cutter_fini(&s->cutter);
    script_free(&s->script);
    script_span_fini(&s->span);
    script_span_fini(&s->next);
    chars_fini(&s->unread);
    memory_free(s->origins);
    *s = (struct source){0};
}
