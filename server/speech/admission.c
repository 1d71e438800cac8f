/* SPDX-License-Identifier: Apache-2.0
 * What is promised, what is free, and how long the next one would wait.
 *
 * A worker tells its capacity: how many speeches it can make as fast as they are heard. A speech that has sound in
 * hand needs less than one of these: what is left of it may take as long as the listener hears what is there and what
 * is left, so it needs left / (left + in hand). The sum of this is what is promised. */
#include "server/speech/admission.h"

#include <string.h>

#include "base/minmax.h"

/* A speech is never taken to be nearer to its end than this, in seconds: how long it will be is an estimate. */
static const double least_left_s = 1;
/* Nor farther: a long text promises its next pieces only, in seconds as they are heard. */
static const double most_left_s = 20;
/* Lanes that may be promised beyond the capacity, of which the worker keeps a fifth back. */
static const double slack = 0.25;
/* When lanes have been free for so long, who comes next may be the first of a burst. */
static const double quiet_s = 1;
/* Who is patient waits so long, and who is not a little longer than was promised. */
static const double patient_s = 30, grace_s = 1;
/* Who is refused is told to come back by then, in seconds, however slow the model. */
static const double most_retry_s = 3600;
/* So much more than the mean a text may be. */
static const double margin = 1.25;
/* Of English read aloud, until the model has spoken; and the weight of a new speech in the means. */
static const double first_seconds_a_byte = 1 / 14.0, first_speech_s = 4, weight = 0.1;

void admission_begin(struct server *s)
{
    s->admission =
        (struct admission){.seconds_a_byte = first_seconds_a_byte, .speech_s = first_speech_s};
}

void admission_learn(struct server *s, size_t text_bytes, double seconds)
{
    struct admission *a = &s->admission;
    a->speech_s += weight * (min(seconds, most_left_s) - a->speech_s);
    if (text_bytes > 0) {
        a->seconds_a_byte += weight * (seconds / (double)text_bytes - a->seconds_a_byte);
    }
}

static double left_of(const struct server *s, const struct admission_speech *p)
{
    return (double)p->text_bytes * s->admission.seconds_a_byte / p->speed - p->made_s;
}

double admission_need(const struct server *s, const struct admission_speech *p)
{
    double left = min(max(left_of(s, p), least_left_s), most_left_s);
    return left / (left + max(p->in_hand_s, 0.0));
}

double admission_bytes(const struct server *s, const struct fields *f)
{
    enum { CODED = 16000 }; /* bytes a second, at most, of the formats that lose something */
    const struct encode_settings *sound = &f->sound;
    int rate = sound->sample_rate ? sound->sample_rate : s->ready.sample_rate;
    bool plain = sound->format == ENCODE_WAV || sound->format == ENCODE_PCM;
    double a_second = plain                          ? (double)rate * samples_bytes(sound->samples)
                      : sound->format == ENCODE_FLAC ? 2.0 * rate
                      : sound->bit_rate > 0          ? sound->bit_rate / 8.0
                                                     : CODED;
    return margin * (double)strlen(f->input) * s->admission.seconds_a_byte / sound->speed * a_second;
}

/* Seconds of sound that a worker makes in a second, by what it promises; by its steps where it is slower than hearing,
 * as it promises all lanes then. */
static double speed_of(const struct link *l)
{
    const struct server *s = l->server;
    const struct wire_beat *b = &l->beat;
    const int lanes = b->capacity > 0 && s->options->paced ? min(b->capacity, l->lanes) : l->lanes;
    if (!b->falls_behind || b->next_step_s <= 0) {
        return lanes;
    }
    const double frame_s = (double)s->ready.frame_samples / s->ready.sample_rate;
    return min((double)lanes, (b->n_open + 1) * frame_s / b->next_step_s);
}

int admission_free(const struct link *l, double promised)
{
    int n_free = l->lanes - l->n_running;
    if (l->beat.capacity > 0 && l->server->options->paced) {
        n_free = min(n_free, (int)max(l->beat.capacity + slack - promised, 0.0));
    }
    return max(n_free, 0);
}

