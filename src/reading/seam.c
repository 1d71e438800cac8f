/* SPDX-License-Identifier: Apache-2.0
 * The quiet between two pieces: what of it leaves, and when. Of a piece a few milliseconds are always held, so that
 * they can fade wherever it ends. */
#include "reading/seam.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"

/* -48 dB: above what a vocoder gives where nobody speaks, below a voice that breathes out. */
static const float loud = 0.004f;
static const double fade_s = 0.005, lead_s = 0.02; /* kept of the quiet in front of a piece */
/* A vocoder begins with a tick of some milliseconds (-33 dB of the built-in voice), behind which it is quiet: what is
 * heard of a piece's first onset_s is such a tick if quiet_s of quiet follow in them, and else speech. */
static const double onset_s = 0.06, quiet_s = 0.01;
static const float tick_most = 0.06f; /* louder is speech in any case */

utter_status samples_add(struct samples *s, const float *pcm, size_t n, utter_error *error)
{
    if (s->n + n > s->room) {
        size_t room = s->n + n + s->room / 2 + 4096;
        float *grown = memory_resize(s->at, s->room, room, sizeof *grown);
        if (!grown) {
            return error_memory(error, "sound");
        }
        s->at = grown;
        s->room = room;
    }
    if (pcm && n > 0) {
        memcpy(s->at + s->n, pcm, n * sizeof *pcm);
    } else if (n > 0) {
        memset(s->at + s->n, 0, n * sizeof *pcm);
    }
    s->n += n;
    return UTTER_OK;
}

void samples_fini(struct samples *s)
{
    memory_free(s->at);
    *s = (struct samples){0};
}

static size_t count_of(const struct seam *seam, double seconds)
{
    return (size_t)(seconds * seam->rate);
}

static utter_status let_go(struct seam *seam, size_t n, struct samples *out, utter_error *error)
{
    utter_status status = samples_add(out, seam->held.at, n, error);
    if (status == UTTER_OK && n > 0) {
        seam->held.n -= n;
        memmove(seam->held.at, seam->held.at + n, seam->held.n * sizeof *seam->held.at);
    }
    return status;
}

void seam_pause(struct seam *seam, double pause_s)
{
    size_t lead = count_of(seam, lead_s), pause = count_of(seam, pause_s);
    seam->most_quiet = pause > lead ? pause - lead : 0;
}

void seam_begin(struct seam *seam, double pause_s, bool first)
{
    seam->fill = seam->exact;
    seam->keep = seam->exact ? seam->n_behind : count_of(seam, lead_s);
    seam->lead = !first || seam->exact;
    seam->exact = false;
    seam_pause(seam, pause_s);
    seam->opening = seam->lead;
    seam->onset.n = 0;
    seam->n_quiet = 0;
    seam->held.n = 0;
    stress_begin(&seam->stress, !first);
}

void seam_exact(struct seam *seam, double pause_s, bool last)
{
    size_t n = (size_t)lround(pause_s * seam->rate), lead = last ? 0 : count_of(seam, lead_s);
    seam->exact = true;
    seam->n_behind = min(n, lead);
    seam->most_quiet = n - seam->n_behind;
}

utter_status seam_silence(struct seam *seam, double pause_s, struct samples *out, utter_error *error)
{
    size_t n = (size_t)lround(pause_s * seam->rate);
    size_t behind = seam->exact ? 0 : min(n, count_of(seam, lead_s));
    seam->n_behind = seam->exact ? seam->n_behind : behind;
    seam->exact = true;
    return samples_add(out, NULL, n - behind, error);
}

/* Of the quiet in front of a piece little is kept. */
static void cut_lead(struct seam *seam)
{
    size_t keep = seam->keep, n = seam->held.n;
    if (n > keep) {
        memmove(seam->held.at, seam->held.at + n - keep, keep * sizeof *seam->held.at);
        seam->held.n = keep;
    }
}

/* Where the pause in front of the piece is exact, there is no less of it. */
static utter_status fill_lead(struct seam *seam, utter_error *error)
{
    size_t n = seam->held.n, missing = seam->fill && n < seam->keep ? seam->keep - n : 0;
    utter_status status = samples_add(&seam->held, NULL, missing, error);
    if (status == UTTER_OK && missing > 0) {
        memmove(seam->held.at + missing, seam->held.at, n * sizeof *seam->held.at);
        memset(seam->held.at, 0, missing * sizeof *seam->held.at);
    }
    return status;
}

