/* SPDX-License-Identifier: Apache-2.0
 * Stages of a long piece of work -> one number that grows from 0 to 1. */
#include "base/progress.h"

void progress_begin(struct progress *progress, double share, double all)
{
    if (progress) {
        progress->from += progress->share;
        progress->share = share;
        progress->done = 0;
        progress->all = all;
    }
}

utter_status progress_add(struct progress *progress, double more, utter_error *error)
{
    struct progress *p = progress;
    if (!p || !p->tell) {
        return UTTER_OK;
    }
    p->done += more;
    bool wanted = p->tell(p->user, p->from + p->share * (p->done < p->all ? p->done / p->all : 1));
    return wanted ? UTTER_OK : error_set(error, UTTER_E_CANCELLED, "%s was stopped", p->what);
}
