/* SPDX-License-Identifier: Apache-2.0
 * What the workers have promised and have free, and on which of them a speech is heard soonest: what is read there
 * before it, the step as the worker foretells it, and whether it has read this voice before. */
#include "server/speech/speech_parts.h"

#include <math.h>
#include <string.h>

#include "base/minmax.h"
#include "server/protocol/devices.h"

/* Whose text has not come for so long waits for its text, not for us. */
static const double text_gap_s = 1;

bool speech_has_text(const struct speech *p, double now)
{
    return p->text_ended || now - p->moved_at < text_gap_s;
}

static struct admission_speech about(const struct speech *p, double now)
{
    return (struct admission_speech){
        p->text_bytes, p->speed, p->made_s, p->first_samples > 0 ? p->heard_until - now : 0};
}

static double need(const struct speech *p, double now)
{
    if (p->background || p->paused || p->ended || !speech_has_text(p, now) || !speech_is_wanted(p)) {
        return 0;
    }
    const struct admission_speech as_it_is = about(p, now);
    return admission_need(p->server, &as_it_is);
}

/* Those in the background make room at once, and are no part of this. */
static bool ends_in_time(const struct speech *p, double now)
{
    const struct admission_speech as_it_is = about(p, now);
    const bool is_cancelled = !speech_is_wanted(p);
    return !p->background &&
           (is_cancelled || (!p->paused && admission_ends_in_time(p->link, &as_it_is, p->text_ended)));
}

/* The sum of the needs of all that run there. */
static double promised_by(const struct link *l, double now)
{
    double promised = 0;
    const struct speech *p;
    TAILQ_FOREACH(p, &l->running, entry)
    {
        promised += need(p, now);
    }
    return promised;
}

int speech_free_lanes(const struct link *l, double now)
{
    return link_takes(l) ? admission_free(l, promised_by(l, now)) : 0;
}

int speech_room(const struct server *s)
{
    return speech_look(s, false, clock_seconds()).n_free;
}

/* ---- Beginnings ---- */

static const uint64_t prime = 0x100000001b3;

/* FNV-1a, of the zero behind the text too; NULL is not an empty text. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (const char *at = text; at && *at; at++) {
        hash = (hash ^ (uint8_t)*at) * prime;
    }
    return (hash ^ (text ? 0 : 1)) * prime;
}

uint64_t speech_beginning(const struct wire_open *o)
{
    uint64_t hash = (0xcbf29ce484222325 ^ (uint64_t)o->layout) * prime;
    const char *const parts[] = {o->voice_name, o->voice_file, o->language, o->instruct};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        hash = hash_text(hash, parts[i]);
    }
    return hash;
}

static uint64_t bit_of(const struct link *l)
{
    return l->is_idle ? 0 : UINT64_C(1) << l->number;
}

/* NULL: no speech had it lately. */
static struct beginning *find(struct server *s, uint64_t hash)
{
    for (int i = 0; i < BEGINNINGS; i++) {
        if (s->beginnings[i].used && s->beginnings[i].hash == hash) {
            return &s->beginnings[i];
        }
    }
    return NULL;
}

void speech_begins(struct speech *p)
{
    struct server *s = p->server;
    struct beginning *b = find(s, p->beginning);
    if (!b) {
        b = s->beginnings;
        for (int i = 1; i < BEGINNINGS; i++) {
            b = s->beginnings[i].used < b->used ? &s->beginnings[i] : b;
        }
        *b = (struct beginning){.hash = p->beginning};
    }
    p->is_new = !(b->where & bit_of(p->link));
    b->where |= bit_of(p->link);
    b->used = p->id;
}

void speech_began(const struct speech *p)
{
    static const double weight = 0.3;
    struct beginning *b = find(p->server, p->beginning);
    const struct wire_done *done = &p->end.model;
    if (b && done->n_pieces == 1 && done->n_retries == 0) {
        double *mean = p->is_new ? &b->first_s : &b->again_s;
        *mean += (*mean > 0 ? weight : 1) * (done->prefill_s - *mean);
    }
}

/* A new worker has read nothing. */
void speech_worker_ready(struct link *l)
{
    for (int i = 0; i < BEGINNINGS; i++) {
        l->server->beginnings[i].where &= ~bit_of(l);
    }
    speech_dispatch(l->server);
}

/* ---- The choice ---- */

/* So many bytes of a text are read before its first sound at most, and so many are there without text. */
static const double most_bytes = 240, least_bytes = 32;

/* Until the prompt is read, in seconds, by the worker's own clock. */
static double prompt_s(const struct link *l, const struct speech *p, bool is_new)
{
    double s = l->beat.prompt_s * (least_bytes + min((double)p->text_bytes, most_bytes));
    const struct beginning *b = is_new ? find(p->server, p->beginning) : NULL;
    return s + (b && b->again_s > 0 ? max(b->first_s - b->again_s, 0.0) : 0);
}