static void fade_in(struct seam *seam)
{
    size_t fade = count_of(seam, fade_s);
    for (size_t i = 0; i < min(seam->held.n, fade); i++) {
        seam->held.at[i] *= (float)(i + 1) / (float)(fade + 1);
    }
}

static utter_status take_in(
    struct seam *seam, const float *pcm, size_t n, struct samples *out, utter_error *error)
{
    size_t last_loud = n; /* n: none */
    for (size_t i = n; i-- > 0 && last_loud == n;) {
        last_loud = fabsf(pcm[i]) > loud ? i : n;
    }
    if (seam->lead) {
        size_t first = 0;
        while (first < n && fabsf(pcm[first]) <= loud) {
            first++;
        }
        utter_status status = samples_add(&seam->held, pcm, first, error);
        cut_lead(seam);
        if (status || first == n || (status = fill_lead(seam, error))) {
            return status;
        }
        seam->lead = false;
        fade_in(seam);
        pcm += first;
        n -= first;
        last_loud -= first;
    }
    seam->n_quiet = last_loud < n ? n - 1 - last_loud : seam->n_quiet + n;
    utter_status status = samples_add(&seam->held, pcm, n, error);
    if (status == UTTER_OK) {
        stress_take(&seam->stress, seam->held.at + seam->held.n - n, n);
    }
    /* What is quiet beyond the pause waits: something loud may come behind it. */
    size_t wait = max(seam->n_quiet > seam->most_quiet ? seam->n_quiet - seam->most_quiet : 0,
        count_of(seam, fade_s));
    return status || seam->held.n <= wait ? status : let_go(seam, seam->held.n - wait, out, error);
}

/* Samples in front of the first long quiet, 0 if there is none. */
static size_t tick_of(const struct seam *seam)
{
    size_t n_quiet = 0, quiet = count_of(seam, quiet_s);
    for (size_t i = 0; i < seam->onset.n && fabsf(seam->onset.at[i]) < tick_most; i++) {
        n_quiet = fabsf(seam->onset.at[i]) > loud ? 0 : n_quiet + 1;
        if (n_quiet == quiet) {
            return i + 1 - quiet;
        }
    }
    return 0;
}

static utter_status end_onset(struct seam *seam, struct samples *out, utter_error *error)
{
    size_t tick = tick_of(seam);
    seam->opening = false;
    return take_in(seam, seam->onset.at + tick, seam->onset.n - tick, out, error);
}

utter_status seam_put(
    struct seam *seam, const float *pcm, size_t n, struct samples *out, utter_error *error)
{
    utter_status status = UTTER_OK;
    if (seam->opening) {
        size_t here = min(n, count_of(seam, onset_s) - seam->onset.n);
        status = samples_add(&seam->onset, pcm, here, error);
        pcm += here;
        n -= here;
        if (status || seam->onset.n < count_of(seam, onset_s)) {
            return status;
        }
        status = end_onset(seam, out, error);
    }
    return status || n == 0 ? status : take_in(seam, pcm, n, out, error);
}

utter_status seam_end(struct seam *seam, bool last, struct samples *out, utter_error *error)
{
    size_t fade = count_of(seam, fade_s);
    utter_status status = seam->opening && seam->onset.n ? end_onset(seam, out, error) : UTTER_OK;
    stress_end(&seam->stress);
    if (status) {
        return status;
    }
    if (!last) {
        size_t beyond = seam->n_quiet > seam->most_quiet ? seam->n_quiet - seam->most_quiet : 0;
        seam->held.n -= min(beyond, seam->held.n);
        size_t n = min(fade, seam->held.n);
        for (size_t i = 0; i < n; i++) {
            seam->held.at[seam->held.n - 1 - i] *= (float)i / (float)fade;
        }
    }
    status = let_go(seam, seam->held.n, out, error);
    size_t missing = !last && seam->n_quiet < seam->most_quiet ? seam->most_quiet - seam->n_quiet : 0;
    return status ? status : samples_add(out, NULL, missing, error);
}

void seam_fini(struct seam *seam)
{
    samples_fini(&seam->held);
    samples_fini(&seam->onset);
}
