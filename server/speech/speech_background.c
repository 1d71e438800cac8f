/* SPDX-License-Identifier: Apache-2.0
 * Speeches that nobody waits for, on lanes that listeners leave idle. They stand in a queue of their own, no promise
 * counts them, and who needs the lane has it: the worker is told to cancel one before it is told to open the other. */
#include "base/minmax.h"
#include "server/speech/speech_parts.h"

/* For a lane; and for more of them, until what the worker for them has is given back. */
static const double patient_s = 30, quiet_s = 60;
static const char given_back[] = "listeners need the lane that it had, or leave none idle (ask again)";

bool speech_background_admit(const struct server *s, struct refusal *refusal)
{
    return s->background.n_queued <= s->options->queue ||
           refuse(refusal, 503, NULL, "%d speeches wait for lanes that listeners leave idle",
               s->background.n_queued);
}

void speech_background_end(struct speech *p)
{
    speech_fail_as(p, 503, "given_back", given_back);
}

/* ---- Lanes taken ---- */

/* The worker with most lanes that listeners have no use for; NULL: none has one. */
static struct link *find_idle(const struct server *s, double now)
{
    struct link *best = NULL;
    int most = 0;
    LINKS_FOREACH(l, s)
    {
        int n_idle = l->is_leaving ? 0 : speech_free_lanes(l, now) - l->n_background;
        best = n_idle > most ? l : best;
        most = max(n_idle, most);
    }
    return best;
}

/* A lane for the next one; NULL: there is none. */
static struct link *find_lane(struct server *s)
{
    struct link *l = links_idle(s);
    if (l) {
        return l->is_ready && !l->broken && l->n_background < l->lanes ? l : NULL;
    }
    return s->n_queued > 0 ? NULL : find_idle(s, clock_seconds());
}

void speech_background_dispatch(struct server *s)
{
    struct link *l;
    for (struct speech *p = TAILQ_FIRST(&s->background.queued), *after; p && !s->draining; p = after) {
        after = TAILQ_NEXT(p, entry);
        if (p->text.failed || !p->text_ended) {
            continue;
        }
        if (!(l = find_lane(s))) {
            break;
        }
        speech_send(p, l);
    }
    speech_background_still(s);
}

/* ---- Lanes given back ---- */

/* Of those that have a lane of this worker, who came last has least to lose. */
static struct speech *find_youngest(const struct link *l)
{
    struct speech *p, *youngest = NULL;
    TAILQ_FOREACH(p, &l->running, entry)
    {
        youngest = p->background && !p->is_cut ? p : youngest;
    }
    return youngest;
}

/* The lane is free for the next message to the worker. That the speech has ended is told when the worker says so: who
 * is told now might ask for more in the middle of what its caller does. */
static void cut(struct speech *p)
{
    speech_send_one(p, WIRE_CANCEL, NULL, 0);
    p->is_cut = true;
    p->link->n_background--;
    p->server->background.n_running--;
}

void speech_background_yield(struct link *l)
{
    struct speech *p;
    while (l->n_running + l->n_background >= l->lanes && (p = find_youngest(l))) {
        cut(p);
    }
}

/* One that has waited too long, or whose text is not whole, or that nobody should wait for any more. */
static struct speech *find_hopeless(const struct server *s, double now)
{
    struct speech *p = TAILQ_FIRST(&s->background.queued);
    while (p && !s->draining && !p->text.failed && now - p->queued_at <= patient_s) {
        p = TAILQ_NEXT(p, entry);
    }
    return p;
}

/* The worker that is for them alone ends with the server's first wish to end, and when there is nothing for it. */
static void tend_link(struct link *l, double now)
{
    struct server *s = l->server;
    struct speech *p;
    bool is_quiet = s->background.n_queued + l->n_background == 0;
    s->background.worked_at = is_quiet ? s->background.worked_at : now;
    if (l->socket && (s->draining || now - s->background.worked_at > quiet_s)) {
        while ((p = find_youngest(l))) {
            cut(p);
        }
        link_rest(l);
        speech_worker_lost(l, NULL);
    }
}

/* ---- Who waits for a first sound ---- */

/* A listener hears it while it is made, has given it text, and has had nothing of it, nor of others before it. */
static bool is_awaited(const struct speech *p, double now)
{
    return p->live && p->end.first_s <= 0 && speech_is_wanted(p) && !p->patient && !p->held &&
           speech_has_text(p, now);
}

static bool some_is_awaited(const struct speech_list *speeches, double now)
{
    const struct speech *p;
    TAILQ_FOREACH(p, speeches, entry)
    {
        if (is_awaited(p, now)) {
            return true;
        }
    }
    return false;
}

/* The kernel gives listeners each core at once, but caches and memory only as the idle worker leaves them: until their
 * first sound it leaves all. At most it stands still for most_still_s in a row, and half of the time. */
void speech_background_still(struct server *s)
{
    static const double most_owed_s = 10; /* where this process itself stood still for long */
    const double now = clock_seconds(), since_s = now - s->background.looked_at;
    struct link *l = s->background.link;
    if (!l) {
        return;
    }
    s->background.looked_at = now;
    const double still_s = s->background.still_s + (l->is_still ? since_s : -since_s);
    s->background.still_s = min(max(still_s, 0.0), most_owed_s);
    s->background.is_due =
        s->background.still_s > (s->background.is_due ? 0 : s->background.most_still_s);
    bool awaited = some_is_awaited(&s->queued, now);
    LINKS_FOREACH(other, s)
    {
        awaited = awaited || some_is_awaited(&other->running, now);
    }
    link_still(l, awaited && !s->background.is_due);
}

void speech_background_tick(struct server *s, double now)
{
    struct speech *p;
    if (s->background.link) {
        tend_link(s->background.link, now);
    }
    LINKS_FOREACH(l, s)
    {
        while ((l->is_leaving || s->draining) && (p = find_youngest(l))) {
            cut(p);
        }
    }
    if (links_ready(s) == 0 && links_up(s)) {
        TAILQ_FOREACH(p, &s->background.queued, entry)
        {
            p->queued_at = now; /* it waits for a model */
        }
    }
    while ((p = find_hopeless(s, now))) {
        speech_leave_queue(p);
        speech_background_end(p);
    }
}
