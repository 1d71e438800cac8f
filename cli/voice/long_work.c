/* SPDX-License-Identifier: Apache-2.0
 * Progress and Ctrl-C. */
#include "cli/voice/long_work.h"

#include "base/clock.h"
#include "cli/interrupt.h"
#include "cli/report.h"

int long_work_begin(struct long_work *work, const char *what, const struct settings *settings)
{
    *work = (struct long_work){.what = what, .quiet = settings->quiet.given};
    return interrupt_watch(NULL) ? 0 : fail(2, "the system refuses a signal handler");
}

bool long_work_progress(void *user, double done)
{
    struct long_work *work = user;
    double now = clock_seconds();
    if (!work->quiet && progress_shown() && now - work->told_s >= 0.1) {
        work->told_s = now;
        progress("%s: %.0f %%", work->what, 100 * done);
    }
    return interrupt_signal() == 0;
}

int long_work_end(utter_status status, const utter_error *error)
{
    progress_clear();
    if (interrupt_signal()) {
        return fail(128 + interrupt_signal(), "interrupted: nothing was written");
    }
    return status ? fail_status(status, error) : 0;
}
