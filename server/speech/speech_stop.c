/* SPDX-License-Identifier: Apache-2.0
 * The end of a drain: everybody whose speech is not whole by then is told. */
#include "server/speech/speech_parts.h"

static const char why[] = "the server stops";

static struct speech *find_wanted(const struct speech_list *list)
{
    struct speech *p = TAILQ_FIRST(list);
    while (p && !speech_is_wanted(p)) {
        p = TAILQ_NEXT(p, entry);
    }
    return p;
}

static void stop_queued(struct speech_list *queued)
{
    /* Nobody comes while it drains, so this ends; each search begins anew, since who is told may change the list. */
    for (struct speech *p; (p = find_wanted(queued));) {
        speech_leave_queue(p);
        speech_fail(p, 503, why);
    }
}

static void stop_running(struct link *l)
{
    for (struct speech *p; (p = find_wanted(&l->running));) {
        speech_fail_running(p, 503, why);
    }
}

void speech_stop(struct server *s)
{
    stop_queued(&s->queued);
    stop_queued(&s->background.queued);
    LINKS_FOREACH(l, s)
    {
        stop_running(l);
    }
    if (s->background.link) {
        stop_running(s->background.link);
    }
}
