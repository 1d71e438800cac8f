/* SPDX-License-Identifier: Apache-2.0
 * What a piece goes on from: the recording of a cloned voice, and behind it, as if it had been recorded too, the piece
 * before. The recording stays in front of every piece, so that the voice cannot drift from it piece by piece. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "reading/reading_parts.h"

static const utter_voice *own_voice(const utter_reading *r, const struct work *w)
{
    return w->voice ? w->voice : r->voice.voice;
}

utter_status carry_check(const utter_reading *r, utter_error *error)
{
    const utter_voice *v = r->voice.voice;
    return !r->options.carry || (v && v->kind == VOICE_CONTEXT)
               ? UTTER_OK
               : error_set(error, UTTER_E_ARGUMENT,
                     "only a voice cloned with the transcript of its recording can go on from sentence "
                     "to sentence (carry)");
}

const utter_voice *carry_voice(const utter_reading *r, const struct work *w)
{
    return r->carried && r->carried_from == own_voice(r, w) ? r->carried : NULL;
}

/* The recording and behind it the piece, as one voice. */
static utter_status join(
    utter_voice **joined, const utter_voice *v, const struct work *w, utter_error *error)
{
    size_t n = (size_t)v->n_codebooks, at = (size_t)v->n_frames * n;
    size_t n_frames = (size_t)(v->n_frames + w->stream->n_frames);
    size_t said = strlen(v->transcript), bytes = said + 1 + w->text_bytes + 1;
    int32_t *codes = memory_new(n_frames * n, sizeof *codes);
    char *text = memory_new(bytes, 1);
    utter_status status = codes && text ? UTTER_OK : error_memory(error, "a voice that goes on");
    if (status == UTTER_OK) {
        memcpy(codes, v->codes, at * sizeof *codes);
        memcpy(codes + at, w->stream->codes, (n_frames * n - at) * sizeof *codes);
        snprintf(text, bytes, "%s %.*s", v->transcript, (int)w->text_bytes, w->text);
        status = voice_new_clone(
            joined, v->name, v->vector, v->width, codes, (int)n_frames, v->n_codebooks, text, error);
    }
    if (status == UTTER_OK) {
        (*joined)->codec = v->codec;
    }
    memory_free(codes);
    memory_free(text);
    return status;
}

/* Half of the positions stay for the text and its speech. */
static bool fits(const utter_reading *r, const utter_voice *v, const struct work *w)
{
    return v->n_frames + w->stream->n_frames <= r->engine->context.model->config->max_positions / 2;
}

utter_status carry_piece(utter_reading *r, const struct work *w, bool whole, utter_error *error)
{
    const utter_voice *v = own_voice(r, w);
    carry_drop(r);
    /* Words that were left out would be taken for said. */
    if (!r->options.carry || !whole || !v || v->kind != VOICE_CONTEXT || w->stream->n_frames == 0 ||
        !fits(r, v, w)) {
        return UTTER_OK;
    }
    utter_status status = join(&r->carried, v, w, error);
    r->carried_from = status ? NULL : v;
    return status;
}

void carry_drop(utter_reading *r)
{
    voice_free(&r->carried);
    r->carried_from = NULL;
}
