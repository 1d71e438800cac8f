/* SPDX-License-Identifier: Apache-2.0
 * Work of the library that takes its time: a progress line on a terminal, and an end at Ctrl-C. */
#ifndef CLI_LONG_WORK_H
#define CLI_LONG_WORK_H

#include "cli/options.h"
#include "utter.h"

struct long_work {
    const char *what; /* for the line: "listening" */
    bool quiet;
    double told_s; /* when the line was last written */
};

/* Watches for Ctrl-C from here on. 0, or an exit code after a message. */
int long_work_begin(struct long_work *work, const char *what, const struct settings *settings);
/* A utter_progress_fn; `work` is the struct. */
bool long_work_progress(void *work, double done);
/* What the work led to: 0, or an exit code after a message. Ctrl-C counts also when it came too late for the work. */
int long_work_end(utter_status status, const utter_error *error);

#endif