/* A step, behind the half of one that runs. */
static double steps_s(const struct link *l)
{
    int n_sent = max(l->n_running - l->beat.n_open, 0); /* since it has foretold its step */
    return 1.5 * (l->beat.next_step_s + n_sent * l->beat.lane_s);
}

/* A listener waits for its first sound. */
static bool is_unheard(const struct speech *p)
{
    return p->first_samples <= 0 && speech_is_wanted(p) && !p->background;
}

/* Those of them that have had a lane for no longer than this. */
static int count_unheard(const struct link *l, double now, double seconds)
{
    const struct speech *p;
    int n = 0;
    TAILQ_FOREACH(p, &l->running, entry)
    {
        n += is_unheard(p) && now - (p->read_at + p->end.queue_s) <= seconds;
    }
    return n;
}

/* The prompts that are read before the next one. */
static double prompts_s(const struct link *l)
{
    const struct speech *other;
    double s = 0;
    TAILQ_FOREACH(other, &l->running, entry)
    {
        if (is_unheard(other)) {
            s += prompt_s(l, other, other->is_new);
        }
    }
    return s;
}

/* How long a crowd waits for its first sounds: its prompts have the time that is not promised to frames, but half of
 * it at most, as those who come while it waits are not counted. 0: it is no crowd. */
static double crowd_s(const struct link *l, double now)
{
    enum { CROWD = 16 };
    if (count_unheard(l, now, INFINITY) < CROWD) {
        return 0;
    }
    const double taken = min(promised_by(l, now) / max(l->beat.capacity, 1), 1.0);
    const double share = max(0.5, WIRE_FULL_PERCENT / 100.0 * taken);
    return steps_s(l) + prompts_s(l) / (1 - share);
}

struct admission_now speech_look(const struct server *s, bool patient, double time)
{
    static const double step_s = 1e-3 * WIRE_STEP_MS;
    struct admission_now now = {.time = time, .first_s = INFINITY};
    const struct speech *p;
    LINKS_FOREACH(l, s)
    {
        const int n_free = speech_free_lanes(l, time),
                  n_open = patient ? n_free : admission_open(l, n_free, count_unheard(l, time, step_s));
        now.n_free += n_open;
        now.first_s = n_open > 0 ? min(now.first_s, crowd_s(l, time)) : now.first_s;
        const bool takes = link_takes(l); /* else what it frees is nobody's */
        TAILQ_FOREACH(p, &l->running, entry)
        {
            now.n_ending += takes && ends_in_time(p, time);
        }
    }
    TAILQ_FOREACH(p, &s->queued, entry)
    {
        now.n_before += patient || !p->patient;
    }
    return now;
}

/* Until its first sound, were it to go there now: what is read before it, its own prompt, and a step. */
static double first_sound_s(const struct link *l, const struct speech *p, bool is_new)
{
    return steps_s(l) + prompt_s(l, p, is_new) + prompts_s(l);
}

/* Nobody hears which of two is sooner by less than this, and a worker's clock is no better. */
static const double near_s = 0.005;

/* A worker that has a lane for it. */
struct candidate {
    struct link *link;
    double first_sound_s;
    double taken; /* share of what it can make */
    bool is_new;
};

static struct candidate look_at(struct link *l, const struct speech *p, const struct beginning *b)
{
    int capacity = l->beat.capacity;
    bool is_new = !b || !(b->where & bit_of(l)), is_known = capacity > 0 && l->server->options->paced;
    return (struct candidate){l, first_sound_s(l, p, is_new),
        (double)l->n_running / (is_known ? min(capacity, l->lanes) : l->lanes), is_new};
}

/* Of those where it is heard about as soon as anywhere, the one that has least to do, and then one that knows it. */
struct link *speech_place(const struct speech *p, double now)
{
    struct server *s = p->server;
    const struct beginning *b = s->n_links > 1 ? find(s, p->beginning) : NULL;
    struct candidate all[DEVICES_MOST], best = {0};
    int n = 0;
    double least_s = INFINITY;
    LINKS_FOREACH(l, s)
    {
        if (speech_free_lanes(l, now) > 0) {
            all[n] = look_at(l, p, b);
            least_s = min(least_s, all[n++].first_sound_s);
        }
    }
    for (int i = 0; i < n; i++) {
        bool is_near = all[i].first_sound_s <= least_s + near_s, is_less = all[i].taken < best.taken;
        if (is_near &&
            (!best.link || is_less || (all[i].taken <= best.taken && best.is_new && !all[i].is_new))) {
            best = all[i];
        }
    }
    return best.link;
}

bool speech_waits_for_its_own(const struct speech *p)
{
    const struct speech *other;
    if (!p->patient) {
        return false;
    }
    LINKS_FOREACH(l, p->server)
    {
        TAILQ_FOREACH(other, &l->running, entry)
        {
            if (speech_is_wanted(other) && strcmp(other->request, p->request) == 0) {
                return true;
            }
        }
    }
    return false;
}