int admission_open(const struct link *l, int n_free, int n_new)
{
    enum { AT_ONCE = 2, LAST = 64 }; /* of so many lanes one is a last one */
    const struct server *s = l->server;
    const bool is_crowded = s->options->paced && s->admission.crowded_since > 0,
               is_last = n_free <= max(l->lanes / LAST, 1);
    return is_crowded && is_last && n_new >= AT_ONCE ? 0 : n_free;
}

bool admission_ends_in_time(const struct link *l, const struct admission_speech *p, bool has_all)
{
    const struct server *s = l->server;
    /* The worker's speed is shared by those that run. */
    const double lane_speed = speed_of(l) / max(l->n_running, 1),
                 left = has_all
                            ? left_of(s, p)
                            : max(max(left_of(s, p), s->admission.speech_s - p->made_s), least_left_s);
    return left <= 1e-3 * s->options->patience_ms * lane_speed;
}

/* How long one more would wait: as many end in a second as the speed and their mean length say. */
static double wait_of(const struct server *s, int n_ahead)
{
    double speed = 0;
    LINKS_FOREACH(l, s)
    {
        speed += link_takes(l) ? speed_of(l) : 0;
    }
    return n_ahead > 0 && speed > 0 ? n_ahead * s->admission.speech_s / speed : 0;
}

/* Why one more would be refused; NULL: it would not. *wait: until the next place, in seconds. */
static const char *fault_of(
    const struct server *s, bool patient, const struct admission_now *now, double *wait)
{
    const double patience = 1e-3 * s->options->patience_ms;
    /* Who wakes a worker that rests will have one of its lanes, also where nobody may wait. */
    bool is_ready = links_ready(s) > 0;
    int n_free = is_ready ? now->n_free : s->is_resting, n_ahead = now->n_before + 1 - n_free;
    *wait = wait_of(s, n_ahead);
    if (s->n_queued + 1 - n_free > s->options->queue) {
        return "the request queue is full";
    }
    if (patient || !is_ready) {
        return NULL;
    }
    if (n_ahead <= 0) {
        /* Lanes are free, but more have come at once than can hear their first sound in time. */
        *wait = s->options->paced ? max(now->first_s - patience, 0.0) : 0;
        return *wait > 0 ? "no more first sounds can be made in time" : NULL;
    }
    /* The queue takes up what comes at once after a quiet time; when more come for longer, it would only make all of
     * them late. Where those that run have come at once as well, none of them ends yet, whatever the mean says. */
    bool burst = s->admission.crowded_since <= 0 || now->time - s->admission.crowded_since <= patience,
         in_time = n_ahead <= now->n_ending || wait_of(s, n_ahead + s->n_running) <= patience;
    *wait = in_time ? *wait : max(*wait, patience);
    return burst && in_time && *wait <= patience
               ? NULL
               : "no more speeches can be made as fast as they are heard";
}

bool admission_take(
    struct server *s, bool patient, const struct admission_now *now, struct refusal *refusal)
{
    double wait;
    const char *fault = fault_of(s, patient, now, &wait);
    if (wait > 0 && links_ready(s) > 0) {
        s->admission.quiet_since = 0;
        s->admission.crowded_since =
            s->admission.crowded_since > 0 ? s->admission.crowded_since : now->time;
    }
    if (fault) {
        const int retry_ms = (int)max(min(wait, most_retry_s) * 1000, (double)RETRY_MS);
        refuse(refusal, 503, NULL, "%s (%d waiting; try again in %d s)", fault, s->n_queued,
            refusal_retry_s(retry_ms));
        refusal->retry_ms = retry_ms;
        return false;
    }
    return true;
}

bool admission_is_full(const struct server *s, const struct admission_now *now)
{
    double wait;
    return fault_of(s, false, now, &wait) != NULL;
}

double admission_most_wait(const struct server *s, bool patient)
{
    double own = 1e-3 * s->options->patience_ms + grace_s;
    return patient ? max(own, patient_s) : own;
}

void admission_tick(struct server *s, const struct admission_now *now)
{
    struct admission *a = &s->admission;
    bool quiet = s->n_queued == 0 && now->n_free > 0;
    a->quiet_since = quiet ? a->quiet_since > 0 ? a->quiet_since : now->time : 0;
    if (quiet && now->time - a->quiet_since > quiet_s) {
        a->crowded_since = 0;
    }
}
